"""The record of tuning: which trial is the best, and that it is read back as it was written."""

import csv
import io
from math import isnan, nan

import pytest

from grit.errors import GritError
from grit.training.tune_study import TuneStudy, TuneTrial, read_study, trials_csv


def study_of(*trials, metric="mae") -> TuneStudy:
    return TuneStudy(
        metric=metric,
        preset="fast",
        overrides=("train.epochs=3",),
        recipe={"train.lr": 1e-3},
        space={"model.norm": ["batch", "=1+1"]},
        seed=0,
        trials=tuple(
            TuneTrial(number=number, values={"model.norm": "=1+1"}, state=state, history=history)
            for number, (state, history) in enumerate(trials, 1)
        ),
    )


def order(study):
    return [trial.number for trial in study.ranking()]


def test_the_best_is_the_best_that_was_trained_to_the_end():
    trials = [
        ("complete", (0.9, 0.5, 0.7)),
        ("pruned", (0.1,)),
        ("complete", (0.4, 0.6)),
        ("failed", (0.01,)),
        ("running", (0.05,)),
        ("complete", (nan, 0.45)),
        ("running", ()),
        ("complete", (0.4, 0.9)),
    ]
    assert order(study_of(*trials)) == [3, 8, 6, 1, 5, 2]
    assert order(study_of(*trials, metric="auroc")) == [1, 8, 3, 6, 2, 5]


def test_a_trial_without_a_number_has_no_value():
    study = study_of(("complete", (nan, nan)), ("running", ()))
    assert [study.value(trial) for trial in study.trials] == [None, None]
    assert not study.ranking()


def test_it_is_read_back_as_it_was(tmp_path):
    study = study_of(("complete", (nan, 0.5)), ("failed", ()), ("running", (1e-300,)))
    study.write(tmp_path)
    found = read_study(tmp_path)
    assert found is not None
    assert isnan(found.trials[0].history[0])
    assert found.model_dump_json() == study.model_dump_json()
    assert read_study(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"number": 1', '"number": 2', "changed or damaged"),
        ('"metric": "mae"', '"metric": "luck"', "changed or damaged"),
        ('"number": 1', '"number": "one"', "cannot be read"),
        ("}", "", "cannot be read"),
    ],
)
def test_a_damaged_record_is_named(tmp_path, old, new, message):
    study_of(("complete", (0.5,))).write(tmp_path)
    path = tmp_path / "study.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(GritError, match=f"study.json' .*{message}"):
        read_study(tmp_path)


def test_a_spreadsheet_runs_nothing_of_it():
    rows = list(csv.DictReader(io.StringIO(trials_csv(study_of(("complete", (0.5,)), ("failed", ()))))))
    assert [row["val mae"] for row in rows] == ["0.5", ""]
    assert all(not row["model.norm"].startswith("=") for row in rows)
