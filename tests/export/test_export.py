"""Exported files, run in processes that cannot import grit."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import grit
from grit.batches.pair_batch import PairBatch
from grit.cli.export import export as command
from grit.export import export as exporting
from grit.export.export import export, program_inputs, random_graphs, relative_difference
from grit.graphs.schema import OGB_ATOM, Features, GraphSchema, TaskSpec
from grit.recipe.builder import build_model
from grit.training.evaluation import predict_batch
from grit.training.predictor import Predictor
from grit.training.run_folder import RunData
from grit.training.train import RunOptions, train
from tests.training.small import small_recipe, small_store

HAS_ONNX = all(find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
SUFFIXES = [".pt2", pytest.param(".onnx", marks=pytest.mark.skipif(not HAS_ONNX, reason="needs the extra 'export'"))]
NUMBERS, NOTHING = Features(kind="numeric", sizes=(3,)), Features(kind="none")

# Both read models and inputs from folders and write what each model gives for each input.
PROGRAMS = {
    ".onnx": """
import sys
for name in ("grit", "torch"):
    sys.modules[name] = None  # no longer importable
from pathlib import Path
import numpy as np, onnxruntime
for path in Path(".").glob("*.onnx"):
    session = onnxruntime.InferenceSession(path)
    for batch in Path(path.stem).glob("*.npz"):
        np.save(batch.with_suffix(".npy"), session.run(["prediction"], dict(np.load(batch)))[0])
""",
    ".pt2": """
import sys
sys.modules["grit"] = None
from pathlib import Path
import numpy as np, torch
for path in Path(".").glob("*.pt2"):
    program = torch.export.load(path).module()
    for batch in Path(path.stem).glob("*.npz"):
        tensors = {name: torch.from_numpy(array) for name, array in np.load(batch).items()}
        np.save(batch.with_suffix(".npy"), program(**tensors).numpy())
