"""Predictions of tables of all formats, and predictions that were stopped and go on."""

import os
import signal
import subprocess
import sys
import time

import pytest

import grit
from grit.datasets import build
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.writers.rows import Rows
from grit.datasets.tables.writers.write_table import WRITERS, write_table
from grit.errors import Interrupted
from grit.training.predict_table import predict_stored, predict_table
from grit.training.train import RunOptions, train

TINY = ("model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "encoding.walk_steps=4", "train.epochs=1")
HEADER = ["name", "smiles", "comment"]
ROWS = [[f"m{number}", "C" * (number % 9 + 1), "=1+1" if number % 3 else ""] for number in range(1300)]
ROWS[600][1] = "not a SMILES"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    store = build("zinc-mini", root=folder, options=BuildOptions(processes=1, limit=40))
    train(grit.load_recipe("zinc-mini", *TINY), folder / "run", store=store, options=RunOptions("cpu"))
    return folder / "run", store


def table(folder, ending, rows=ROWS):
    path = folder / f"in{ending}"
    write_table(path, Rows(HEADER, lambda: iter(rows), "smiles"))
    return path


def stop_after(pieces):
    """Something to be told of progress, which presses Ctrl-C."""
    count = 0

    def progress(rows):
        nonlocal count
        count += 1
        if count == pieces:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_predictions_go_on_and_are_the_same_to_the_byte(run, tmp_path, ending):
    predictor, source = grit.load(run[0]), table(tmp_path, ending)
    whole, resumed = tmp_path / f"whole{ending}", tmp_path / f"resumed{ending}"
    assert predict_table(predictor, source, whole, processes=1) == (1300, 1)
    with pytest.raises(Interrupted, match="stopped after 1,024 rows of"):
        predict_table(predictor, source, resumed, processes=1, progress=stop_after(2))
    assert not resumed.exists()
    steps = []
    assert predict_table(predictor, source, resumed, resume=True, processes=1, progress=steps.append) == (1300, 1)
    assert steps == [1024, 276]
    assert resumed.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, resumed.name, whole.name])


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_the_format_of_the_output_is_that_of_its_ending(run, tmp_path, ending):
    """Whatever the input's: the cells of the table are beside the predictions."""
    source = table(tmp_path, ".csv", ROWS[598:603])
    out = tmp_path / f"out{ending}.gz"
    assert predict_table(grit.load(run[0]), source, out, processes=1) == (5, 1)
    written = open_table(out)
    (predicted,) = (name for name in written.header if name.endswith("_pred"))
    columns = [written.header.index(name) for name in [*HEADER, predicted, "note"]]
    rows = [[record.fields[place] for place in columns] for record in written.records()]
    assert [row[:3] for row in rows] == ROWS[598:603]
    assert [row[4] for row in rows] == ["", "", "not valid SMILES", "", ""]
    assert [row[3] == "" for row in rows] == [False, False, True, False, False]


def test_an_output_of_no_format_is_refused_before_the_work(run, tmp_path):
    source = table(tmp_path, ".csv", ROWS[:3])
    with pytest.raises(grit.GritError, match="the ending '.docx' names no format. Expected one of .csv"):
        predict_table(grit.load(run[0]), source, tmp_path / "out.docx", processes=1)
    with pytest.raises(grit.GritError, match="there are no SMILES to write"):
        predict_stored(grit.load(run[0]), run[1], tmp_path / "out.sdf")
    predict_stored(grit.load(run[0]), run[1], tmp_path / "out.parquet")
    assert len(list(open_table(tmp_path / "out.parquet").records())) == len(run[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.parquet"]


def test_without_resume_rows_that_are_done_are_kept(run, tmp_path):
    predictor, source, out = grit.load(run[0]), table(tmp_path, ".csv"), tmp_path / "out.csv"
    with pytest.raises(Interrupted):
        predict_table(predictor, source, out, processes=1, progress=stop_after(1))
    with pytest.raises(grit.GritError, match="512 rows were done before, .*--resume"):
        predict_table(predictor, source, out, processes=1)
    with pytest.raises(grit.GritError, match="were made with another column of SMILES"):
        predict_table(predictor, source, out, smiles="comment", resume=True, processes=1)
    source.write_text("smiles\nCC\n")
    with pytest.raises(grit.GritError, match="were made with another table and another set of columns. Remove"):
        predict_table(predictor, source, out, resume=True, processes=1)
    assert predict_table(predictor, source, out, processes=1) == (1, 0)  # of the new table nothing was done


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_command_that_is_stopped_goes_on(run, tmp_path, how):
    source = table(tmp_path, ".csv", ROWS * 4)
    command = [sys.executable, "-m", "grit", "predict", str(run[0]), str(source), "--processes", "2", "-o"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    stopped = subprocess.Popen(
        [*command, str(tmp_path / "out.csv")],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    hidden, deadline = tmp_path / ".out.csv.unfinished", time.monotonic() + 120
    while not hidden.exists() or hidden.stat().st_size < 2_000:
        assert time.monotonic() < deadline
        assert stopped.poll() is None, stopped.communicate()
        time.sleep(0.01)
    os.killpg(stopped.pid, how)  # as a terminal does: to the workers, too
    message = stopped.communicate()[1]
    assert not (tmp_path / "out.csv").exists()
    if how is signal.SIGINT:
        assert stopped.returncode == 130
        assert "Go on with the same command and --resume." in message
        assert "Traceback" not in message
    subprocess.run([*command, str(tmp_path / "out.csv"), "--resume"], env=environment, check=True, capture_output=True)
    subprocess.run([*command, str(tmp_path / "whole.csv")], env=environment, check=True, capture_output=True)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
