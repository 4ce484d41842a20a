"""Numbers with decimal commas: recognised where they are beyond doubt, and never read as something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grit.datasets.tables.decimal_comma import comma_columns, has_comma, with_point
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.table import ReadOptions
from grit.errors import GritError


def read(path, cells, separator=";", **options):
    quote = '"' if separator == "," else ""
    path.write_text("\n".join([f"smiles{separator}y", *(f"C{separator}{quote}{cell}{quote}" for cell in cells)]))
    table = open_table(path, ("y",), ReadOptions(**options))
    return [(row.fields["y"], row.reason) for row in table.rows()], " ".join(table.notes)


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_recognised_and_said(tmp_path, separator):
    rows, notes = read(tmp_path / "t.csv", ["1,5", "-2", ",25", "1.234,5", "3,2e-4", "NA", ""], separator)
    assert [cell for cell, _ in rows] == ["1.5", "-2", ".25", "1234.5", "3.2e-4", "NA", ""]
    assert "t.csv: numbers have decimal commas in y (--decimal point leaves them as they are)." in notes


@pytest.mark.parametrize(
    "cells",
    [
        ["1,500", "2,250", "12,000"],  # thousands, perhaps
        ["1,5", "2.5", "3.5"],  # a slip of the pen in a column with points
        ["1,2,3", "1,5,6"],
        ["1;5", "a,b"],
    ],
)
def test_left_as_they_are(tmp_path, cells):
    rows, notes = read(tmp_path / "t.tsv", cells, "\t")
    assert [cell for cell, _ in rows] == cells
    assert "decimal" not in notes


def test_one_that_is_unclear_is_listed(tmp_path):
    rows, _ = read(tmp_path / "t.csv", ["1,5", "2,5", "1.500", *["3,5"] * 20])
    assert (
        rows[2][1] == "'y': '1.500' may be 1500 or a number with a decimal point, where the others have decimal commas"
    )
    assert [reason for _, reason in rows if reason] == [rows[2][1]]


def test_the_user_may_say_it(tmp_path):
    thousand = ["1,500", "2,250"]
    assert [cell for cell, _ in read(tmp_path / "t.csv", thousand, decimal="comma")[0]] == ["1.500", "2.250"]
    assert [cell for cell, _ in read(tmp_path / "t.csv", ["1,5"], decimal="point")[0]] == ["1,5"]
    with pytest.raises(GritError, match="--decimal is comma or point, got ';'"):
        read(tmp_path / "t.csv", ["1"], decimal=";")


def test_cells_that_are_copied_stay(tmp_path):
    (tmp_path / "t.csv").write_text("smiles;y\nC;1,5\n")
    assert [record.fields for record in open_table(tmp_path / "t.csv", ("y",)).records()] == [["C", "1,5"]]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_comes_back(number):
    assert float(with_point(repr(number).replace(".", ","))) == number


@given(st.text(max_size=12))
def test_whatever_is_changed_becomes_a_number(text):
    changed = with_point(text)
    assert changed == text or float(changed) == float(changed)
    assert (changed != text) == has_comma(text) or text != text.strip()


def test_columns_by_their_place():
    assert comma_columns([["1,5", "1.5", "x"], ["2", "2.5", "y", "9,9"]], 3) == {0}
    assert comma_columns([], 2) == frozenset()
