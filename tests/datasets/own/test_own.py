import csv
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import grit
from grit.datasets import from_csv, from_networkx, from_pyg, from_smiles
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.tables.table import ReadOptions
from grit.datasets.tables.text_table import TextTable
from grit.graphs.store import GraphStore

# What a warning tells is in test_rows_that_are_not_used_are_warned_of.
pytestmark = pytest.mark.filterwarnings("ignore:.*(could not be used|are in no split)")
SHARED = Path(__file__).parents[4] / "shared" / "data"
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "c1ccccc1O", "CCCC", "O=C=O", "CCOC", "c1ccncc1"]


def write_csv(path, rows, header=("smiles", "y"), **options):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **options)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def test_regression_from_a_table(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(smiles, number / 3) for number, smiles in enumerate(SMILES)])
    said = []
    store = from_csv(path, targets="y", processes=1, say=said.append)
    assert len(store) == 10
    assert (store.task.kind, store.schema.node.width, store.name) == ("regression", 9, "t")
    assert said == [
        "SMILES from the column 'smiles'; regression of y (its values are numbers).",
        "There are no salts, mixtures, metals or duplicates among the 10 molecules.",
    ]
    assert store.targets(np.arange(10))[:, 0].tolist() == pytest.approx([number / 3 for number in range(10)])
    assert sum(part.size for part in store.splits.values()) == 10


def test_on_disk_by_several_processes_is_the_same(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(SMILES[k % 10], k % 7 + 0.5) for k in range(1500)])
    one = from_csv(path, targets="y", processes=1, out=tmp_path / "one")
    two = from_csv(path, targets="y", processes=2, out=tmp_path / "two")
    for name in one.manifest.arrays:
        assert (tmp_path / "one" / f"{name}.npy").read_bytes() == (tmp_path / "two" / f"{name}.npy").read_bytes()
    assert len(two) == 1500


def test_rows_that_are_not_used_are_warned_of(tmp_path):
    (tmp_path / "a.csv").write_text(
        "smiles,y\n" + "".join(f"{each},{len(each)}.5\n" for each in [*SMILES, "C(", "CC)"])
    )
    (tmp_path / "split.json").write_text('{"train": [0, 1, 2], "val": [3], "test": [4, 10]}')
    options = {"targets": "y", "processes": 1, "split": f"file:{tmp_path / 'split.json'}"}
    with pytest.warns(UserWarning, match="2 of 12 rows could not be used; store.skipped lists them.*'C\\('"):
        with pytest.warns(UserWarning, match="5 of 10 molecules are in no split"):
            from_csv(tmp_path / "a.csv", **options)
    told = []
    from_csv(tmp_path / "a.csv", **options, say=told.append)
    assert any("5 of 10 molecules are in no split" in line for line in told)
    with pytest.warns(UserWarning, match="1 of 11 rows could not be used; .*'xx'"):
        from_smiles([*SMILES, "xx"], range(11), task="regression", processes=1)


def test_every_row_is_accounted_for(tmp_path):
    """Broken SMILES, duplicated columns, empty lines, a byte-order mark, Windows line ends, 10^5 rows."""
    count, broken, text = 100_000, 0, ["\ufeffid,SMILES,note,note,y\r\n"]
    elements = "CNO"
    kinds = {3: "not)valid,a,b,1.0", 5: "", 7: "CC,a", 11: "C(C)(C)(C)(C)C,a,b,2", 13: "CCO,a,b,high", 17: "CCO,a,b,"}
    for number in range(count):
        odd = next((line for divisor, line in kinds.items() if number % (997 * divisor) == 1), None)
        broken += odd is not None
        text.append(
            f"{number},{odd if odd is not None else f'C{elements[number % 3]},a,b,{number % 13 + 0.5}'}\r\n"
            if odd != ""
            else "\r\n"
        )
    path = tmp_path / "big.csv"
    path.write_text("".join(text), newline="", encoding="utf-8")
    steps = []
    store = from_csv(path, targets="y", out=tmp_path / "s", progress=steps.append)
    assert sum(steps) == count
    assert (len(store), store.manifest.rows, store.manifest.skipped) == (count - broken, count, broken)
    assert broken > 50
    listed = store.skipped
    assert sorted([*store.rows.tolist(), *(row.line - 2 for row in listed)]) == list(range(count))
    reasons = " ".join(sorted({row.reason for row in listed}))
    for part in (
        "empty line",
        "3 fields, the header has 5",
        "y is 'high', expected a number",
        "no target has a value",
        "valence",
        "not valid SMILES",
    ):
        assert part in reasons
    index = int(np.flatnonzero(store.rows == 50_001)[0])
    assert store.targets(np.array([index]))[0, 0] == pytest.approx(50_001 % 13 + 0.5)


