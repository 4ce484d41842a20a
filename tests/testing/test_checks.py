"""Each check fails for an entry that breaks a rule, and the message names the rule."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import grit
from grit.encodings import Encoding, EncodingKind
from grit.learning.losses import Loss
from grit.learning.metrics import Metric
from grit.models import ModelKind
from grit.models.message_passing.gine import Gine
from grit.nn.attention.san import SanAttention
from grit.nn.heads import MLPHead
from grit.testing import (
    awkward_graphs,
    check_attention,
    check_encoding,
    check_head,
    check_loss,
    check_metric,
    check_model,
)


def test_the_fixed_graphs_are_awkward_and_always_the_same():
    graphs, again = awkward_graphs(), awkward_graphs()
    assert all(torch.equal(one.edge_index, other.edge_index) for one, other in zip(graphs, again, strict=True))
    assert any(data.num_nodes == 1 and data.num_edges == 0 for data in graphs)
    assert any(data.has_self_loops() for data in graphs)
    assert any(data.has_isolated_nodes() for data in graphs if data.num_edges)
    assert any(data.is_directed() for data in graphs)
    assert any(not data.is_coalesced() for data in graphs)


def test_a_name_that_is_not_in_the_table():
    for check in (check_encoding, check_attention, check_head, check_loss, check_metric, check_model):
        with pytest.raises(grit.GritError, match="unknown .* 'absent'; there are "):
            check("absent")


# Encodings


def node_part(change):
    """RWSE, with its node part changed by ``change(part, graphs, pairs)``."""

    def compute(graphs, pairs, walk_steps, dtype):
        sound = grit.ENCODINGS["rwse"].compute(graphs, pairs, walk_steps, dtype)
        return Encoding(change(sound.node, graphs, pairs), sound.pair)

    return replace(grit.ENCODINGS["rwse"], compute=compute)


def changes_the_graphs(part, graphs, pairs):
    graphs.edge_index[:] = 0
    return part


ENCODINGS = {
    "the node part is": node_part(lambda part, graphs, pairs: part[:, :1]),
    "the type that is asked for": node_part(lambda part, graphs, pairs: part.double()),
    "its numbers are finite": node_part(lambda part, graphs, pairs: part / (graphs.degree() > 0).unsqueeze(1)),
    "the graphs stay as they are": node_part(changes_the_graphs),
    "the same encoding every time": node_part(lambda part, graphs, pairs: part + torch.rand_like(part)),
    "the order in which edges are listed": node_part(
        lambda part, graphs, pairs: part + (graphs.edge_index[0] * torch.arange(graphs.num_edges)).sum()
    ),
    "as its graphs one by one": node_part(lambda part, graphs, pairs: part + len(graphs)),
    "with fewer pairs the others keep": node_part(lambda part, graphs, pairs: part * pairs.num_pairs / 100),
    "renumbering the nodes renumbers the encoding": node_part(
        lambda part, graphs, pairs: (
            part + (torch.arange(graphs.num_nodes) - graphs.node_ptr[graphs.graph_of_node])[:, None]
        )
    ),
    r"edge_weight changes nothing \(or say": replace(grit.ENCODINGS["rrwp"], reads_weights=False),
    "edge_weight changes the encoding": replace(grit.ENCODINGS["spd"], reads_weights=True),
    "weights that are all 1": node_part(
        lambda part, graphs, pairs: part + (0.0 if graphs.edge_weight is None else 1.0)
    ),
    "it raises IndexError": node_part(lambda part, graphs, pairs: part + graphs.edge_index[0, 10**6]),
}


@pytest.mark.parametrize("rule", sorted(ENCODINGS))
def test_broken_encodings(rule):
    with pytest.raises(AssertionError, match=rule):
        check_encoding(ENCODINGS[rule])


def test_an_encoding_of_eigenvectors_that_says_it_is_equivariant():
    with pytest.raises(AssertionError, match="or say equivariant=False"):
        check_encoding(replace(grit.ENCODINGS["laplacian"], equivariant=True))


def test_an_encoding_is_held_to_the_rules_on_the_graphs_that_are_passed():
    def compute(graphs, pairs, walk_steps, dtype):
        return Encoding(
            torch.zeros(graphs.num_nodes, 1, dtype=dtype) / (graphs.num_nodes - 4), pairs_part(pairs, dtype)
        )

    def pairs_part(pairs, dtype):
        return torch.zeros(pairs.num_pairs, 0, dtype=dtype)

    kind = EncodingKind(compute, node_dim=lambda steps: 1, pair_dim=lambda steps: 0)
    graph = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=5)
    check_encoding(kind, graphs=[graph])
    with pytest.raises(AssertionError, match="finite"):
        check_encoding(kind, graphs=[Data(edge_index=graph.edge_index, num_nodes=4)])


# Attentions


def san(**methods):
    """SAN's attention with some methods or attributes of its own."""
    return type("Broken", (SanAttention,), methods)


