"""How far apart a GRIT with random weights puts two graphs."""

import numpy as np
import torch
from torch_geometric.data import Data

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import Features, GraphSchema
from grit.models.grit import Grit
from grit.studies.theory.gdwl import Adjacency

GAP_FLOOR = 1e-11  # above what rounding makes, below what an encoding makes that differs
SEEDS = (0, 1, 2)
NUM_OUTPUTS = 16


def as_data(graph: Adjacency) -> Data:
    """A PyG graph without features."""
    return Data(edge_index=torch.from_numpy(np.argwhere(graph).T.copy()), num_nodes=len(graph))


def renumbered(graph: Adjacency) -> Adjacency:
    """The same graph with its nodes in another order."""
    order = np.random.default_rng(0).permutation(len(graph))
    return graph[np.ix_(order, order)]


def random_model(encoding: str, walk_steps: int, seed: int) -> Grit:
    """Three layers in float64; normalisation layers stay as they begin, mean 0 and variance 1."""
    nothing = Features(kind="none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Grit(
            schema=GraphSchema(node=nothing, edge=nothing, num_outputs=NUM_OUTPUTS),
            encoding=encoding,
            walk_steps=walk_steps,
            num_layers=3,
        )
    return model.double().eval()


@torch.no_grad()
def output_gap(one: Adjacency, other: Adjacency, encoding: str, walk_steps: int) -> float:
    """‖f(one) - f(other)‖ / ‖f(one)‖, the largest over `SEEDS`."""
    gaps = []
    for seed in SEEDS:
        model = random_model(encoding, walk_steps, seed)
        # One graph at a time: in a batch the two would go through differently shaped matrix products.
        outputs = [
            model(PairBatch.from_data_list([as_data(graph)], walk_steps, encoding=encoding, dtype=torch.float64))
            for graph in (one, other)
        ]
        gaps.append(float((outputs[0] - outputs[1]).norm() / outputs[0].norm()))
    return max(gaps)
