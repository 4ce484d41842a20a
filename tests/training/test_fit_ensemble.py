"""Several models of one fit: what they predict together, how sure they are, and what a kill leaves."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import grit
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.errors import GritError, Interrupted
from grit.training.fit import fit
from grit.training.fit_folder import FitPlan
from grit.training.predict_table import predict_table
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions
from tests.training.small import SMALL

pytest.importorskip("rdkit")

NEW = ["CCO", "c1ccccc1", "[U]", "not a molecule", "CCCCN"]


def write_table(path: Path, targets: str = "y") -> Path:
    smiles = ["C" * carbons + end for carbons in range(1, 16) for end in ("O", "N", "Cl", "S")]
    values = {"y": lambda k: f"{k % 7}.5", "kind": lambda k: ("red", "green", "blue")[k % 3]}
    values |= {"p": lambda k: str(k % 2), "q": lambda k: "" if k % 3 else str(k % 2), "yes": lambda k: "ny"[k % 2]}
    names = targets.split()
    rows = [",".join([each, *(values[name](k) for name in names)]) for k, each in enumerate(smiles)]
    path.write_text("\n".join([f"smiles,{','.join(names)}", *rows]) + "\n")
    return path


def run_fit(table: Path, run: Path, plan: FitPlan, *, targets: str = "y", resume: bool = False, **more):
    return fit(
        MoleculeTable(table, targets=targets.split(), split="random"),
        run,
        preset="fast",
        overrides=[*SMALL, "train.epochs=1"],
        plan=plan,
        resume=resume,
        options=RunOptions(device="cpu", checkpoint_seconds=0),
        with_forest=False,
        **more,
    )


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble")
    found = run_fit(write_table(folder / "a.csv"), folder / "run", FitPlan(ensemble=3))
    return folder / "run", found


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_mean_of_the_models_is_predicted(ensemble):
    run, _ = ensemble
    together = grit.load(run)
    each = np.stack([grit.load(run / "models" / str(k)).predict(["CCO", "CCN"]) for k in range(3)])
    assert together.num_members == 3
    assert not np.allclose(each[0], each[1])  # other seeds
    np.testing.assert_allclose(together.predict(["CCO", "CCN"]), each.mean(0), rtol=1e-5)
    found = together.predictions(["CCO", "CCN"], 0.5)
    np.testing.assert_allclose(found.spread, each.std(0, ddof=1), rtol=1e-4)
    assert len({round(float(width), 6) for width in (found.high - found.low)[:, 0]}) == 2


def test_the_figures_are_those_of_the_mean(ensemble):
    run, found = ensemble
    lines = [line for line in read(run / "predictions.csv") if line["part"] == "test"]
    error = np.mean([abs(float(line["y"]) - float(line["y_pred"])) for line in lines])
    assert found.result["test"]["mae"] == pytest.approx(error, abs=1e-4)
    assert len(found.result["members"]) == 3
    assert {line["part"] for line in read(run / "predictions.csv")} == {"val", "test"}
    record = json.loads((run / "fit.json").read_text())
    assert record["members"] == ["models/0", "models/1", "models/2"]
    assert record["inferred"]["task"] == "regression"


def test_a_table_is_predicted_with_intervals_and_neighbours(ensemble, tmp_path):
    run, _ = ensemble
    (tmp_path / "in.csv").write_text("smiles\n" + "\n".join(NEW) + "\n")
    predictor = grit.load(run)
    assert predict_table(predictor, tmp_path / "in.csv", tmp_path / "out.csv", confidence=0.5, processes=1) == (5, 1)
    lines = read(tmp_path / "out.csv")
    assert list(lines[0]) == ["smiles", "y_pred", "y_low", "y_high", "y_std", "nearest_similarity", "note"]
    assert all(float(line["y_low"]) < float(line["y_pred"]) < float(line["y_high"]) for line in lines if line["y_pred"])
    assert float(lines[0]["nearest_similarity"]) == 1.0
    assert lines[2]["note"].startswith("unlike the training molecules: similarity 0.0")
    assert lines[2]["y_pred"]
    assert (lines[3]["y_low"], lines[3]["note"]) == ("", "not valid SMILES")
    predict_table(predictor, tmp_path / "in.csv", tmp_path / "surer.csv", confidence=0.6, processes=1)
    wider = [float(line["y_high"]) - float(line["y_low"]) for line in read(tmp_path / "surer.csv") if line["y_pred"]]
    widths = [float(line["y_high"]) - float(line["y_low"]) for line in lines if line["y_pred"]]
    assert all(a >= b for a, b in zip(wider, widths, strict=True))
    found = predictor.predictions(NEW, 0.5)
    np.testing.assert_allclose(found.low[0, 0], float(lines[0]["y_low"]), rtol=1e-4)
    assert np.isnan(found.outputs[3]).all()
    assert found.notes[3] == "not valid SMILES"


def test_a_single_run_has_no_intervals(ensemble):
    run, _ = ensemble
    single = grit.load(run / "models" / "0")
    assert single.output_columns() == ["y_pred"]
    with pytest.raises(GritError, match="--confidence is for the folder of a grit fit"):
        single.predictions(["CC"], 0.8)


def test_what_needs_one_model_says_so(ensemble):
    with pytest.raises(GritError, match="needs a single model, and there are 3 here.*models/0"):
        grit.load(ensemble[0]).embed(["CC"])


@pytest.mark.parametrize(
    ("targets", "columns"),
    [
        ("kind", ["kind_pred", "kind_prob_blue", "kind_prob_green", "kind_prob_red", "kind_set"]),
        ("yes", ["yes_pred", "yes_prob", "yes_set"]),
        ("p q", ["p_pred", "p_prob", "p_set", "q_pred", "q_prob", "q_set"]),
    ],
)
def test_classes(targets, columns, tmp_path):
    table = write_table(tmp_path / "a.csv", targets)
    run_fit(table, tmp_path / "run", FitPlan(ensemble=2, confidence=0.5), targets=targets)
    predictor = grit.load(tmp_path / "run")
    predict_table(predictor, table, tmp_path / "out.csv", processes=1)
    lines = read(tmp_path / "out.csv")
    assert list(lines[0])[-len(columns) - 2 : -2] == columns
    for line in lines:
        for name in targets.split():
            assert line[f"{name}_pred"] in line[f"{name}_set"].split(" | ")
    held = read(tmp_path / "run" / "predictions.csv")
    assert {line[targets.split()[0]] for line in held} <= {"", "0", "1", "n", "y", "red", "green", "blue"}


def stop_in_model(number):
    from contextlib import contextmanager

    @contextmanager
    def watching(metric):
        def watch(event):
            assert event.members == 3
            if event.member == number:
                raise Interrupted("stopped")

        yield watch

    return watching


def test_an_interrupted_ensemble_goes_on(ensemble, tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    with pytest.raises(Interrupted, match="model 2 of 3: stopped"):
        run_fit(table, run, FitPlan(ensemble=3), watching=stop_in_model(1))
    assert RunFolder(run / "models" / "0").state() == "finished"
    with pytest.raises(GritError, match=r"2 of the 3 models .* are not trained to the end .*models/1.*--resume"):
        grit.load(run)
    with pytest.raises(GritError, match="exists already. Go on with it by --resume"):
        run_fit(table, run, FitPlan(ensemble=3))
    with pytest.raises(GritError, match="begun with another ensemble"):
        run_fit(table, run, FitPlan(ensemble=4), resume=True)
    said: list[str] = []
    run_fit(table, run, FitPlan(ensemble=3), resume=True, say=said.append)
    assert any("model 1 of 3" in line and "finished already" in line for line in said)
    np.testing.assert_array_equal(grit.load(run).predict(["CCO"]), grit.load(ensemble[0]).predict(["CCO"]))


def test_files_that_are_gone_are_written_again(ensemble):
    run, _ = ensemble
    files = ("calibration.json", "predictions.csv", "comparison.json", "neighbours.npz")
    before = {name: (run / name).read_bytes() for name in files}
    for name in files:
        (run / name).unlink()
    run_fit(run.parent / "a.csv", run, FitPlan(ensemble=3), resume=True)
    for name in files[:-1]:
        assert (run / name).read_bytes() == before[name]
    assert (run / "neighbours.npz").exists()


def test_a_failure_names_the_model(tmp_path, monkeypatch):
    def fails(recipe, run, **more):
        raise GritError("the loss became infinite")

    monkeypatch.setattr("grit.training.members.train", fails)
    with pytest.raises(GritError, match="model 1 of 2: the loss became infinite"):
        run_fit(write_table(tmp_path / "a.csv"), tmp_path / "run", FitPlan(ensemble=2))
    assert not (tmp_path / "run").exists()


def test_a_single_model_has_intervals_of_one_width(tmp_path):
    run_fit(write_table(tmp_path / "a.csv"), tmp_path / "run", FitPlan(confidence=0.5))
    found = grit.load(tmp_path / "run").predictions(["CCO", "CCCCCCN"])
    widths = (found.high - found.low)[:, 0]
    assert widths[0] == pytest.approx(widths[1])
    assert found.spread is None
