"""Where a file is expected, a pipe is an error and not a wait without end."""

import os
import shutil
import sys

import pytest

import grit
from grit.datasets.tables.text_table import TextTable
from grit.errors import GritError
from grit.files.whole_file import whole_file
from grit.graphs.store import GraphStore
from grit.training.train import RunOptions, train
from tests.training.small import small_recipe, small_store

if sys.platform == "win32":
    pytest.skip("this system has no named pipes", allow_module_level=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store and a run."""
    folder = tmp_path_factory.mktemp("made")
    store = small_store(out=folder / "store")
    train(small_recipe("train.epochs=1"), folder / "run", store=store, options=RunOptions(device="cpu"))
    return folder


def replace(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["manifest.json", "x.npy", "skipped.csv"])
def test_in_a_store(made, tmp_path, name):
    shutil.copytree(made / "store", tmp_path / "store")
    replace(tmp_path / "store" / name)
    with pytest.raises(GritError, match="not a"):
        _ = GraphStore.open(tmp_path / "store").skipped


@pytest.mark.parametrize("name", ["config.yaml", "data.json", "checkpoints/best.safetensors"])
def test_in_a_run(made, tmp_path, name):
    shutil.copytree(made / "run", tmp_path / "run")
    replace(tmp_path / "run" / name)
    with pytest.raises(GritError, match="not a"):
        grit.load(tmp_path / "run")


def test_a_table(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(GritError, match="it is not a file"):
        TextTable(tmp_path / "t.csv")


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    """As root, the output /dev/null was."""
    os.mkfifo(tmp_path / "out")
    with pytest.raises(OSError, match="neither a file nor free"), whole_file(tmp_path / "out") as file:
        file.write(b"x")
    assert [(each.name, each.is_fifo()) for each in tmp_path.iterdir()] == [("out", True)]


@pytest.mark.parametrize("content", ["{}", "[]", "3", '{"metric": 3}', "[" * 100_000])
def test_a_result_that_is_none(made, tmp_path, content):
    shutil.copytree(made / "run", tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text(content)
    store = GraphStore.open(made / "store")
    with pytest.raises(GritError, match="result.json' cannot be read"):
        train(
            small_recipe("train.epochs=1"), tmp_path / "run", store=store, resume=True, options=RunOptions(device="cpu")
        )
