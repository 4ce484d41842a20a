"""Graphs of one group, identical molecules for example, are never divided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.datasets.pipeline.splits import fold_split, group_folds, random_split, scaffold_split, validation_from

GROUPS = st.lists(st.integers(0, 60), min_size=1, max_size=150).map(np.array)


def assert_divided(parts, groups):
    """Every graph in one part, no part empty, no group in two."""
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(len(groups)))
    assert all(part.size for part in parts.values())
    seen = [set(groups[part].tolist()) for part in parts.values()]
    assert sum(map(len, seen)) == len(set().union(*seen))


@given(GROUPS, st.integers(0, 3))
def test_random(groups, seed):
    if len(set(groups.tolist())) < 3:
        with pytest.raises(grit.GritError, match="at least 3 different ones are needed"):
            random_split(len(groups), seed, groups=groups)
        return
    parts = random_split(len(groups), seed, groups=groups)
    assert_divided(parts, groups)
    largest, wanted = np.bincount(groups).max(), max(1, round(0.1 * len(groups)))
    for name in ("val", "test"):
        assert abs(parts[name].size - wanted) <= largest
    again = random_split(len(groups), seed, groups=groups)
    assert all(np.array_equal(parts[name], again[name]) for name in parts)


@given(st.integers(3, 100), st.integers(0, 3))
def test_where_all_differ_groups_change_nothing(count, seed):
    plain, grouped = random_split(count, seed), random_split(count, seed, groups=np.arange(count)[::-1])
    assert all(np.array_equal(plain[name], grouped[name]) for name in plain)


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from("abcdefgh")), min_size=30, max_size=120))
def test_scaffold(molecules):
    groups, scaffolds = np.array([group for group, _ in molecules]), [scaffold for _, scaffold in molecules]
    try:
        parts = scaffold_split(scaffolds, groups=groups)
    except grit.GritError as error:
        assert "leaves" in str(error)
        return
    assert_divided(parts, groups)


@given(GROUPS, st.integers(2, 6), st.integers(0, 3))
def test_folds(groups, folds, seed):
    different = len(set(groups.tolist()))
    if different < folds:
        with pytest.raises(grit.GritError, match=f"{folds} folds cannot be made .* in {different} groups"):
            group_folds(groups, folds, seed)
        return
    fold = group_folds(groups, folds, seed)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()
    for group in set(groups.tolist()):
        assert len(set(fold[groups == group].tolist())) == 1
    assert np.array_equal(fold, group_folds(groups, folds, seed))


@given(GROUPS, st.integers(3, 5), st.integers(0, 3))
def test_every_graph_is_tested_in_one_fold(groups, folds, seed):
    if len(set(groups.tolist())) < folds:
        return
    splits = fold_split(len(groups), folds, seed, groups)
    assert sorted(np.concatenate([parts["test"] for parts in splits]).tolist()) == list(range(len(groups)))
    for parts in splits:
        assert_divided(parts, groups)


def test_another_seed_gives_other_folds():
    assert not np.array_equal(group_folds(np.arange(50), 5, 0), group_folds(np.arange(50), 5, 1))
    assert np.bincount(group_folds(np.arange(50), 5, 0)).tolist() == [10] * 5


def test_fewer_than_two_folds():
    with pytest.raises(grit.GritError, match="at least 2 folds, got 1"):
        group_folds(np.arange(5), 1, 0)


def test_validation_of_a_tenth():
    train = np.arange(100, 200)
    rest, val = validation_from(train, 0, np.arange(200))
    assert (rest.size, val.size) == (90, 10)
    assert sorted([*rest, *val]) == train.tolist()
    with pytest.raises(grit.GritError, match="fewer than two different ones"):
        validation_from(np.array([3, 4]), 0, np.zeros(5, dtype=int))
