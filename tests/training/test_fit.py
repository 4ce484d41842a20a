"""The folder of a fit: what failed or was killed can be begun again or gone on with, and what was learned stays."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

from grit.datasets import from_csv
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.own.task_inference import TaskKind
from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.training.fit import fit as fit_table
from grit.training.fit_folder import fit_folder
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions
from tests.training.small import SMALL

OPTIONS = RunOptions(device="cpu", checkpoint_seconds=0)


def write_table(path: Path, splits: str = "train train train val test") -> Path:
    parts = splits.split()
    smiles = ["C" * carbons + end for carbons in range(1, 7) for end in ("O", "N", "Cl")]
    rows = [f"{each},{len(each)}.5,{parts[number % len(parts)]}" for number, each in enumerate(smiles)]
    path.write_text("\n".join(["smiles,y,part", *rows]) + "\n")
    return path


def fit(
    table: Path,
    run: Path,
    *,
    resume: bool = False,
    split: str = "column:part",
    target: str = "y",
    task: TaskKind | None = None,
) -> GraphStore:
    fit_table(
        MoleculeTable(table, targets=target, task=task, split=split),
        run,
        preset="fast",
        overrides=[*SMALL, "train.epochs=1"],
        resume=resume,
        options=OPTIONS,
        with_forest=False,
    )
    return GraphStore.open(run / "data")


def test_the_corrected_command_may_use_the_same_folder(tmp_path):
    table, run = write_table(tmp_path / "a.csv", "val val test"), tmp_path / "run"
    with pytest.raises(GritError, match="'train' is empty"):
        fit(table, run)
    assert not run.exists()
    fit(write_table(tmp_path / "a.csv"), run)
    assert RunFolder(run / "model").state() == "finished"


def test_train_and_test_are_enough(tmp_path):
    store = fit(write_table(tmp_path / "a.csv", "train train test"), tmp_path / "run")
    assert {name: part.size > 0 for name, part in store.splits.items()} == {"train": True, "val": True, "test": True}
    assert RunFolder(tmp_path / "run" / "model").state() == "finished"


@pytest.mark.parametrize("resume", [True, False])
def test_a_table_that_was_changed_before_anything_was_learned_is_read_again(tmp_path, resume):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    fit(table, run)
    shutil.rmtree(run / "model")
    table.write_text("\n".join(table.read_text().splitlines()[:-3]) + "\n")
    assert len(fit(table, run, resume=resume)) == 15


def write_split(path: Path, test: int) -> str:
    parts = {"test": range(test), "val": range(test, test + 3), "train": range(test + 3, 18)}
    path.write_text(json.dumps({name: list(rows) for name, rows in parts.items()}))
    return f"file:{path}"


def forget_what_was_learned(run: Path) -> None:
    """As a kill before the first checkpoint leaves it."""
    shutil.rmtree(run / "model" / "checkpoints")
    (run / "model" / "result.json").unlink()


def test_another_task_is_another_store(tmp_path):
    table, run = tmp_path / "a.csv", tmp_path / "run"
    table.write_text(write_table(table).read_text().replace(".5", ""))
    assert fit(table, run, task="multiclass").task.kind == "multiclass"
    with pytest.raises(GritError, match="begun with another task"):
        fit(table, run, task="regression", resume=True)
    forget_what_was_learned(run)
    assert fit(table, run, task="regression").task.kind == "regression"


def test_another_split_file_is_another_store(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    fit(table, run, split=write_split(tmp_path / "split.json", 3))
    split = write_split(tmp_path / "split.json", 5)
    with pytest.raises(GritError, match="begun with another split file"):
        fit(table, run, split=split, resume=True)
    forget_what_was_learned(run)
    assert fit(table, run, split=split).split("test").tolist() == [0, 1, 2, 3, 4]


def test_a_split_file_that_moved_is_the_same(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    fit(table, run, split=write_split(tmp_path / "split.json", 3))
    (tmp_path / "split.json").rename(tmp_path / "moved.json")
    fit(table, run, split=f"file:{tmp_path / 'moved.json'}", resume=True)
    with pytest.raises(GritError, match=r"cannot read the split file .*split.json"):
        fit(table, run, split=f"file:{tmp_path / 'split.json'}", resume=True)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("damaged", [True, False])
def test_a_store_of_the_users_own_is_not_replaced(tmp_path, resume, damaged):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    from_csv(table, targets="y", split="random", out=run / "data", processes=1)
    if damaged:
        (run / "data" / "manifest.json").write_text("{")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(GritError, match=r"data' was not made by grit fit, so it is not replaced.*--run"):
        fit(table, run, resume=resume)
    assert {path: path.read_bytes() for path in before} == before


def test_what_a_killed_build_left_goes(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    fit(table, run)
    (run / "model" / "result.json").unlink()
    (run / ".data.building-0123" / "replaced").mkdir(parents=True)
    fit(table, run, resume=True)
    files = {"calibration.json", "comparison.json", "fit.json", "neighbours.npz", "predictions.csv"}
    assert {path.name for path in run.iterdir()} == {".lock", "data", "model", *files}


def test_what_was_learned_is_neither_overwritten_nor_deleted(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    fit(table, run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(GritError, match="exists already. Go on with it by --resume"):
        fit(table, run)
    with pytest.raises(GritError, match="begun with another split"):
        fit(table, run, resume=True, split="random")
    table.write_text("smiles,y,z,part\nCC,1.0,2.0,train\n")
    with pytest.raises(GritError, match="begun with another"):
        fit(table, run, resume=True)
    with pytest.raises(GritError, match="another table, target"):
        fit(table, run, resume=True, target="z")
    (run / "data" / "manifest.json").rename(run / "data" / "gone")
    with pytest.raises(GritError, match="manifest"):
        fit(table, run, resume=True)
    (run / "data" / "gone").rename(run / "data" / "manifest.json")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_folder_of_other_things_is_not_used(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    run.mkdir()
    (run / "thesis.tex").write_text("precious")
    with pytest.raises(GritError, match=r"holds other files \(thesis.tex\)"):
        fit(table, run)
    assert [path.name for path in run.iterdir()] == ["thesis.tex"]
    with pytest.raises(GritError, match="is a file"):
        fit(table, run / "thesis.tex")


def test_two_fits_of_one_folder(tmp_path):
    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    with fit_folder(run, resume=False), pytest.raises(GritError, match="another process is working in the run folder"):
        fit(table, run)


def test_torchrun_is_told_what_to_do_instead(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        GritError, match=r"one process: start it without torchrun.*grit train own-default dataset=STORE"
    ):
        fit(write_table(tmp_path / "a.csv"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_mistake_in_the_file_of_a_split_is_found_before_the_work(tmp_path):
    (tmp_path / "split.json").write_text('{"train": [0, 0]}')
    with pytest.raises(GritError, match="names the row 0 twice"):
        MoleculeTable(write_table(tmp_path / "a.csv"), targets="y", split=f"file:{tmp_path / 'split.json'}")
