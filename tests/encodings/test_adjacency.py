import torch
from hypothesis import given
from hypothesis import strategies as st

from grit.encodings.adjacency import adjacency_by_size, sign_of_largest
from grit.graphs.convert import pack
from tests.graph_strategies import graphs


@given(st.lists(graphs(), min_size=1, max_size=6))
def test_every_edge_once_and_every_node_in_one_place(data_list):
    packed = pack(data_list)
    edges, seen = set(), []
    for nodes, adjacency in adjacency_by_size(packed):
        assert adjacency.shape == (*nodes.shape, nodes.shape[1])
        assert set(adjacency.unique().tolist()) <= {0.0, 1.0}
        seen += nodes.flatten().tolist()
        for g, i, j in adjacency.nonzero().tolist():
            edges.add((int(nodes[g, i]), int(nodes[g, j])))
    assert sorted(seen) == list(range(packed.num_nodes))
    assert edges == set(map(tuple, packed.edge_index.t().tolist()))


def test_the_first_of_the_largest_entries_decides_whatever_the_rounding():
    columns = torch.tensor([[0.1, -0.5, -0.5, 0.0], [-0.9, 0.5 + 1e-9, 0.1, 0.0], [0.8, 0.0, 0.5, 0.0]]).double()
    assert sign_of_largest(columns).tolist() == [[-1.0, -1.0, -1.0, 1.0]]
    assert sign_of_largest(-columns).tolist() == [[1.0, 1.0, 1.0, 1.0]]
