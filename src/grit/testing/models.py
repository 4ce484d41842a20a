"""The rules of `MODELS`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets.own.graph_lists import from_pyg
from grit.encodings import ENCODINGS
from grit.graphs.convert import pack
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS, STATISTICS, ModelKind
from grit.models.blocks import Draws
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
    levels: Sequence[str] | None = None,
    encoding: str | None = None,
    walk_steps: int = 4,
    pairs: str | None = None,
    options: Mapping[str, Any] | None = None,
    unread: tuple[str, ...] = (),
) -> None:
    """Raise `AssertionError` unless a model keeps the rules of its table.

    Shapes, types, finite numbers; the order of nodes and edges makes no difference (to the mean over many draws, if the model
    `draws`); in evaluation a batch is its graphs one by one, and nothing is left to chance; gradients reach every parameter;
    weights can be saved and loaded.

    Args:
        model: Entry of `MODELS`, or its name.
        graphs: What to try it on; `awkward_graphs` if not given. Those without features get some.
        schema: Features and number of outputs.
        levels: What it predicts for: ``graph``, ``node``; both, if it says it can, if not given.
        encoding: Of the batches, entry of `ENCODINGS`; the first that it names, or ``rrwp``, if not given.
        walk_steps: Its size.
        pairs: Of the batches; the first kind that it names, or ``all``, if not given.
        options: Of the model; its defaults if not given. A model with an option ``pooling`` gets ``none`` for nodes.
        unread: Beginnings of the names of parameters that no gradient has to reach.
    """
    rules, kind = find_entry("model", model, MODELS)
    graphs = with_features(awkward_graphs() if graphs is None else graphs, schema)
    chosen = encoding or (kind.encodings or ("rrwp",))[0]
    wanted = pairs or (kind.pairs or ("all",))[0]
    spec = BatchSpec(walk_steps, chosen, "khop-2" if wanted == "khop" else wanted, torch.float64)
    kind.check_batches(rules.who, spec.encoding, spec.pairs)
    # The graphs have no labelled pairs to predict for.
    for level in [each for each in kind.levels if each != "edge"] if levels is None else levels:
        case = _Case(kind, graphs, schema.model_copy(update={"level": level}), spec, options or {})
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
        spec: BatchSpec,
        options: Mapping[str, Any],
    ) -> None:
        self.kind, self.graphs, self.schema = kind, graphs, schema
        wanted = kind.parameters()
        defaults = {name: default for name, (_, default) in wanted.items() if default is not ...}
        self.spec = replace(spec, structures=kind.structures({**defaults, **options}))
        given = {
            "schema": schema,
            "encoding": spec.encoding,
            "walk_steps": spec.walk_steps,
            **_statistics(graphs, wanted),
        }
        pooling = {"pooling": "none"} if schema.level != "graph" and "pooling" in wanted else {}
        self.arguments = {**{name: given[name] for name in given if name in wanted}, **pooling, **options}

    def make(self) -> nn.Module:
        return self.kind.build(**self.arguments).double()

    def batch(self, graphs: Sequence[Data], dtype: torch.dtype = torch.float64) -> PairBatch:
        return PairBatch.from_graphs(pack(graphs), replace(self.spec, dtype=dtype))

    def predict(self, model: nn.Module, batch: PairBatch) -> Tensor:
        return under_seed(0, lambda: model(batch))

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
    batch = case.batch(case.graphs)
    orders = [random_order(data.num_nodes) for data in case.graphs]
    moved = case.batch([renumbered(data, order) for data, order in zip(case.graphs, orders, strict=True)])
    place = torch.cat([order + first for order, first in zip(orders, batch.graphs.node_ptr.tolist(), strict=False)])
    shuffled = case.batch([other_order_of_edges(data) for data in case.graphs])
    if not ENCODINGS[case.spec.encoding].equivariant:
        # Eigenvectors of a renumbered graph may be others. What is asked is that the model treats all nodes alike.
        carried = torch.empty_like(batch.node_encoding)
        carried[place] = batch.node_encoding
        moved, shuffled = replace(moved, node_encoding=carried), replace(shuffled, node_encoding=batch.node_encoding)
    predict = _mean_of_draws if case.kind.draws else case.predict
    here, there, listed = (predict(model, each) for each in (batch, moved, shuffled))
    if case.schema.level == "node":
        there = there[place]
    if case.kind.draws:
        _check_same_distribution(rules, "the order of the nodes makes no difference to the distribution", there, here)
        _check_same_distribution(rules, "the order of edges makes no difference to the distribution", listed, here)
        return
    rules.close("the order of the nodes makes no difference", there, here)
    rules.close("the order in which edges are listed makes no difference", listed, here)


_DRAWS = 64


def _mean_of_draws(model: nn.Module, batch: PairBatch) -> Tensor:
    """(rows, outputs, draws): predictions with other random numbers each."""
    assert isinstance(model, Draws), "a model that draws is a grit.models.blocks.Draws"
    found = []
    for seed in range(_DRAWS):
        model.eval_seed = seed
        found.append(under_seed(0, lambda: model(batch)))
    model.eval_seed = 0
    return torch.stack(found, -1)


def _check_same_distribution(rules: Rules, rule: str, got: Tensor, wanted: Tensor) -> None:
    """The means of many draws agree within six standard errors."""
    error = ((got.var(-1) + wanted.var(-1)) / _DRAWS).sqrt()
    gap = (got.mean(-1) - wanted.mean(-1)).abs()
    allowed = 6 * error + 1e-6 * (1 + wanted.mean(-1).abs())
    worst = (gap - allowed).argmax()
    rules.hold(rule, bool((gap <= allowed).all()), f"{gap.flatten()[worst]} apart, {allowed.flatten()[worst]} allowed")


def _check_one_by_one(rules: Rules, case: _Case) -> None:
    model = seeded(case.make).eval()
    alone = torch.cat([case.predict(model, case.batch([data])) for data in case.graphs])
    whole = case.predict(model, case.batch(case.graphs))
    rules.close("in evaluation a batch is its graphs one by one", whole, alone)
