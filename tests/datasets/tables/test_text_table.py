import gzip
import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grit
from grit.datasets.tables.table import KeptRows
from grit.datasets.tables.text_table import TextTable


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


def found(tmp_path, content, name="t.csv"):
    """The header, the cells of all rows, and the notes."""
    opened = table(tmp_path, content, (), name)
    return opened.header, [record.fields for record in opened.records()], opened.notes


@pytest.mark.parametrize(
    ("content", "rows", "note"),
    [
        ("smiles;y\nC;a,5\nCC;b,5\n", [["C", "a,5"], ["CC", "b,5"]], "separated by semicolons"),
        ("smiles|y\nC|1\n", [["C", "1"]], "separated by vertical bars"),
        ("smiles\ty\nC\t1\n", [["C", "1"]], "separated by tabs"),
        ("sep=;\nsmiles;y\nC;1\n", [["C", "1"]], "separated by semicolons"),
        ('smiles,"y;unit;x"\nC,1\nCC,2\n', [["C", "1"], ["CC", "2"]], None),
        ("smiles,y (a|b|c)\nC,1\nCC,2\n", [["C", "1"], ["CC", "2"]], None),
        ("smiles;a,b,c,d,e\nC;1\nCC;2\n", [["C", "1"], ["CC", "2"]], "separated by semicolons"),
        ("smiles\nC\nC#N\n", [["C"], ["C#N"]], None),
    ],
)
def test_separators_are_recognised_and_named(tmp_path, content, rows, note):
    header, cells, notes = found(tmp_path, content)
    assert (header[0], cells) == ("smiles", rows)
    assert len(notes) == (note is not None)
    assert not notes or note in notes[0]


def test_the_line_that_names_the_separator_is_a_line(tmp_path):
    assert [row.line for row in table(tmp_path, "sep=;\nsmiles;y\nC;1\nCC;2\n").rows()] == [3, 4]


def test_the_ending_decides_between_separators_that_fit_equally(tmp_path):
    text = "smiles\ty,z\nC\ta,b\n"
    assert found(tmp_path, text, "t.tsv") == (["smiles", "y,z"], [["C", "a,b"]], [])
    assert found(tmp_path, text, "t.csv")[:2] == (["smiles\ty", "z"], [["C\ta", "b"]])


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "read as UTF-16"),
        ("cp1252", "not UTF-8 .line 2. and is read as Windows-1252; --encoding names another"),
        ("latin-1", "read as Windows-1252"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_are_recognised_and_named(tmp_path, encoding, note, packed):
    content = "name,smiles\nKoffeïn µ,CN\nß,CC\n".encode(encoding)
    header, cells, notes = found(tmp_path, gzip.compress(content) if packed else content)
    assert (header, cells) == (["name", "smiles"], [["Koffeïn µ", "CN"], ["ß", "CC"]])
    assert len(notes) == (note is not None)
    assert not notes or re.search(note, notes[0])


def test_a_character_far_down_tells_the_encoding_of_the_header(tmp_path):
    content = "größe,smiles\n".encode("cp1252") + b"1,CC\n" * 500_000 + b"\xb5,CC\n"
    assert table(tmp_path, content, ["größe"]).header == ["größe", "smiles"]


def test_a_table_that_changes_while_it_is_read(tmp_path):
    opened = table(tmp_path, "smiles,y\n" + "CC,1\n" * 100_000)
    with (tmp_path / "t.csv").open("a") as file:
        file.write("CCC,2\n")
    with pytest.raises(grit.GritError, match="it was changed while it was read. Try again"):
        list(opened.rows())


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
        "5 fields, the header has 4; too many: d",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("smiles,z\nCC,1\n", "has no column 'y'; there are smiles, z"),
        ("smiles,y,y\nCC,1,2\n", "has 2 columns called 'y'; rename"),
        ("", "has no header"),
        ("\n\n", "has no header"),
        (b"smiles,y\nC\xc3\xa9,1\nCO,\xe9\n", "line 3 is not UTF-8 text, but line 2 is. Save it as UTF-8"),
        (b"smiles,y\nCC,1\nCO,\xe9\nCN,\x81\n", "line 4 is neither UTF-8 nor Windows-1252 text"),
        ("smiles,y\nCC,1\n".encode("utf-16")[:-1], "line 2 is not UTF-16 text"),
        ("smiles,y\nCC,1\n".encode("utf-32"), "it is UTF-32 text. Save it as UTF-8"),
        ("smiles,y\nCC,1\n".encode("utf-16-le"), "line 1 holds NUL or other control characters, as UTF-16"),
        (b"PK\x03\x04\x14\0", "not text but an Excel workbook .* must be called .xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "not text but an old Excel workbook. Save it as .xlsx or CSV"),
        (b"PAR1\x15\0", "not text but a Parquet file; .* must be called .parquet"),
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
