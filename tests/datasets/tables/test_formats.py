import gzip
import io
import json
import re
import zipfile
from datetime import date, datetime, time

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdkit import Chem

import grit
from grit.datasets.tables.formats import FORMATS, open_table
from grit.datasets.tables.smiles_column import smiles_column
from grit.datasets.tables.table import ReadOptions


def found(path, columns=(), **options):
    """The header, the rows as (line, cells, reason), and the notes."""
    table = open_table(path, columns, ReadOptions(**options))
    rows = [(row.line, list(row.fields.values()), row.reason) for row in table.rows()]
    return table.header, rows, table.notes


def fields(path, **options):
    return [record.fields for record in open_table(path, (), ReadOptions(**options)).records()]


def workbook(path, *rows, **sheets):
    book = openpyxl.Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append(row)
    for name, more in sheets.items():
        sheet = book.create_sheet(name)
        for row in more:
            sheet.append(row)
    book.save(path)
    return path


def mol(text, title="", **properties):
    molecule = Chem.MolFromSmiles(text)
    block = Chem.MolToMolBlock(molecule).splitlines()
    block[0] = title
    return "\n".join([*block, *(f"> <{name}>\n{value}\n" for name, value in properties.items()), "$$$$", ""])


SMALL = {
    ".csv": b"smiles,y\nCC,1.5\nCO,2\n",
    ".tsv": b"smiles\ty\nCC\t1.5\nCO\t2\n",
    ".jsonl": b'{"smiles": "CC", "y": 1.5}\n{"smiles": "CO", "y": 2}\n',
    ".smi": b"smiles\ty\nCC\t1.5\nCO\t2\n",
    ".sdf": (mol("CC", y=1.5) + mol("OC", y=2)).encode(),
}


def small(folder, ending):
    path = folder / f"t{ending}"
    if ending in (".xlsx", ".xlsm"):
        workbook(path, ["smiles", "y"], ["CC", 1.5], ["CO", 2])
    elif ending in (".parquet", ".pq"):
        pq.write_table(pa.table({"smiles": ["CC", "CO"], "y": [1.5, 2.0]}), path)
    else:
        names = {
            ".tab": ".tsv",
            ".txt": ".csv",
            ".ndjson": ".jsonl",
            ".json": ".jsonl",
            ".sd": ".sdf",
            ".smiles": ".smi",
        }
        path.write_bytes(SMALL[names.get(ending, ending)])
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", sorted(FORMATS))
def test_every_ending_is_read_packed_or_not(tmp_path, ending, packed):
    path = small(tmp_path, ending)
    if packed:
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress((tmp_path / f"t{ending}").read_bytes()))
    table = open_table(path)
    table.need([smiles_column(table).name, "y"])
    assert [tuple(row.fields.values()) for row in table.rows()] == [("CC", "1.5"), ("CO", "2")]


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (".xls", "an old Excel workbook. Save it as .xlsx or CSV"),
        (".ods", "an OpenDocument table. Save it as .xlsx"),
        (".pkl", "a pickle, which is never opened"),
        (".zip", "Unpack it first"),
    ],
)
def test_endings_that_are_not_read(tmp_path, ending, message):
    path = tmp_path / f"t{ending}"
    path.write_bytes(b"")
    with pytest.raises(grit.GritError, match=message):
        open_table(path)


