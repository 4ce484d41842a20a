import csv
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import grit
from grit.datasets import build, from_csv, from_pyg
from grit.datasets.benchmarks.benchmark import BuildOptions
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.files.whole_file import whole_file
from grit.recipe.presets import preset_recipe
from grit.training.predict_table import predict_stored, predict_table
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.training.small import small_graphs, small_recipe, small_store

TINY = (
    "encoding.walk_steps=4",
    "model.num_layers=1",
    "model.hidden_dim=8",
    "model.num_heads=2",
    "train.epochs=1",
    "train.warmup_epochs=0",
)
CPU = RunOptions(device="cpu")


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    """A run on bundled molecules."""
    folder = tmp_path_factory.mktemp("molecules")
    store = build("zinc-mini", root=folder, options=BuildOptions(processes=1, limit=40))
    result = train(grit.load_recipe("zinc-mini", *TINY), folder / "run", store=store, options=CPU)
    return folder / "run", store, result


def run_on_table(folder, rows, header, overrides=(), **options):
    path = folder / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    store = from_csv(path, targets=header[1:], processes=1, **options)
    train(preset_recipe("fast", store.schema, *TINY, *overrides), folder / "run", store=store, options=CPU)
    return grit.load(folder / "run")


def test_the_predictor_is_the_best_epoch(molecules):
    run, store, result = molecules
    predictor = grit.load(run)
    assert predictor.evaluate(store)["mae"] == pytest.approx(result["test"]["mae"], rel=1e-6)
    assert predictor.evaluate(store, "val")["mae"] == pytest.approx(result["val"]["mae"], rel=1e-6)
    assert predictor.targets == ("constrained solubility",)
    last = grit.load(RunFolder(run).last)
    assert torch.equal(
        last.network.state_dict()["stem.node.embedding.weight"],
        predictor.network.state_dict()["stem.node.embedding.weight"],
    )


def test_smiles_and_stored_graphs_agree(molecules):
    run, store, _ = molecules
    predictor = grit.load(run)
    smiles = [bundled_smiles()[int(row)] for row in store.rows]
    outputs, _ = predictor.predict_store(store)
    np.testing.assert_allclose(predictor.predict(smiles), outputs, rtol=1e-5, atol=1e-5)
    assert predictor.embed(smiles[:3]).shape == (3, 8)


def test_unreadable_smiles_are_nan_and_named(molecules):
    predictor = grit.load(molecules[0])
    with pytest.warns(UserWarning, match=r"1 SMILES cannot be read: 1 \('xx\(': not valid SMILES\)"):
        outputs = predictor.predict(["CCO", "xx(", "c1ccccc1"])
    assert np.isnan(outputs[:, 0]).tolist() == [False, True, False]
    with pytest.raises(grit.GritError, match="none of the SMILES can be read"):
        predictor.predict(["xx("])
    with pytest.raises(grit.GritError, match=r"write \[item\]"):
        predictor.predict("CCO")
    with pytest.raises(grit.GritError, match="the list is empty"):
        predictor.predict([])


def test_entries_that_are_no_text_are_nan_and_named(molecules):
    predictor = grit.load(molecules[0])
    items = ["CCO", None, "CCN", float("nan"), b"CC", 7, "xx("]
    with pytest.warns(UserWarning, match=r"5 SMILES cannot be read: 1 \('None': not text but NoneType\); 3 ") as told:
        outputs = predictor.predict(items)
    assert "4 (\"b'CC'\": not text but bytes); 5 ('7': not text but int); 6 ('xx(': not valid" in str(told[0].message)
    assert np.isnan(outputs[:, 0]).tolist() == [False, True, False, True, True, True, True]
    np.testing.assert_allclose(outputs[[0, 2]], predictor.predict(["CCO", "CCN"]), rtol=1e-5)
    with pytest.raises(grit.GritError, match=r"none of the SMILES can be read: 0 \('None': not text but NoneType\)"):
        predictor.predict([None])
    with pytest.raises(grit.GritError, match="entry 1 is not a graph but str; pass graphs alone, or SMILES alone"):
        predictor.predict([small_graphs(2)[1], "CCO"])


