"""The rules of `ATTENTIONS`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from grit.graphs.convert import pack
from grit.graphs.pairs import Pairs, choose_pairs
from grit.nn.attention import ATTENTIONS, AttentionOutput, PairAttention
from grit.testing.graphs import awkward_graphs, random_order
from grit.testing.modules import check_gradients, check_module, seeded, under_seed
from grit.testing.rules import Rules, find_entry

_DIM, _HEADS = 8, 2


def check_attention(attention: str | type[PairAttention], *, graphs: Sequence[Data] | None = None) -> None:
    """Raise `AssertionError` unless an attention keeps the rules of its table.

    Shapes and types; weights that sum to 1 for every query and head, given before dropout; pairs are made and read as it
    declares; renumbering nodes renumbers the result; a batch is its graphs one by one; gradients reach every parameter and every
    input; dropout works in training alone; ``clamp`` bounds the weights; inputs that do not fit the pairs are refused.

    Args:
        attention: Entry of `ATTENTIONS`, or its name.
        graphs: What to try it on; `awkward_graphs` if not given.
    """
    rules, made = find_entry("attention", attention, ATTENTIONS)
    graphs = awkward_graphs() if graphs is None else list(graphs)
    with rules.works("it takes hidden_dim, num_heads, attention_dropout and clamp, and any graph"):
        for pairs in ("all", "edges", "khop-2"):
            _check_form(rules, _Case(made, graphs, pairs))
        _check_renumbering(rules, _Case(made, graphs))
        _check_one_by_one(rules, made, graphs)
        _check_inputs(rules, _Case(made, [_path(4), _path(4)]))
        _check_dropout(rules, _Case(made, [_path(6)], attention_dropout=0.5))
        _check_clamp(rules, made)
        _check_misfits(rules, _Case(made, [_path(3)]))
        case = _Case(made, graphs, attention_dropout=0.5)
        check_module(rules, lambda: made(**case.options).double(), lambda module: module(*case.inputs).node)


class _Case:
    """An attention and inputs for it, all in float64."""

    def __init__(
        self, made: type[PairAttention], graphs: Sequence[Data], pairs: str = "all", **options: float | None
    ) -> None:
        packed = pack(list(graphs))
        self.graph_of_node = packed.graph_of_node
        self.pairs = choose_pairs(packed, pairs)
        self.options: dict[str, Any] = {"hidden_dim": _DIM, "num_heads": _HEADS, **options}
        self.attention = seeded(lambda: made(**self.options).double())
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(packed.num_nodes, _DIM, dtype=torch.float64, generator=generator)
        self.pair = torch.randn(self.pairs.num_pairs, _DIM, dtype=torch.float64, generator=generator)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Pairs]:
        return self.x, self.pair, self.pairs

    def run(self, x: Tensor, pair: Tensor) -> AttentionOutput:
        found: AttentionOutput = self.attention(x, pair, self.pairs)
        return found


def _check_form(rules: Rules, case: _Case) -> None:
    before = case.x.clone(), case.pair.clone()
    out = case.run(case.x, case.pair)
    rules.equal("the inputs stay as they are", case.x, before[0])
    rules.equal("the inputs stay as they are", case.pair, before[1])
    rules.shape("node is (nodes, hidden_dim)", out.node, tuple(case.x.shape))
    rules.shape("weights are (pairs, num_heads)", out.weights, (case.pairs.num_pairs, _HEADS))
    makes = bool(case.attention.makes_pairs)
    rules.hold(f"pair is {'a tensor' if makes else 'None'}, as makes_pairs says", (out.pair is not None) == makes)
    if out.pair is not None:
        rules.shape("pair is (pairs, hidden_dim)", out.pair, tuple(case.pair.shape))
    for part in (out.node, out.weights, *([] if out.pair is None else [out.pair])):
        rules.hold("results have the type of the inputs", part.dtype == torch.float64, f"got {part.dtype}")
        rules.finite("results are finite", part)
    rules.hold("weights are not negative", bool((out.weights >= 0).all()))
    rows = torch.zeros(len(case.x), _HEADS, dtype=torch.float64).index_add(0, case.pairs.query, out.weights)
    rules.close("the weights of a query sum to 1 for every head", rows, torch.ones_like(rows))


def _check_renumbering(rules: Rules, case: _Case) -> None:
    order = torch.arange(len(case.x))
    for graph in range(int(case.graph_of_node[-1]) + 1):
        nodes = (case.graph_of_node == graph).nonzero()[:, 0]
        order[nodes] = nodes[random_order(len(nodes))]
    at = case.pairs.find(query=order[case.pairs.query], key=order[case.pairs.key])
    x, pair = torch.empty_like(case.x), torch.empty_like(case.pair)
    x[order], pair[at] = case.x, case.pair
    here, there = case.run(case.x, case.pair), case.run(x, pair)
    rule = "renumbering the nodes renumbers the result and changes nothing else"
    rules.close(rule, there.node[order], here.node)
    rules.close(rule, there.weights[at], here.weights)
    if here.pair is not None and there.pair is not None:
        rules.close(rule, there.pair[at], here.pair)


def _check_one_by_one(rules: Rules, made: type[PairAttention], graphs: Sequence[Data]) -> None:
    whole = _Case(made, graphs)
    out = whole.run(whole.x, whole.pair)
    for number, data in enumerate(graphs):
        nodes = (whole.graph_of_node == number).nonzero()[:, 0]
        pairs = (whole.graph_of_node[whole.pairs.query] == number).nonzero()[:, 0]
        alone = whole.attention(whole.x[nodes], whole.pair[pairs], choose_pairs(pack([data])))
        rule = "a batch is attended to as its graphs one by one"
        rules.close(rule, out.node[nodes], alone.node)
        rules.close(rule, out.weights[pairs], alone.weights)
        if out.pair is not None:
            rules.close(rule, out.pair[pairs], alone.pair)


def _check_inputs(rules: Rules, case: _Case) -> None:
    case.x.requires_grad_()
    case.pair.requires_grad_()
    out = case.run(case.x, case.pair)
    loss = out.node.sin().sum() + (0.0 if out.pair is None else out.pair.sum())
    check_gradients(rules, case.attention, loss)
    for name, value in case.attention.named_parameters():
        rules.hold("every parameter matters", value.grad is not None and bool(value.grad.any()), name)
    rules.hold("the gradient reaches the nodes", case.x.grad is not None and bool(case.x.grad.any()))
    reads = bool(case.attention.reads_pairs)
    rule = f"the gradient {'reaches' if reads else 'does not reach'} the pairs, as reads_pairs says"
    rules.hold(rule, (case.pair.grad is not None) == reads)
    if case.pair.grad is not None:
        rules.hold(rule, bool(torch.isfinite(case.pair.grad).all()) and bool(case.pair.grad.any()))


def _check_dropout(rules: Rules, case: _Case) -> None:
    case.attention.train()
    first, again, other = (under_seed(seed, lambda: case.attention(*case.inputs).node) for seed in (1, 1, 2))
    rules.equal("dropout is under the control of torch's seed", again, first)
    rules.hold("attention_dropout drops weights in training", not torch.equal(first, other))
    dropped = case.run(case.x, case.pair).weights
    case.attention.eval()
    whole = case.run(case.x, case.pair)
    rules.equal("weights are given before dropout", dropped, whole.weights)
    rules.equal("nothing is dropped in evaluation", case.run(case.x, case.pair).node, whole.node)
    without = _Case(type(case.attention), [_path(6)])  # type: ignore[arg-type]
    without.attention.load_state_dict(case.attention.state_dict())
    rules.close("nothing is dropped in evaluation", whole.node, without.run(case.x, case.pair).node)


def _check_clamp(rules: Rules, made: type[PairAttention]) -> None:
    """Of n keys, logits within ± c leave no weight above exp(2c) / n."""
    bounded, free = (_Case(made, [_path(4)], clamp=clamp) for clamp in (0.01, None))
    bound = torch.exp(torch.tensor(0.02, dtype=torch.float64)).item() / 4
    largest = float(bounded.run(1e3 * bounded.x, 1e3 * bounded.pair).weights.max().detach())
    rules.hold("clamp bounds the logits", largest <= bound + 1e-12, f"a weight is {largest}, expected {bound} at most")
    largest = float(free.run(1e3 * free.x, 1e3 * free.pair).weights.max().detach())
    rules.hold("clamp=None leaves the logits free", largest > bound, "weights are bounded all the same")


def _check_misfits(rules: Rules, case: _Case) -> None:
    for nodes, rows in ((2, 9), (4, 9), (3, 8), (3, 10)):
        with rules.refused("inputs that do not fit the pairs are refused, as by check_rows of attention.contract"):
            case.run(torch.ones(nodes, _DIM).double(), torch.ones(rows, _DIM).double())


def _path(n: int) -> Data:
    nodes = torch.arange(n - 1)
    edges = torch.stack([nodes, nodes + 1])
    return Data(edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=n)
