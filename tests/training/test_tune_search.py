"""What is tried next, what is given up, and what mattered, from the record of the trials alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("optuna")

from grit.training.tune_search import MIN_FOR_IMPORTANCE, Pruning, importances, suggest
from grit.training.tune_space import Choices, Range, Space
from grit.training.tune_study import TuneStudy, TuneTrial

SPACE: Space = {
    "train.lr": Range(1e-4, 1e-1, log=True),
    "model.num_layers": Range(1, 6),
    "model.dropout": Range(0.0, 0.45, step=0.1),
    "train.patience": Range(3, 10, step=3),
    "model.norm": Choices(("batch", "layer")),
    "train.clip_norm": Choices((1.0, None)),
}


def study_of(trials, metric="mae", seed=0) -> TuneStudy:
    return TuneStudy(
        metric=metric,
        preset="fast",
        overrides=(),
        recipe={},
        space=dict.fromkeys(SPACE),
        seed=seed,
        trials=tuple(trials),
    )


def grown(count: int, cost, *, seed=0, metric="mae", space=SPACE) -> TuneStudy:
    """A study in which a trial's value is a function of its values."""
    study = study_of((), metric, seed)
    for number in range(1, count + 1):
        values: dict[str, Any] | None = suggest(study, space)
        assert values is not None
        trial = TuneTrial(number=number, values=values, state="complete", history=(cost(values),))
        study = study.replaced(trial)
    return study


def distance(values) -> float:
    return abs(values["model.num_layers"] - 5) + abs(values["model.dropout"] - 0.3)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**62))
def test_what_is_tried_is_in_the_space_and_new_and_as_the_seed_has_it(seed):
    study = grown(14, distance, seed=seed)
    seen = [trial.values for trial in study.trials]
    for values in seen:
        assert list(values) == list(SPACE)
        assert all(part.has(values[key]) for key, part in SPACE.items())
        assert values["train.patience"] in (3, 6, 9)
    assert all(values not in seen[:number] for number, values in enumerate(seen))
    assert grown(14, distance, seed=seed) == study


def test_another_seed_tries_something_else():
    assert grown(3, distance, seed=1).trials != grown(3, distance, seed=2).trials


@pytest.mark.parametrize(("metric", "sign"), [("mae", 1), ("auroc", -1)])
def test_the_search_goes_where_it_is_good(metric, sign):
    """Low is good for the one metric, high for the other; later trials are better than those at random."""
    study = grown(40, lambda values: sign * distance(values), metric=metric)
    costs = [distance(trial.values) for trial in study.trials]
    assert sum(costs[20:]) / 20 < 0.6 * sum(costs[:8]) / 8


def test_a_small_space_is_tried_completely():
    space: Space = {"train.clip_norm": Choices((1.0, 2.0, None)), "model.num_layers": Range(1, 2)}
    study = grown(6, lambda values: values["model.num_layers"], space=space)
    assert suggest(study, space) is None


def ended(*histories, state="complete"):
    return [
        TuneTrial(number=number, values=value_set(number), state=state, history=history)
        for number, history in enumerate(histories, 1)
    ]


def value_set(number):
    return {"train.lr": 1e-3 * number, "model.num_layers": 1, "model.dropout": 0.1, "train.patience": 3} | {
        "model.norm": "batch",
        "train.clip_norm": None,
    }


def gives_up(history, others, metric="mae", epochs=5) -> list[bool]:
    pruning = Pruning(study_of(others, metric), SPACE, epochs)
    return [pruning.gives_up(epoch, value) for epoch, value in enumerate(history)]


def test_a_trial_is_given_up_if_its_best_is_worse_than_the_median_at_that_epoch():
    others = ended((1.0, 0.5), (1.0, 0.6), (1.0, 0.7), (1.0, 0.8))
    assert gives_up((2.0, 0.64), others) == [False, False]  # the median is 0.65
    assert gives_up((2.0, 0.66), others) == [False, True]  # and the first epoch is not judged
    assert gives_up((0.6, 0.9), others) == [False, False]
    assert gives_up((2.0, 0.9), others[:3]) == [False, False]  # too few to judge by
    assert gives_up((2.0, 0.9), ended((1.0, 0.5), state="failed") + others[1:]) == [False, False]
    assert gives_up((2.0, 0.9), others, epochs=10) == [False, False]


def test_where_high_is_good_low_is_given_up():
    others = ended((0.5, 0.5), (0.5, 0.6), (0.5, 0.7), (0.5, 0.8))
    assert gives_up((0.1, 0.66), others, "auroc") == [False, False]
    assert gives_up((0.1, 0.64), others, "auroc") == [False, True]


def test_an_epoch_that_is_told_twice_counts_once():
    others = ended((1.0, 0.5), (1.0, 0.6), (1.0, 0.7), (1.0, 0.8))
    pruning = Pruning(study_of(others), SPACE, 5)
    assert [pruning.gives_up(epoch, 0.9) for epoch in (0, 0, 1, 1)] == [False, False, True, True]


def test_the_key_that_mattered_comes_first():
    study = grown(30, lambda values: abs(values["model.num_layers"] - 3))
    found = importances(study, SPACE)
    assert found is not None
    assert next(iter(found)) == "model.num_layers"
    assert set(found) == set(SPACE)
    assert sum(found.values()) == pytest.approx(1.0)
    few = study.model_copy(update={"trials": study.trials[: MIN_FOR_IMPORTANCE - 1]})
    assert importances(few, SPACE) is None
