"""Proposition 3 of the paper: layer normalisation removes the degree; where that ends; batch normalisation keeps it.

    LN(f(d) x) = LN(x) for f(d) > 0, no offset ε, and nothing between scaling and normalisation

Shape letters: N nodes, D channels.
"""

import networkx as nx
import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from grit.batches.pair_batch import PairBatch
from grit.nn.layer import DegreeScaler, GritLayer
from grit.nn.norm import NORMS
from grit.studies.theory.checks import Check
from grit.studies.theory.hard_graphs import matrix

NUM_NODES, HIDDEN_DIM = 400, 64
SAME = 1e-12  # what rounding makes of equal numbers in float64


def check_layer_norm() -> list[Check]:
    """The proposition, and the cases that it does not cover."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_NODES, HIDDEN_DIM, generator=generator, dtype=torch.float64)
    residual = torch.randn(NUM_NODES, HIDDEN_DIM, generator=generator, dtype=torch.float64)
    degree = torch.randint(1, 21, (NUM_NODES, 1), generator=generator).double()  # (N, 1)
    log_degree = torch.log1p(degree)
    scaler = DegreeScaler(HIDDEN_DIM).double()
    with torch.no_grad():
        scaler.theta.copy_(torch.randn(2, HIDDEN_DIM, generator=generator))
    by_vectors = scaler(x, log_degree[:, 0]).detach()
    return [
        _holds("d x", _gap(degree * x, x), "0 (1.8e-15)"),
        _holds("ln(1+d) x", _gap(log_degree * x, x), "0"),
        _holds("θ1 x + ln(1+d) θ2 x with positive numbers θ", _gap(0.3 * x + 0.7 * log_degree * x, x), "0"),
        _holds("sum over neighbours against mean", _aggregation_gap(), "0"),
        _fails("θ1, θ2 vectors, as GRIT has them", _gap(by_vectors, x), "differs (5.2)"),
        _fails("a residual, h + d x", _gap(residual + degree * x, residual + x), "differs (3.0)"),
        _fails("f(d) < 0 for some d", _gap((1.5 - log_degree) * x, x), "differs: the sign turns"),
        _fails("isolated nodes, d = 0", _gap(0 * x, x, eps=1e-5), "differs: 0 stays 0"),
        _fails("ε = 1e-5 in the norm", _gap(degree * x, x, eps=1e-5), "differs a little (3e-5)"),
        _fails("ε = 1e-5 and x of size 1e-4", _gap(degree * x * 1e-4, x * 1e-4, eps=1e-5), "differs (2.5)"),
        _fails("a whole GRIT layer with layer normalisation", _layer_gap(), "differs"),
    ]


def _holds(case: str, gap: float, expected: str) -> Check:
    return Check(f"LayerNorm removes the degree: {case}", gap, expected, gap < SAME)


def _fails(case: str, gap: float, expected: str) -> Check:
    return Check(f"LayerNorm removes the degree: {case}", gap, expected, gap < SAME, should_hold=False)


def _gap(one: Tensor, other: Tensor, eps: float = 0.0) -> float:
    """The largest difference after layer normalisation."""
    norm = nn.LayerNorm(one.shape[1], eps=eps, dtype=one.dtype)
    return float((norm(one) - norm(other)).abs().max().detach())


def _aggregation_gap() -> float:
    """Sum and mean over the neighbours of a scale-free graph."""
    adjacency = torch.from_numpy(matrix(nx.barabasi_albert_graph(100, 2, seed=0))).double()
    x = torch.randn(100, HIDDEN_DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    total = adjacency @ x
    return _gap(total, total / adjacency.sum(1, keepdim=True))


def _layer_gap() -> float:
    """What `GritLayer` with layer normalisation makes of other degrees, all else equal."""
    graph = matrix(nx.barabasi_albert_graph(20, 2, seed=0))
    data = Data(edge_index=torch.from_numpy(np.argwhere(graph).T.copy()), num_nodes=len(graph))
    batch = PairBatch.from_data_list([data], 4, dtype=torch.float64)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        layer = GritLayer(hidden_dim=HIDDEN_DIM, num_heads=8, norm="layer").double().eval()
        x = torch.randn(batch.num_nodes, HIDDEN_DIM, dtype=torch.float64)
        pair = torch.randn(batch.num_pairs, HIDDEN_DIM, dtype=torch.float64)
        outputs = [layer(x, pair, batch.pairs, degrees)[0] for degrees in (batch.log_degree, 2 * batch.log_degree)]
    return float((outputs[0] - outputs[1]).abs().max())


def check_batch_norm() -> list[Check]:
    """How a node's length follows its degree, after either normalisation."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(NUM_NODES, HIDDEN_DIM, generator=generator)
    degree = torch.randint(1, 21, (NUM_NODES,), generator=generator).float()
    scaled = degree.unsqueeze(1) * x  # (N, D)
    lengths = {name: make(HIDDEN_DIM)(scaled).detach().norm(dim=1) for name, make in NORMS.items()}  # (N,) each
    correlation = float(torch.corrcoef(torch.stack([lengths["batch"], degree]))[0, 1])
    spread = {name: float(length.std() / length.mean()) for name, length in lengths.items()}
    return [
        Check(
            "BatchNorm keeps the degree: correlation of length and degree of a node",
            correlation,
            "> 0.9 (0.98)",
            correlation > 0.9,
        ),
        Check(
            "LayerNorm keeps the degree: relative spread of the nodes' lengths",
            spread["layer"],
            f"0: all of one length (BatchNorm: {spread['batch']:.2f})",
            spread["layer"] > 1e-3,
            should_hold=False,
        ),
    ]
