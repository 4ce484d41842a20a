"""The figures and sentences of the commands, beside where they come from. Called in this process, which is quick."""

import csv
import json
import re
from importlib.metadata import version

import numpy as np
import pytest

from grit.cli.json_text import json_text
from grit.datasets import DATASETS, load
from grit.recipe.load import recipes
from grit.training.run_folder import RunFolder

MODEL = ("encoding.walk_steps=4", "model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2")
SOLUBILITY = "measured log solubility in mols per litre"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables: of one's own, with a class and a number, and of a data set's name."""
    path = tmp_path_factory.mktemp("printed")
    with (path / "mine.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["structure", "SMILES", "weight", "kind"])
        for k in range(60):
            smiles = "C" * (k % 9 + 1) + ("O" if k % 2 else "N")
            writer.writerow(["CC", smiles, k % 9 + 0.5 + k / 100, "even" if k % 3 else "odd"])
        writer.writerow(["CC", "C(", "1.0", "odd"])
    lines = [f"{'C' * n}O,{n / 2}\n" for n in range(1, 31)]
    (path / "esol.csv").write_text(f"smiles,{SOLUBILITY}\n" + "".join(lines))
    return path


@pytest.fixture
def grit(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("GRIT_DATA", str(folder / "data"))
    return command


def fit(grit, run, *options, target="weight"):
    options = ("--target", target, "--preset", "fast", "--split", "random", "--run", run, "train.epochs=2", *options)
    return grit("fit", "mine.csv", *options, *MODEL)


def row(text, label):
    """The numbers of a line of a table."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(label)]
    return [float(number) for number in re.findall(r"-?\d+\.\d+", line.split(label)[1])]


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_comparison_of_a_fit(grit, folder):
    said = fit(grit, "compared")
    found = json.loads(fit(grit, "compared", "--resume", "--json"))
    metrics = found["test"]
    order = ["mae", *[name for name in metrics if name != "mae"]]
    heading = next(line for line in said.splitlines() if "on the test split" in line)
    assert heading.split("on the test split")[1].split() == order
    assert row(said, "GRIT") == pytest.approx([metrics[name] for name in order], abs=6e-5)
    store = load(str(folder / "compared" / "data"))
    train, test = (store.targets(store.split(name)).astype(float) for name in ("train", "test"))
    assert row(said, "always the mean")[0] == pytest.approx(np.abs(test - train.mean()).mean(), abs=6e-5)
    assert row(said, "fingerprints + random forest")[0] == pytest.approx(found["forest"]["mae"], abs=6e-5)
    assert len({row(said, label)[0] for label in ("GRIT", "always the mean", "fingerprints")}) == 3
    assert found["skipped"] == 1
    assert f"60 molecules ({len(train)} train, {store.split('val').size} val, {len(test)} test; split: random" in said
    assert "1 rows could not be used" in said
    assert found["forest"]
    assert json.loads(fit(grit, "alone", "--no-forest", "--json"))["forest"] is None


def test_the_seed_of_a_fit_is_that_of_its_split_and_its_model(grit, folder):
    for name, seed in (("first", 1), ("second", 1), ("third", 2)):
        fit(grit, name, "--seed", seed, "--no-forest")
    splits = [load(str(folder / name / "data")).split("test").tolist() for name in ("first", "second", "third")]
    assert splits[0] == splits[1] != splits[2]
    results = [RunFolder(folder / name / "model").result() for name in ("first", "second", "third")]
    assert [each["seed"] for each in results] == [1, 1, 2]
    assert results[0]["test"] == results[1]["test"] != results[2]["test"]


def test_classes_columns_and_probabilities(grit, folder):
    said = fit(grit, "classes", "--smiles", "SMILES", "--task", "multiclass", "--no-forest", target="kind")
    assert "60 molecules" in said
    assert "fingerprints" not in said
    model = folder / "classes" / "model"
    told = grit("predict", model, "mine.csv", "-o", "plain.csv", "--smiles", "SMILES", "--processes", 1)
    assert "plain.csv: 61 rows, 1 without a prediction (see note)" in told
    grit("predict", model, "mine.csv", "-o", "p.csv", "--smiles", "structure", "--probabilities", "--processes", 1)
    plain, other = read(folder / "plain.csv"), read(folder / "p.csv")
    assert len({line["note"] for line in other}) == 1  # the other column has only CC
    assert plain[-1]["note"]
    assert list(other[0]) == list(plain[0])  # the probabilities are there unasked
    shares = [float(plain[0][f"kind_prob_{name}"]) for name in ("even", "odd")]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert plain[0]["kind_pred"] == ("even" if shares[0] > 0.5 else "odd")
    grit("predict", model, folder / "classes" / "data", "-o", "stored.csv")
    assert len(read(folder / "stored.csv")) == 60


