"""Proposition 1 of the paper: an MLP on RRWP gives shortest paths (a), propagations (b) and the adjacency (c).

The network of part (a) is written down, with two corrections to the printed proof. With x_t = P_ijt, L the smallest
probability that is not zero, s_t = ReLU(x_t / L) - ReLU(x_t / L - 1) is 1 where a walk of t steps joins i and j and 0
where none does; the distance is

    SPD(i, j) = K - Σ_{t=0}^{K-1} max_{t' ≤ t} s_t' = Σ_{t=0}^{K-1} ReLU( 1 - Σ_{t' ≤ t} s_t' )

and K for pairs that are further apart. Printed is n - Σ_{t=1}^{K-1}.

Shape letters: n nodes of a graph, K walk steps, R rows (node pairs).
"""

from collections.abc import Callable, Sequence
from math import exp, factorial
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from torch import Tensor, nn

from grit.encodings.rrwp import rrwp
from grit.studies.theory.checks import Check
from grit.studies.theory.gdwl import NEVER, Adjacency, path_lengths
from grit.studies.theory.hard_graphs import matrix

TELEPORT = 0.15  # α of personalised PageRank
EXACT = 1e-6  # whole numbers are right if they are this close


class Case(NamedTuple):
    """A graph with its RRWP.

    Attributes:
        graph: (n, n).
        walks: P, (n, n, K) float64.
        distance: SPD truncated at K, (n, n).
    """

    graph: Adjacency
    walks: Tensor
    distance: Tensor


def make_case(graph: Adjacency, walk_steps: int) -> Case:
    """RRWP and truncated distances of a graph."""
    index = torch.from_numpy(np.argwhere(graph).T.copy())
    length = torch.from_numpy(path_lengths(graph))
    beyond = (length == NEVER) | (length >= walk_steps)
    return Case(
        graph=graph,
        walks=rrwp(index, len(graph), walk_steps, dtype=torch.float64),
        distance=length.masked_fill(beyond, walk_steps).double(),
    )


