"""The study of predictors, on generated tables."""

import csv
import json

import numpy as np
import pytest

import grit
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.errors import Interrupted
from grit.studies import STUDIES, Workbench
from grit.studies.predictor import predictor, trial

SOLUBILITY = "measured log solubility in mols per litre"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A folder with a table of 100 molecules and a row that is none; the study trains as little as it can."""
    folder = tmp_path / "tables"
    folder.mkdir()
    with (folder / "esol.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([SOLUBILITY, "smiles"])
        writer.writerows([len(smiles) / 10, smiles] for smiles in bundled_smiles()[:100])
        writer.writerow([1.0, "no molecule"])
    monkeypatch.setitem(predictor.SCALES, "smoke", predictor.SCALES["smoke"]._replace(rows={}, splits=1))
    return folder


def begin(tmp_path, tables, **options):
    said, tracked = [], []

    def track(items, what):
        tracked.append((what, len(items)))
        return items

    options = {"tables": str(tables), "only": "esol", "device": "cpu", **options}
    bench = Workbench(
        tmp_path / "study", "smoke", say=said.append, track=track, options=options, free=STUDIES["predictor"].free
    )
    STUDIES["predictor"].run(bench)
    return bench, said, tracked


def held_out(fit):
    """Truth, prediction, low and high of the test molecules of a fit, as it wrote them for its user."""
    with (fit / "predictions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] == "test"]
    return np.array([[float(row[f"{SOLUBILITY}{end}"]) for end in ("", "_pred", "_low", "_high")] for row in rows]).T


def test_smoke(tmp_path, tables):
    pytest.importorskip("lightgbm")
    bench, said, tracked = begin(tmp_path, tables)
    assert tracked == [("fits", 3)]  # two seeds of the scaffold split, one random split
    table = json.loads((bench.folder / "esol-scaffold.json").read_text())
    rows = {row["predictor"]: row for row in table["rows"]}
    assert set(rows) == {
        "GRIT",
        "GRIT, ensemble of 2",
        "fingerprints + random forest",
        "descriptors + random forest",
        "descriptors + LightGBM",
        "always the mean / class shares",
    }
    means = [float(row["test rmse ↓"].split()[0]) for row in table["rows"]]
    assert means == sorted(means)
    errors, shares = [], []
    for seed in (0, 1):
        truth, predicted, low, high = held_out(bench.folder / f"fits/esol-scaffold-{seed}")
        errors.append(np.sqrt(np.square(truth - predicted).mean()))
        shares.append(((low <= truth) & (truth <= high)).mean())
    assert float(rows["GRIT, ensemble of 2"]["test rmse ↓"].split()[0]) == pytest.approx(np.mean(errors), abs=1e-4)
    first = [
        grit.load(bench.folder / f"fits/esol-scaffold-{seed}/models/0").evaluate(
            grit.datasets.load(bench.folder / f"fits/esol-scaffold-{seed}/data")
        )["rmse"]
        for seed in (0, 1)
    ]
    assert float(rows["GRIT"]["test rmse ↓"].split()[0]) == pytest.approx(np.mean(first), abs=1e-4)
    remarks = " ".join(table["remarks"])
    for text in ("80 / 10 / 10 molecules", "1 rows unreadable", "seeds 0, 1", "no number here says", "1 epoch "):
        assert text in remarks
    table = json.loads((bench.folder / "esol-random.json").read_text())
    truth, predicted, *_ = held_out(bench.folder / "fits/esol-random-0")
    rows = {row["predictor"]: row["test rmse ↓"] for row in table["rows"]}
    assert float(rows["GRIT"]) == pytest.approx(np.sqrt(np.square(truth - predicted).mean()), abs=1e-4)
    assert not any("ensemble" in column for column in table["rows"][0])
    covered = json.loads((bench.folder / "coverage.json").read_text())["rows"]
    by_kind = {(row["split"], row["predictor"]): row for row in covered}
    assert set(by_kind) == {("scaffold", "GRIT"), ("scaffold", "GRIT, ensemble of 2"), ("random", "GRIT")}
    assert by_kind["scaffold", "GRIT, ensemble of 2"]["mean coverage"] == pytest.approx(np.mean(shares))
    for name in ("esol-scaffold", "esol-random", "coverage"):
        assert b"<svg" in (bench.folder / f"{name}.svg").read_bytes()
    assert any(line.startswith("esol, random split, seed 0: test rmse grit") for line in said)


def test_interrupted_it_goes_on_with_the_next_fit(tmp_path, tables, monkeypatch):
    fit, begun = trial.fit, []

    def stopped(table, run, **options):
        begun.append(run.name)
        if run.name == "esol-scaffold-1":
            raise Interrupted("interrupted in epoch 1; everything is saved.")
        return fit(table, run, **options)

    with monkeypatch.context() as patch:
        patch.setattr(trial, "fit", stopped)
        with pytest.raises(Interrupted, match="esol, scaffold split, seed 1: interrupted .* The same command goes on"):
            begin(tmp_path, tables)
        patch.setattr(trial, "fit", lambda table, run, **options: begun.append(run.name) or fit(table, run, **options))
        begin(tmp_path, tables)
    assert begun == ["esol-scaffold-0", "esol-scaffold-1", "esol-scaffold-1", "esol-random-0"]


def test_a_table_that_is_missing_or_has_changed(tmp_path, tables):
    with pytest.raises(
        grit.GritError, match=r"table of bbbp is missing \(not in .*expected bbbp.csv or BBBP.csv.*only="
    ):
        begin(tmp_path, tables, only="bbbp")
    with pytest.raises(grit.GritError, match=r"no folder was named.*tables=FOLDER"):
        STUDIES["predictor"].run(Workbench(tmp_path / "other", "small"))
    with pytest.raises(grit.GritError, match="there is no 'zinc'; there are esol, qm9-gap, bbbp, tox21"):
        begin(tmp_path, tables, only="zinc")
    bench = Workbench(tmp_path / "study", "smoke", options={"tables": str(tables)}, free=STUDIES["predictor"].free)
    predictor.find_table(bench, "esol", None)
    with (tables / "esol.csv").open("a") as file:
        file.write("1.0,CCO\n")
    with pytest.raises(grit.GritError, match="begun with another table of esol"):
        predictor.find_table(bench, "esol", None)


def test_some_rows_of_a_table_are_the_same_each_time(tmp_path, tables):
    found = []
    for number in (0, 1):
        bench = Workbench(tmp_path / str(number), "small", options={"tables": f"{tmp_path / 'nowhere'},{tables}"})
        table = predictor.find_table(bench, "esol", 30)
        assert "30 of 101 rows" in table.note
        found.append(table.path.read_text())
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 31
    whole = list(csv.DictReader((tables / "esol.csv").read_text().splitlines()))
    assert all(row in whole for row in csv.DictReader(found[0].splitlines()))
