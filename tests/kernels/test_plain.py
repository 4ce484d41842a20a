import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.graphs.convert import pack
from grit.kernels.plain import row_softmax, row_sum, signed_sqrt
from tests.graph_strategies import graphs


def test_signed_sqrt_values_and_gradient():
    z = torch.tensor([-4.0, -0.25, 0.0, 0.25, 9.0], dtype=torch.float64, requires_grad=True)
    out = signed_sqrt(z)
    assert out.tolist() == [-2.0, -0.5, 0.0, 0.5, 3.0]
    out.sum().backward()
    torch.testing.assert_close(z.grad, torch.tensor([0.25, 1.0, 0.0, 1.0, 1 / 6], dtype=torch.float64))


def test_signed_sqrt_gradcheck():
    z = torch.tensor([-3.0, -0.1, 0.2, 5.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(signed_sqrt, z)


@given(st.lists(graphs(max_nodes=5), min_size=1, max_size=3), st.sampled_from(["all", "edges"]), st.floats(0.1, 700))
def test_rows_one_by_one(data_list, kind, scale):
    pairs = grit.choose_pairs(pack(data_list), kind)
    torch.manual_seed(0)
    logits = scale * torch.randn(pairs.num_pairs, 3, dtype=torch.float64)
    weights, sums = row_softmax(logits, pairs), row_sum(logits, pairs)
    for i in range(pairs.num_nodes):
        row = slice(int(pairs.row_ptr[i]), int(pairs.row_ptr[i + 1]))
        torch.testing.assert_close(weights[row], torch.softmax(logits[row], 0))
        torch.testing.assert_close(sums[i], logits[row].sum(0))


def test_row_operations_gradcheck():
    pairs = grit.Pairs.from_index(torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 1, 1, 0, 1, 2]), 3)
    logits = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: row_softmax(z, pairs), logits)
    assert torch.autograd.gradcheck(lambda z: row_sum(z, pairs), logits)
