"""The rules of `MODELS`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from grit.batches.pair_batch import PairBatch
from grit.datasets.own.graph_lists import from_pyg
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS, STATISTICS, ModelKind
from grit.testing.graphs import awkward_graphs, other_order_of_edges, random_order, renumbered, with_features
from grit.testing.modules import check_gradients, check_module, seeded, under_seed
from grit.testing.rules import Rules, find_entry

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(5,)), edge=Features(kind="category", sizes=(3,)), num_outputs=2
)


def check_model(
    model: str | ModelKind,
    *,
    graphs: Sequence[Data] | None = None,
    schema: GraphSchema = SCHEMA,
    levels: Sequence[str] = ("graph", "node"),
    encoding: str = "rrwp",
    walk_steps: int = 4,
    options: Mapping[str, Any] | None = None,
    unread: tuple[str, ...] = (),
) -> None:
    """Raise `AssertionError` unless a model keeps the rules of its table.

    Shapes, types, finite numbers; the order of nodes and edges makes no difference; in evaluation a batch is its graphs one by
    one, and nothing is left to chance; gradients reach every parameter; weights can be saved and loaded.

    Args:
        model: Entry of `MODELS`, or its name.
        graphs: What to try it on; `awkward_graphs` if not given. Those without features get some.
        schema: Features and number of outputs.
        levels: What it predicts for: ``graph``, ``node``.
        encoding: Of the batches, entry of `ENCODINGS`.
        walk_steps: Its size.
        options: Of the model; its defaults if not given. A model with an option ``pooling`` gets ``none`` for nodes.
        unread: Beginnings of the names of parameters that no gradient has to reach.
    """
    rules, kind = find_entry("model", model, MODELS)
    graphs = with_features(awkward_graphs() if graphs is None else graphs, schema)
    for level in levels:
        case = _Case(kind, graphs, schema.model_copy(update={"level": level}), encoding, walk_steps, options or {})
        with rules.works(f"it can be built, and predicts for any {level}"):
            _check_form(rules, case, unread)
            check_module(rules, case.make, lambda module, case=case: module(case.batch(case.graphs)))  # type: ignore[misc]
            _check_orders(rules, case)
            _check_one_by_one(rules, case)


class _Case:
    """A model of one level, and batches for it."""

    def __init__(
        self,
        kind: ModelKind,
        graphs: list[Data],
        schema: GraphSchema,
        encoding: str,
        walk_steps: int,
        options: Mapping[str, Any],
    ) -> None:
        self.kind, self.graphs, self.schema = kind, graphs, schema
        self.encoding, self.walk_steps = encoding, walk_steps
        wanted = kind.parameters()
        given = {"schema": schema, "encoding": encoding, "walk_steps": walk_steps, **_statistics(graphs, wanted)}
        pooling = {"pooling": "none"} if schema.level != "graph" and "pooling" in wanted else {}
        self.arguments = {**{name: given[name] for name in given if name in wanted}, **pooling, **options}

    def make(self) -> nn.Module:
        return self.kind.build(**self.arguments).double()

    def batch(self, graphs: Sequence[Data], dtype: torch.dtype = torch.float64) -> PairBatch:
        return PairBatch.from_data_list(graphs, self.walk_steps, encoding=self.encoding, dtype=dtype)

    def predict(self, model: nn.Module, graphs: Sequence[Data]) -> Tensor:
        return under_seed(0, lambda: model(self.batch(graphs)))

    @property
    def rows(self) -> int:
        return len(self.graphs) if self.schema.level == "graph" else sum(data.num_nodes for data in self.graphs)


def _statistics(graphs: list[Data], wanted: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in STATISTICS if name in wanted]
    if not names:
        return {}
    labelled = [data.clone() for data in graphs]
    for number, data in enumerate(labelled):
        data.y = torch.tensor([number + 0.5])
    store = from_pyg(labelled, splits={"train": range(len(labelled))})
    return {name: STATISTICS[name](store, np.arange(len(store))) for name in names}


def _check_form(rules: Rules, case: _Case, unread: tuple[str, ...]) -> None:
    level, wanted = case.schema.level, (case.rows, case.schema.num_outputs)
    model = seeded(case.make).float()
    model.train()
    predicted = model(case.batch(case.graphs, torch.float32))
    rules.shape(f"predictions are ({level}s, num_outputs)", predicted, wanted)
    rules.hold("float32 gives float32", predicted.dtype == torch.float32, f"got {predicted.dtype}")
    rules.finite("predictions are finite in training", predicted)
    check_gradients(rules, model, predicted.sum(), unread)
    model = seeded(case.make).eval()
    batch = case.batch(case.graphs)
    kept = batch.map_tensors(torch.clone)
    predicted = under_seed(0, lambda: model(batch))
    rules.shape(f"predictions are ({level}s, num_outputs)", predicted, wanted)
    rules.hold("float64 gives float64", predicted.dtype == torch.float64, f"got {predicted.dtype}")
    rules.finite("predictions are finite in evaluation", predicted)
    for name in ("node_encoding", "pair_encoding", "degree", "log_degree", "x"):
        rules.equal("the batch stays as it is", getattr(batch, name), getattr(kept, name))


def _check_orders(rules: Rules, case: _Case) -> None:
    model = seeded(case.make).eval()
    here = case.predict(model, case.graphs)
    orders = [random_order(data.num_nodes) for data in case.graphs]
    moved = [renumbered(data, order) for data, order in zip(case.graphs, orders, strict=True)]
    there = case.predict(model, moved)
    if case.schema.level == "node":
        sizes = [data.num_nodes for data in case.graphs]
        there = torch.cat([part[order] for part, order in zip(torch.split(there, sizes), orders, strict=True)])
    rules.close("the order of the nodes makes no difference", there, here)
    shuffled = case.predict(model, [other_order_of_edges(data) for data in case.graphs])
    rules.close("the order in which edges are listed makes no difference", shuffled, here)


def _check_one_by_one(rules: Rules, case: _Case) -> None:
    model = seeded(case.make).eval()
    alone = torch.cat([case.predict(model, [data]) for data in case.graphs])
    rules.close("in evaluation a batch is its graphs one by one", case.predict(model, case.graphs), alone)
