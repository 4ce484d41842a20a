"""Columns that look like one thing and are another, or from which little can be learned: what the user is told."""

import numpy as np
import pytest

import grit
from grit.datasets import from_csv, from_smiles
from grit.datasets.own.data_notes import notes_of

SMILES = [f"{'C' * carbons}{end}" for carbons in range(1, 11) for end in ("O", "N", "Cl", "F", "S")]  # 50


def told(path, values, names=("y",), **options):
    columns = values if len(names) > 1 else [values]
    rows = [";".join(map(str, row)) for row in zip(SMILES, *columns, strict=True)]
    path.write_text("\n".join([";".join(["smiles", *names]), *rows]))
    said = []
    store = from_csv(path, **{"targets": list(names), "processes": 1, "say": said.append, **options})
    return store, said


@pytest.fixture
def file(tmp_path):
    return tmp_path / "t.csv"


def target_notes(store):
    return [note.text for note in notes_of(store) if note.kind == "target"]


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ([0] * 50, "'0'"),
        ([3.25] * 50, "'3.25'"),
        (["active"] * 50, "'active'"),
        (["1", "1.0"] * 25, "'1' in the 32 bits of a model"),
        ([f"1000.00000{number % 9}" for number in range(50)], "'1000' in the 32 bits of a model"),
    ],
)
@pytest.mark.parametrize("task", [None, "binary", "regression"])
def test_a_constant_column_is_refused(file, values, value, task):
    message = f"column 'y' is constant: all its 50 values are {value}. There is nothing to learn. Name another column."
    with pytest.raises(grit.GritError) as error:
        told(file, values, task=task)
    assert message in str(error.value)


def test_one_constant_column_of_several_is_refused(file):
    with pytest.raises(grit.GritError, match=r"'z' is constant: .* Leave this target out\."):
        told(file, [range(50), [7] * 50], ("y", "z"))


def test_a_constant_array_is_refused():
    with pytest.raises(grit.GritError, match="'y' is constant"):
        from_smiles(SMILES, np.ones(50))


def test_a_nearly_constant_column_is_said(file):
    store, said = told(file, [0.0] * 47 + [1.5, 2.5, 3.5])
    expected = (
        "y is nearly constant: 94.0% of its 50 values are 0.0. A model that always says 0.0 looks good; a column of two"
    )
    assert any(line.startswith(expected) for line in said)
    assert len(target_notes(store)) == 1
    assert target_notes(told(file, [0.0] * 44 + [1.5, 2.5, 3.5, 4.5, 5.5, 6.5])[0]) == []


def test_codes_of_classes_are_classes_and_the_way_back_is_named(file):
    store, said = told(file, [1, 2] * 25)
    assert store.task.classes == ("1", "2")
    assert said[1] == (
        "SMILES from the column 'smiles'; binary of y (all values are 1 or 2, taken for two classes; --task regression reads "
        "them as numbers)."
    )
    assert told(file, [1, 2] * 25, task="regression")[0].task.kind == "regression"
    assert told(file, [-1, 1] * 25)[0].task.classes == ("-1", "1")
    both = told(file, [[1, 2] * 25, [number / 7 for number in range(50)]], ("y", "z"))[1]
    assert "with --task mixed y, of two whole numbers alone, would be classes" in both[1]


def test_classes_that_differ_only_in_case_are_said_and_can_be_one(file):
    values = ["active", "Active", "in active", "inactive", "inactive"] * 10
    store, said = told(file, values)
    assert store.task.classes == ("Active", "active", "in active", "inactive")
    text = "Classes of y differ only in case or spaces: 'inactive' (20) and 'in active' (10); 'Active' (10) and 'active' (10). "
    assert f"{text}They count as different classes; --ignore-case makes one of each." in said
    store, said = told(file, values, ignore_case=True)
    assert (store.task.kind, store.task.classes) == ("binary", ("Active", "inactive"))
    assert f"{text}Each counts as one class, as asked (--ignore-case)." in said
    assert store.targets(np.arange(5))[:, 0].tolist() == [0, 0, 1, 1, 1]
    assert store.skipped == []


def test_a_list_of_words_too():
    store = from_smiles(SMILES, np.array(["a", "A", "b", "b", "B"] * 10), ignore_case=True, processes=1)
    assert store.task.classes == ("A", "b")


def test_strong_imbalance_is_said(file):
    _, said = told(file, [1, 1] + [0] * 48)
    assert any(
        "Classes are unbalanced: 4.0% of 50 labels of y are '1'. --balance lets rare classes count" in line
        for line in said
    )
    assert target_notes(told(file, [1] * 5 + [0] * 45)[0]) == []
    assert len(target_notes(told(file, ["a", "b"] + ["c"] * 24 + ["d"] * 24)[0])) == 1
    labels = [[0] * 49 + [1], [0, 1] * 25, [1] * 48 + [0, ""]]
    said = told(file, labels, ("a", "b", "c"))[1]
    assert any(
        "unbalanced: 2.0% of 50 labels of a are '1'; 2.0% of 49 labels of c are '0'. --balance" in line for line in said
    )


def test_a_column_over_decades_is_said(file):
    _, said = told(file, [10 ** (number / 10) for number in range(50)])
    (text,) = [line for line in said if "decades" in line]
    assert text.startswith("y spreads over 5 decades (1 to 79432.8), and a few large values dominate the error.")
    assert "=LOG10(cell), in pandas numpy.log10(table['y']), and name it with --target." in text


@pytest.mark.parametrize(
    "values",
    [
        [number / 50 + 0.0001 for number in range(50)],  # wide, but not skewed
        [10 ** (number / 10) - 2 for number in range(50)],  # some below 0, where there is no logarithm
        [2 ** (number / 10) for number in range(50)],  # not wide
    ],
)
def test_other_columns_are_not(file, values):
    assert target_notes(told(file, values)[0]) == []


def test_decimal_commas_are_recognised_and_said(file):
    numbers = [number / 8 for number in range(50)]
    store, said = told(file, [str(number).replace(".", ",") for number in numbers])
    assert "t.csv: numbers have decimal commas in y (--decimal point leaves them as they are)." in said
    assert store.task.kind == "regression"
    assert np.allclose(store.targets(np.arange(50))[:, 0], numbers)