class TestWorkbook:
    def test_values_become_text(self, tmp_path):
        values = [
            "CC",
            0.1,
            7,
            -1e-7,
            True,
            None,
            "007",
            date(2024, 2, 29),
            datetime(2024, 1, 2, 3, 4, 5),
            time(6, 30),
        ]
        path = workbook(tmp_path / "t.xlsx", [f"c{number}" for number in range(len(values))], values)
        assert fields(path) == [
            [
                "CC",
                "0.1",
                "7",
                "-1e-07",
                "true",
                "",
                "007",
                "2024-02-29",
                "2024-01-02T03:04:05",
                "06:30:00",
            ]
        ]

    def test_lines_are_the_rows_of_the_sheet(self, tmp_path):
        path = workbook(
            tmp_path / "t.xlsx", [], ["smiles", "y"], ["CC", 1], [], [None, "", None], ["CO", 2, None, "x"], [], []
        )
        header, rows, notes = found(path, ["smiles", "y"])
        assert (header, notes) == (["smiles", "y"], [])
        assert rows == [
            (3, ["CC", "1"], None),
            (4, ["", ""], "empty line"),
            (5, ["", ""], "empty line"),
            (6, ["CO", "2"], "4 fields, the header has 2; too many: x"),
        ]

    def test_sheets(self, tmp_path):
        path = workbook(tmp_path / "t.xlsx", ["smiles"], ["CC"], two=[["smiles"], ["CN"]], three=[])
        assert found(path)[2] == ["t.xlsx: the sheet 'first' is read, not two, three; --sheet names another."]
        assert fields(path, sheet="two") == fields(path, sheet="2") == [["CN"]]
        with pytest.raises(grit.GritError, match="has no sheet '4'; there are first, two, three"):
            found(path, sheet="4")
        with pytest.raises(grit.GritError, match="the sheet 'three' is empty"):
            found(path, sheet="three")

    def test_hidden_sheets_are_not_the_first(self, tmp_path):
        path = workbook(tmp_path / "t.xlsx", ["a"], ["hidden"], two=[["smiles"], ["CN"]])
        book = openpyxl.load_workbook(path)
        book["first"].sheet_state = "hidden"
        book.save(path)
        assert fields(path) == [["CN"]]

    def test_formulas_and_errors_are_no_blanks(self, tmp_path):
        path = workbook(tmp_path / "t.xlsx", ["smiles", "y", "z"], ["CC", "=1+1", 1], ["CO", 2, "#N/A"])
        rows = found(path, ["smiles", "y"])[1]
        assert rows[0][2] == "'y': a formula without its value; open the workbook in a spreadsheet and save it"
        assert rows[1] == (3, ["CO", "2"], None)
        assert found(path, ["smiles", "z"])[1][1][2] == "'z': the error #N/A"

    def test_a_number_of_seventeen_digits(self, tmp_path):
        cells = "<c><v>0.30000000000000004</v></c><c><v>1.5000000000000000E-2</v></c><c><v>2.50</v></c>"
        path = with_sheet(tmp_path, SHEET.format(f"<row>{'<c><v>1</v></c>' * 3}</row><row>{cells}</row>"))
        assert fields(path) == [["0.30000000000000004", "0.015", "2.50"]]

    def test_shared_strings_as_spreadsheets_write_them(self, tmp_path):
        path = workbook(tmp_path / "old.xlsx", ["smiles"])
        strings = (
            "<si><t>smiles</t></si><si><r><t>C</t></r><r><t xml:space='preserve'> O</t></r><rPh><t>no</t></rPh></si>"
        )
        cells = '<row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="2"><c r="A2" t="s"><v>1</v></c></row>'
        relation = '<Relationship Type="http://x/sharedStrings" Target="sharedStrings.xml" Id="rId9"/></Relationships>'
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as new:
            for name in old.namelist():
                text = old.read(name).decode()
                text = text.replace("</Relationships>", relation) if name == "xl/_rels/workbook.xml.rels" else text
                new.writestr(name, SHEET.format(cells) if name == "xl/worksheets/sheet1.xml" else text)
            new.writestr("xl/sharedStrings.xml", f"<x:sst xmlns:x='y'>{strings}</x:sst>")
        assert fields(tmp_path / "t.xlsx") == [["C O"]]

    def test_text_that_looks_like_a_code(self, tmp_path):
        path = workbook(tmp_path / "t.xlsx", ["smiles"], ["a_x000D_b"], ["line\nbreak"])
        assert fields(path) == [["a\rb"], ["line\nbreak"]]


SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)


def with_sheet(folder, xml, part="xl/worksheets/sheet1.xml"):
    """A workbook with one of its parts replaced."""
    sound = workbook(folder / "sound.xlsx", ["smiles"], ["CC"])
    path = folder / "t.xlsx"
    with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != part:
                new.writestr(name, old.read(name))
            elif xml is not None:
                new.writestr(name, xml)
    return path


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (None, "its part 'xl/worksheets/sheet1.xml' is missing"),
        ("<worksheet><sheetData>", "not a sound Excel workbook"),
        (SHEET.format('<row r="1"><c t="s"><v>99</v></c></row>'), "row 1 uses the text 99, and there are 0"),
        (
            SHEET.format('<row r="1"><c><v>1</v></c></row><row r="999999999"/>'),
            "row 999999999 comes after row 1, and the last",
        ),
        (SHEET.format('<row r="1"><c><v>1</v></c></row><row r="1"/>'), "row 1 comes after row 1"),
        (SHEET.format('<row r="99999999999999999999"/>'), "stands where a number should"),
        (SHEET.format('<row r="1"><c r="XFE1"><v>1</v></c></row>'), "row 1 has the cell 'XFE1' in the wrong place"),
        (SHEET.format('<row r="1"><c r="A1"><v>x</v></c></row>'), "row 1 has the number 'x'"),
        (
            SHEET.format(f'<row r="1"><c t="str"><v>{"x" * 1_100_000}</v></c></row>'),
            "a cell of more than 1,000,000 char",
        ),
        ('<!DOCTYPE x [<!ENTITY a "aaaa">]>' + SHEET.format("&a;"), "has a document type, which no workbook has"),
    ],
)
def test_damaged_workbooks(tmp_path, xml, message):
    with pytest.raises(grit.GritError, match=message):
        found(with_sheet(tmp_path, xml))