""",
}


def predictor(spec, schema, *overrides, mean=0.0, scale=1.0, seed=0):
    """A model with random weights and random statistics of its normalisations."""
    recipe = small_recipe("model.num_layers=1", *overrides)
    torch.manual_seed(seed)
    network = build_model(recipe, schema)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
    size = len(spec.targets)
    data = RunData(
        name="random",
        store=None,
        graphs=schema,
        task=spec,
        mean=(mean,) * size,
        scale=(scale,) * size,
        molecules=None,
        split_sizes={},
        split_checksums={},
    )
    return Predictor(network, recipe, data)


def predictors():
    """One for each kind of task; features, pairs, encodings and heads of all kinds among them."""
    regression = TaskSpec(kind="regression", targets=("a", "b"), loss="l1", metric="mae", standardise=True)
    classes = TaskSpec(
        kind="multiclass", targets=("kind",), classes=("x", "y", "z"), loss="cross_entropy", metric="accuracy"
    )
    labels = TaskSpec(kind="multilabel", targets=("p", "q"), loss="cross_entropy", metric="ap")
    binary = TaskSpec(kind="binary", targets=("t",), classes=("no", "yes"), loss="cross_entropy", metric="ap")
    category = Features(kind="category", sizes=(4,))
    return {
        "regression": predictor(
            regression, GraphSchema(node=category, edge=category, num_outputs=2), mean=-3.5, scale=120.0
        ),
        "multiclass": predictor(classes, GraphSchema(node=OGB_ATOM, edge=NOTHING, num_outputs=3), "model.pooling=mean"),
        "multilabel": predictor(
            labels, GraphSchema(node=NOTHING, edge=NUMBERS, num_outputs=2), "model.pairs=khop-2", "model.head=mlp"
        ),
        "nodes": predictor(
            binary,
            GraphSchema(node=NUMBERS, edge=category, level="node"),
            "model.pooling=none",
            "encoding.name=rwse",
            "model.attention=graphormer",
            "model.update_pairs=false",
        ),
    }


def batches(schema):
    """Batches of 1, 2 and 17 graphs of 1 to 60 nodes, directed, with self-loops and parallel edges; some without edges."""
    sizes = [(1,), (2,), (60,), (1, 1), (13, 1), tuple(range(1, 52, 3))]
    return {str(number): random_graphs(schema, each, seed=100 + number) for number, each in enumerate(sizes)}


def predict(model, graphs):
    batch = PairBatch.from_graphs(graphs, model.spec)
    with torch.no_grad():
        return predict_batch(model.network, model.task, batch)[0]


@pytest.fixture(scope="module", params=SUFFIXES)
def exported(request, tmp_path_factory):
    """Files of one format, and what they predict where there is no grit."""
    folder = tmp_path_factory.mktemp(f"exported{request.param}")
    models = predictors()
    for name, model in models.items():
        export(model, folder / f"{name}{request.param}")
        (folder / name).mkdir()
        for number, graphs in batches(model.data.graphs).items():
            inputs = {key: value.numpy() for key, value in program_inputs(graphs).items()}
            np.savez(folder / name / f"{number}.npz", **inputs)
            order = np.random.default_rng(0).permutation(graphs.num_edges)
            for key, axis in (("edge_index", 1), ("edge_attr", 0)):
                if key in inputs:
                    inputs[key] = inputs[key].take(order, axis)
            np.savez(folder / name / f"{number}-shuffled.npz", **inputs)
            inputs["graph_of_node"] = inputs["graph_of_node"] + 1
            np.savez(folder / name / f"{number}-broken.npz", **inputs)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", PROGRAMS[request.param]], cwd=folder, env=environment, check=True, timeout=300
    )
    return folder, models, request.param


@pytest.mark.parametrize("name", ["regression", "multiclass", "multilabel", "nodes"])
def test_the_file_predicts_what_the_model_does(exported, name):
    folder, models, _ = exported
    model = models[name]
    for number, graphs in batches(model.data.graphs).items():
        wanted = predict(model, graphs)
        for file in (f"{number}.npy", f"{number}-shuffled.npy"):  # edges in any order
            found = np.load(folder / name / file)
            assert found.shape == wanted.shape
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
        assert np.isnan(np.load(folder / name / f"{number}-broken.npy")).all()  # graphs are numbered from 0


def test_the_file_says_what_it_is(exported):
    folder, _, suffix = exported
    about = metadata(folder / f"multiclass{suffix}")
    assert about["targets"] == ["kind"]
    assert about["classes"] == about["columns"] == ["x", "y", "z"]
    assert about["versions"]["torch"] == torch.__version__
    assert about["featuriser"] is None
    assert about["level"] == "graph"
    assert metadata(folder / f"nodes{suffix}")["columns"] == ["yes"]
    assert metadata(folder / f"regression{suffix}")["columns"] == ["a", "b"]


def metadata(path):
    if path.suffix == ".pt2":
        files = {"grit.json": ""}
        torch.export.load(path, extra_files=files)
        return json.loads(files["grit.json"])
    import onnxruntime

    texts = onnxruntime.InferenceSession(path).get_modelmeta().custom_metadata_map
    words = ("data", "level", "task", "encoding", "pairs")
    return {name: text if name in words else json.loads(text) for name, text in texts.items()}


def test_it_tells_nothing_of_this_machine(exported):
    folder, _, suffix = exported
    here = os.path.dirname(grit.__file__).encode()
    for path in folder.glob(f"*{suffix}"):
        assert here not in path.read_bytes()


def test_names_in_onnx(exported):
    folder, _, suffix = exported
    if suffix != ".onnx":
        pytest.skip("about ONNX")
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "multilabel.onnx")
    assert [(each.name, each.shape) for each in session.get_inputs()] == [
        ("edge_index", [2, "num_edges"]),
        ("edge_attr", ["num_edges", 3]),
        ("graph_of_node", ["num_nodes"]),
    ]
    assert [(each.name, each.shape) for each in session.get_outputs()] == [("prediction", ["num_graphs", 2])]
    nodes = onnxruntime.InferenceSession(folder / "nodes.onnx")
    assert nodes.get_outputs()[0].shape == ["num_nodes", 1]


def test_the_example_of_the_documentation(exported, monkeypatch):
    folder, _, suffix = exported
    monkeypatch.chdir(folder)
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if suffix in block)
    edges = torch.tensor([[0, 1], [1, 0]])
    names = {"x": edges.new_zeros(2, 1), "edge_index": edges, "edge_attr": edges.new_zeros(2, 1), "batch": edges[0] * 0}
    exec(example.replace("model.", "regression."), names)
    assert names["prediction"].shape == (1, 2)
    assert names["columns"] == ["a", "b"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on graphs."""
    folder = tmp_path_factory.mktemp("run") / "run"
    recipe = small_recipe("model.num_layers=1", "train.epochs=1", "train.warmup_epochs=0")
    train(recipe, folder, store=small_store(), options=RunOptions(device="cpu"))
    return folder


