"""Tuning: resumable at any moment, blind to the test molecules, and never ended by a trial that fails."""

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("rdkit")
pytest.importorskip("optuna")

import grit
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.errors import GritError, Interrupted
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.training import tune_trials
from grit.training.loop import Event
from grit.training.train import RunOptions
from grit.training.tune import TuneResult
from grit.training.tune import tune as tune_table
from grit.training.tune_study import read_study

FIXED = ("model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "encoding.walk_steps=3", "train.epochs=2")
SPACE = {"train.lr": {"low": 1e-4, "high": 1e-2, "log": True}, "train.batch_size": [8, 16, 32]}


def write_table(path: Path, *, test_label: float = 1.0) -> Path:
    """A sixth of the molecules is for validation, and a sixth, whose labels are whatever is asked for, for testing."""
    smiles = ["C" * carbons + end for carbons in range(1, 9) for end in ("O", "N", "Cl")]
    parts = ["train", "train", "val", "train", "train", "test"]
    rows = []
    for number, each in enumerate(smiles):
        part = parts[number % len(parts)]
        label = test_label * number if part == "test" else len(each)
        rows.append(f"{each},{label + 0.5},{part}")
    path.write_text("\n".join(["smiles,y,part", *rows]) + "\n")
    return path


def tune(folder: Path, run: str = "run", *, table: Path | None = None, say=lambda line: None, **options) -> TuneResult:
    options = {"trials": 3, "overrides": FIXED, "space": SPACE, **options}
    data = MoleculeTable(table or write_table(folder / "mine.csv"), targets="y", split="column:part")
    return tune_table(data, folder / run, preset="fast", options=RunOptions(device="cpu"), say=say, **options)


def outcome(found: TuneResult) -> list[tuple]:
    """Everything about the trials but their times."""
    return [(each.values, each.state, each.history) for each in found.study.trials]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    return folder / "run", tune(folder)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_trial_is_listed_and_the_best_is_the_recipe(tuned):
    run, found = tuned
    rows = lines(run / "trials.csv")
    assert [row["trial"] for row in rows] == ["1", "2", "3"]
    assert {row["state"] for row in rows} == {"complete"}
    assert {row["epochs"] for row in rows} == {"2"}
    best = min(rows, key=lambda row: float(row["val mae"]))
    assert int(best["trial"]) == found.best.number
    recipe = grit.load_recipe(found.recipe)
    assert recipe.train.lr == float(best["train.lr"])
    assert recipe.train.batch_size == int(best["train.batch_size"])
    assert (recipe.model.hidden_dim, recipe.train.epochs) == (8, 2)
    assert recipe.train.patience == grit.load_recipe("own-fast").train.patience
    assert {path.name for path in run.iterdir()} - {".lock"} == {
        "data",
        "trials",
        "study.json",
        "trials.csv",
        "recipe.yaml",
    }
    assert not list((run / "trials").iterdir())


def test_the_first_trial_is_the_preset_itself(tuned):
    own = grit.load_recipe("own-fast").train
    assert tuned[1].study.trials[0].values == {"train.lr": own.lr, "train.batch_size": own.batch_size}
    assert len({json.dumps(trial.values) for trial in tuned[1].study.trials}) == 3


def test_a_preset_outside_the_space_is_not_a_trial(tmp_path):
    said = []
    found = tune(tmp_path, trials=1, space={"train.lr": {"low": 1e-5, "high": 1e-4, "log": True}}, say=said.append)
    assert 1e-5 <= found.best.values["train.lr"] <= 1e-4
    assert any("the preset itself is not among the trials" in line for line in said)


def test_the_same_seed_gives_the_same_trials(tuned, tmp_path):
    assert outcome(tune(tmp_path)) == outcome(tuned[1])


def interrupt_at(epoch: int, trial: int, error: type[BaseException]):
    """A watcher that stops everything after an epoch of a trial, both counted from 1."""

    class Watching:
        def __enter__(self):
            return self.watch

        def __exit__(self, *ended):
            return None

        def watch(self, event: Event) -> None:
            if event.metrics and (event.member + 1, event.epoch + 1) == (trial, epoch):
                raise error

    return lambda metric: Watching()


class Killed(BaseException):
    """As far as files go, what SIGKILL does: nothing is caught, nothing is written."""


@pytest.mark.parametrize(("trial", "epoch"), [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Killed])
def test_interrupted_and_resumed_is_as_never_interrupted(tuned, tmp_path, error, trial, epoch):
    with pytest.raises(Interrupted if error is KeyboardInterrupt else Killed):
        tune(tmp_path, watching=interrupt_at(epoch, trial, error))
    study = read_study(tmp_path / "run")
    assert [each.state for each in study.trials] == ["complete"] * (trial - 1) + ["running"]
    with pytest.raises(GritError, match=f"holds {trial} trials already. Go on with them by --resume"):
        tune(tmp_path)
    assert outcome(tune(tmp_path, resume=True)) == outcome(tuned[1])


def test_the_table_is_read_once(tmp_path, monkeypatch):
    tune(tmp_path, trials=1)
    monkeypatch.setattr(MoleculeTable, "to_store", None)
    assert len(tune(tmp_path, trials=2, resume=True).study.trials) == 2


def test_more_trials_go_on_with_those_that_are_there(tuned, tmp_path):
    tune(tmp_path, trials=1)
    assert outcome(tune(tmp_path, trials=3, resume=True)) == outcome(tuned[1])
    assert outcome(tune(tmp_path, trials=2, resume=True)) == outcome(tuned[1])


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"space": {"train.lr": {"low": 1e-4, "high": 1e-1, "log": True}}}, "space"),
        ({"overrides": [*FIXED, "model.dropout=0.1"]}, "overrides, recipe"),
    ],
)
def test_another_command_is_another_study(tmp_path, change, what):
    tune(tmp_path, trials=1)
    before = (tmp_path / "run" / "study.json").read_bytes()
    with pytest.raises(GritError, match=f"begun with another {what}. Repeat the command as it was"):
        tune(tmp_path, resume=True, **change)
    (tmp_path / "mine.csv").write_text("smiles,y,part\nCC,1.5,train\nCCC,2.5,val\n")
    with pytest.raises(GritError, match="begun with another table"):
        tune(tmp_path, resume=True, table=tmp_path / "mine.csv")
    assert (tmp_path / "run" / "study.json").read_bytes() == before


