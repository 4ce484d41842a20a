import torch
from hypothesis import given
from hypothesis import strategies as st

from grit.graphs.sampling import shuffled_batches


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 5), st.integers(0, 5))
def test_every_graph_once(num_graphs, batch_size, seed, epoch):
    batches = shuffled_batches(num_graphs, batch_size, seed, epoch)
    assert sorted(torch.cat(batches).tolist()) == list(range(num_graphs))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    again = shuffled_batches(num_graphs, batch_size, seed, epoch)
    assert all(torch.equal(a, b) for a, b in zip(batches, again, strict=True))


def test_seed_and_epoch_change_the_order():
    first = [torch.cat(shuffled_batches(100, 10, seed, epoch)).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in first}) == 4
