"""The states of a run folder, the lock, and folders that are not as they should be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import grit
from grit.graphs.store import GraphStore
from grit.training.checkpoint import previous, read_checkpoint, write_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_graphs, small_recipe, small_store

ALWAYS = RunOptions(device="cpu", checkpoint_seconds=0)
RECIPE = ("train.epochs=2", "train.batch_size=25")


@pytest.fixture(scope="module")
def store() -> GraphStore:
    return small_store()


@pytest.fixture(scope="module")
def finished(store: GraphStore, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = tmp_path_factory.mktemp("finished") / "run"
    train(small_recipe(*RECIPE), run, store=store, options=ALWAYS)
    return RunFolder(run)


@pytest.fixture
def copy(finished: RunFolder, tmp_path: Path) -> RunFolder:
    """The finished run without its result, to be taken apart."""
    shutil.copytree(finished.path, tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    return RunFolder(tmp_path / "run")


def go_on(folder: RunFolder, store: GraphStore, *, resume: bool = True) -> list[str]:
    said: list[str] = []
    train(small_recipe(*RECIPE), folder.path, store=store, resume=resume, say=said.append, options=ALWAYS)
    return said


def check_same(folder: RunFolder, finished: RunFolder) -> None:
    assert [{**line, "seconds": 0} for line in folder.history()] == [
        {**line, "seconds": 0} for line in finished.history()
    ]
    assert {**(folder.result() or {}), "seconds": 0} == {**(finished.result() or {}), "seconds": 0}
    a, b = read_checkpoint(folder.last).under("model."), read_checkpoint(finished.last).under("model.")
    assert all(torch.equal(a[name], b[name]) for name in b)
    assert not list(folder.path.rglob("*.part"))


def test_where_the_newest_checkpoint_is_missing_the_one_before_is_gone_on_with(copy, finished, store):
    copy.last.unlink()
    said = go_on(copy, store)
    assert "The one before is used" in said[0]
    assert "resumed at epoch 2" in said[1]
    check_same(copy, finished)


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize(
    "left",
    [
        (),
        ("environment.json",),
        ("environment.json", "data.json"),
        ("environment.json", "data.json", "config.yaml"),
        ("environment.json", "data.json", "config.yaml", "metrics.jsonl"),
        ("environment.json", "data.json", "config.yaml", "metrics.jsonl", "checkpoints/best.safetensors"),
    ],
)
def test_a_folder_in_which_nothing_was_learned_can_be_begun_again(finished, store, tmp_path, left, resume):
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    (folder.path / ".config.yaml.0123.part").write_text("cut sh")
    for name in left:
        shutil.copy(finished.path / name, folder.path / name)
    go_on(folder, store, resume=resume)
    check_same(folder, finished)


def test_the_corrected_command_may_use_the_folder_of_one_that_learned_nothing(finished, store, tmp_path):
    shutil.copytree(finished.path, tmp_path / "run", ignore=shutil.ignore_patterns("*.safetensors", "result.json"))
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, options=ALWAYS)
    assert RunFolder(tmp_path / "run").recipe() == small_recipe("train.epochs=1")


@pytest.mark.parametrize("damage", ["shorter", "longer", "missing", "garbage"])
def test_metrics_are_written_again_from_the_checkpoint(copy, finished, store, damage):
    content = copy.metrics.read_bytes()
    if damage == "shorter":
        copy.metrics.write_bytes(content[:30])
    elif damage == "longer":
        copy.metrics.write_bytes(content + content[:50])
    elif damage == "missing":
        copy.metrics.unlink()
    else:
        copy.metrics.write_bytes(b"\0" * len(content))
    go_on(copy, store)
    check_same(copy, finished)


def test_a_line_that_is_being_written_is_not_read(copy, finished):
    with copy.metrics.open("ab") as file:
        file.write(b'{"epoch": 2, "lr"')
    assert copy.history() == finished.history()
    copy.metrics.write_text("nonsense\n")
    with pytest.raises(grit.GritError, match=r"metrics.jsonl' cannot be read"):
        copy.history()


def test_checkpoints_written_before_they_held_the_metrics(copy, finished, store):
    for path in (copy.last, previous(copy.last)):
        found = read_checkpoint(path)
        state = {name: value for name, value in found.state.items() if name != "history"}
        write_checkpoint(path, found.tensors, {**state, "progress": {**state["progress"], "metrics_bytes": 7}})
    copy.last.unlink()
    go_on(copy, store)
    check_same(copy, finished)


def test_what_cannot_be_a_run_folder(store, tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(grit.GritError, match="is a file. Name another with --run"):
        train(small_recipe(), tmp_path / "file", store=store)
    with pytest.raises(grit.GritError, match="cannot use the run folder .*File exists|Not a directory"):
        train(small_recipe(), tmp_path / "file" / "run", store=store)
    with pytest.raises(grit.GritError, match="File name too long"):
        train(small_recipe(), tmp_path / ("n" * 300), store=store)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "checkpoints").write_text("precious")
    with pytest.raises(grit.GritError, match="cannot use the run folder"):
        train(small_recipe(), tmp_path / "a", store=store)
    assert (tmp_path / "a" / "checkpoints").read_text() == "precious"
    (tmp_path / "b" / "metrics.jsonl").mkdir(parents=True)
    with pytest.raises(grit.GritError, match="holds other files .metrics.jsonl"):
        train(small_recipe(), tmp_path / "b", store=store)


MINE = {
    "my own experiment": {
        "config.yaml": "lr: 0.1\n",
        "data.json": '{"mine": 1}',
        "metrics.jsonl": '{"epoch": 7}\n',
        "paper.tex": "precious",
    },
    "only names of a run": {"config.yaml": "lr: 0.1\n", "data.json": '{"mine": 1}', "metrics.jsonl": "{}\n"},
    "a recipe": {"config.yaml": "base: zinc\n"},
    "data": {"data.json": "[1, 2]"},
    "an environment": {"environment.json": '{"name": "conda"}'},
    "checkpoints": {"checkpoints/epoch3.ckpt": "weights"},
    "a best checkpoint": {"checkpoints/best.safetensors": "weights"},
    "a download": {"film.part": "half of it"},
    "a hidden download": {".film.part": "half of it"},
    "an empty file": {"config.yaml": "", "data.json": ""},
}


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("files", MINE.values(), ids=MINE)
def test_a_folder_of_the_users_own_stays_as_it_is(store, tmp_path, files, resume):
    for name, text in files.items():
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).write_text(text)
    with pytest.raises(grit.GritError, match=r"exists already and holds other files .*Name another with --run"):
        train(small_recipe(*RECIPE), tmp_path / "mine", store=store, resume=resume, options=ALWAYS)
    left = {path for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path / "mine")): path.read_text() for path in left} == files


@pytest.mark.parametrize("resume", [True, False])
def test_files_beside_a_run_that_learned_nothing_stay(finished, store, tmp_path, resume):
    """Notes of the user's own, or what a logger wrote before the first checkpoint."""
    shutil.copytree(finished.path, tmp_path / "run", ignore=shutil.ignore_patterns("*.safetensors", "result.json"))
    (tmp_path / "run" / "notes.txt").write_text("precious")
    (tmp_path / "run" / "tensorboard").mkdir()
    go_on(RunFolder(tmp_path / "run"), store, resume=resume)
    check_same(RunFolder(tmp_path / "run"), finished)
    assert (tmp_path / "run" / "notes.txt").read_text() == "precious"