def grit_command(folder, *arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "grit", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_command(run, tmp_path, suffix):
    (tmp_path / f"m{suffix}").write_text("an older file")
    done = grit_command(tmp_path, "export", run, "-o", f"m{suffix}")
    assert "inputs x, edge_index, edge_attr, graph_of_node; output prediction" in done.stdout
    assert "largest relative difference from the model" in done.stdout
    assert "Next: " in done.stdout
    assert [line for line in done.stderr.splitlines() if not line.startswith("grit: ")] == []  # that is about kernels
    assert [path.name for path in tmp_path.iterdir()] == [f"m{suffix}"]


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("m.txt", "cannot export to 'm.txt': the name must end in .pt2 or .onnx."),
        ("folder.pt2", "cannot write 'folder.pt2': it is a folder. Name the file to write."),
        ("absent/m.pt2", "cannot write 'absent/m.pt2': there is no folder 'absent'."),
        ("m.pt2", "'missing' is not a run folder: there is nothing of that name."),
    ],
)
def test_mistakes_of_the_command(tmp_path, monkeypatch, out, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.pt2").mkdir()
    with pytest.raises(grit.GritError) as raised:
        command(Path("missing"), Path(out))
    assert str(raised.value) == message
    assert not (tmp_path / "m.pt2").exists()


def test_a_mistake_is_one_line(tmp_path):
    done = grit_command(tmp_path, "export", "missing", "-o", "m.txt", code=2)
    assert done.stderr == "error: cannot export to 'm.txt': the name must end in .pt2 or .onnx.\n"


def test_a_file_that_disagrees_is_not_written(run, tmp_path, monkeypatch):
    (tmp_path / "m.pt2").write_text("an older file")
    monkeypatch.setattr(exporting, "relative_difference", lambda *_: float("nan"))
    with pytest.raises(grit.GritError, match="differs from the model: by nan, .* where 1e-05 is allowed"):
        export(grit.load(run), tmp_path / "m.pt2")
    assert (tmp_path / "m.pt2").read_text() == "an older file"
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt2"]


KILLED = """
import os, signal, sys
import grit
from grit.export import export as exporting
exporting.relative_difference = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
exporting.export(grit.load(sys.argv[1]), "m.pt2")
"""


def test_what_a_killed_export_left_goes_with_the_next(run, tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, run], cwd=tmp_path, timeout=600, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "m.pt2").exists()
    export(grit.load(run), tmp_path / "m.pt2")
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt2"]


def test_missing_packages_are_named(run, tmp_path, monkeypatch):
    monkeypatch.setattr("grit.export.formats.find_spec", lambda name: None)
    with pytest.raises(
        grit.GritError, match=r"needs onnx, onnxscript, onnxruntime: pip install 'torch-grit\[export\]'"
    ):
        export(grit.load(run), tmp_path / "m.onnx")


def test_relative_difference():
    wanted = np.array([[100.0, 1.0], [200.0, 2.0], [0.0, 3.0]])
    found = wanted + np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    assert relative_difference(found, wanted, "regression") == 0.01
    assert relative_difference(found, wanted, "multilabel") == 1.0
    assert relative_difference(np.zeros((1, 1)), np.zeros((1, 1)), "regression") == 0.0
    assert np.isnan(relative_difference(wanted * np.nan, wanted, "regression"))


def test_random_graphs_are_awkward():
    graphs = random_graphs(GraphSchema(node=NUMBERS, edge=NOTHING), (1, 5, 60))
    source, target = graphs.edge_index
    assert (graphs.degree() == 0).any()
    assert (source == target).any()
    assert torch.unique(graphs.edge_index, dim=1).shape[1] < graphs.num_edges
    assert list(program_inputs(graphs)) == ["x", "edge_index", "graph_of_node"]


@pytest.mark.parametrize(
    ("found", "wanted", "kind", "difference"),
    [
        ([[0.011], [0.01]], [[0.01], [0.01]], "regression", 0.1),  # small numbers differ by their own size
        ([[0.1], [2.0]], [[0.0], [2.0]], "regression", 0.1),  # one near 0 by the usual size, here 1
        ([[0.0]], [[0.0]], "regression", 0.0),
        ([[0.02]], [[0.01]], "binary", 0.01),
    ],
)
def test_differences_are_relative_to_what_is_predicted(found, wanted, kind, difference):
    assert relative_difference(np.array(found), np.array(wanted), kind) == pytest.approx(difference)


@pytest.mark.skipif(not HAS_ONNX, reason="needs the extra 'export'")
def test_what_other_packages_log_is_as_before(run, tmp_path):
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        export(grit.load(run), tmp_path / "m.onnx")
        assert logger.level == logging.INFO
    finally:
        logger.setLevel(before)
