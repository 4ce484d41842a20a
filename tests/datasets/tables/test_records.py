"""What a writer of CSV wrote is read back; a quote that is missing costs the lines of its own record and no others."""

import csv
import io
import time

from hypothesis import assume, example, given
from hypothesis import strategies as st

from grit.datasets.tables.records import MAX_LINES, read_records
from grit.datasets.tables.table import Record


def read(text, width, delimiter=","):
    return list(read_records(iter(io.StringIO(text, newline="")), delimiter, width))


def written(rows, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    """The text of the rows, and the line on which each begins if a header stands above them."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
    starts = []
    for row in rows:
        starts.append(2 + len(file.getvalue().splitlines()))
        writer.writerow(row)
    return file.getvalue(), starts


def tables(cell):
    """Rows of one to three cells."""
    return st.integers(1, 3).flatmap(
        lambda width: st.lists(st.lists(cell, min_size=width, max_size=width), min_size=1, max_size=6)
    )


ANYTHING = st.text(st.sampled_from('ab,;"\n\r '), max_size=8)
INNER = st.text(st.sampled_from('ab,"\n'), max_size=8).map(lambda text: f"x{text}x")
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])


def test_a_comment_whose_lines_could_be_rows():
    rows = [["AAA", "1"], ["CCC", "seen twice\nonce here, once there"], ["DDD", "a\nb,c\nd,e\n"], ["EEE", "5"]]
    text, starts = written(rows)
    assert read(text, 2) == [Record(line, row, None) for line, row in zip(starts, rows, strict=True)]


@given(tables(ANYTHING), st.sampled_from(",;\t"), QUOTING)
@example([["CCC", "seen twice\nonce here, once there"]], ",", csv.QUOTE_MINIMAL)
@example([["a", "\n,\n"], ["b", '"\n'], ["\n", ""]], ",", csv.QUOTE_MINIMAL)
def test_what_was_written_is_read_back(rows, delimiter, quoting):
    text, starts = written(rows, delimiter, quoting)
    assert read(text, len(rows[0]), delimiter) == [
        Record(line, row, None) for line, row in zip(starts, rows, strict=True)
    ]


def check_every_line_has_one_row(records, text):
    ends = [*(record.line for record in records[1:]), 2 + len(io.StringIO(text, newline="").readlines())]
    assert records[0].line == 2
    for record, end in zip(records, ends, strict=True):
        breaks = sum(len(field.splitlines()) - 1 if field else 0 for field in record.fields)
        assert end - record.line == 1 if record.reason else end - record.line >= 1 + breaks


@given(tables(INNER), QUOTING, st.data())
def test_a_missing_quote_costs_its_own_record_alone(rows, quoting, data):
    text, starts = written(rows, quoting=quoting)
    quotes = [place for place, letter in enumerate(text) if letter == '"']
    assume(quotes)
    place = data.draw(st.sampled_from(quotes))
    line = 2 + len(text[:place].splitlines()) - (not text[:place].endswith("\n") and place > 0)
    touched = max(number for number, start in enumerate(starts) if start <= line)
    spoiled = text[:place] + text[place + 1 :]
    records = read(spoiled, len(rows[0]))
    check_every_line_has_one_row(records, spoiled)
    found = {record.line: record for record in records}
    for number, (start, row) in enumerate(zip(starts, rows, strict=True)):
        if number != touched:
            assert found[start] == Record(start, row, None)


@given(tables(ANYTHING), QUOTING, st.data())
def test_no_line_is_lost_whatever_is_missing(rows, quoting, data):
    text, _ = written(rows, quoting=quoting)
    place = data.draw(st.integers(0, len(text) - 1))
    spoiled = text[:place] + text[place + 1 :]
    assume(spoiled)
    check_every_line_has_one_row(read(spoiled, len(rows[0])), spoiled)


def test_an_open_quote_far_above_a_quoted_cell():
    lines = [f"C{number},{number}.5" for number in range(60)]
    lines[4] = '"C4,4.5'
    for later in ('"C30",30.5', 'C30,"30.5"', '"C,30",30.5', '"",30.5', 'C30,"a\nb"'):
        lines[30] = later
        records = read("\n".join(lines), 2)
        assert [record.line for record in records if record.reason] == [6]
        assert len(records) == 60


def test_the_line_after_tells_that_a_quote_is_missing_above():
    """The quote after ``a,b`` is missing; the one that begins the next cell stands where it could close this one."""
    records = read('x,"a,b\nc,"\nd"\ny,z\n', 2)
    assert [(record.line, record.fields) for record in records if record.reason is None] == [
        (3, ["c", "\nd"]),
        (5, ["y", "z"]),
    ]
    assert len(records) == 3


def test_a_cell_of_too_many_lines():
    rows = [["a", "\n".join(["line"] * MAX_LINES)], ["b", "2"]]
    text, starts = written(rows)
    assert read(text, 2)[1] == Record(starts[1], ["b", "2"], None)
    text, _ = written([["a", "\n".join(["line"] * (MAX_LINES + 1))], ["b", "2"]])
    records = read(text, 2)
    assert len(records) == MAX_LINES + 2
    assert "does not close it within 1,000 lines" in records[0].reason


def test_many_quotes_take_no_long_time():
    """Lines that are sound however they are entered, so that no reading ends early."""
    for line in ('b","c', '","', 'x,"', ',"', '"",""'):
        text = 'x,"c\n' + f"{line}\n" * 4000
        start = time.perf_counter()
        read(text, 300)
        read('x,"\n"\n' * 2000, 2)
        assert time.perf_counter() - start < 5