def test_one_open_quote_loses_one_row(tmp_path):
    lines = [f"{SMILES[k % 10]},{k}.5" for k in range(60)]
    lines[3] = '"CCO,3.5'
    (tmp_path / "t.csv").write_text("\n".join(["smiles,y", *lines]))
    store = from_csv(tmp_path / "t.csv", targets="y", processes=1, out=tmp_path / "s")
    assert len(store) == 59
    assert [(each.line, each.reason[:19]) for each in store.skipped] == [(5, "a quote opens a cel")]
    assert store.rows.tolist() == [k for k in range(60) if k != 3]
    assert (tmp_path / "s" / "skipped.csv").read_text().startswith("line,content,reason\n5,")


def test_targets_beyond_32_bits_are_listed(tmp_path):
    values = ["0.5", "1e39", "1.5", "-1e39", "2.5", "inf", "1e-50", "3.5", "nan", "4.5"]
    path = write_csv(tmp_path / "t.csv", [*zip(SMILES, values, strict=True), *((smiles, 5.5) for smiles in SMILES)])
    store = from_csv(path, targets="y", processes=1)
    assert np.isfinite(store.targets(np.arange(len(store)))).all()
    assert [(each.line, each.reason.split(",")[0]) for each in store.skipped] == [
        (3, "y is '1e39'"),
        (5, "y is '-1e39'"),
        (7, "y is 'inf'"),
        (8, "y is '1e-50'"),
        (10, "no target has a value"),
    ]


def test_lines_are_those_of_an_editor(tmp_path):
    rows = [("CCO", "two\nlines", 1.5, "train"), ("xx(", "", 2.5, "train"), ("CCN", "", 3.5, "later")]
    path = write_csv(tmp_path / "t.csv", [*rows, ("CF", "", 1.5, "val")], ("smiles", "note", "y", "fold"))
    assert path.read_text().splitlines()[4 - 1].startswith("xx(")
    store = from_csv(path, targets="y", processes=1)
    assert [(each.line, each.content) for each in store.skipped] == [(4, "xx(")]
    assert store.rows.tolist() == [0, 2, 3]
    with pytest.raises(grit.GritError, match="line 5 says 'later', expected train, val or test"):
        from_csv(path, targets="y", split="column:fold", processes=1)
    (tmp_path / "s.csv").write_text("line,split\n2,test\n5,train\n6,val\n")
    by_line = from_csv(path, targets="y", split=f"file:{tmp_path / 's.csv'}", processes=1)
    assert [by_line.split(name).tolist() for name in ("train", "val", "test")] == [[1], [2], [0]]