def test_notes_beside_a_trained_run_do_not_keep_it_from_going_on(copy, finished, store):
    (copy.path / "notes.txt").write_text("precious")
    copy.last.unlink()
    go_on(copy, store)
    check_same(copy, finished)


def test_a_folder_in_the_place_of_a_file(copy, store):
    copy.metrics.unlink()
    copy.metrics.mkdir()
    with pytest.raises(grit.GritError, match=r"metrics.jsonl.*[Dd]irectory"):
        go_on(copy, store)


HOLDER = """
import sys, time
from pathlib import Path
from grit.training.run_folder import RunFolder
with RunFolder(sys.argv[1]).held():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_run_belongs_to_one_process_at_a_time(copy, finished, store):
    environment = {**os.environ, "PYTHONPATH": str(Path(grit.__file__).parents[1])}
    command = [sys.executable, "-c", HOLDER, str(copy.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()}
        with pytest.raises(grit.GritError, match="another process is working in the run folder"):
            go_on(copy, store)
        assert {path: path.read_bytes() for path in copy.path.rglob("*") if path.is_file()} == before
        holder.kill()  # and with it the lock is gone
    go_on(copy, store)
    check_same(copy, finished)


def test_a_result_that_cannot_be_read(copy, store):
    (copy.path / "result.json").write_text("{")
    with pytest.raises(grit.GritError, match=r"result.json' cannot be read"):
        go_on(copy, store)


def test_a_result_of_a_metric_that_was_not_measured(finished, tmp_path):
    folder = RunFolder(shutil.copytree(finished.path, tmp_path / "run"))
    folder.write("result.json", json.dumps({**folder.result(), "metric": "x"}))
    with pytest.raises(grit.GritError, match=r"the metric 'x' is not among those that were measured"):
        folder.result()


def test_the_files_that_name_a_run_are_there_before_config_yaml(finished):
    """config.yaml is written last, so that where it is the run can be described."""
    times = [(finished.path / name).stat().st_mtime_ns for name in ("environment.json", "data.json", "config.yaml")]
    assert times == sorted(times)
    assert json.loads((finished.path / "environment.json").read_text())["packages"]["torch"]


@pytest.mark.parametrize(
    ("name", "before", "after", "what"),
    [
        ("data.json", '"scale": [\n  ', '"scale": [\n  7', "scale"),
        ("data.json", '"metric": "mae"', '"metric": "rmse"', "task"),
        ("config.yaml", "walk_steps: 4", "walk_steps: 5", "encoding"),
        ("config.yaml", "num_heads: 2", "num_heads: 4", "model"),
    ],
)
def test_weights_are_used_with_what_they_were_trained_with_only(copy, name, before, after, what):
    text = (copy.path / name).read_text()
    assert before in text
    (copy.path / name).write_text(text.replace(before, after))
    for path in (copy.path, copy.last):
        with pytest.raises(grit.GritError, match=rf"{name}' was changed or damaged after training \({what}\)"):
            grit.load(path)


def test_what_predictions_do_not_rest_on_may_be_edited(copy):
    text = (copy.path / "config.yaml").read_text()
    (copy.path / "config.yaml").write_text(text.replace("dataset: zinc", "dataset: ./moved"))
    content = json.loads((copy.path / "data.json").read_text())
    (copy.path / "data.json").write_text(json.dumps({**content, "store": "/elsewhere"}))
    assert grit.load(copy.path).data.store == "/elsewhere"


def test_a_configuration_edited_while_training_is_not_what_was_trained(store, tmp_path):
    config = tmp_path / "run" / "config.yaml"

    def watch(event):
        config.write_text(config.read_text().replace("activation: relu", "activation: gelu"))

    train(small_recipe(*RECIPE), tmp_path / "run", store=store, watch=watch, options=ALWAYS)
    assert "activation: gelu" in config.read_text()
    for path in (tmp_path / "run", RunFolder(tmp_path / "run").last):
        with pytest.raises(grit.GritError, match=r"config.yaml' was changed or damaged after training \(model\)"):
            grit.load(path)


def test_a_configuration_deleted_while_training_does_not_end_the_run(finished, store, tmp_path):
    folder = RunFolder(tmp_path / "run")

    def watch(event):
        for name in ("config.yaml", "data.json"):
            (folder.path / name).unlink(missing_ok=True)

    train(small_recipe(*RECIPE), folder.path, store=store, watch=watch, options=ALWAYS)
    check_same(folder, finished)


def test_where_only_the_checkpoint_before_is_left_it_predicts(copy):
    copy.best.unlink()
    wanted = grit.load(copy.last).predict(small_graphs()[:3])
    copy.last.rename(previous(copy.last))
    assert grit.load(copy.path).predict(small_graphs()[:3]).tolist() == wanted.tolist()
    previous(copy.last).unlink()
    with pytest.raises(grit.GritError, match="has no checkpoint yet"):
        grit.load(copy.path)


def test_the_result_tells_the_epoch_that_was_tested(store, tmp_path):
    """After a kill between the best and the last checkpoint, an epoch trained again need not be as good as it was."""
    folder, seen = RunFolder(tmp_path / "run"), {}

    def watch(event):
        if event.metrics:
            seen[event.epoch] = folder.best.read_bytes(), event.metrics["mae"]

    recipe = small_recipe(*RECIPE)
    assert train(recipe, folder.path, store=store, watch=watch, options=ALWAYS)["best_epoch"] == 1
    (folder.path / "result.json").unlink()
    folder.best.write_bytes(seen[0][0])
    again = train(recipe, folder.path, store=store, resume=True, options=ALWAYS)
    assert again["best_epoch"] == 0
    assert again["val"]["mae"] == pytest.approx(seen[0][1])


def test_where_the_best_checkpoint_is_missing_the_last_epoch_is_tested(store, tmp_path, monkeypatch):
    folder, worse = RunFolder(tmp_path / "run"), iter(range(1, 100))
    monkeypatch.setattr("grit.learning.task.Task.metrics", lambda *arguments: {"mae": float(next(worse))})
    assert train(small_recipe(*RECIPE), folder.path, store=store, options=ALWAYS)["best_epoch"] == 0
    (folder.path / "result.json").unlink()
    folder.best.unlink()
    again = train(small_recipe(*RECIPE), folder.path, store=store, resume=True, options=ALWAYS)
    assert (again["best_epoch"], again["epochs"]) == (1, 2)