def test_the_test_labels_make_no_difference(tuned, tmp_path):
    found = tune(tmp_path, table=write_table(tmp_path / "other.csv", test_label=-1e6))
    assert outcome(found) == outcome(tuned[1])
    assert GraphStore.open(tmp_path / "run" / "data").split("test").size == 4


def test_nothing_is_measured_on_test_molecules(tmp_path, monkeypatch):
    sizes = []
    metrics = Task.metrics
    monkeypatch.setattr(Task, "metrics", lambda self, outputs, y: sizes.append(len(y)) or metrics(self, outputs, y))
    tune(tmp_path, trials=2)
    store = GraphStore.open(tmp_path / "run" / "data")
    assert store.split("val").size == 4
    assert len(sizes) == 2 * 3  # two epochs, and the best of them again
    assert set(sizes) == {4}


def test_a_trial_is_not_given_the_test_molecules(tmp_path, monkeypatch):
    seen = []

    def train(recipe, run, *, store, **options):
        seen.append(set(store.splits))
        return grit.train(recipe, run, store=store, **options)

    monkeypatch.setattr(tune_trials, "train", train)
    tune(tmp_path, trials=2)
    assert seen == [{"train", "val"}] * 2


def failing(error: Exception, *, trial: int):
    """`train`, of which one call fails."""
    calls = []

    def train(*arguments, **options):
        calls.append(arguments)
        if len(calls) == trial:
            raise error
        return grit.train(*arguments, **options)

    return train


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
            "not enough memory",
        ),
        (MemoryError(), "not enough memory"),
        (GritError("the loss became infinite"), "the loss became infinite"),
    ],
)
def test_a_trial_that_fails_does_not_end_the_study(tmp_path, monkeypatch, error, message):
    monkeypatch.setattr(tune_trials, "train", failing(error, trial=2))
    said = []
    found = tune(tmp_path, say=said.append)
    assert [trial.state for trial in found.study.trials] == ["complete", "failed", "complete"]
    assert lines(tmp_path / "run" / "trials.csv")[1]["error"] == message
    assert any(line.startswith("trial 2 of 3: failed") and message in line for line in said)


def test_a_loss_that_diverges_is_a_trial_that_fails(tmp_path):
    found = tune(tmp_path, trials=2, overrides=[*FIXED, "train.clip_norm=null"], space={"train.lr": [2e-3, 1e30]})
    assert [trial.state for trial in found.study.trials] == ["complete", "failed"]
    assert "diverged" in found.study.trials[1].error


def test_a_mistake_in_grit_is_not_taken_for_a_bad_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_trials, "train", failing(RuntimeError("shapes do not fit"), trial=2))
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        tune(tmp_path)