def test_formulas_do_not_reach_the_list_of_skipped_rows(tmp_path):
    cell = '=HYPERLINK("http://x","y")'
    path = write_csv(tmp_path / "t.csv", [*[(smiles, k + 0.5) for k, smiles in enumerate(SMILES)], (cell, 1.5)])
    store = from_csv(path, targets="y", processes=1, out=tmp_path / "s")
    with (tmp_path / "s" / "skipped.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == ["12", f"'{cell}", "not valid SMILES"]
    assert store.skipped[0].content == cell


def test_a_list_of_skipped_rows_from_before_lines_were_counted(tmp_path):
    store = from_csv(
        write_csv(tmp_path / "t.csv", [(smiles, 0.5 + k) for k, smiles in enumerate([*SMILES, "xx("])]),
        targets="y",
        processes=1,
        out=tmp_path / "s",
    )
    listed = store.skipped
    (tmp_path / "s" / "skipped.csv").write_text("row,content,reason\n10,xx(,not valid SMILES\n")
    assert store.skipped == listed


def test_molecules_beyond_the_limits_are_listed(tmp_path):
    """A chain of 5,000 carbons took minutes of a scaffold split, and 15,000 atoms all memory."""
    rows = [*((f"C{'C' * k}1CCCC1", k + 0.5) for k in range(20)), *((f"C1{'C' * k}C1", k + 0.5) for k in range(1, 11))]
    path = write_csv(tmp_path / "t.csv", [("C" * 5_000, 1.5), *rows, ("C" * 15_000, 2.5)])
    store = from_csv(path, targets="y", split="scaffold", processes=1)
    assert [(each.line, each.reason) for each in store.skipped] == [
        (2, "5,000 atoms, at most 1,000 are read"),
        (33, "15,000 atoms, at most 1,000 are read"),
    ]


CELLS = st.sampled_from(
    ["CC", "c1ccccc1", "C1CC", "", "0.5", "1e39", "nan", "-2", '"', '"a', "a\nb", "=1+1", "x,y", " "]
)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=10), st.booleans())
def test_every_line_is_a_graph_or_listed(tmp_path_factory, rows, quoted):
    """Whatever stands in a table, each of its lines belongs to one graph or one listed row."""
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    good = [["CCO", "a", "0.5"], ["CCN", "", "1.5"], ["CF", "two\nlines", "2.5"]] * 30
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["smiles", "note", "y"], *good, *(rows if quoted else [])])
        file.write("" if quoted else "".join(",".join(row) + "\n" for row in rows))
    store = from_csv(path, targets="y", task="regression", processes=1)
    assert store.rows.tolist()[:90] == list(range(90))
    assert len(store) + len(store.skipped) == store.manifest.rows
    records = {record.line: number for number, record in enumerate(TextTable(path).records())}
    assert sorted([*store.rows.tolist(), *(records[each.line] for each in store.skipped)]) == list(range(len(records)))
    assert np.isfinite(store.targets(np.arange(len(store)))).all()


def test_labels_that_are_missing_are_kept(tmp_path):
    path = write_csv(
        tmp_path / "t.csv", [("CC", 0, ""), ("CO", "", 1), ("CN", 1, 0), ("CF", "", "")], ("smiles", "a", "b")
    )
    store = from_csv(path, targets=["a", "b"], split="random", processes=1)
    assert store.task.kind == "multilabel"
    y = store.targets(np.arange(3))
    assert math.isnan(y[0, 1])
    assert math.isnan(y[1, 0])
    assert y[2].tolist() == [1.0, 0.0]
    assert [(row.line, row.reason) for row in store.skipped] == [(5, "no target has a value")]


def test_words_as_classes(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(smiles, ("low", "high", "mid")[k % 3]) for k, smiles in enumerate(SMILES)])
    store = from_csv(path, targets="y", processes=1)
    assert store.task.classes == ("high", "low", "mid")
    assert store.targets(np.arange(4))[:, 0].tolist() == [1.0, 0.0, 2.0, 1.0]
    assert store.schema.num_outputs == 3


def test_splits(tmp_path):
    rows = [(smiles, k + 0.5, ("train", "valid", "test")[k % 3]) for k, smiles in enumerate(SMILES)]
    path = write_csv(tmp_path / "t.csv", rows, ("smiles", "y", "fold"))
    by_column = from_csv(path, targets="y", split="column:fold", processes=1)
    assert by_column.split("val").tolist() == [1, 4, 7]
    (tmp_path / "s.csv").write_text("row,split\n0,test\n1,train\n2,val\n")
    by_row = from_csv(path, targets="y", split=f"file:{tmp_path / 's.csv'}", processes=1)
    (tmp_path / "s.csv").write_text("line,split\n2,test\n3,train\n4,val\n")
    by_line = from_csv(path, targets="y", split=f"file:{tmp_path / 's.csv'}", processes=1)
    for by_file in (by_row, by_line):
        assert (by_file.split("test").tolist(), by_file.split("train").tolist()) == ([0], [1])
    benzenes = [(f"c1ccccc1{'C' * k}", k + 0.5, "") for k in range(12)]
    others = [("C1CCCC1", 1.5, ""), ("C1CCCCC1", 1.5, ""), ("c1ccncc1", 1.5, ""), ("c1ccoc1", 1.5, "")]
    path = write_csv(tmp_path / "u.csv", [*others, *benzenes], ("smiles", "y", "fold"))
    by_scaffold = from_csv(path, targets="y", split="scaffold", processes=1)
    assert by_scaffold.split("train").tolist() == list(range(4, 16))
    with pytest.raises(grit.GritError, match="line 2 says '', expected train"):
        from_csv(path, targets="y", split="column:fold", processes=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": "z"}, "has no column 'z'; there are smiles, y"),
        ({"targets": "y", "smiles": "mol"}, "has no column 'mol'"),
        ({"targets": "smiles"}, "'smiles' is named twice"),
        ({"targets": ["y", "y"]}, "'y' is named twice"),
        ({"targets": "y", "split": "time"}, "split must be random, scaffold, column:NAME or file:PATH, got 'time'"),
        ({"targets": "y", "split": "column:fold"}, "has no column 'fold'"),
        ({"targets": "y", "split": "file:absent.json"}, "cannot read the split file"),
        ({"targets": "y", "task": "binary"}, "binary needs two classes"),
    ],
)
def test_bad_requests(tmp_path, options, message):
    path = write_csv(tmp_path / "t.csv", [(smiles, k + 0.5) for k, smiles in enumerate(SMILES)])
    with pytest.raises(grit.GritError, match=message):
        from_csv(path, processes=1, out=tmp_path / "s", **options)
    assert not (tmp_path / "s").exists()