def changed(change):
    """SAN's attention with a changed result."""

    def forward(self, x, pair, pairs):
        return change(self, SanAttention.forward(self, x, pair, pairs), x, pairs)

    return san(forward=forward)


def with_option(**options):
    """SAN's attention that ignores an option."""

    def __init__(self, **given):
        SanAttention.__init__(self, **{**given, **options})

    return san(__init__=__init__)


def unused(self, **given):
    SanAttention.__init__(self, **given)
    self.unused = nn.Linear(2, 2)


def dropout_always(self, out, x, pairs):
    return out._replace(node=nn.functional.dropout(out.node, 0.5)) if self.attention_dropout else out


def only_the_right_number_of_pairs(self, x, pair, pairs):
    return SanAttention.forward(self, x[: pairs.num_nodes], pair[: pairs.num_pairs], pairs)


ATTENTIONS = {
    "node is": changed(lambda self, out, x, pairs: out._replace(node=out.node[:, :1])),
    "pair is a tensor, as makes_pairs says": san(makes_pairs=True),
    "does not reach the pairs, as reads_pairs says": san(reads_pairs=False),
    "sum to 1": changed(lambda self, out, x, pairs: out._replace(weights=2 * out.weights)),
    "not negative": changed(lambda self, out, x, pairs: out._replace(weights=-out.weights)),
    "type of the inputs": changed(lambda self, out, x, pairs: out._replace(node=out.node.float())),
    "inputs stay as they are": changed(lambda self, out, x, pairs: out._replace(node=x.detach().zero_() + out.node)),
    "results are finite": changed(lambda self, out, x, pairs: out._replace(node=out.node / 0)),
    "renumbering the nodes": changed(lambda self, out, x, pairs: out._replace(node=out.node.cumsum(0))),
    "one by one": changed(lambda self, out, x, pairs: out._replace(node=out.node + out.node.mean(0))),
    "the gradient reaches every parameter: none reaches unused": san(__init__=unused),
    "drops weights in training": with_option(attention_dropout=0.0),
    "nothing is dropped in evaluation|nothing is left to chance": changed(dropout_always),
    "before dropout": changed(
        lambda self, out, x, pairs: (
            out._replace(weights=out.weights.flip(1)) if self.training and self.attention_dropout else out
        )
    ),
    "clamp bounds the logits": with_option(clamp=None),
    "clamp=None leaves the logits free": with_option(clamp=0.01),
    "do not fit the pairs are refused": san(forward=only_the_right_number_of_pairs),
    "it raises RuntimeError": changed(lambda self, out, x, pairs: out._replace(node=x @ x)),
}


@pytest.mark.parametrize("rule", sorted(ATTENTIONS))
def test_broken_attentions(rule):
    with pytest.raises(AssertionError, match=f"attention Broken: .*({rule})"):
        check_attention(ATTENTIONS[rule])


# Heads


def head(forward, **extra):
    return type("Broken", (MLPHead,), {"forward": forward, **extra})


def init_unused(self, **options):
    MLPHead.__init__(self, **options)
    self.unused = nn.Linear(2, 2)


class Counting(MLPHead):
    """Its result depends on what is not in its state_dict."""

    def __init__(self, **options):
        super().__init__(**options)
        self.shift = torch.rand(1).double()

    def forward(self, rows):
        return super().forward(rows) + self.shift


HEADS = {
    "predictions are": head(lambda self, rows: rows),
    "type of the rows": head(lambda self, rows: MLPHead.forward(self, rows).float()),
    "finite for rows of zeros": head(lambda self, rows: MLPHead.forward(self, rows) / rows.norm()),
    "every row is predicted for itself": head(lambda self, rows: MLPHead.forward(self, rows - rows.mean(0))),
    "none reaches unused": head(MLPHead.forward, __init__=init_unused),
    "in evaluation nothing is left to chance": head(
        lambda self, rows: MLPHead.forward(self, rows) + torch.rand(1, dtype=rows.dtype)
    ),
    "all that it learns is in its state_dict": Counting,
    "it raises TypeError": nn.Linear,
}


@pytest.mark.parametrize("rule", sorted(HEADS))
def test_broken_heads(rule):
    with pytest.raises(AssertionError, match=rule):
        check_head(HEADS[rule])


# Models


def gine(forward, **extra):
    """GINE with another forward; two layers, so that tests are short."""

    def __init__(self, schema):
        Gine.__init__(self, schema, num_layers=2, hidden_dim=8)

    return ModelKind(type("Broken", (Gine,), {"forward": forward, "__init__": __init__, **extra}))


def model_unused(self, schema):
    Gine.__init__(self, schema, num_layers=2, hidden_dim=8)
    self.unused = nn.Linear(2, 2)


def writes_to_the_batch(self, batch):
    predicted = Gine.forward(self, batch)
    batch.log_degree.zero_()
    return predicted


