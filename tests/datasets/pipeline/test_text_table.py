import gzip
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grit
from grit.datasets.pipeline.text_table import KeptRows, TextTable


def table(tmp_path, content, columns=("smiles", "y"), name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TextTable(path, columns)


@pytest.mark.parametrize(
    "content",
    [
        "smiles,y\nCC,1\nCO,2\n",
        "smiles;y\nCC;1\nCO;2\n",
        "smiles\ty\nCC\t1\nCO\t2",
        b"\xef\xbb\xbfsmiles,y\r\nCC,1\r\nCO,2\r\n",
        'y,"smiles"\n1,"CC"\n2,CO\n',
        " smiles , y \n CC , 1 \nCO,2\n",
        gzip.compress(b"smiles,y\nCC,1\nCO,2\n", mtime=0),
    ],
)
def test_dialects(tmp_path, content):
    rows = list(table(tmp_path, content).rows())
    assert [(row.number, row.fields["smiles"], row.fields["y"], row.reason) for row in rows] == [
        (0, "CC", "1", None),
        (1, "CO", "2", None),
    ]


def broken(column, lines):
    return f"a line break inside the cell {column!r}, which goes over {lines} lines; is there a quote too many?"


def test_every_row_is_accounted_for(tmp_path):
    content = 'note,smiles,note,y\na,CC,b,1\n\na,"C\nC",b,2\nCO,1\n,,,\nCN,a,b,c,d\n'
    rows = list(table(tmp_path, content).rows())
    assert [row.number for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.line for row in rows] == [2, 3, 4, 6, 7, 8]
    assert [row.reason for row in rows] == [
        None,
        "empty line",
        broken("smiles", 2),  # RDKit would read up to it, and call the rest a name
        "2 fields, the header has 4",
        "empty line",
        "5 fields, the header has 4",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("smiles,z\nCC,1\n", "has no column 'y'; there are smiles, z"),
        ("smiles,y,y\nCC,1,2\n", "has 2 columns called 'y'; rename"),
        ("", "has no header"),
        ("\n\n", "has no header"),
        (b"smiles,y\nCC,1\nCO,\xe9\n", "cannot read the table .*: line 3 is not UTF-8 text. Save it as UTF-8"),
        ("smiles,y\nCC,1\n".encode("utf-16"), "line 1 is not UTF-8 text"),
        ("smiles,y\nCC,1\n".encode("utf-16-le"), "line 1 holds NUL characters, as UTF-16"),
        ('smiles,"y\nCC,1\n', "line 1, the names of the columns, has quotes that do not close"),
        ('smiles,"x"y\nCC,1\n', "line 1, the names of the columns, has quotes that do not close"),
        (gzip.compress(b"smiles,y\nCC,1\n", mtime=0)[:-6], "cannot read the table"),
    ],
)
def test_bad_tables(tmp_path, content, message):
    with pytest.raises(grit.GritError, match=message):
        list(table(tmp_path, content).rows())


def test_missing_file(tmp_path):
    with pytest.raises(grit.GritError, match="cannot read the table .*No such file"):
        TextTable(tmp_path / "absent.csv")


def read(tmp_path, *lines, columns=("smiles", "y"), end="\n"):
    """For each row of a table its line, its fields and what is wrong with it."""
    text = end.join([*lines, ""])
    return [(row.line, *row.fields.values(), row.reason) for row in table(tmp_path, text, columns).rows()]


GOOD = [f"{'C' * (number % 5 + 1)},{number}.5" for number in range(30)]
OPEN = 'a quote opens a cell and does not close it; close it, or write "" for a quote inside a cell'


def check_only(rows, bad, lines=30):
    """Every line is a row of its own, and those that are bad say so."""
    assert [row[0] for row in rows] == list(range(2, lines + 2))
    assert {row[0]: row[-1] for row in rows if row[-1]} == bad


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_open_quote_spoils_its_own_line_alone(tmp_path, end):
    for cell in ('"CCO,1.5', 'CCO,"1.5', '"CCO,"1.5', '"'):
        for place in (0, 7, 29):
            lines = GOOD.copy()
            lines[place] = cell
            rows = read(tmp_path, "smiles,y", *lines, end=end)
            check_only(rows, {place + 2: OPEN if cell.count('"') == 1 else rows[place][-1]})


def test_an_open_quote_above_a_line_with_quotes(tmp_path):
    """Of its own, or one that opens and does not close either."""
    for later in ('"CCN",2.5', '"CCN,2.5', 'CCN,"2.5"', 'CCN"'):
        for distance in (1, 2, 20):
            lines = GOOD.copy()
            lines[3], lines[3 + distance] = '"CCO,1.5', later
            rows = read(tmp_path, "smiles,y", *lines)
            assert [row[0] for row in rows] == list(range(2, 32))
            assert rows[3][-1] == OPEN
            assert len([row for row in rows if row[-1] is None]) >= 28


def test_two_quotes_that_make_one_cell_of_several_lines(tmp_path):
    """That is valid CSV; it is listed with the number of its lines."""
    for lines, columns in (
        (["CC,1", '"CCO,1', "CCN,2", 'C",3', "CF,4"], "smiles,y"),
        (["CC", '"CCO', "CCN", 'C"', "CF"], "smiles"),
    ):
        rows = read(tmp_path, columns, *lines, columns=columns.split(","))
        assert [(row[0], row[-1]) for row in rows] == [(2, None), (3, broken("smiles", 3)), (6, None)]


