"""Every plugin of examples/plugins through the command line: trained, resumed, evaluated and used to predict."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import grit
from tests.training.small import SMALL, small_store

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"
TRAIN = [each for each in SMALL if not each.startswith("model.")]

# What each plugin is trained with, on top of the recipe zinc and a small store.
USES = {
    "heat_kernel": [*SMALL, "encoding.name=heat-kernel"],
    "cosine_attention": [*SMALL, "model.attention=cosine", "model.update_pairs=false"],
    "residual_head": [*SMALL, "model.head=residual"],
    "robust_regression": [*SMALL, "train.loss=log-cosh", "train.metric=median-error"],
    "scaled_gin": [*TRAIN, "model.name=scaled-gin", "model.hidden_dim=8", "model.dropout=0.1"],
    "ring_counts": [*SMALL, "dataset=ring-counts"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small"
    small_store(out=path)
    return path


@pytest.fixture
def plugin(tmp_path, forget_plugins, monkeypatch):
    """``plugin("heat_kernel")``: a copy of the example, which this process has not imported yet."""
    monkeypatch.setenv("GRIT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)

    def copy(name, folder="."):
        (tmp_path / folder).mkdir(exist_ok=True)
        return Path(shutil.copy(PLUGINS / f"{name}.py", tmp_path / folder))

    return copy


def test_every_example_is_used():
    assert {path.stem for path in PLUGINS.glob("*.py")} == set(USES)


@pytest.mark.parametrize("name", sorted(USES))
def test_trained_resumed_evaluated_and_used(name, plugin, store, command, forget_plugins, tmp_path):
    file = plugin(name)
    data = [] if name == "ring_counts" else [f"dataset={store}"]
    train = ["train", "zinc", *data, *USES[name], "paper=null", "--run", "run", "--device", "cpu", "--json"]
    result = json.loads(command(*train, "--plugin", file))
    assert result["epochs"] == 3
    interrupted = tmp_path / "run" / "result.json"
    interrupted.unlink()  # as a run that was killed just before its end
    assert json.loads(command("train", "run", "--resume", "--device", "cpu", "--json", "--plugin", file)) == {
        **result,
        "seconds": pytest.approx(0, abs=1e9),
    }

    forget_plugins()
    told = command("evaluate", "run", code=2)
    assert f"The run was trained with {file}. If you trust it, name it again with --plugin" in told

    moved = plugin(name, "moved")
    metrics = json.loads(command("evaluate", "run", "--json", "--plugin", moved))["metrics"]
    assert metrics == pytest.approx(result["test"], rel=1e-5)
    source = "ring-counts" if name == "ring_counts" else store
    command("predict", "run", source, "-o", "out.csv", "--plugin", moved)
    with open("out.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == (300 if name == "ring_counts" else 70)
    assert all(float(value) == float(value) for row in rows for key, value in row.items() if "predict" in key)


def test_what_the_plugins_change_shows(plugin, store, command):
    """Each plugin's entry, not the usual one, is what runs."""
    file = plugin("robust_regression")
    told = command("train", "zinc", f"dataset={store}", *USES["robust_regression"], "--run", "run", "--plugin", file)
    assert "test: median-error" in told
    assert re.search(r"median-error +[0-9.]+ +[0-9.]+ to ", command("evaluate", "run", "--plugin", file))


def test_a_model_option_that_is_not_its_own(plugin, store, command):
    file = plugin("scaled_gin")
    for option, message in (
        ("model.num_heads=2", "model.num_heads: unknown key"),
        ("model.hidden_dim=7", "model: hidden_dim must be even, got 7"),
        ("model.dropout=2", "model.dropout: got 2"),
        ("model.pooling=max", "model.pooling: got 'max'"),
        ("model.degree_histogram=[1]", "model.degree_histogram: unknown key"),
    ):
        told = command("train", "zinc", f"dataset={store}", "model.name=scaled-gin", option, "--plugin", file, code=2)
        assert message in told