def test_no_smiles_column_and_no_readable_row(tmp_path):
    path = write_csv(tmp_path / "t.csv", [("a", 1.5)], ("compound", "y"))
    with pytest.raises(
        grit.GritError,
        match="no column called smiles. Name .* with --smiles, as in --smiles compound .*; there are compound, y",
    ):
        from_csv(path, targets="y")
    path = write_csv(tmp_path / "t.csv", [("))", 1.5), ("((", 2.5)])
    for out in (None, tmp_path / "s"):
        with pytest.raises(grit.GritError, match="line 2: not valid SMILES; line 3: not valid SMILES"):
            from_csv(path, targets="y", out=out, processes=1)


def test_a_missing_rdkit_is_said_once(tmp_path, monkeypatch):
    import sys

    path = write_csv(tmp_path / "t.csv", [("CC", 1.5)])
    monkeypatch.setitem(sys.modules, "rdkit", None)
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    with pytest.raises(grit.GritError, match=r"pip install 'torch-grit\[mol\]'"):
        from_csv(path, targets="y", processes=1)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
def test_tox21():
    path = SHARED / "moleculenet" / "tox21.csv"
    with path.open() as file:
        header = next(csv.reader(file))
    store = from_csv(path, targets=header[:12])
    assert (store.task.kind, len(store.task.targets)) == ("multilabel", 12)
    y = store.targets(np.arange(len(store)))
    assert 0.1 < np.isnan(y).mean() < 0.25
    assert len(store) + store.manifest.skipped == store.manifest.rows == 7831


def test_from_smiles():
    store = from_smiles([*SMILES, "nonsense("], np.arange(11) / 2, processes=1)
    assert (len(store), store.task.kind, store.manifest.skipped) == (10, "regression", 1)
    several = from_smiles(SMILES, [[0, 1.5], [1, float("nan")], [1, 2.5], [0, 3.5], [1, 4.5]] * 2, processes=1)
    assert several.task.targets == ("y0", "y1")
    with pytest.raises(grit.GritError, match="expected one row for each of 10 molecules"):
        from_smiles(SMILES, [1.0, 2.0])
    with pytest.raises(grit.GritError, match="a list of SMILES has no columns"):
        from_smiles(SMILES, range(10), split="column:fold")


def test_entries_of_a_list_that_are_no_text():
    store = from_smiles([*SMILES[:3], None, float("nan"), b"CC", 7], np.arange(7) + 0.5, processes=1)
    assert [(each.line, each.reason) for each in store.skipped] == [
        (3, "not text but NoneType"),
        (4, "not text but float"),
        (5, "not text but bytes"),
        (6, "not text but int"),
    ]
    with pytest.raises(grit.GritError, match="entry 0: not text but NoneType"):
        from_smiles([None] * 3, [0.5, 1.5, 2.5], processes=1)


def ring(n, **fields):
    nodes = torch.arange(n)
    return Data(edge_index=torch.stack([nodes, (nodes + 1) % n]), num_nodes=n, **fields)


