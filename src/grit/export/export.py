"""A trained run as one file that needs nothing of this library: ``.pt2`` for PyTorch, ``.onnx`` for ONNX Runtime.

``docs/export.md`` says what goes in and what comes out. The program itself is `grit.export.program`.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch_geometric.data import Data

from grit import kernels
from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.export.formats import FORMATS, Run, Shapes
from grit.export.program import TensorProgram
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array
from grit.graphs.convert import pack
from grit.graphs.packed import PackedGraphs
from grit.graphs.schema import Features, GraphSchema
from grit.training.evaluation import predict_batch
from grit.training.predictor import Predictor
from grit.version import VERSION

TOLERANCE = 1e-5
TRIED_SIZES = ((1,), (2,), (60,), (1, 1), (4, 1, 23, 9, 30, 2, 1, 12, 17, 5, 3, 40, 8, 8, 1, 26, 15))

_NODES, _EDGES = Dim("num_nodes"), Dim("num_edges")
_SHAPES: Shapes = {
    "x": {0: _NODES},
    "edge_index": {1: _EDGES},
    "edge_attr": {0: _EDGES},
    "graph_of_node": {0: _NODES},
}


@dataclass(frozen=True)
class Exported:
    """A file that was written and tried.

    Attributes:
        path: The file.
        inputs: Names of its inputs.
        difference: Largest relative difference from the model's predictions, see `relative_difference`.
        num_graphs: How many random graphs it was tried on.
    """

    path: Path
    inputs: tuple[str, ...]
    difference: float
    num_graphs: int


def export(predictor: Predictor, path: str | Path) -> Exported:
    """Write a predictor as a program of its own, run the file, and compare it with the model.

    Args:
        predictor: From `grit.load`.
        path: The file, ``.pt2`` or ``.onnx``. An older one is replaced, and only by one that agrees with the model.
    """
    path = check_export_path(path)
    form = FORMATS[path.suffix]
    form.check_installed()
    program, shapes = trace(predictor)
    try:
        with whole_file(path) as file:
            form.write(program, shapes, describe(predictor), file)
            file.flush()
            difference = _difference(predictor, form.open(Path(file.name)))
            if not difference <= TOLERANCE:  # not a number is no agreement either
                raise GritError(
                    f"the exported program differs from the model: by {difference:.1e}, relative to the prediction, "
                    f"where {TOLERANCE:.0e} is allowed. {str(path)!r} was not written."
                )
    except OSError as error:
        raise GritError(f"cannot write {str(path)!r}: {error}") from None
    return Exported(path, tuple(shapes), difference, sum(map(len, TRIED_SIZES)))


def trace(predictor: Predictor) -> tuple[ExportedProgram, Shapes]:
    """The predictor as a program in plain operations, and which of its inputs' sizes are free."""
    program = TensorProgram(deepcopy(predictor.network).requires_grad_(False), predictor.recipe, predictor.task).eval()
    example = program_inputs(random_graphs(predictor.data.graphs, (5, 3)))
    shapes = {name: _SHAPES[name] for name in example}
    with torch.no_grad(), kernels.use("plain"):
        traced = torch.export.export(program, (), example, dynamic_shapes=shapes, strict=False)
    for module in traced.graph_module.modules():
        for node in module.graph.nodes:
            for name in ("stack_trace", "nn_module_stack"):  # folders of this machine, which are nobody's concern
                node.meta.pop(name, None)
    return traced, shapes


def check_export_path(path: str | Path) -> Path:
    """``path`` itself if an exported file can be written there."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise GritError(f"cannot export to {str(path)!r}: the name must end in {' or '.join(FORMATS)}.")
    if path.is_dir():
        raise GritError(f"cannot write {str(path)!r}: it is a folder. Name the file to write.")
    if not path.parent.is_dir():
        raise GritError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}.")
    return path


def describe(predictor: Predictor) -> dict[str, Any]:
    """What an exported file says about itself."""
    data, task = predictor.data, predictor.task.spec
    return {
        "format": 1,
        "data": data.name,
        "level": data.graphs.level,
        "task": task.kind,
        "targets": task.targets,
        "classes": task.classes,
        "columns": {"binary": task.classes[1:], "multiclass": task.classes}.get(task.kind, task.targets),
        "node_features": data.graphs.node.model_dump(),
        "edge_features": data.graphs.edge.model_dump(),
        "featuriser": data.molecules,
        "encoding": predictor.recipe.encoding.name,
        "walk_steps": predictor.recipe.encoding.walk_steps,
        "pairs": predictor.recipe.model.pairs,
        "versions": {"grit": VERSION, "torch": torch.__version__},
    }


def program_inputs(graphs: PackedGraphs) -> dict[str, Tensor]:
    """The inputs of an exported program, by name; features that the graphs do not carry are no input."""
    features = {"x": graphs.x, "edge_attr": graphs.edge_attr}
    inputs = {"edge_index": graphs.edge_index, "graph_of_node": graphs.graph_of_node}
    inputs |= {name: values for name, values in features.items() if values.shape[1]}
    return {name: inputs[name] for name in _SHAPES if name in inputs}


def random_graphs(schema: GraphSchema, sizes: tuple[int, ...], seed: int = 0) -> PackedGraphs:
    """Graphs of these sizes with the schema's features: directed, with self-loops, parallel edges and isolated nodes."""
    generator = torch.Generator().manual_seed(seed)

    def features(kind: Features, rows: int) -> Tensor | None:
        if kind.kind == "none":
            return None
        if kind.kind == "numeric":
            return torch.randn(rows, kind.width, generator=generator)
        return torch.stack([torch.randint(size, (rows,), generator=generator) for size in kind.sizes], 1)

    def graph(n: int) -> Data:
        edges = torch.randint(n, (2, 2 * (n - 1)), generator=generator)  # none for a single node
        edges = torch.cat([edges, edges[:, ::3]], 1)
        return Data(
            num_nodes=n, x=features(schema.node, n), edge_index=edges, edge_attr=features(schema.edge, edges.shape[1])
        )

    return pack([graph(n) for n in sizes])


def _difference(predictor: Predictor, run: Run) -> float:
    """Largest relative difference between program and model on random graphs."""
    found, wanted = [], []
    for seed, sizes in enumerate(TRIED_SIZES):
        graphs = random_graphs(predictor.data.graphs, sizes, seed)
        batch = PairBatch.from_graphs(graphs, predictor.spec)
        with torch.no_grad():
            wanted.append(predict_batch(predictor.network, predictor.task, batch)[0])
        found.append(run(program_inputs(graphs)))
    return relative_difference(np.concatenate(found), np.concatenate(wanted), predictor.task.spec.kind)


def relative_difference(found: Array, wanted: Array, kind: str) -> float:
    """Largest difference of predictions (R, num_outputs), each relative to its size.

    A number that happens to be near 0 is measured by the usual size of its column, and a probability by 1.
    """
    usual = np.median(np.abs(wanted), 0) if kind == "regression" else 1.0
    size = np.maximum(np.abs(wanted), usual)
    return float((np.abs(found - wanted) / np.where(size > 0, size, 1.0)).max())
