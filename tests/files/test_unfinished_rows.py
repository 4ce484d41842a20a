import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.files.unfinished_rows import Finished, UnfinishedRows

MADE_OF = {"table": "abc", "model": "def"}


def keep(out, *pieces, made_of=MADE_OF, resume=True):
    kept = UnfinishedRows(out, made_of, resume=resume)
    for rows in pieces:
        kept.append(Finished(rows, without=1))
    found = list(kept.rows()), kept.count, kept.without
    kept.close()
    return found


def test_rows_are_there_the_next_time(tmp_path):
    out = tmp_path / "t.csv"
    assert keep(out, [["a", "é\n"]], [["b", ""], ["c", "\x00"]]) == ([["a", "é\n"], ["b", ""], ["c", "\x00"]], 3, 2)
    assert keep(out, [["d", ""]]) == ([["a", "é\n"], ["b", ""], ["c", "\x00"], ["d", ""]], 4, 3)
    assert not out.exists()


def test_rows_are_not_overwritten_unasked(tmp_path):
    keep(tmp_path / "t.csv", [["a"]])
    with pytest.raises(grit.GritError, match=r"1 rows were done before.*--resume, or remove '.*\.t\.csv\.unfinished'"):
        keep(tmp_path / "t.csv", resume=False)


def test_rows_of_something_else_are_not_mixed(tmp_path):
    keep(tmp_path / "t.csv", [["a"]])
    with pytest.raises(grit.GritError, match="were made with another model. Remove"):
        keep(tmp_path / "t.csv", made_of={"table": "abc", "model": "other"})
    assert keep(tmp_path / "t.csv")[1] == 1
    assert keep(tmp_path / "t.csv", made_of={"table": "new"}, resume=False) == ([], 0, 0)


def test_two_processes_do_not_write_the_same_file(tmp_path):
    kept = UnfinishedRows(tmp_path / "t.csv", MADE_OF, resume=False)
    with pytest.raises(grit.GritError, match="is in use: another process"):
        UnfinishedRows(tmp_path / "t.csv", MADE_OF, resume=True)
    kept.close()


def test_nothing_is_left_without_rows_or_at_the_end(tmp_path):
    keep(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []
    kept = UnfinishedRows(tmp_path / "t.csv", MADE_OF, resume=False)
    kept.append(Finished([["a"]], 0))
    kept.remove()
    assert list(tmp_path.iterdir()) == []


@given(st.integers(0, 400), st.binary(max_size=3))
def test_a_file_that_was_cut_short_or_damaged_keeps_its_sound_beginning(tmp_path_factory, length, ending):
    out = tmp_path_factory.getbasetemp() / "cut.csv"
    hidden = out.with_name(".cut.csv.unfinished")
    hidden.unlink(missing_ok=True)
    pieces = [[[f"row {number}", "x" * number]] for number in range(5)]
    keep(out, *pieces)
    hidden.write_bytes(hidden.read_bytes()[:length] + ending)
    rows, count, _ = keep(out)
    assert rows == [piece[0] for piece in pieces[:count]]
    assert keep(out, *pieces[count:])[0] == [piece[0] for piece in pieces]