@pytest.mark.parametrize(
    ("graphs", "level", "kind", "outputs"),
    [
        ([ring(n, y=torch.tensor([n / 7])) for n in range(3, 9)], "graph", "regression", 1),
        ([ring(n, y=torch.tensor([n % 2])) for n in range(3, 9)], "graph", "binary", 1),
        ([ring(n, y=torch.tensor([n % 3])) for n in range(3, 9)], "graph", "multiclass", 3),
        ([ring(n, y=torch.tensor([[n / 7, 1.0, n]])) for n in range(3, 9)], "graph", "regression", 3),
        (
            [ring(n, y=torch.tensor([[1.0, n % 2, float("nan") if n > 4 else 0.0]])) for n in range(3, 9)],
            "graph",
            "multilabel",
            3,
        ),
        ([ring(n, y=torch.arange(n) % 4) for n in range(4, 9)], "node", "multiclass", 4),
        ([ring(n, y=torch.rand(n, 2)) for n in range(4, 9)], "node", "regression", 2),
    ],
)
def test_what_is_inferred_from_graphs(graphs, level, kind, outputs):
    store = from_pyg(graphs)
    assert (store.schema.level, store.task.kind, store.schema.num_outputs) == (level, kind, outputs)


@pytest.mark.parametrize(
    ("labels", "task", "classes"),
    [([1, 2], "binary", ("1", "2")), ([0, 1], "binary", ("0", "1")), ([3, 5, 9], "multiclass", ("3", "5", "9"))],
)
def test_classes_of_graphs_are_numbered_from_0(labels, task, classes):
    store = from_pyg([ring(n, y=torch.tensor([labels[n % len(labels)]])) for n in range(3, 12)], task=task)
    assert store.task.classes == classes
    assert store.targets(np.arange(9))[:, 0].tolist() == [n % len(labels) for n in range(3, 12)]


@pytest.mark.parametrize(("labels", "kind"), [([-1, 1], "binary"), ([-1, 0, 1], "multiclass"), ([0, 2], "multiclass")])
def test_whole_numbers_as_labels_of_graphs(labels, kind, tmp_path):
    """Negative ones are labels like others; numbers from 0 are those of classes, of which one may have no graph here."""
    graphs = [ring(n, y=torch.tensor([labels[n % len(labels)]])) for n in range(3, 12)]
    store = from_pyg(graphs, out=tmp_path / "s")
    store.verify()
    assert store.task.kind == kind
    classes = store.task.classes
    assert [int(classes[int(y)]) for y in store.targets(np.arange(9))[:, 0]] == [
        labels[n % len(labels)] for n in range(3, 12)
    ]


def test_a_large_whole_number_is_no_class():
    graphs = [ring(3, y=torch.tensor([each])) for each in (5, 7, 10**9)]
    with pytest.raises(grit.GritError, match="too many for classes"):
        from_pyg(graphs)


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_graph_in_two_splits_is_refused(tmp_path, on_disk):
    graphs = [ring(3 + k % 5, y=torch.tensor([k / 3])) for k in range(10)]
    with pytest.raises(grit.GritError, match="graph 4 is in the splits 'train' and 'val'"):
        from_pyg(graphs, splits={"train": range(5), "val": [9, 4, 3]}, out=tmp_path / "s" if on_disk else None)
    assert list(tmp_path.iterdir()) == []


def test_features_of_graphs():
    def features(**fields):
        schema = from_pyg([ring(3, y=torch.tensor([float(k)]), **fields) for k in range(4)]).schema
        return str(schema.node), str(schema.edge)

    assert features() == ("no features", "no features")
    assert features(x=torch.tensor([0, 4, 2])) == ("one category of 5", "no features")
    assert features(x=torch.tensor([[0, 4], [1, 1], [0, 0]])) == ("2 categories of 2, 5", "no features")
    assert features(x=torch.rand(3, 6), edge_attr=torch.rand(3)) == ("6 numbers", "1 number")


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "list of graphs is empty"),
        ([ring(3)] * 3, "carry no targets: set data.y"),
        ([ring(3, y=torch.zeros(2))] * 3, "graph 0: y has 2 rows and the graph 3 nodes"),
        ([ring(3, x=torch.tensor([-1, 0, 0]), y=torch.tensor([0.5]))] * 3, "negative category -1"),
        ([ring(3, y=torch.tensor([0.5]))], "at least 3 are needed"),
        ([ring(3, y=torch.tensor([each])) for each in (0.5, 1.5, float("inf"))], r"targets \[inf\] are infinite"),
        (
            [ring(3, y=torch.tensor([each], dtype=torch.float64)) for each in (0.5, 1.5, -1e39)],
            r"targets \[-1e\+39\] are infinite, or beyond 32-bit numbers",
        ),
        (
            [ring(3, y=torch.tensor([0.5]), edge_weight=torch.ones(3))] * 3,
            r"carry edge_weight, which a store does not keep. Delete it \(del data.edge_weight\)",
        ),
    ],
)
def test_graphs_that_cannot_be_used(graphs, message):
    with pytest.raises(grit.GritError, match=message):
        from_pyg(graphs)


