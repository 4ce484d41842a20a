import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grit.batches.sampling import (
    batches_in_order,
    batches_within_budget,
    epoch_order,
    join_small,
    shuffled_batches,
)


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 5), st.integers(0, 5))
def test_every_graph_once(num_graphs, batch_size, seed, epoch):
    batches = shuffled_batches(num_graphs, batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(num_graphs))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    again = shuffled_batches(num_graphs, batch_size, seed, epoch)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_seed_and_epoch_change_the_order():
    orders = {tuple(epoch_order(100, seed, epoch).tolist()) for seed in (0, 1) for epoch in (0, 1)}
    assert len(orders) == 4


@given(st.lists(st.integers(1, 100), min_size=1, max_size=60), st.integers(1, 10), st.integers(1, 150))
def test_budget_is_kept_unless_one_graph_exceeds_it(costs, batch_size, budget):
    costs = np.array(costs)
    batches = batches_within_budget(np.arange(costs.size), costs, batch_size, budget)
    assert np.concatenate(batches).tolist() == list(range(costs.size))
    for batch in batches:
        assert 1 <= len(batch) <= batch_size
        assert costs[batch].sum() <= budget or len(batch) == 1
    for batch, following in zip(batches, batches[1:], strict=False):  # no batch ends early without need
        assert len(batch) == batch_size or costs[batch].sum() + costs[following[0]] > budget


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.integers(1, 6), st.integers(1, 5))
def test_small_batches_are_joined_to_their_neighbours(costs, batch_size, smallest):
    before = batches_in_order(np.arange(len(costs)), batch_size)
    cost_of = [sum(costs[place] for place in batch) for batch in before]
    joined = join_small(before, cost_of, smallest)
    assert np.concatenate(joined).tolist() == list(range(len(costs)))
    assert all(sum(costs[place] for place in batch) >= smallest for batch in joined) or len(joined) == 1
    if min(cost_of) >= smallest:
        assert len(joined) == len(before)