def test_a_workbook_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("grit.datasets.tables.workbook_xml.MAX_PART", 1 << 20)
    path = with_sheet(tmp_path, SHEET.format(" " * (2 << 20)))
    assert path.stat().st_size < 20_000
    with pytest.raises(grit.GritError, match="has more than 1 MiB when it is unpacked"):
        found(path)


class TestParquet:
    def test_values_become_text(self, tmp_path):
        columns = {
            "text": ["CC", None],
            "double": [0.1, float("nan")],
            "single": pa.array([0.1, None], pa.float32()),
            "whole": [2**62, None],
            "bool": [True, False],
            "date": [date(2024, 2, 29), None],
            "class": pa.array(["a", "b"]).dictionary_encode(),
            "bytes": pa.array([b"x", b"y"], pa.binary()),
            "nothing": pa.nulls(2),
        }
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        assert fields(tmp_path / "t.parquet") == [
            ["CC", "0.1", "0.1", str(2**62), "true", "2024-02-29", "a", "x", ""],
            ["", "", "", "", "false", "", "b", "y", ""],
        ]

    def test_a_column_that_is_no_text_is_named_where_it_is_needed(self, tmp_path):
        pq.write_table(pa.table({"smiles": ["CC"], "y": [[1, 2]]}), tmp_path / "t.parquet")
        assert found(tmp_path / "t.parquet", ["smiles"])[1] == [(1, ["CC"], None)]
        assert found(tmp_path / "t.parquet", ["y"])[1][0][2] == "'y': list<element: int64>, not text or a number"

    def test_without_pyarrow(self, tmp_path, monkeypatch):
        path = small(tmp_path, ".parquet")
        monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
        with pytest.raises(grit.GritError, match=re.escape("pip install 'torch-grit[tables]'")):
            open_table(path)


