import math

import pytest

import grit
from grit.datasets.own.task_inference import ColumnFacts, infer_targets


def facts(*columns):
    found = []
    for number, values in enumerate(columns):
        column = ColumnFacts(f"t{number}")
        for value in values:
            column.see(str(value))
        found.append(column)
    return found


@pytest.mark.parametrize(
    ("columns", "kind", "classes"),
    [
        ([[0.5, 1.25, -3]], "regression", ()),
        ([[100, 200, 7, 8, 30]], "regression", ()),
        ([[1, 2, 5, 9]], "regression", ()),
        ([[0, 1, 1, 0]], "binary", ("0", "1")),
        ([["0.0", "1.0", "", "nan"]], "binary", ("0", "1")),
        ([["yes", "no", "no"]], "binary", ("no", "yes")),
        ([[0, 1, 2, 2, 1]], "multiclass", ("0", "1", "2")),
        ([["a", "b", "c"] * 4], "multiclass", ("a", "b", "c")),
        ([[0, 1, ""], ["", 0, 1]], "multilabel", ()),
        ([[0.1, 2], [1, 0]], "regression", ()),
        ([[str(number / 7) for number in range(30)] + ["n.d."]], "regression", ()),
        ([["1e0", "2e0", "3e0"]], "regression", ()),
        ([["1e0", "0", "1"]], "binary", ("0", "1")),
        ([["1", "+1", "2", "03"]], "multiclass", ("1", "2", "3")),
        ([[1, 2, 2, 1]], "binary", ("1", "2")),
        ([[-1, 1, 1]], "binary", ("-1", "1")),
        ([["1.0", "2.0", "2.0"]], "regression", ()),
        ([[1, 3, 3]], "regression", ()),
        ([["１", "２", "３"]], "multiclass", ("1", "2", "3")),
        ([["-", "+", "+"]], "binary", ("+", "-")),
        ([range(10)], "multiclass", tuple("0123456789")),
        ([range(11)], "regression", ()),
    ],
)
def test_what_is_inferred(columns, kind, classes):
    task = infer_targets(facts(*columns)).task
    assert (task.kind, task.classes) == (kind, classes)
    assert task.standardise == (kind == "regression")


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ([], None, "name at least one target"),
        ([["", "NA", "nan"]], None, "'t0' has no values"),
        (
            [[f"name {number}" for number in range(50)]],
            None,
            "is text, such as 'name 0', with 50 different values in 50 rows",
        ),
        ([[1, 2], [f"name {number}" for number in range(50)]], None, "'t1' is text, such as 'name 0'"),
        ([["a", "b", "c"] * 3], "regression", r"regression needs numbers in 't0'; found for example a, b, c\.$"),
        ([["a", "b", "c", "d"] * 3], "regression", r"found for example a, b, c\.$"),
        ([[0.5, 1, 2, "high"], [1, 2, 3]], "regression", "found for example high, 0.5, 1"),
        ([[0, 1, 2]], "multilabel", "multilabel needs 0 or 1 everywhere"),
        ([[0, 1, 1], [0, 1, 2]], "multilabel", "multilabel needs 0 or 1 everywhere"),
        ([[0, 1, 2]], "binary", "binary needs two classes"),
        ([[0, 1], [0, 1]], "multiclass", "multiclass has one target column, got 2"),
        ([list(range(500))], "multiclass", "too many for classes"),
        ([[1, 2]], "ranking", "unknown task 'ranking'; there are regression"),
    ],
)
def test_what_cannot_be(columns, kind, message):
    with pytest.raises(grit.GritError, match=message):
        infer_targets(facts(*columns), kind)


def test_integers_may_be_told_to_be_numbers():
    assert infer_targets(facts([0, 1, 2, 3]), "regression").task.kind == "regression"


def test_parsing():
    numbers = infer_targets(facts([0.5, 1.5], [2, 3.5]))
    assert numbers.parse(["1e-3", "7"]) == ((0.001, 7.0), None)
    values, reason = numbers.parse(["", "7"])
    assert math.isnan(values[0])
    assert (values[1], reason) == (7.0, None)
    assert numbers.parse(["", "n/a"]) == ((), "no target has a value")
    assert numbers.parse(["1", "high"]) == ((), "t1 is 'high', expected a number")
    for text in ("inf", "-inf", "1_000", "0x10", "1 000"):
        assert numbers.parse([text, "1"])[1] == f"t0 is {text!r}, expected a number"
    hint = "(--decimal comma reads it as a number with a decimal comma)"
    assert numbers.parse(["1,5", "1"])[1] == f"t0 is '1,5', expected a number {hint}"
    for text in ("1e39", "-1e39", "1e-50", "1e308"):
        beyond = f"t0 is {text!r}, beyond 32-bit numbers (about 1e-45 to 3e38); rescale the column"
        assert numbers.parse([text, "1"])[1] == beyond
    for text, value in (("3e38", 3e38), ("1e-40", 1e-40), ("0", 0), ("-0.0", 0), (" 1.5 ", 1.5), ("１.５", 1.5)):
        assert numbers.parse([text, "1"]) == ((value, 1.0), None)
    assert math.isnan(numbers.parse(["nan", "1"])[0][0])
    words = infer_targets(facts(["yes", "no"]))
    assert words.parse(["yes"]) == ((1.0,), None)
    assert words.parse(["YES"]) == ((1.0,), None)
    assert words.parse(["maybe"]) == ((), "t0 is 'maybe', expected one of no, yes")
    labels = infer_targets(facts([0, 1], [1, 0]))
    assert labels.parse(["1.0", "0"]) == ((1.0, 0.0), None)
    assert labels.parse(["2", "0"])[1] == "t0 is '2', expected one of 0, 1"