def test_evaluate_another_split_and_other_data(grit, folder):
    fit(grit, "measured", "--no-forest")
    model = folder / "measured" / "model"
    result = RunFolder(model).result()
    assert json.loads(grit("evaluate", model, "--json"))["metrics"] == pytest.approx(result["test"], rel=1e-5)
    said = grit("evaluate", model, "--split", "val")
    assert re.search(rf"mae +{result['val']['mae']:.4f}", said)
    assert f"Next: grit predict {model} INPUT.csv -o OUT.csv" in said
    fit(grit, "elsewhere", "--no-forest", "--seed", 5)
    other = json.loads(grit("evaluate", model, "--data", folder / "elsewhere" / "data", "--json"))["metrics"]
    assert other != pytest.approx(result["test"], rel=1e-3)


def test_data_sets_are_listed_built_and_shown(grit, folder):
    before = grit("datasets")
    assert re.search(r"esol +no ", before)
    assert re.search(r"zinc-mini +on first use ", before)
    assert all(name in before for name in DATASETS)
    build = ("datasets", "build", "esol", "--from", folder, "--processes", 1)
    said = grit(*build, "--limit", 20, "--seed", 3)
    assert re.search(r"esol +yes ", grit("datasets"))
    assert re.search(r"graphs +20 +1,128", said)
    assert re.search(r"nodes per graph +11\.500 +13\.3", said)
    assert re.search(r"edges per graph, both directions +21\.000 +27\.4", said)
    assert re.search(r"smallest and largest graph +2 to 21 nodes", said)
    assert "train: 16 graphs" in said
    assert "rows skipped" in said
    assert grit("datasets", "esol") in said
    split = load("esol", folder / "data").split("test").tolist()
    assert "--overwrite" in grit(*build, code=2)
    grit(*build, "--limit", 20, "--seed", 4, "--overwrite")
    assert load("esol", folder / "data").split("test").tolist() != split
    assert "esol has not been built" in grit("datasets", "esol", "--root", folder / "other", code=2)


def test_train_says_what_it_did(grit, folder):
    grit("datasets", "build", "esol", "--from", folder, "--root", folder / "d", "--processes", 1)
    (folder / "own.yaml").write_text(grit("recipes", "zinc", "dataset=esol", "train.batch_size=8", *MODEL))
    options = ("--root", folder / "d", "train.epochs=3", "train.warmup_epochs=1")
    said = grit("train", "own.yaml", "--run", "told", *options)
    result = RunFolder(folder / "told").result()
    assert f"best epoch {result['best_epoch'] + 1}, {result['num_parameters']:,} parameters" in said
    assert f"val: rmse {result['val']['rmse']:.4f} (" in said
    assert f"test: rmse {result['test']['rmse']:.4f} (" in said
    assert "training GRIT (1 layers of 8) on esol: 24 graphs to learn from, 3 to choose by; run folder told" in said
    assert "Next: grit evaluate told, or grit predict told INPUT.csv -o OUT.csv" in said
    summary = json.loads(grit("train", "own.yaml", "--seeds", "0,1,2", "--json", *options))
    results = [RunFolder(folder / "runs" / "own" / f"seed{seed}").result() for seed in range(3)]
    values = [each["test"]["rmse"] for each in results]
    assert summary["values"] == values
    assert len(set(values)) == 3
    assert summary["mean"] == pytest.approx(np.mean(values))
    assert summary["sd"] == pytest.approx(np.std(values, ddof=1))
    alone = json.loads(grit("train", "own.yaml", "--json", *options, "train.seed=1"))
    assert alone["test"] == json.loads(json_text(results[1]["test"]))  # which writes null for what is not a number
    assert json.loads(json_text(RunFolder(folder / "runs" / "own-seed1").result())) == alone


def test_lists(grit):
    assert [line.split()[0] for line in grit("recipes").split("\n\n")[0].splitlines()] == list(recipes())
    assert "propositions" in grit("reproduce")
    assert "did you mean 'propositions'" in grit("reproduce", "proposition", code=2)
    printed = grit("doctor")
    assert "kernels: " in printed
    assert f"torch-geometric: {version('torch-geometric')} " in printed


def test_epochs_batch_size_and_patience_are_options(grit, folder):
    options = ("--target", "weight", "--preset", "fast", "--split", "random", "--run", "named", "--no-forest")
    changes = ("--epochs", 2, "--batch-size", 7, "--patience", 1)
    grit("fit", "mine.csv", *options, *changes, "train.epochs=2", *MODEL)  # said twice, in agreement
    config = RunFolder(folder / "named" / "model").recipe().train
    assert (config.epochs, config.batch_size, config.patience) == (2, 7, 1)


def test_an_option_and_an_override_that_contradict_each_other(grit, folder):
    said = grit("fit", "mine.csv", "--target", "weight", "--run", "none", "--epochs", 3, "train.epochs=5", code=2)
    assert "--epochs 3 and train.epochs=5 contradict each other; give one of them." in said
    assert not (folder / "none").exists()