class TestJsonLines:
    def read(self, tmp_path, *lines, columns=()):
        (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
        return found(tmp_path / "t.jsonl", columns)

    def test_values_become_text(self, tmp_path):
        line = json.dumps({"a": "CC", "b": None, "c": True, "d": 'é\n"x"'})
        (tmp_path / "t.jsonl").write_text(line[:-1] + ', "e": 1.50, "f": 12345678901234567890, "g": NaN}\n')
        assert fields(tmp_path / "t.jsonl") == [["CC", "", "true", 'é\n"x"', "1.50", "12345678901234567890", "NaN"]]

    def test_columns_are_the_keys_of_all_rows(self, tmp_path):
        header, rows, _ = self.read(tmp_path, '{"smiles": "CC"}', '{"y": 1, "smiles": "CO"}', columns=["smiles", "y"])
        assert header == ["smiles", "y"]
        assert rows == [(1, ["CC", ""], None), (2, ["CO", "1"], None)]

    def test_every_line_is_accounted_for(self, tmp_path):
        bad = [
            '{"smiles": "C"',
            "[1]",
            "",
            '{"smiles": 1, "smiles": 2}',
            "[" * 100_000,
            '{"smiles": ["C"]}',
            '{"smiles": "\\ud800"}',
        ]
        rows = self.read(tmp_path, '{"smiles": "CC"}', *bad, columns=["smiles"])[1]
        assert [row[0] for row in rows] == list(range(1, 9))
        assert [row[2] for row in rows] == [
            None,
            "not JSON: Expecting ',' delimiter at character 15",
            "not an object in braces but ['1']",
            "empty line",
            "the key 'smiles' is there twice",
            "not JSON that can be read: brackets within brackets without end",
            "'smiles': a list, not text or a number",
            None,
        ]
        assert rows[-1][1] == ["\ufffd"]

    def test_an_array_is_no_file_of_lines(self, tmp_path):
        with pytest.raises(grit.GritError, match=r"no JSON objects .line 1: not an object .* lines=True"):
            self.read(tmp_path, '[{"smiles": "CC"}]')


class TestSdf:
    def read(self, tmp_path, text, columns=()):
        (tmp_path / "t.sdf").write_text(text)
        return found(tmp_path / "t.sdf", columns)

    def test_molecules_become_smiles_and_properties_columns(self, tmp_path):
        text = mol("CCO", "ethanol", y=1.5, comment="two\nlines") + mol("N[C@@H](C)C(=O)O", "alanine", z="é")
        header, rows, notes = self.read(tmp_path, text, ["smiles", "name", "y", "z"])
        assert header == ["smiles", "name", "y", "comment", "z"]
        assert [row[1] for row in rows] == [["CCO", "ethanol", "1.5", ""], ["C[C@H](N)C(=O)O", "alanine", "", "é"]]
        assert [row[0] for row in rows] == [1, text[: text.index("alanine")].count("\n") + 1]
        assert notes == ["t.sdf: molecules are read from the structures, into the column 'smiles'."]
        assert fields(tmp_path / "t.sdf")[0][3] == "two\nlines"

    def test_a_property_called_smiles_is_another_column(self, tmp_path):
        (tmp_path / "t.sdf").write_text(mol("CCO", smiles="wrong"))
        table = open_table(tmp_path / "t.sdf")
        assert smiles_column(table).name == "structure_smiles"
        assert [record.fields for record in table.records()] == [["CCO", "wrong"]]

    def test_every_molecule_is_accounted_for(self, tmp_path):
        bad = mol("CC").replace(" C ", " Xx")
        empty = "none\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n"
        two = mol("CF").replace("$$$$\n", "") + mol("CN")
        text = mol("CO", y=1) + bad + two + "nonsense\n$$$$\n" + empty + mol("CCl", y=2).replace("$$$$\n", "")
        rows = self.read(tmp_path, text, ["smiles", "y"])[1]
        assert [row[1] for row in rows] == [["CO", "1"], ["", ""], ["", ""], ["", ""], ["", ""], ["CCl", "2"]]
        reasons = [row[2] for row in rows]
        assert reasons[0] is None
        assert reasons[5] is None
        assert "2 molecules in lines" in reasons[2]
        assert "a line $$$$ between them is missing" in reasons[2]
        assert reasons[4] == "no atoms"
        assert all(reasons[1:5])

    def test_large_molecules_are_listed(self, tmp_path):
        chain = Chem.MolToV3KMolBlock(Chem.MolFromSmiles("C" * 1001)) + "$$$$\n"
        assert self.read(tmp_path, chain, ["smiles"])[1][0][2] == "1,001 atoms, at most 1,000 are read"


class TestSmi:
    def read(self, tmp_path, text):
        (tmp_path / "t.smi").write_text(text)
        table = open_table(tmp_path / "t.smi")
        assert smiles_column(table).name == table.header[0]
        return table.header, [(record.line, record.fields) for record in table.records()]

    def test_without_names_of_columns(self, tmp_path):
        assert self.read(tmp_path, "CC ethane\nCO\twood alcohol\n\nCN\n") == (
            ["smiles", "name"],
            [(1, ["CC", "ethane"]), (2, ["CO", "wood alcohol"]), (3, ["", ""]), (4, ["CN", ""])],
        )

    def test_with_names_of_columns(self, tmp_path):
        assert self.read(tmp_path, "SMILES ID\nCC ethane\n") == (["SMILES", "ID"], [(2, ["CC", "ethane"])])
        assert self.read(tmp_path, 'smiles\tid\ty\nCC\t"a\tb"\t1\n') == (
            ["smiles", "id", "y"],
            [(2, ["CC", "a\tb", "1"])],
        )


def test_options_override_what_is_recognised(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a;b,c\n1;2,ß\n".encode("cp1250"))
    assert fields(path, separator=",", encoding="cp1250") == [["1;2", "ß"]]
    path.write_text("a\tb,c\n1\t2,3\n")
    assert fields(path, separator="tab") == [["1", "2,3"]]
    for options, message in [
        ({"separator": "ab"}, "--separator is one character"),
        ({"encoding": "nonsense"}, "--encoding 'nonsense' is unknown"),
        ({"encoding": "base64"}, "--encoding 'base64' is unknown"),
    ]:
        with pytest.raises(grit.GritError, match=message):
            found(path, **options)


def test_a_packed_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("grit.datasets.tables.source.MAX_UNPACKED", 1 << 20)
    path = tmp_path / "t.parquet.gz"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(grit.GritError, match="unpacked it has more than .* Unpack it first"):
        open_table(path)


def test_a_table_is_read_in_pieces(tmp_path):
    """Rows come before the file was read to its end: of a sheet, too."""
    rows = [["smiles", "y"], *([f"C{number}", number] for number in range(30_000))]
    path = workbook(tmp_path / "t.xlsx", *rows)
    content = bytearray(path.read_bytes())
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer) as archive:
        info = archive.getinfo("xl/worksheets/sheet1.xml")
    middle = info.header_offset + info.compress_size * 3 // 4
    content[middle : middle + 50] = bytes(50)
    path.write_bytes(content)
    read = 0
    with pytest.raises(grit.GritError, match="not a sound Excel workbook"):
        for _ in open_table(path).records():
            read += 1
    assert read > 1000