def test_cells_over_several_lines(tmp_path):
    """A comment may have line breaks, delimiters, doubled quotes and empty lines, and rows keep the lines of an editor."""
    rows = read(
        tmp_path,
        "smiles,comment,y,more",
        'CC,"two',
        'lines",1,',
        'CO,"a ""quoted"" word;',
        "",
        '",2,x',
        "CN,plain,3,",
        'CF,"first',
        'second",4,"third',
        "fourth",
        'fifth"',
        'CS,5"" tube,5,"',
        "CI,,6,",
    )
    assert [row[:3] for row in rows] == [
        (2, "CC", "1"),
        (4, "CO", "2"),
        (7, "CN", "3"),
        (8, "CF", "4"),
        (12, "CS", "5"),
        (13, "CI", "6"),
    ]
    assert [row[-1] for row in rows] == [None, None, None, None, OPEN, None]


def test_stray_quotes_change_no_molecule(tmp_path):
    rows = read(tmp_path, "smiles,y", '"CC"O,1', 'C"C,2', 'CC,5"', '"C""C",3')
    assert [row[1] for row in rows] == ["CCO", 'C"C', "CC", 'C"C']
    assert rows[0][-1] == 'text follows the quote that closes a cell; write "" for a quote inside a cell'
    assert [row[-1] for row in rows[1:]] == [None] * 3


def test_line_ends_of_all_kinds(tmp_path):
    text = "smiles,y\nCC,1\r\nCO,2\rCN,3\n\rCF,4"
    rows = [(row.line, row.fields["smiles"], row.reason) for row in table(tmp_path, text).rows()]
    assert rows == [(2, "CC", None), (3, "CO", None), (4, "CN", None), (5, "", "empty line"), (6, "CF", None)]


def test_odd_cells(tmp_path):
    long = "C" * 200_000
    rows = read(tmp_path, "smiles,y", "CC,1", f"{long},2", f"CO,{long}", "C\0C,3", 'CN,"' + long, "CF,4")
    assert [row[0] for row in rows] == [2, 3, 4, 5, 6, 7]
    assert [row[-1] for row in rows] == [None, *["field larger than field limit (131072)"] * 2, None, rows[4][-1], None]
    assert rows[4][-1] is not None
    assert rows[3][1] == "C\0C"


def test_a_line_without_end(tmp_path):
    rows = read(tmp_path, "smiles,y", "CC,1", "C," * 8_000_000, "CN,3")
    assert rows == [(2, "CC", "1", None), (3, "", "", "longer than 10,000,000 characters"), (4, "CN", "3", None)]


def test_what_was_written_as_text_for_a_spreadsheet(tmp_path):
    rows = read(tmp_path, "smiles,'-logS", "'=CC,1", "'CC,'-1", columns=["smiles", "-logS"])
    assert rows == [(2, "=CC", "1", None), (3, "'CC", "'-1", None)]


PARTS = st.sampled_from(["C", "1", ",", ",", '"', '"', '""', " ", "x\ty", "\0", "=", "é", ";"])
PLAIN = st.sampled_from(["CC,1", "CN,2.5", "c1ccccc1,x"])
LINES = st.lists(st.one_of(PLAIN, st.lists(PARTS, max_size=8).map("".join)), max_size=12)


@settings(max_examples=300)
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["smiles,y", "smiles,y,note", "smiles"]))
def test_every_line_belongs_to_one_row(tmp_path_factory, lines, end, header):
    path = tmp_path_factory.getbasetemp() / "lines.csv"
    path.write_bytes(end.join([header, *lines, ""]).encode())
    records = list(TextTable(path).records())
    starts = [*(each.line for each in records), len(lines) + 2]
    assert starts[0] == 2
    for record, after in zip(records, starts[1:], strict=True):
        breaks = sum(field.count(end) for field in record.fields)
        assert after - record.line == 1 + (breaks if record.reason is None else 0)


@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=200).map(lambda text: b"smiles,y\n" + text.encode("utf-8", "ignore"))
    )
)
def test_fuzz(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    for data in (content, gzip.compress(content)[:-1] + b"\x00"):
        path.write_bytes(data)
        try:
            rows = list(TextTable(path, ["smiles"]).rows())
            assert [row.number for row in rows] == list(range(len(rows)))
            assert sorted({row.line for row in rows}) == [row.line for row in rows]
        except grit.GritError:
            pass


@pytest.mark.parametrize("ending", [b"", b"\0" * 100])
@pytest.mark.parametrize("packed", [True, False])
def test_the_checksum_is_that_of_the_file(tmp_path, packed, ending):
    """All bytes count: those after the last row, too, and of a gzipped file the packed ones."""
    text = b"\xef\xbb\xbfsmiles,y\n" + b"CC,1\n" * 50_000
    content = gzip.compress(text, mtime=0) + ending if packed else text
    found = table(tmp_path, content)
    assert sum(1 for _ in found.rows()) == 50_000
    assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_rows_cannot_be_read_twice_by_mistake(tmp_path):
    found = table(tmp_path, "smiles,y\nCC,1\n")
    assert len(list(found.rows())) == 1
    with pytest.raises(RuntimeError, match="were read already"):
        list(found.rows())


def test_rows_that_are_kept_are_as_they_were_read(tmp_path):
    lines = [*(f"C{'C' * (k % 40)},{k}" for k in range(1200)), "é😀,\x00\x7f", '"C', "a,b,c", ""]
    content = "\n".join(["smiles,y", *lines]) + "\n"
    kept = KeptRows(table(tmp_path, content).rows())
    for _ in range(2):
        assert list(kept) == list(table(tmp_path, content).rows())