def test_a_few_large_molecules_do_not_share_a_batch(molecules, monkeypatch):
    predictor = grit.load(molecules[0])
    sizes = []
    make = grit.PairBatch.from_graphs
    monkeypatch.setattr(
        grit.PairBatch,
        "from_graphs",
        lambda graphs, *args, **more: sizes.append(len(graphs)) or make(graphs, *args, **more),
    )
    outputs = predictor.predict(["C" * 800, "C" * 801, "CC", "CCC", "C" * 802])
    assert sizes == [1, 3, 1]  # at most as many pairs as the largest molecule has
    assert not np.isnan(outputs).any()


def test_runs_on_graphs(tmp_path):
    store = small_store()
    train(small_recipe("train.epochs=1"), tmp_path / "run", store=store, options=CPU)
    predictor = grit.load(tmp_path / "run")
    graphs = small_graphs()
    outputs, _ = predictor.predict_store(store)
    np.testing.assert_allclose(predictor.predict(graphs), outputs, rtol=1e-4, atol=1e-5)
    graphs[0].edge_weight = torch.ones(graphs[0].num_edges)
    with pytest.raises(grit.GritError, match=r"carry edge_weight, and the run was trained on walks without weights"):
        predictor.predict(graphs[:1])
    with pytest.raises(grit.GritError, match="no molecules: pass PyG graphs, not SMILES"):
        predictor.predict(["CC"])
    with pytest.raises(grit.GritError, match="other features or targets"):
        predictor.evaluate(from_pyg([graph_without_features() for _ in range(5)]))


def graph_without_features():
    from torch_geometric.data import Data

    return Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, y=torch.tensor([0.5]))


def test_nodes(tmp_path):
    graphs = small_graphs()
    for graph in graphs:
        graph.y = (graph.x[:, 0] < 5).long()
    store = from_pyg(graphs, splits={"train": range(50), "val": range(50, 60), "test": range(60, 70)})
    train(preset_recipe("fast", store.schema, *TINY), tmp_path / "run", store=store, options=CPU)
    predictor = grit.load(tmp_path / "run")
    outputs = predictor.predict(graphs[:3])
    assert [each.shape for each in outputs] == [(graph.num_nodes, 1) for graph in graphs[:3]]
    lines = stored_lines(predictor, store, tmp_path / "out.csv")
    assert [(int(line["row"]), int(line["node"])) for line in lines] == [
        (number, node) for number, graph in enumerate(graphs) for node in range(graph.num_nodes)
    ]
    chances = np.concatenate(predictor.predict(graphs))[:, 0]
    np.testing.assert_allclose([float(line["y_prob"]) for line in lines], chances, atol=1e-4)
    assert [line["y_pred"] for line in lines] == [str(int(float(line["y_prob"]) > 0.5)) for line in lines]


def stored_lines(predictor, store, out):
    assert predict_stored(predictor, store, out) > 0
    with out.open(newline="") as file:
        return list(csv.DictReader(file))


def test_edges(tmp_path):
    graphs = small_graphs()
    for number, graph in enumerate(graphs):
        graph.edge_label_index = torch.tensor([[0, 1, 2], [1, 2, 0]])[:, : 1 + number % 3]
        graph.edge_label = torch.rand(1 + number % 3)
        del graph.y
    store = from_pyg(graphs, splits={"train": range(50), "val": range(50, 60), "test": range(60, 70)})
    result = train(preset_recipe("fast", store.schema, *TINY), tmp_path / "run", store=store, options=CPU)
    assert result["metric"] == "mae"
    predictor = grit.load(tmp_path / "run")
    outputs = predictor.predict(graphs)
    assert [len(each) for each in outputs[:4]] == [1, 2, 3, 1]
    lines = stored_lines(predictor, store, tmp_path / "out.csv")
    assert [(int(line["row"]), int(line["source"]), int(line["target"])) for line in lines[:7]] == [
        (0, 0, 1),
        (1, 0, 1),
        (1, 1, 2),
        (2, 0, 1),
        (2, 1, 2),
        (2, 2, 0),
        (3, 0, 1),
    ]
    (column,) = (name for name in lines[0] if name.endswith("_pred"))
    np.testing.assert_allclose([float(line[column]) for line in lines], np.concatenate(outputs)[:, 0], atol=1e-4)