def positions(batch, values, ends=None):
    """The sum of each graph's values, times their places in the graph: (B, 1)."""
    ends = batch.graphs.node_ptr if ends is None else ends
    parts = [values[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return torch.stack([(part * torch.arange(len(part))).sum() for part in parts]).unsqueeze(1)


MODELS = {
    "predictions are": gine(lambda self, batch: Gine.forward(self, batch)[:, :1]),
    "predictions are finite": gine(lambda self, batch: Gine.forward(self, batch) / 0),
    "float64 gives float64": gine(lambda self, batch: Gine.forward(self, batch).float()),
    "the batch stays as it is": gine(writes_to_the_batch),
    "the order of the nodes": gine(lambda self, batch: Gine.forward(self, batch) + positions(batch, batch.x[:, 0])),
    "the order in which edges are listed": gine(
        lambda self, batch: (
            Gine.forward(self, batch) + positions(batch, batch.graphs.edge_attr[:, 0], batch.graphs.edge_ptr)
        )
    ),
    "a batch is its graphs one by one": gine(lambda self, batch: Gine.forward(self, batch) * batch.num_graphs),
    "none reaches unused": gine(Gine.forward, __init__=model_unused),
    "in evaluation nothing is left to chance": gine(
        lambda self, batch: nn.functional.dropout(Gine.forward(self, batch), 0.5)
    ),
    "it raises IndexError": gine(lambda self, batch: Gine.forward(self, batch)[:, 7]),
}


@pytest.mark.parametrize("rule", sorted(MODELS))
def test_broken_models(rule):
    with pytest.raises(AssertionError, match=rule):
        check_model(MODELS[rule])


def test_a_sound_model_of_ones_own_passes():
    check_model(gine(Gine.forward))


# Losses


def loss(terms, kinds=("regression",)):
    return Loss(kinds, terms)


def known(target):
    return ~torch.isnan(target)


def squares(predicted, target):
    return torch.where(known(target), predicted - target, 0.0).square()


LOSSES = {
    "it is for one kind of task": loss(None, kinds=()),
    "numerator is a single number": loss(lambda p, t, over: (squares(p, t), known(t).sum().clamp(min=1))),
    "its denominator is positive": loss(lambda p, t, over: (squares(p, t).sum(), -known(t).sum().clamp(min=1))),
    "a perfect prediction has a lower loss": loss(
        lambda p, t, over: (-squares(p, t).sum(), known(t).sum().clamp(min=1))
    ),
    "it has a gradient|it raises RuntimeError": loss(
        lambda p, t, over: (squares(p, t).sum().detach(), known(t).sum().clamp(min=1))
    ),
    "the parts of a batch add up": loss(lambda p, t, over: (squares(p, t).mean(), torch.tensor(1.0))),
    "missing targets do not count": loss(lambda p, t, over: (squares(p, t).sum(), torch.tensor(float(t.numel())))),
    "a batch without any target has a loss": loss(
        lambda p, t, over: (squares(p, t).sum(), known(t).sum().clamp(min=0))
    ),
    "it takes multiclass": loss(
        lambda p, t, over: ((p - t.expand(-1, 2)).square().sum(), torch.tensor(1.0)), kinds=("multiclass",)
    ),
    "it is finite": loss(lambda p, t, over: ((p - t).sum() / 0, known(t).sum())),
}


@pytest.mark.parametrize("rule", sorted(LOSSES))
def test_broken_losses(rule):
    with pytest.raises(AssertionError, match=rule):
        check_loss(LOSSES[rule])


# Metrics


def metric(compute, kinds=("regression",), higher_is_better=False):
    return Metric(kinds, compute, higher_is_better)


def mean_error(outputs, targets):
    return float(np.nanmean(np.abs(outputs - targets))) if (~np.isnan(targets)).any() else float("nan")


def shifts_its_targets(outputs, targets):
    targets += 1.0
    return mean_error(outputs, targets - 1.0)


METRICS = {
    "it is for one kind of task": metric(mean_error, kinds=()),
    "it is a float": metric(lambda o, y: np.float32(mean_error(o, y))),
    "it is a finite number": metric(lambda o, y: float("inf")),
    "a perfect prediction is better, that is higher": metric(mean_error, higher_is_better=True),
    "the order of the rows": metric(lambda o, y: mean_error(o[:10], y[:10])),
    "missing targets do not count": metric(lambda o, y: float(np.nansum(np.abs(o - y))) / len(y)),
    "without any target it is nan": metric(lambda o, y: 0.0 if np.isnan(y).all() else mean_error(o, y)),
    "outputs and targets stay as they are": metric(shifts_its_targets),
    "it raises ValueError": metric(lambda o, y: mean_error(o, y) if len(y) > 1 else float(np.zeros(0).max())),
}


@pytest.mark.parametrize("rule", sorted(METRICS))
def test_broken_metrics(rule):
    with pytest.raises(AssertionError, match=rule):
        check_metric(METRICS[rule])


def test_the_examples_above_are_sound_but_for_what_they_break():
    check_metric(metric(mean_error))
    check_loss(loss(lambda p, t, over: (squares(p, t).sum(), known(t).sum().clamp(min=1))))
    check_encoding(node_part(lambda part, graphs, pairs: part))
    check_attention(san())
    check_head(head(MLPHead.forward))
