"""`grit predict` and `grit.load(...).predict` for a few molecules: most of their time is imports, so these are few."""

import json
import subprocess
import sys

import pytest

import grit
from grit.datasets import build
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.training.train import RunOptions, train

TINY = ("model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "encoding.walk_steps=4", "train.epochs=1")
NOT_NEEDED = {
    *(
        "torch_geometric",
        "lightning_fabric",
        "torch._dynamo",
        "sympy",
        "sklearn",
        "scipy",
        "pandas",
        "matplotlib",
        "optuna",
    ),
    *("lightgbm", "networkx", "pyarrow"),
}
MAIN = "from grit.cli import main\ntry:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code"
LIBRARY = "import grit\nassert grit.load(sys.argv[2]).predict(['CCO', 'c1ccccc1']).shape == (2, 1)"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    store = build("zinc-mini", root=folder, options=BuildOptions(processes=1, limit=40))
    train(grit.load_recipe("zinc-mini", *TINY), folder / "run", store=store, options=RunOptions("cpu"))
    return folder / "run"


@pytest.mark.parametrize("program", [MAIN, LIBRARY], ids=["command", "library"])
def test_a_prediction_loads_no_library_that_it_does_not_need(run, tmp_path, program):
    source, out = tmp_path / "few.csv", tmp_path / "out.csv"
    source.write_text("smiles\nCCO\nc1ccccc1\n")
    program = f"import sys, json\n{program}\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", program, "predict", str(run), str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout.splitlines()[-1])) & NOT_NEEDED == set()
    assert out.exists() == (program.count("main") > 0)