def test_a_table_is_predicted_row_by_row(molecules, tmp_path):
    predictor = grit.load(molecules[0])
    rows = [
        ["a", "CCO"],
        [],
        ["b", "xx("],
        ["c", "c1ccccc1", "extra"],
        ["d", "CCN"],
        *[[str(k), "C" * (k % 9 + 1)] for k in range(1200)],
    ]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "smiles"], *rows])
    steps = []
    total, without = predict_table(
        predictor, tmp_path / "in.csv", tmp_path / "out.csv", processes=2, progress=steps.append
    )
    assert (total, without, sum(steps)) == (1205, 3, 1205)
    with (tmp_path / "out.csv").open(newline="") as file:
        header, *lines = list(csv.reader(file))
    assert header == ["id", "smiles", "constrained solubility_pred", "note"]
    assert [line[0] for line in lines[:6]] == ["a", "", "b", "c", "d", "0"]
    assert [line[3] for line in lines[:5]] == [
        "",
        "empty line",
        "not valid SMILES",
        "3 fields, the header has 2; too many: extra",
        "",
    ]
    assert [line[2] == "" for line in lines[:5]] == [False, True, True, True, False]
    wanted = predictor.predict(["CCO", "CCN", *[row[1] for row in rows[5:]]])[:, 0]
    got = [float(line[2]) for line in lines if line[2]]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


BAD = {
    "CC,x": "3 fields, the header has 2",
    "xx(": "not valid SMILES",
    "": "1 fields, the header has 2",
    '"CCO': "a quote opens a cell and does not close it",
    "c1cc1": "Can't kekulize mol.",
    "C" * 1500: "1,500 atoms, at most 1,000 are read",
    "[Xe]": "atom 'Xe' is not among the 21 of ZINC",
}