def test_the_model_keeps_the_histogram_of_its_training_set(plugin, store, command, tmp_path):
    file = plugin("scaled_gin")
    command("train", "zinc", f"dataset={store}", *USES["scaled_gin"], "--run", "run", "--json", "--plugin", file)
    kept = json.loads((tmp_path / "run" / "data.json").read_text())["statistics"]["degree_histogram"]
    data = grit.datasets.load(str(store))
    assert sum(kept) == data.gather(data.split("train")).num_nodes
    assert sum(degree * count for degree, count in enumerate(kept)) == data.gather(data.split("train")).num_edges


def test_recipes_of_ones_own(plugin, command, tmp_path):
    """A recipe on top of a recipe, each with its plugin, and a third on the command line."""
    plugin("ring_counts", "mine")
    plugin("heat_kernel", "mine")
    head = plugin("residual_head")
    (tmp_path / "mine" / "mine.yaml").write_text(
        yaml.safe_dump({"dataset": "ring-counts", "plugins": ["ring_counts.py"], "train": {"epochs": 1}})
    )
    (tmp_path / "mine" / "heat.yaml").write_text(
        "base: mine.yaml\nplugins: [heat_kernel.py]\nencoding: {name: heat-kernel, walk_steps: 3}\n"
        "model: {num_layers: 1, hidden_dim: 8, num_heads: 2, head_layers: 2}\n"
    )
    arguments = ["mine/heat.yaml", "model.head=residual", "--plugin", head]
    shown = command("recipes", *arguments)
    assert "name: heat-kernel" in shown
    assert [name for name in ("ring_counts.py", "heat_kernel.py", "residual_head.py") if name not in shown] == []
    result = json.loads(command("train", *arguments, "--run", "run", "--device", "cpu", "--workers", "1", "--json"))
    assert result["metric"] == "mae"
    assert re.search(r" mae +[0-9.]+", command("evaluate", "run", "--plugin", head))


def test_the_data_set_is_listed_and_built(plugin, command):
    file = plugin("ring_counts")
    assert "ring-counts" in command("datasets", "--plugin", file)
    told = command("datasets", "build", "ring-counts", "--processes", "2", "--plugin", file)
    assert "train: 200 graphs" in told
    first = grit.datasets.load("ring-counts").gather([0])
    command("datasets", "build", "ring-counts", "--overwrite", "--processes", "1", "--plugin", file)
    assert (grit.datasets.load("ring-counts").gather([0]).edge_index == first.edge_index).all()


def test_rings_are_counted(plugin, forget_plugins):
    grit.load_plugin(str(plugin("ring_counts")))
    networkx = pytest.importorskip("networkx")
    store = grit.datasets.load("ring-counts")
    for number in range(30):
        graph = store.gather([number])
        drawn = networkx.Graph(graph.edge_index.t().tolist())
        assert len(networkx.cycle_basis(drawn)) == graph.y.item()


def test_an_installed_plugin_is_there_without_being_named(plugin, store, tmp_path):
    """A real entry point, in a process of its own."""
    site = tmp_path / "site"
    plugin("heat_kernel", "site")
    about = site / "heat_kernel-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: heat-kernel\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[grit.plugins]\nheat = heat_kernel\n")
    path = os.pathsep.join([str(site), *[each for each in sys.path if each]])
    arguments = ["train", "zinc", f"dataset={store}", *USES["heat_kernel"], "train.epochs=1", "--run", "run", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "grit", *arguments, "--device", "cpu"],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metric"] == "mae"
    recipe = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (recipe["encoding"]["name"], recipe["plugins"]) == ("heat-kernel", [])


@pytest.mark.parametrize(
    ("name", "check", "entry"),
    [
        ("heat_kernel", grit.testing.check_encoding, "heat-kernel"),
        ("cosine_attention", grit.testing.check_attention, "cosine"),
        ("residual_head", grit.testing.check_head, "residual"),
        ("robust_regression", grit.testing.check_loss, "log-cosh"),
        ("robust_regression", grit.testing.check_metric, "median-error"),
        ("scaled_gin", grit.testing.check_model, "scaled-gin"),
    ],
)
def test_the_examples_keep_the_rules(plugin, name, check, entry):
    grit.load_plugin(str(plugin(name)))
    check(entry)