def test_any_iterable_of_graphs_and_given_splits(tmp_path):
    graphs = (ring(3 + k % 5, y=torch.tensor([k / 3])) for k in range(1200))
    store = from_pyg(
        graphs, splits={"train": range(1000), "val": range(1000, 1100), "test": [1150]}, out=tmp_path / "s"
    )
    assert len(GraphStore.open(tmp_path / "s")) == 1200
    assert store.split("test").tolist() == [1150]
    assert store.targets(np.array([1199]))[0, 0] == pytest.approx(1199 / 3)


def test_networkx():
    graphs = []
    for n in range(4, 9):
        graph = nx.path_graph(n)
        nx.set_node_attributes(graph, {node: node % 3 for node in graph}, "kind")
        nx.set_edge_attributes(graph, 0.5, "weight")
        graphs.append(graph)
    y = [float(n) / 3 for n in range(5)]
    store = from_networkx(graphs, y, node_attributes=["kind"], edge_attributes=["weight"])
    assert (str(store.schema.node), str(store.schema.edge)) == ("one category of 3", "1 number")
    packed = store.gather([0])
    assert packed.num_edges == 6  # three edges, both directions
    directed = from_networkx([nx.DiGraph([(0, 1), (1, 2)])] * 3, y[:3])
    assert directed.gather([0]).num_edges == 2
    nodes = from_networkx(graphs, [np.arange(len(graph))[:, None] % 2 for graph in graphs])
    assert (nodes.schema.level, nodes.task.kind) == ("node", "binary")
    with pytest.raises(grit.GritError, match="graph 0: a node has no attribute 'colour'"):
        from_networkx(graphs, y, node_attributes=["colour"])
    nx.set_node_attributes(graphs[1], "red", "kind")
    with pytest.raises(grit.GritError, match="graph 1: the node attributes kind must be numbers"):
        from_networkx(graphs, y, node_attributes=["kind"])
    with pytest.raises(grit.GritError, match="5 graphs and 2 targets"):
        from_networkx(graphs, y[:2])


def test_other_splits_must_be_of_graphs_that_are_there():
    store = from_smiles(SMILES, range(10), task="regression", processes=1)
    assert store.with_splits({"train": [0, 9]}).split("train").tolist() == [0, 9]
    with pytest.raises(grit.GritError, match="train"):
        store.with_splits({"train": [0, 10]})


def test_a_store_that_is_there_is_kept(tmp_path):
    first = from_pyg([ring(4, y=torch.tensor([1.5]))] * 3, splits={"train": range(3)}, out=tmp_path / "s")
    with pytest.raises(grit.GritError, match="exists"):
        from_pyg([ring(5, y=torch.tensor([2.5]))] * 3, splits={"train": range(3)}, out=tmp_path / "s")
    assert GraphStore.open(tmp_path / "s").nodes_per_graph().tolist() == first.nodes_per_graph().tolist() == [4, 4, 4]
    from_pyg([ring(5, y=torch.tensor([2.5]))] * 3, splits={"train": range(3)}, out=tmp_path / "s", overwrite=True)
    assert GraphStore.open(tmp_path / "s").nodes_per_graph().tolist() == [5, 5, 5]


def test_a_table_is_read_as_the_user_says(tmp_path):
    """A sheet by its name, a separator where the recognised one is wrong; the store knows it again."""
    (tmp_path / "t.csv").write_text("smiles;y,z\n" + "".join(f"{'C' * k};{k},{k}\n" for k in range(1, 9)))
    options = ReadOptions(separator=";")
    store = from_csv(tmp_path / "t.csv", targets="y,z", task="multiclass", options=options, processes=1)
    assert len(store) == 8
    table = MoleculeTable(tmp_path / "t.csv", targets="y,z", options=options)
    plain = MoleculeTable(tmp_path / "t.csv", targets="z", smiles="smiles;y")
    assert "read as" in table.how_built()
    assert "read as" not in plain.how_built()
