import gzip
import re

import openpyxl
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import grit
from grit.datasets.tables.formats import FORMATS, open_table
from grit.datasets.tables.writers import workbook
from grit.datasets.tables.writers.rows import Rows
from grit.datasets.tables.writers.write_table import WRITERS, check_output, write_table

HEADER = ["name", "smiles", "y", "comment"]
ROWS = [
    ["a", "CCO", "1.5", "plain"],
    ["b", "c1ccccc1", "-2", 'a "quoted", word;\twith tabs'],
    ["", "C[C@H](N)C(=O)O", "1e-05", "two\nlines"],
    ["007", "not a SMILES", "", "=HYPERLINK(1)"],
    ["_x0041_ & <b>", "CC", "0.10", "é 漢字 😀"],
]


def written(out, rows=ROWS, header=HEADER, **more):
    notes = write_table(out, Rows(header, lambda: iter(rows), "smiles", **more))
    table = open_table(out)
    return table.header, [record.fields for record in table.records()], notes


def same(cell, other):
    """Equal text, or equal numbers: Parquet has no trailing zeros."""
    return cell == other or (cell != "" and other != "" and float(cell) == float(other))


@pytest.mark.parametrize("ending", sorted(WRITERS))
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_what_is_written_is_read_back(tmp_path, ending, packed):
    assert ending in FORMATS
    header, rows, notes = written(tmp_path / f"t{ending}{packed}")
    places = [header.index(name) for name in HEADER]
    assert notes == []
    assert len(rows) == len(ROWS)
    for row, before in zip(rows, ROWS, strict=True):
        cells = [row[place] for place in places]
        assert [cell for cell, other in zip(cells, before, strict=True) if not same(cell, other)] == []
    is_gzip = (tmp_path / f"t{ending}{packed}").read_bytes()[:2] == b"\x1f\x8b"
    assert is_gzip == bool(packed)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ODD = st.sampled_from(
    ["=1+1", "'=x", "-", "@a", '"', '""', ",", ";", "\t", "\r", "\n", "\r\n", "a\n\nb", " x ", "_x000D_", "\x00"]
)
NUMBERS = st.one_of(
    st.integers().map(str), st.floats().map(repr), st.sampled_from(["007", "1e5", "-0", "1.", "+1", "1_0"])
)
CELLS = st.one_of(TEXT, ODD, NUMBERS)
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".xlsx", ".parquet", ".jsonl", ".smi"])
@settings(max_examples=150, deadline=None)
@given(rows=TABLES)
@example(rows=[["1", "x"], ["2", ""]])
def test_any_cells_are_read_back(tmp_path_factory, ending, rows):
    if ending == ".jsonl" and not rows:
        return  # no rows, no keys
    out = tmp_path_factory.getbasetemp() / f"cells{ending}"
    rows = [["C", *row] for row in rows]
    header = ["smiles", *(f"c{number}" for number in range(len(rows[0]) - 1))] if rows else ["smiles"]
    found, cells, _ = written(out, rows, header)
    assert found == header
    assert len(cells) == len(rows)
    for row, before in zip(cells, rows, strict=True):
        for cell, other in zip(row, before, strict=True):
            # A cell that begins with the mark against formulas keeps it; see test_spreadsheet.
            assert cell == other or (ending == ".parquet" and float(cell) == float(other))


PROPERTIES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["CCO", "c1ccccc1", "bad"]), PROPERTIES), min_size=1, max_size=4))
def test_any_line_of_text_is_a_property_of_an_sdf(tmp_path_factory, rows):
    out = tmp_path_factory.getbasetemp() / "cells.sdf"
    header, cells, notes = written(out, [list(row) for row in rows], ["smiles", "x"])
    assert header == ["structure_smiles", "smiles", "x"]
    changed = sum(text.startswith((">", "$$$$")) for _, text in rows)
    assert len(notes) == (changed > 0)
    for (structure, smiles, text), before in zip(cells, rows, strict=True):
        assert smiles == before[0]
        assert structure == ("" if smiles == "bad" else smiles)
        assert text == before[1] or (text == f" {before[1]}" and changed)


def test_what_an_sdf_cannot_hold_is_counted(tmp_path):
    rows = [["C", "a\n\nb"], ["C", "$$$$\n> <y>"], ["C", "fine\nlines"]]
    _, cells, notes = written(tmp_path / "t.sdf", rows, ["smiles", "x"])
    assert [row[2] for row in cells] == ["a\nb", " $$$$\n > <y>", "fine\nlines"]
    assert notes == ["2 cells lost empty lines, or got blanks before > and $$$$, because SDF cannot hold them."]


def test_an_sdf_keeps_its_columns(tmp_path):
    """The SMILES that were made from its structures are structures again, and the titles titles."""
    header, rows = ["smiles", "name", "y"], [["CCO", "ethanol", "1"], ["CN", "", "2"]]
    for _ in range(2):
        found = written(tmp_path / "t.sdf", rows, header, titles="name", is_derived=True)
        assert found[:2] == (header, rows)


def test_columns_of_numbers_are_numbers(tmp_path):
    written(tmp_path / "t.parquet")
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert {field.name: str(field.type) for field in schema} == {
        "name": "string", "smiles": "string", "y": "double", "comment": "string"
    }  # fmt: skip
    written(tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert [cell.value for cell in sheet["C"]] == ["y", 1.5, -2, 1e-05, None, 0.1]
    assert sheet["D5"].data_type == "s"
    assert sheet["A5"].value == "007"


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_the_same_rows_give_the_same_bytes(tmp_path, ending, monkeypatch):
    written(tmp_path / f"a{ending}.gz")
    monkeypatch.setattr("time.time", lambda: 2e9)
    written(tmp_path / f"b{ending}.gz")
    assert (tmp_path / f"a{ending}.gz").read_bytes() == (tmp_path / f"b{ending}.gz").read_bytes()
    assert gzip.decompress((tmp_path / f"a{ending}.gz").read_bytes())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p.xls", "the ending '.xls' names no format. Expected one of .csv, .tsv, .*, with .gz behind it"),
        ("p", "without an ending it names no format"),
        ("p.gz", "without an ending it names no format"),
        ("absent/p.csv", "there is no folder"),
        (".", "it is a folder"),
    ],
)
def test_outputs_that_cannot_be_written(tmp_path, name, message):
    with pytest.raises(grit.GritError, match=message):
        check_output(tmp_path / name)


@pytest.mark.parametrize("name", ["p.sdf", "p.smi.gz"])
def test_without_molecules_there_is_no_file_of_molecules(tmp_path, name):
    with pytest.raises(grit.GritError, match="there are no SMILES to write"):
        check_output(tmp_path / name, has_molecules=False)


def test_what_excel_cannot_hold(tmp_path, monkeypatch):
    with pytest.raises(grit.GritError, match=re.escape("a cell of row 2 has 32,768 characters")):
        written(tmp_path / "t.xlsx", [["C", "x" * 32_768]], ["smiles", "x"])
    monkeypatch.setattr(workbook, "MAX_ROWS", 3)
    with pytest.raises(grit.GritError, match="more rows than Excel's 3; write .csv or .parquet"):
        written(tmp_path / "t.xlsx", [["C"]] * 3, ["smiles"])
    assert list(tmp_path.iterdir()) == []


def test_parquet_needs_names_that_differ(tmp_path):
    with pytest.raises(grit.GritError, match="two columns called 'x', which Parquet cannot hold"):
        written(tmp_path / "t.parquet", [["C", "1", "2"]], ["smiles", "x", "x"])