def test_if_all_trials_fail_the_first_reason_is_told(tmp_path, monkeypatch):
    def train(*arguments, **options):
        raise GritError("the loss became infinite")

    monkeypatch.setattr(tune_trials, "train", train)
    with pytest.raises(GritError, match="no trial .* has a result. Trial 1: the loss became infinite"):
        tune(tmp_path)
    assert not (tmp_path / "run" / "recipe.yaml").exists()


def test_a_trial_in_which_the_process_dies_again_and_again_is_given_up(tmp_path):
    for number in range(tune_trials.MAX_STARTS):
        with pytest.raises(Killed):
            tune(tmp_path, watching=interrupt_at(1, 2, Killed), resume=number > 0)
        (tmp_path / "run" / "trials" / "2" / "checkpoints" / "last.safetensors").unlink()  # as if it never got so far
        (tmp_path / "run" / "trials" / "2" / "checkpoints" / "previous-last.safetensors").unlink(missing_ok=True)
    found = tune(tmp_path, resume=True)
    assert [trial.state for trial in found.study.trials] == ["complete", "failed", "complete"]
    assert "the process ended 3 times" in found.study.trials[1].error


def test_trials_that_are_worse_than_most_end_early(tmp_path):
    """Learning rates of 1e-9 learn nothing, and are seen to."""
    space = {"train.lr": [2e-3, 3e-3, 4e-3, 5e-3, 1e-9, 2e-9, 3e-9, 4e-9, 5e-9, 6e-9]}
    found = tune(tmp_path, trials=10, space=space, overrides=[*FIXED, "train.epochs=4"])
    pruned = [trial for trial in found.study.trials if trial.state == "pruned"]
    assert pruned
    assert all(len(trial.history) < 4 and trial.values["train.lr"] < 1e-3 for trial in pruned)
    assert found.best.values["train.lr"] > 1e-3
    assert set(found.importances) == {"train.lr"}


def test_a_space_that_is_used_up_ends_the_study(tmp_path):
    said = []
    found = tune(tmp_path, trials=5, space={"train.batch_size": [16, 32]}, say=said.append)
    assert [trial.values["train.batch_size"] for trial in found.study.trials] == [32, 16]
    assert "Nothing new was found in the space after 2 trials." in said


def test_the_time_is_up_after_the_epoch_and_more_time_goes_on(tuned, tmp_path):
    said = []
    found = tune(tmp_path, seconds=1e-3, say=said.append)
    assert [(trial.state, len(trial.history)) for trial in found.study.trials] == [("running", 1)]
    assert found.best.values["train.lr"] == grit.load_recipe(found.recipe).train.lr
    assert any("--resume and more --seconds" in line for line in said)
    assert outcome(tune(tmp_path, resume=True, seconds=1e6)) == outcome(tuned[1])


def test_mistakes_before_any_work_leave_nothing(tmp_path):
    for wrong, message in (
        ({"trials": 0}, "at least 1 trial"),
        ({"seconds": 0.0}, "more than 0 seconds"),
        ({"space": {"train.lr": 3}}, "the space: train.lr: expected a range"),
        ({"overrides": ["train.rate=3"]}, "train.rate: unknown key"),
    ):
        with pytest.raises(GritError, match=message):
            tune(tmp_path, **wrong)
        assert not (tmp_path / "run").exists()
    table = write_table(tmp_path / "a.csv")
    table.write_text(table.read_text().replace(",train", ",test"))
    with pytest.raises(GritError, match="'train' is empty"):
        tune(tmp_path, table=table)
    assert not (tmp_path / "run").exists()


def test_a_metric_that_validation_does_not_have_is_told_at_once(tmp_path):
    smiles = ["C" * carbons + end for carbons in range(1, 9) for end in ("O", "N", "Cl")]
    parts = ["val" if number % 3 == 0 else "train" for number in range(len(smiles))]
    labels = [int(part == "train" and number % 2) for number, part in enumerate(parts)]
    rows = [",".join(map(str, row)) for row in zip(smiles, labels, parts, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,y,part", *rows]) + "\n")
    with pytest.raises(GritError, match="auroc could not be computed on the validation molecules.*single class"):
        tune(tmp_path, table=tmp_path / "a.csv")


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("x")
    with pytest.raises(GritError, match=r"holds other files \(thesis.tex\)"):
        tune(tmp_path)
    (tmp_path / "run" / "thesis.tex").unlink()
    (tmp_path / "run" / "study.json").write_text('{"metric": "mae"}')
    with pytest.raises(GritError, match="study.json' cannot be read"):
        tune(tmp_path, resume=True)
