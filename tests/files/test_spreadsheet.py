import pytest
from hypothesis import given
from hypothesis import strategies as st

from grit.files.spreadsheet import guarded, unguarded


@pytest.mark.parametrize(
    "cell",
    [
        "=1+1",
        "=cmd|' /C calc'!A0",
        "+1+cmd()",
        "-2+3",
        "@SUM(A1)",
        "\t=1+1",
        "\r=1+1",
        "  =1+1",
        "-inf",
        "+CCO",
        "=CC",
        "＝1+1",
        '="a"',
    ],
)
def test_what_would_run_is_text(cell):
    assert guarded(cell) == "'" + cell
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize(
    "cell",
    ["", "-1.5", "+3", "1e-5", "-1e-5", "-.5", "-1,5", " -2 ", "+", "-", "++", "+/-", "[O-]C", "CC=O", "a=b", "'CC"],
)
def test_what_is_no_formula_stays(cell):
    assert guarded(cell) == unguarded(cell) == cell


@given(st.text("=+-@' \t1aé", max_size=6))
def test_any_cell_comes_back(cell):
    assert unguarded(guarded(cell)) == cell
    assert guarded(unguarded(guarded(cell))) == guarded(cell)
