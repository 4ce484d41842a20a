import torch
from hypothesis import given

import grit
from grit.encodings.rwse import rwse_encoding
from grit.graphs.convert import pack
from tests.graph_strategies import graphs


@given(graphs())
def test_is_the_diagonal_of_rrwp(data):
    packed = pack([data])
    node = rwse_encoding(packed, grit.choose_pairs(packed), 5, torch.float64).node
    wanted = grit.rrwp(data.edge_index, data.num_nodes, 5, dtype=torch.float64).diagonal().t()
    torch.testing.assert_close(node, wanted)