@pytest.mark.parametrize("processes", [1, 2])
def test_every_bad_row_gets_its_own_reason(molecules, tmp_path, processes):
    """Pieces are of 512 rows; bad ones of all kinds stand in each of four."""
    bad = dict(zip([0, 7, 511, 512, 513, 600, 1023, 1024, 1100, 1535, 1536, 1700, 1799], [*BAD, *BAD], strict=False))
    smiles = [bad.get(k, "C" * (k % 7 + 1) + "NOS"[k % 3]) for k in range(1800)]
    lines = [f"{k}" if smiles[k] == "" else f"{k},{smiles[k]}" for k in range(1800)]
    (tmp_path / "in.csv").write_text("\n".join(["id,smiles", *lines]))
    predictor = grit.load(molecules[0])
    found = predict_table(predictor, tmp_path / "in.csv", tmp_path / "out.csv", processes=processes)
    assert found == (1800, len(bad))
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [str(k) for k in range(1800)]
    notes = {k: row["note"] for k, row in enumerate(rows) if row["note"]}
    assert list(notes) == list(bad)
    for k, note in notes.items():
        assert note.startswith(BAD[bad[k]])
        assert rows[k]["constrained solubility_pred"] == ""
    readable = [k for k in range(1800) if k not in bad]
    wanted = predictor.predict([smiles[k] for k in readable])[:, 0]
    got = [float(rows[k]["constrained solubility_pred"]) for k in readable]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_formulas_do_not_pass_through(molecules, tmp_path):
    """And our own output is input again."""
    predictor = grit.load(molecules[0])
    cells = [["=1+1", "CCO", "-1.5"], ["@SUM(A1)", "=CC", "+3"], ["\t=1+1", "CCN", "1e-5"], ["-", "[O-]C", "'=x"]]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["name", "smiles", "-logS"], *cells])
    predict_table(predictor, tmp_path / "in.csv", tmp_path / "out.csv", processes=1)
    with (tmp_path / "out.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["name", "smiles", "'-logS"]
    assert [row[:3] for row in rows] == [
        ["'=1+1", "CCO", "-1.5"],
        ["'@SUM(A1)", "'=CC", "+3"],
        ["'\t=1+1", "CCN", "1e-5"],
        ["-", "[O-]C", "'=x"],
    ]
    assert [row[-1] for row in rows] == ["", "not valid SMILES", "", ""]
    text = (tmp_path / "out.csv").read_text().replace(",note", ",a").replace("constrained solubility_pred", "b")
    (tmp_path / "again.csv").write_text(text)
    predict_table(predictor, tmp_path / "again.csv", tmp_path / "out.csv", processes=1)
    with (tmp_path / "out.csv").open(newline="") as file:
        again = list(csv.reader(file))
    assert again[0][:3] == header[:3]
    assert [row[:5] for row in again[1:]] == rows
    assert [row[-2:] for row in again[1:]] == [row[3:] for row in rows]


def test_where_predictions_go(molecules, tmp_path, monkeypatch):
    predictor = grit.load(molecules[0])
    table = tmp_path / "in.csv"
    table.write_text("smiles\nCC\n")
    (tmp_path / "same.csv").symlink_to(table)
    os.mkfifo(tmp_path / "pipe")
    for out, message in (
        (tmp_path, "it is a folder. Name the file to write"),
        (tmp_path / "absent" / "out.csv", "there is no folder '.*absent'"),
        (table / "out.csv", "there is no folder '.*in.csv'"),
        (table, "is the table to read; name another file to write"),
        (tmp_path / "same.csv", "is the table to read"),
        (tmp_path / "pipe", "it is not an ordinary file"),
    ):
        with pytest.raises(grit.GritError, match=message):
            predict_table(predictor, table, out, processes=1)
    assert table.read_text() == "smiles\nCC\n"

    really = Path.open

    def refuse(path, mode="r", *args, **options):
        if "x" in mode:
            raise PermissionError(13, "Permission denied")  # as of a folder that is read-only, which root can write to
        return really(path, mode, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(grit.GritError, match=r"cannot write .*out.csv': Permission denied\."):
        predict_table(predictor, table, tmp_path / "out.csv", processes=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".out.csv.unfinished",
        "in.csv",
        "pipe",
        "same.csv",
    ]  # for --resume


def test_what_a_killed_prediction_left_is_removed(molecules, tmp_path):
    """The next prediction to the same place removes it; one that fails leaves what was there."""
    predictor = grit.load(molecules[0])
    (tmp_path / "in.csv").write_text("smiles\nCC\n")
    out = tmp_path / "out.csv"
    with whole_file(out):
        (left,) = tmp_path.glob(".out.csv.*")
        kept = left.read_bytes()
    left.write_bytes(kept + b"half a line")
    predict_table(predictor, tmp_path / "in.csv", out, processes=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]
    before = out.read_bytes()
    (tmp_path / "in.csv").write_bytes(b"smiles\n" + b"CC\n" * 1000 + b"\x81\n")
    with pytest.raises(grit.GritError, match="line 1002 is neither UTF-8"):
        predict_table(predictor, tmp_path / "in.csv", out, processes=1)
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_classes_keep_their_names(tmp_path):
    """Words that are easy to tell apart, learned and then written beside each molecule."""
    words = {"N": "amine", "O": "=ether", "S": "sulfide"}
    rows = [["C" * (k % 5 + 1) + "NOS"[k % 3] + "C" * (k % 2), words["NOS"[k % 3]]] for k in range(60)]
    options = ("train.epochs=40", "train.lr=1e-2", "train.batch_size=8", "model.pooling=sum", "model.hidden_dim=16")
    predictor = run_on_table(tmp_path, rows, ["smiles", "y"], overrides=options)
    assert predictor.classes == ("=ether", "amine", "sulfide")
    predict_table(predictor, tmp_path / "t.csv", tmp_path / "out.csv", processes=1)
    with (tmp_path / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    right = [line["y_pred"] == line["y"] for line in lines]
    assert np.mean(right) > 0.7
    chances = [float(line[f"y_prob_{line['y'].removeprefix(chr(39))}"]) for line in lines]
    assert np.mean(chances) > 0.5
    named = predictor.predict_classes([row[0] for row in rows])
    assert named == [line["y_pred"].removeprefix("'") for line in lines]


def test_bad_tables_to_predict(molecules, tmp_path):
    predictor = grit.load(molecules[0])
    (tmp_path / "in.csv").write_text("smiles,note\nCC,x\n")
    with pytest.raises(grit.GritError, match="has a column 'note' already"):
        predict_table(predictor, tmp_path / "in.csv", tmp_path / "out.csv")
    (tmp_path / "in.csv").write_text("smiles\nCC\n")
    with pytest.raises(grit.GritError, match="cannot write"):
        predict_table(predictor, tmp_path / "in.csv", tmp_path / "absent" / "out.csv", processes=1)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("rows", "header", "columns", "labels"),
    [
        (
            [["C" * (k % 9 + 1), k % 2] for k in range(40)],
            ["smiles", "y"],
            ["y_pred", "y_prob"],
            {"0", "1"},
        ),
        (
            [["C" * (k % 9 + 1), "abc"[k % 3]] for k in range(40)],
            ["smiles", "y"],
            ["y_pred", "y_prob_a", "y_prob_b", "y_prob_c"],
            {"a", "b", "c"},
        ),
        (
            [["C" * (k % 9 + 1), k % 2, "" if k % 5 == 0 else k % 3 % 2] for k in range(40)],
            ["smiles", "p", "q"],
            ["p_pred", "p_prob", "q_pred", "q_prob"],
            {"0", "1"},
        ),
    ],
)
def test_classes_and_probabilities(rows, header, columns, labels, tmp_path):
    predictor = run_on_table(tmp_path, rows, header)
    predict_table(predictor, tmp_path / "t.csv", tmp_path / "out.csv", processes=1)
    with (tmp_path / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[len(header) : -1] == columns
    outputs = predictor.predict([row[0] for row in rows[:5]])
    for line, output in zip(lines, outputs, strict=False):
        chances = [float(line[name]) for name in columns if "_prob" in name]
        assert {line[name] for name in columns if name.endswith("_pred")} <= labels
        if len(predictor.classes) == 2:
            assert chances == pytest.approx([output[0]], abs=1e-4)
            assert line["y_pred"] == predictor.classes[int(output[0] > 0.5)]
        elif not predictor.classes:
            assert chances == pytest.approx(output, abs=1e-4)
            assert [line["p_pred"], line["q_pred"]] == [str(int(value > 0.5)) for value in output]
        else:
            assert sum(chances) == pytest.approx(1, abs=1e-4)
            assert line["y_pred"] == predictor.classes[int(np.argmax(chances))]
    if predictor.classes:
        assert set(predictor.predict_classes([row[0] for row in rows[:5]])) <= labels


def test_a_store_is_predicted(molecules, tmp_path):
    run, store, _ = molecules
    predictor = grit.load(run)
    assert predict_stored(predictor, store, tmp_path / "out.csv") == len(store)
    with (tmp_path / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["row"]) for line in lines] == store.rows.tolist()


def test_runs_that_cannot_be_loaded(tmp_path):
    with pytest.raises(grit.GritError, match="not a run folder"):
        grit.load(tmp_path)
    RunFolder(tmp_path / "new").begin(small_recipe(), _data())
    with pytest.raises(grit.GritError, match="no checkpoint yet"):
        grit.load(tmp_path / "new")


def _data():
    from grit.learning.task import Task
    from grit.training.run_folder import describe_data

    store = small_store()
    return describe_data(store, Task(store.task), {})


def test_no_warning_without_reason(molecules):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grit.load(molecules[0]).predict(["CCO"])


def test_a_disk_that_is_full_leaves_no_half_table(molecules, tmp_path):
    resource = pytest.importorskip("resource")
    predictor, table, out = grit.load(molecules[0]), tmp_path / "in.csv", tmp_path / "out" / "out.csv"
    table.write_text("smiles\n" + "CCO\n" * 20)
    out.parent.mkdir()
    out.write_text("precious")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(grit.GritError, match=r"cannot write .*out.csv.*File too large"):
            predict_table(predictor, table, out, processes=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_text() for path in out.parent.iterdir()} == {"out.csv": "precious"}


def test_a_line_with_an_open_quote_stays_one_line(molecules, tmp_path):
    (tmp_path / "in.csv").write_text('smiles,name\n"CC,open\nCCN,fine\n')
    assert predict_table(grit.load(molecules[0]), tmp_path / "in.csv", tmp_path / "out.csv", processes=1) == (2, 1)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert len(lines) == 3
    assert "a quote opens a cell" in lines[1]
    assert lines[2].startswith("CCN,fine,")