def random_graph(seed: int, min_nodes: int = 3, max_nodes: int = 24) -> Adjacency:
    """A graph, sparse or dense; isolated nodes and several components occur."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(min_nodes, max_nodes + 1))
    upper = np.triu(generator.random((n, n)) < generator.uniform(1 / n, 0.5), 1)
    return (upper | upper.T).astype(np.int64)


# --- (a) ---------------------------------------------------------------------------------------------------------------


def shortest_path_network(walk_steps: int, smallest: float) -> nn.Sequential:
    """The ReLU network that gives truncated shortest paths, (R, K) -> (R, 1), with hidden layers of widths 2K and K.

    Args:
        walk_steps: K.
        smallest: L, a lower bound on the entries of P that are not zero.
    """
    k = walk_steps
    network = nn.Sequential(nn.Linear(k, 2 * k), nn.ReLU(), nn.Linear(2 * k, k), nn.ReLU(), nn.Linear(k, 1)).double()
    first, second, third = (layer for layer in network if isinstance(layer, nn.Linear))
    up_to = torch.ones(k, k, dtype=torch.float64).tril()  # row t sums the channels 0..t
    with torch.no_grad():
        first.weight.copy_(torch.eye(k, dtype=torch.float64).repeat(2, 1) / smallest)
        first.bias.copy_(torch.tensor([0.0] * k + [-1.0] * k))
        second.weight.copy_(torch.cat([-up_to, up_to], 1))
        second.bias.fill_(1.0)
        third.weight.fill_(1.0)
        third.bias.fill_(0.0)
    return network


def _joined(walks: Tensor) -> Tensor:
    """f_2 ∘ f_1 of the proof: 1 in channel t where a walk of at most t steps joins the pair; (n, n, K) -> (n, n, K)."""
    return (walks > 0).double().cummax(-1).values


def check_shortest_paths(num_graphs: int) -> list[Check]:
    """Part (a): the corrected construction on random graphs, and the printed variants, each with three values of K."""
    cases = []
    for seed in range(num_graphs):
        graph = random_graph(seed)
        for walk_steps in (2 + seed % 5, len(graph), len(graph) + 1 + seed % 3):
            cases.append(make_case(graph, walk_steps))
    total = len(cases)
    errors = [float((_network_output(case) - case.distance).abs().max()) for case in cases]
    exact = sum(error < EXACT for error in errors)
    checks = [
        Check("(a) corrected ReLU network equals SPD", f"{exact}/{total} cases", "all (180/180)", exact == total),
        Check("(a) its largest error", max(errors), f"< {EXACT:g}", max(errors) < EXACT),
    ]
    variants: dict[str, Callable[[Case], Tensor]] = {
        "printed: n - Σ from t=1": lambda case: len(case.graph) - _joined(case.walks)[..., 1:].sum(-1),
        "n - Σ from t=0": lambda case: len(case.graph) - _joined(case.walks).sum(-1),
        "K - Σ from t=1": lambda case: case.walks.shape[-1] - _joined(case.walks)[..., 1:].sum(-1),
    }
    for name, output in variants.items():
        wrong = [output(case) != case.distance for case in cases]
        diagonal = sum(not bool(mask.diagonal().any()) for mask in wrong)
        elsewhere = sum(not bool((mask & ~torch.eye(len(mask), dtype=torch.bool)).any()) for mask in wrong)
        right = not any(bool(mask.any()) for mask in wrong)
        measured = f"diagonal {diagonal}/{total}, elsewhere {elsewhere}/{total} right"
        checks.append(Check(f"(a) {name} equals SPD", measured, "mistaken", right, should_hold=False))
    return checks


def _network_output(case: Case) -> Tensor:
    walks = case.walks
    network = shortest_path_network(walks.shape[-1], smallest=float(walks[walks > 0].min()))
    with torch.no_grad():
        output: Tensor = network(walks)[..., 0]  # (n, n)
    return output


def check_thresholds() -> list[Check]:
    """Whether L is large enough for single precision: on a barbell, whose walks hardly ever cross the bridge."""
    index = torch.from_numpy(np.argwhere(matrix(nx.barbell_graph(10, 10))).T.copy())
    double, single = (rrwp(index, 30, 42, dtype=dtype) for dtype in (torch.float64, torch.float32))
    same = bool(((double > 0) == (single > 0)).all())
    smallest = float(double[double > 0].min())
    return [
        Check("(a) float32 keeps the zeros of P, barbell, K=42", same, f"yes; smallest entry {smallest:.1e}", same),
    ]


def train_shortest_paths(steps: int, walk_steps: int = 6, width: int = 64) -> list[Check]:
    """An MLP trained on RRWP of random graphs, judged on other graphs: it is learned, not only existing."""
    inputs, distance = _rows(range(300), walk_steps)
    held_inputs, held_distance = _rows(range(10_000, 10_100), walk_steps)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Linear(walk_steps, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )
        optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
        for _ in range(steps):
            rows = torch.randint(len(inputs), (1024,))
            loss = (network(inputs[rows])[:, 0] - distance[rows]).abs().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        output = network(held_inputs)[:, 0]
    error = float((output - held_distance).abs().mean())
    right = float((output.round() == held_distance).double().mean())
    constant = float((held_distance - distance.median()).abs().mean())
    return [
        Check("(a) trained MLP, mean error on new graphs", error, f"< 0.1 (a constant: {constant:.2f})", error < 0.1),
        Check("(a) trained MLP, share right once rounded", right, "> 0.95", right > 0.95),
    ]


def _rows(seeds: Sequence[int], walk_steps: int) -> tuple[Tensor, Tensor]:
    """All node pairs of random graphs of up to 12 nodes: RRWP (R, K) and distance (R,)."""
    cases = [make_case(random_graph(seed, max_nodes=12), walk_steps) for seed in seeds]
    walks = torch.cat([case.walks.flatten(0, 1) for case in cases])
    return walks.float(), torch.cat([case.distance.flatten() for case in cases]).float()


# --- (b), (c) ----------------------------------------------------------------------------------------------------------


def pagerank_coefficients(walk_steps: int, alpha: float) -> Tensor:
    """θ_k = α (1 - α)^k, (K,); printed without the exponent."""
    return alpha * (1 - alpha) ** torch.arange(walk_steps, dtype=torch.float64)


def heat_coefficients(walk_steps: int, tau: float) -> Tensor:
    """θ_k = e^-τ τ^k / k!, (K,)."""
    return torch.tensor([exp(-tau) * tau**k / factorial(k) for k in range(walk_steps)], dtype=torch.float64)


def _connected(seed: int) -> Adjacency:
    """A cycle of 12 to 24 nodes with random chords: no node is isolated."""
    graph = random_graph(seed, min_nodes=12)
    return np.maximum(graph, matrix(nx.cycle_graph(len(graph))))


def check_propagations(num_graphs: int) -> list[Check]:
    """Part (b): truncated PageRank and heat kernels against closed forms, the truncated tail being the bound."""
    graphs = [_connected(seed) for seed in range(num_graphs)]
    checks, printed = [], []
    for k in (5, 10, 21, 42):
        theta = pagerank_coefficients(k, TELEPORT)
        error = max(_error(graph, theta, _pagerank(graph)) for graph in graphs)
        bound = (1 - TELEPORT) ** k
        checks.append(Check(f"(b) PageRank, α={TELEPORT}, K={k}: error", error, f"≤ {bound:.1e}", error <= bound))
        sums = max(float((_propagate(graph, theta).sum(1) - (1 - bound)).abs().max()) for graph in graphs)
        checks.append(Check(f"(b) PageRank, K={k}: rows sum to 1 - (1-α)^K", sums, "0 to rounding", sums < 1e-12))
        constant = torch.full((k,), TELEPORT * (1 - TELEPORT), dtype=torch.float64)
        printed.append(max(_error(graph, constant, _pagerank(graph)) for graph in graphs))
    checks.append(
        Check(
            "(b) PageRank as printed, θ_k = α(1-α): the error vanishes with K = 5, 10, 21, 42",
            " → ".join(f"{error:.1e}" for error in printed),
            "grows (mistaken)",
            printed[-1] <= (1 - TELEPORT) ** 42,
            should_hold=False,
        )
    )
    for tau, k in ((1.0, 5), (1.0, 10), (5.0, 5), (5.0, 10), (5.0, 21)):
        error = max(_error(graph, heat_coefficients(k, tau), _heat(graph, tau)) for graph in graphs)
        bound = float(heat_coefficients(k + 60, tau)[k:].sum())
        checks.append(Check(f"(b) heat kernel, τ={tau:g}, K={k}: error", error, f"≤ {bound:.1e}", error <= bound))
    mean = max(_error(graph, torch.tensor([0.0, 1.0]).double(), _step(graph)) for graph in graphs)
    checks.append(Check("(b) mean aggregation, K=2: error", mean, "0 to rounding", mean < 1e-15))
    return checks


def check_adjacency(num_graphs: int) -> list[Check]:
    """Part (c): θ0 I + θ1 A through the threshold of part (a)."""
    checks = []
    for name, theta in {"sum aggregation": (0.0, 1.0), "GIN, ε=0.3": (1.3, 1.0), "θ=(-2, 0.7)": (-2.0, 0.7)}.items():
        errors = []
        for seed in range(num_graphs):
            case = make_case(random_graph(seed), walk_steps=2)
            scaled = case.walks / case.walks[case.walks > 0].min()
            step = torch.relu(scaled) - torch.relu(scaled - 1)  # (n, n, 2)
            target = theta[0] * np.eye(len(case.graph)) + theta[1] * case.graph
            errors.append(
                float((theta[0] * step[..., 0] + theta[1] * step[..., 1] - torch.from_numpy(target)).abs().max())
            )
        checks.append(Check(f"(c) {name}: error", max(errors), "0 to rounding", max(errors) < 1e-13))
    return checks


def _step(graph: Adjacency) -> Tensor:
    """M = D^-1 A, (n, n), for graphs without isolated nodes."""
    return torch.from_numpy(graph / graph.sum(1, keepdims=True))


def _pagerank(graph: Adjacency) -> Tensor:
    """α (I - (1-α) M)^-1."""
    identity = torch.eye(len(graph), dtype=torch.float64)
    resolvent: Tensor = torch.linalg.inv(identity - (1 - TELEPORT) * _step(graph))
    return TELEPORT * resolvent


def _heat(graph: Adjacency, tau: float) -> Tensor:
    """exp(-τ (I - M))."""
    kernel: Tensor = torch.linalg.matrix_exp(tau * (_step(graph) - torch.eye(len(graph), dtype=torch.float64)))
    return kernel


def _propagate(graph: Adjacency, theta: Tensor) -> Tensor:
    """Σ_k θ_k M^k as a linear map of RRWP, (n, n)."""
    return make_case(graph, len(theta)).walks @ theta


def _error(graph: Adjacency, theta: Tensor, target: Tensor) -> float:
    return float((_propagate(graph, theta) - target).abs().max())
