"""PATTERN and CLUSTER of the GNN benchmark (Dwivedi et al., 2020): random graphs of communities.

In a stochastic block model two nodes of one community are joined with a higher probability than two of different ones.
PATTERN hides one of 100 fixed small graphs in such a graph, and asks which nodes belong to it. CLUSTER names one node of
each community, and asks for the community of all the others.

The official draws cannot be repeated; these have the same distribution. A graph depends on (seed, split, number) alone,
not on the graphs drawn before it, so that any process can make any of them: `pattern_graph_number`,
`cluster_graph_number`.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

_SMALLEST, _LARGEST = 5, 34  # nodes of a community, and of a pattern

# Second entry of a seed: what the stream of random numbers is for.
_PATTERNS, _PATTERN_GRAPHS, _CLUSTER_GRAPHS = range(3)


class Pattern(NamedTuple):
    """A small graph of m nodes to be found in larger ones.

    Attributes:
        adjacency: (m, m) bool, symmetric, False on the diagonal.
        signal: (m,) int64 in {0, 1, 2}.
    """

    adjacency: Array
    signal: Array


def pattern_graphs(
    seed: int, num_patterns: int = 100, per_pattern: tuple[int, int, int] = (100, 20, 20)
) -> Iterator[tuple[Split, ArrayGraph]]:
    """The graphs of PATTERN one by one: all of train, then val, then test.

    Args:
        seed: Another seed, other patterns and other graphs.
        num_patterns: How many patterns there are; the same in all three splits.
        per_pattern: Graphs of each pattern in train, val and test.
    """
    for split, count in zip(SPLITS, per_pattern, strict=True):
        for number in range(num_patterns * count):
            yield split, pattern_graph_number(seed, split, number, num_patterns)


def pattern_graph_number(seed: int, split: Split, number: int, num_patterns: int = 100) -> ArrayGraph:
    """One graph of PATTERN. Patterns take turns: graph ``number`` holds pattern ``number % num_patterns``."""
    pattern = draw_pattern(_stream(seed, _PATTERNS, 0, number % num_patterns))
    return pattern_graph(_stream(seed, _PATTERN_GRAPHS, _position(split), number), pattern)


def cluster_graphs(
    seed: int, counts: tuple[int, int, int] = (10_000, 1_000, 1_000)
) -> Iterator[tuple[Split, ArrayGraph]]:
    """The graphs of CLUSTER one by one: all of train, then val, then test; ``counts`` says how many of each."""
    for split, count in zip(SPLITS, counts, strict=True):
        for number in range(count):
            yield split, cluster_graph_number(seed, split, number)


def cluster_graph_number(seed: int, split: Split, number: int) -> ArrayGraph:
    """One graph of CLUSTER."""
    return cluster_graph(_stream(seed, _CLUSTER_GRAPHS, _position(split), number))


def draw_pattern(rng: np.random.Generator) -> Pattern:
    """A pattern of 5 to 34 nodes, joined with probability 0.5, with a signal uniform in {0, 1, 2}."""
    size = rng.integers(_SMALLEST, _LARGEST, endpoint=True)
    return Pattern(adjacency=_join(rng, np.full((size, size), 0.5)), signal=rng.integers(3, size=size))


def pattern_host(rng: np.random.Generator) -> tuple[Array, Array]:
    """The graph in which PATTERN hides a pattern: adjacency (n, n) bool and community (n,), nodes by community."""
    community = _draw_communities(rng, 5)
    return _block_model(rng, community, inside=0.5, between=0.35), community


def pattern_graph(rng: np.random.Generator, pattern: Pattern) -> ArrayGraph:
    """A host with the pattern in it, each host node joined to each pattern node with probability 0.5; nodes shuffled.

    Returns:
        x (n, 3) float32, the signal one-hot; edge_attr (E, 0); y (n, 1) int64, 1 for nodes of the pattern.
    """
    host, community = pattern_host(rng)
    bridge = rng.random((len(host), len(pattern.signal))) < 0.5
    adjacency = np.block([[host, bridge], [bridge.T, pattern.adjacency]])
    signal = np.concatenate([rng.integers(3, size=len(host)), pattern.signal])
    label = np.arange(len(signal)) >= len(community)
    return _shuffled(rng, adjacency, features=np.eye(3, dtype=np.float32)[signal], label=label)


def cluster_graph(rng: np.random.Generator) -> ArrayGraph:
    """6 communities, one random node of each being named; nodes shuffled, as in the benchmark's own code.

    Returns:
        x (n, 7) float32, one-hot: r + 1 for the named node of community r, 0 for all others; edge_attr (E, 0);
        y (n, 1) int64, the community.
    """
    community = _draw_communities(rng, 6)
    adjacency = _block_model(rng, community, inside=0.55, between=0.25)
    sizes = np.bincount(community)
    named = np.cumsum(sizes) - sizes + rng.integers(sizes)  # (6,)
    signal = np.zeros_like(community)
    signal[named] = np.arange(6) + 1
    return _shuffled(rng, adjacency, features=np.eye(7, dtype=np.float32)[signal], label=community)


def _position(split: Split) -> int:
    if split not in SPLITS:
        raise GritError(f"unknown split {split!r}; there are {', '.join(SPLITS)}.")
    return SPLITS.index(split)


def _stream(seed: int, kind: int, split: int, number: int) -> np.random.Generator:
    # Always four entries: NumPy takes [a, b] and [a, b, 0] for the same seed.
    return np.random.default_rng([seed, kind, split, number])


def _draw_communities(rng: np.random.Generator, num_communities: int) -> Array:
    """(n,) the community of every node, in ascending order."""
    sizes = rng.integers(_SMALLEST, _LARGEST, size=num_communities, endpoint=True)
    return np.repeat(np.arange(num_communities), sizes)


def _block_model(rng: np.random.Generator, community: Array, *, inside: float, between: float) -> Array:
    """(n, n) bool adjacency; nodes are joined with a probability that depends on whether they share a community."""
    return _join(rng, np.where(community[:, None] == community, inside, between))


def _join(rng: np.random.Generator, probability: Array) -> Array:
    """(n, n) bool, symmetric, without self-loops: i and j are joined with ``probability[i, j]``."""
    upper = np.triu(rng.random(probability.shape) < probability, k=1)
    return upper | upper.T


def _shuffled(rng: np.random.Generator, adjacency: Array, *, features: Array, label: Array) -> ArrayGraph:
    """The graph with its nodes in random order."""
    order = rng.permutation(len(adjacency))
    edge_index = np.stack(np.nonzero(adjacency[np.ix_(order, order)])).astype(np.int64)
    return ArrayGraph(
        x=features[order],
        edge_index=edge_index,
        edge_attr=np.zeros((edge_index.shape[1], 0), dtype=np.float32),
        y=label[order].astype(np.int64)[:, None],
    )
