import networkx as nx
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.encodings.spd import spd_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs


@given(graphs(), st.integers(1, 5))
def test_one_hot_of_the_distance_truncated(data, walk_steps):
    packed = pack([data])
    pairs = grit.choose_pairs(packed)
    pair = spd_encoding(packed, pairs, walk_steps, torch.float32).pair
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(data.edge_index.t().tolist())
    distances = dict(nx.all_pairs_shortest_path_length(graph))
    for p, (i, j) in enumerate(zip(pairs.query.tolist(), pairs.key.tolist(), strict=True)):
        wanted = [0.0] * walk_steps
        if distances[i].get(j, walk_steps) < walk_steps:
            wanted[distances[i][j]] = 1.0
        assert pair[p].tolist() == wanted


def test_probabilities_that_vanish_in_float32_are_still_distances():
    """0 -> 1 -> ... -> 23, each also to 99 leaves: the walk of 23 steps has probability 1e-46."""
    steps, leaves = 23, 99
    edges = [(i, i + 1) for i in range(steps)]
    edges += [(i, steps + 1 + leaf) for i in range(steps) for leaf in range(leaves)]
    data = Data(edge_index=torch.tensor(edges).t(), num_nodes=steps + 1 + leaves)
    packed = pack([data])
    pairs = grit.choose_pairs(packed)
    pair = spd_encoding(packed, pairs, steps + 1, torch.float32).pair.view(data.num_nodes, data.num_nodes, -1)
    for distance in range(steps + 1):
        wanted = torch.zeros(steps + 1)
        wanted[distance] = 1.0
        assert torch.equal(pair[0, distance], wanted)
