import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.datasets.table import Table


def table(tmp_path, content, columns=("smiles", "y"), name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Table(path, columns)


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


def test_every_row_is_accounted_for(tmp_path):
    content = 'smiles,note,note,y\nCC,a,b,1\n\n"C\nC",a,b,2\nCO,1\n,,,\nCN,a,b,c,d\n'
    rows = list(table(tmp_path, content).rows())
    assert [row.number for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.reason for row in rows] == [
        None,
        "empty line",
        None,
        "2 fields, the header has 4",
        "empty line",
        "5 fields, the header has 4",
    ]
    assert rows[2].fields["smiles"] == "C\nC"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("smiles,z\nCC,1\n", "has no column 'y'; there are smiles, z"),
        ("smiles,y,y\nCC,1,2\n", "has 2 columns called 'y'; rename"),
        ("", "has no header"),
        ("\n\n", "has no header"),
        (b"smiles,y\n\xff\xfe,1\n", "cannot read the table .* Save it as UTF-8"),
        (gzip.compress(b"smiles,y\nCC,1\n", mtime=0)[:-6], "cannot read the table"),
    ],
)
def test_bad_tables(tmp_path, content, message):
    with pytest.raises(grit.GritError, match=message):
        list(table(tmp_path, content).rows())


def test_missing_file(tmp_path):
    with pytest.raises(grit.GritError, match="cannot read the table .*No such file"):
        Table(tmp_path / "absent.csv")


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
            numbers = [row.number for row in Table(path, ["smiles"]).rows()]
            assert numbers == list(range(len(numbers)))
        except grit.GritError:
            pass
