"""Which graphs make up which batch."""

import numpy as np

from grit.graphs.chunk import Array


def epoch_order(num_graphs: int, seed: int, epoch: int) -> Array:
    """A permutation of 0..num_graphs-1 that depends on seed and epoch alone."""
    return np.random.default_rng([seed, epoch]).permutation(num_graphs)


def batches_in_order(order: Array, batch_size: int) -> list[Array]:
    """Consecutive pieces of ``batch_size``, the last as short as it must be."""
    return [order[start : start + batch_size] for start in range(0, order.size, batch_size)]


def batches_within_budget(order: Array, cost: Array, batch_size: int, budget: int) -> list[Array]:
    """Consecutive pieces of at most ``batch_size`` whose costs add up to at most ``budget``; a costlier one stands alone."""
    total = np.concatenate([[0], np.cumsum(cost)])
    batches, start = [], 0
    while start < order.size:
        fitting = int(np.searchsorted(total, total[start] + budget, side="right")) - 1
        stop = min(max(fitting, start + 1), start + batch_size)
        batches.append(order[start:stop])
        start = stop
    return batches


def join_small(batches: list[Array], costs: list[int], smallest: int) -> list[Array]:
    """The batches, with every one that costs less than ``smallest`` joined to the one before it, the first to the second."""
    joined: list[Array] = []
    cost = 0  # of the last of them
    for batch, more in zip(batches, costs, strict=True):
        if joined and (more < smallest or cost < smallest):
            joined[-1], cost = np.concatenate([joined[-1], batch]), cost + more
        else:
            joined, cost = [*joined, batch], more
    return joined


def shuffled_batches(num_graphs: int, batch_size: int, seed: int, epoch: int) -> list[Array]:
    """Numbers of the graphs in each batch of an epoch: every graph once, in an order of the epoch's own."""
    return batches_in_order(epoch_order(num_graphs, seed, epoch), batch_size)
