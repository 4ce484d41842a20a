"""The contract that every entry of DATASETS keeps, and loaders of official formats on small files."""

import csv
import gzip
import io
import json
import pickle
import re
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.batches.pair_batch import PairBatch
from grit.batches.spec import BatchSpec
from grit.datasets import DATASETS, BuildOptions, build, find_dataset, from_pyg, load
from grit.datasets.benchmarks.benchmark import consecutive
from grit.datasets.benchmarks.pcqm4mv2 import paper_splits
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.datasets.pipeline.dataset_statistics import statistics
from grit.datasets.pipeline.featurise_rows import default_processes
from grit.datasets.pipeline.source_files import checksum, read_npz

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
FOLDERS = {
    "zinc": "zinc",
    "zinc-full": "zinc",
    "mnist": "mnist",
    "cifar10": "cifar10",
    "peptides-func": "peptides",
    "pcqm4mv2": "pcqm4mv2",
    "qm9-gap": "qm9",
    "esol": "moleculenet",
    "bbbp": "moleculenet",
    "tox21": "moleculenet",
}
SMALL = BuildOptions(processes=1, limit=40)


@pytest.mark.parametrize("name", sorted(DATASETS))
class TestContract:
    def test_describes_itself(self, name):
        benchmark = DATASETS[name]
        assert benchmark.name == name
        assert benchmark.title
        assert benchmark.schema.num_outputs == benchmark.task.num_outputs
        assert benchmark.published.graphs > 0
        names = [source.name for source in benchmark.sources]
        assert len(set(names)) == len(names)
        assert names[0] in ("official", "bundled", "generate")
        for source in benchmark.sources:
            for file in source.files:
                assert (source.name == "official") <= (file.url is not None)
                assert file.url is None or file.url.startswith("https://")

    def test_says_what_to_do_when_it_is_not_built(self, name, tmp_path):
        if DATASETS[name].sources[0].files:
            with pytest.raises(grit.GritError, match=f"grit datasets build {name}"):
                load(name, tmp_path)

    def test_a_folder_without_its_files(self, name, tmp_path):
        if any(source.files for source in DATASETS[name].sources):
            expected = next(source for source in DATASETS[name].sources if source.files).files[0].name
            with pytest.raises(
                grit.GritError, match=f"has no files of {name}. Expected one of(.|\n)*{re.escape(expected)}"
            ):
                build(name, root=tmp_path, folder=tmp_path)

    @needs_shared
    def test_builds_from_the_shared_data(self, name, tmp_path):
        if name not in FOLDERS:
            pytest.skip("the shared data does not have it")
        store = build(name, root=tmp_path, folder=SHARED / FOLDERS[name], options=SMALL)
        self.check(name, store)

    def test_builds_without_files(self, name, tmp_path):
        generated = [source for source in DATASETS[name].sources if not source.files]
        if not generated:
            pytest.skip("needs files")
        store = build(name, root=tmp_path, how=generated[0].name, options=SMALL)
        self.check(name, store)
        again = build(name, root=tmp_path / "again", how=generated[0].name, options=replace(SMALL, processes=2))
        for array in store.manifest.arrays:
            assert np.array_equal(store.array(array), again.array(array)), array

    def check(self, name, store):
        benchmark = DATASETS[name]
        assert (store.name, store.schema, store.task) == (name, benchmark.schema, benchmark.task)
        store.verify()
        assert set(store.splits) == {"train", "val", "test"}
        members = np.concatenate(list(store.splits.values()))
        assert np.unique(members).size == members.size == len(store)
        found = statistics(store)
        assert 0.3 < found.nodes / benchmark.published.nodes < 1.6  # QM9 begins with the smallest
        assert 0.2 < found.edges / benchmark.published.edges < 1.6
        model = grit.Grit(
            schema=store.schema,
            walk_steps=4,
            num_layers=1,
            hidden_dim=8,
            num_heads=2,
            pooling="sum" if store.schema.level == "graph" else "none",
        )
        batch = PairBatch.from_store(store, store.split("train")[:3], BatchSpec(4))
        predicted = model(batch)
        labels = batch.graphs.label_index
        rows = {"graph": 3, "node": batch.num_nodes, "edge": 0 if labels is None else labels.shape[1]}[
            store.schema.level
        ]
        assert predicted.shape == (rows, store.schema.num_outputs)
        assert batch.y.shape == (rows, 1 if store.task.kind == "multiclass" else store.schema.num_outputs)


def test_the_seed_of_a_table_is_that_of_its_split(tmp_path):
    with (tmp_path / "esol.csv").open("w", newline="") as file:
        rows = [["C" * (k % 9 + 1) + "NO"[k % 2], k / 7] for k in range(60)]
        header = ["smiles", "measured log solubility in mols per litre"]
        csv.writer(file).writerows([header, *rows, ["xx(", 1.5]])
    stores = [
        build("esol", root=tmp_path / str(number), folder=tmp_path, options=BuildOptions(processes=1, seed=seed))
        for number, seed in enumerate((None, 0, 1, 1))
    ]
    test = [store.split("test").tolist() for store in stores]
    assert test[0] == test[1] != test[2] == test[3]
    assert [(each.line, each.content) for each in stores[0].skipped] == [(62, "xx(")]


def test_unknown_names():
    with pytest.raises(grit.GritError, match="unknown data set 'zimc', did you mean 'zinc'"):
        find_dataset("zimc")


def test_existing_stores_are_kept(tmp_path):
    build("zinc-mini", root=tmp_path, options=SMALL)
    with pytest.raises(grit.GritError, match="built already.*--overwrite"):
        build("zinc-mini", root=tmp_path, options=SMALL)
    store = build("zinc-mini", root=tmp_path, options=replace(SMALL, limit=5), overwrite=True)
    assert len(store) == 15
    assert len(load("zinc-mini", tmp_path)) == 15
    assert len(load(str(store.path))) == 15
    with pytest.raises(grit.GritError, match=r"there is no store at .*moved"):
        load(str(store.path) + "-elsewhere")


def test_bad_requests(tmp_path):
    with pytest.raises(grit.GritError, match="pattern cannot be built from 'magic'; there are official, generate"):
        build("pattern", root=tmp_path, how="magic")
    with pytest.raises(grit.GritError, match="not a folder"):
        build("pattern", root=tmp_path, folder=tmp_path / "absent")
    with pytest.raises(grit.GritError, match="lacks zinc12k.tsv.gz, which zinc from 'smiles' needs"):
        build("zinc", root=tmp_path, folder=tmp_path, how="smiles")


def test_a_failed_download_names_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    with pytest.raises(grit.GritError) as error:
        build("pattern", root=tmp_path)
    message = str(error.value)
    assert "https://data.pyg.org/datasets/benchmarking-gnns/PATTERN_v2.zip" in message
    assert str(tmp_path / "downloads" / "pattern" / "PATTERN_v2.zip") in message
    assert "--how generate" in message


def refuse(*arguments, **options):
    raise OSError("no network")


def test_bundled_molecules(tmp_path):
    smiles = bundled_smiles()
    assert len(smiles) == len(set(smiles)) == 2500
    store = load("zinc-mini", tmp_path)
    assert [store.split(name).size for name in ("train", "val", "test")] == [2000, 250, 250]
    found = statistics(store)
    assert 22 < found.nodes < 24
    assert store.targets(store.split("train")).std() == pytest.approx(2.0, abs=0.3)


@needs_shared
def test_zinc_statistics(tmp_path):
    store = build("zinc", root=tmp_path, folder=SHARED / "zinc")
    found = statistics(store)
    assert (found.graphs, found.categories) == (12_000, (21,))
    assert found.nodes == pytest.approx(23.155, abs=5e-4)
    assert found.edges == pytest.approx(49.83, abs=5e-3)
    train = store.targets(store.split("train"))
    assert train.mean(dtype=np.float64) == pytest.approx(0.0153, abs=5e-5)
    assert train.std(dtype=np.float64) == pytest.approx(2.0108, abs=5e-5)


@needs_shared
def test_zinc_from_smiles_is_zinc_from_arrays(tmp_path):
    limit = BuildOptions(limit=300)
    arrays = build("zinc", root=tmp_path / "a", folder=SHARED / "zinc", how="arrays", options=limit)
    smiles = build("zinc", root=tmp_path / "s", folder=SHARED / "zinc", how="smiles", options=limit)
    for split in ("train", "val", "test"):
        here, there = arrays.split(split), smiles.split(split)
        difference = np.abs(arrays.targets(here) - smiles.targets(there))
        assert (difference < 1e-4).mean() >= 0.995
        for a, b in zip(here.tolist(), there.tolist(), strict=True):
            assert isomorphic(arrays.gather([a]), smiles.gather([b]))


def isomorphic(first, second):
    import networkx as nx

    graphs = []
    for packed in (first, second):
        graph = nx.Graph()
        graph.add_nodes_from((node, {"x": int(x)}) for node, x in enumerate(packed.x[:, 0]))
        graph.add_edges_from(
            (int(u), int(v), {"e": int(e)}) for u, v, e in zip(*packed.edge_index, packed.edge_attr[:, 0], strict=True)
        )
        graphs.append(graph)
    same = nx.isomorphism.categorical_node_match("x", None), nx.isomorphism.categorical_edge_match("e", None)
    return nx.is_isomorphic(*graphs, node_match=same[0], edge_match=same[1])


def official_molecule(n, y):
    bonds = torch.zeros(n, n, dtype=torch.int8)
    for i in range(n - 1):
        bonds[i, i + 1] = bonds[i + 1, i] = 1 + i % 3
    return {
        "num_atom": n,
        "atom_type": torch.arange(n, dtype=torch.int8),
        "bond_type": bonds,
        "logP_SA_cycle_normalized": torch.tensor([y]),
    }


def test_a_molecule_of_zinc_that_cannot_be_read_is_listed_by_its_line(tmp_path):
    rows = [
        "split\tsmiles\ty",
        *(f"train\t{smiles}\t1.5" for smiles in ("CCO", "C(", "CCN", "CC")),
        "val\tCC\t1",
        "test\tCC\t2",
    ]
    with gzip.open(tmp_path / "zinc12k.tsv.gz", "wt") as file:
        file.write("\n".join(rows))
    store = build("zinc", root=tmp_path / "r", folder=tmp_path, how="smiles", options=BuildOptions(processes=1))
    assert [(each.line, each.content) for each in store.skipped] == [(3, "C(")]


def test_official_zinc(tmp_path, monkeypatch):
    monkeypatch.setattr("grit.datasets.benchmarks.zinc.SIZES_12K", (2, 1, 1))
    with zipfile.ZipFile(tmp_path / "molecules.zip", "w") as archive:
        for split in ("train", "val", "test"):
            molecules = [official_molecule(n, n / 10) for n in range(2, 7)]
            archive.writestr(f"molecules/{split}.pickle", pickle.dumps(molecules))
    for split, index in (("train", "3,0\n"), ("val", "4\n"), ("test", "1\n")):
        (tmp_path / f"{split}.index").write_text(index)
    with pytest.raises(grit.GritError, match="publish no checksum.*--trust"):
        build("zinc", root=tmp_path / "r", folder=tmp_path)
    store = build("zinc", root=tmp_path / "r", folder=tmp_path, options=BuildOptions(trust=True))
    assert store.nodes_per_graph().tolist() == [5, 2, 6, 3]
    graph = store.gather([1])
    assert graph.x[:, 0].tolist() == [0, 1]
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert graph.edge_attr[:, 0].tolist() == [1, 1]
    assert store.targets(np.arange(4))[:, 0].tolist() == pytest.approx([0.5, 0.2, 0.6, 0.3])
    one_each = build("zinc", root=tmp_path / "one", folder=tmp_path, options=BuildOptions(trust=True, limit=1))
    assert one_each.nodes_per_graph().tolist() == [5, 6, 3]


def test_a_limit_is_for_each_split_of_a_table(tmp_path):
    """Rows beyond it are not read, wherever they stand."""
    lines = ["split\tsmiles\ty\n"]
    lines += [f"{split}\t{'C' * (k + 1)}\t{k / 2}\n" for k in range(4) for split in ("val", "train", "test")]
    (tmp_path / "zinc12k.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    for limit, wanted in ((None, [1, 2, 3, 4]), (2, [1, 2])):
        store = build(
            "zinc", root=tmp_path / f"r{limit}", folder=tmp_path, how="smiles", options=BuildOptions(1, limit=limit)
        )
        for split in ("train", "val", "test"):
            assert store.nodes_per_graph()[store.split(split)].tolist() == wanted


def test_processes_are_as_many_as_asked_for():
    assert BuildOptions(processes=3).num_processes == 3
    assert BuildOptions().num_processes == default_processes() >= 1


def test_pickled_objects_in_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{"an": "object"}], dtype=object))
    with pytest.raises(grit.GritError, match="cannot read x from .*pickle"):
        read_npz(tmp_path / "a.npz", ("x",))


def test_a_bundled_data_set_that_cannot_be_built_says_why(tmp_path, monkeypatch):
    def fails(name, root):
        raise grit.GritError("no room for it")

    monkeypatch.setattr("grit.datasets.building.build", fails)
    with pytest.raises(grit.GritError, match="no room for it"):
        load("zinc-mini", tmp_path)

    def was_slower(name, root):
        build(name, root=root, options=BuildOptions(1, limit=3))
        raise grit.GritError("another process was quicker")

    monkeypatch.setattr("grit.datasets.building.build", was_slower)
    assert len(load("zinc-mini", tmp_path).split("train")) == 3


def test_generated_data_has_the_seed_that_is_documented(tmp_path):
    usual, one, two = (
        build("pattern", root=tmp_path / str(seed), how="generate", options=BuildOptions(1, seed=seed, limit=2))
        for seed in (None, 1, 2)
    )
    assert np.array_equal(usual.array("edge_index"), one.array("edge_index"))
    assert not np.array_equal(usual.array("edge_index"), two.array("edge_index"))


@pytest.mark.parametrize(
    ("name", "columns", "classes"), [("mnist", 1, 10), ("cifar10", 3, 10), ("pattern", 3, 2), ("cluster", 7, 6)]
)
def test_official_pyg_files(name, columns, classes, tmp_path):
    generator = torch.Generator().manual_seed(0)
    splits = []
    for _ in range(3):
        graphs = []
        for n in (5, 6):
            fields = {
                "x": torch.rand(n, columns, generator=generator),
                "edge_index": torch.randint(n, (2, 3 * n), generator=generator),
                "y": torch.randint(classes, (n if name in ("pattern", "cluster") else 1,), generator=generator),
            }
            if name in ("mnist", "cifar10"):
                fields["pos"] = torch.rand(n, 2, generator=generator)
                fields["edge_attr"] = torch.rand(3 * n, generator=generator)
            graphs.append(fields)
        splits.append(graphs)
    content = io.BytesIO()
    torch.save(splits, content)
    with zipfile.ZipFile(tmp_path / f"{name.upper()}_v2.zip", "w") as archive:
        archive.writestr(f"{name.upper()}_v2.pt", content.getvalue())
    store = build(name, root=tmp_path / "r", folder=tmp_path, options=BuildOptions(limit=2))
    for split, graphs in zip(("train", "val", "test"), splits, strict=True):
        got = store.gather(store.split(split)[1:])
        wanted = graphs[1]
        features = torch.cat([wanted["x"], wanted["pos"]], 1) if "pos" in wanted else wanted["x"]
        assert torch.equal(got.x, features)
        assert torch.equal(got.edge_index, wanted["edge_index"])
        assert torch.equal(got.y[:, 0], wanted["y"])
        if "edge_attr" in wanted:
            assert torch.equal(got.edge_attr[:, 0], wanted["edge_attr"])
    with pytest.raises(grit.GritError, match="has 2 graphs, expected 3"):
        build(name, root=tmp_path / "q", folder=tmp_path, options=BuildOptions(limit=3))


def write_peptides(folder, monkeypatch, *, struct, smiles=("CCO", "CC(=O)N", "NCC(=O)O", "CCCC")):
    """A table and a split in the official form; the data set then expects the checksum of this split."""
    name = "peptides-struct" if struct else "peptides-func"
    (official,) = DATASETS[name].sources
    table, split = official.files
    with gzip.open(folder / table.name, "wt", newline="") as file:
        writer = csv.writer(file)
        if struct:
            writer.writerow(["", "smiles", *DATASETS[name].task.targets])
            writer.writerows([k, each, *[k + c / 10 for c in range(11)]] for k, each in enumerate(smiles))
        else:
            writer.writerow(["", "smiles", "labels"])
            writer.writerows([k, each, json.dumps([int(c == k) for c in range(10)])] for k, each in enumerate(smiles))
    content = {"train": np.array([3, 0]), "val": np.array([1]), "test": np.array([2])}
    (folder / split.name).write_bytes(pickle.dumps(content))
    files = (table, replace(split, md5=checksum(folder / split.name, "md5")))
    source = replace(official, files=files, read=partial(official.read, files=files))
    monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], sources=(source,)))
    return name


@pytest.mark.parametrize("struct", [False, True])
def test_official_peptides(struct, tmp_path, monkeypatch):
    name = write_peptides(tmp_path, monkeypatch, struct=struct)
    store = build(name, root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))
    assert {split: store.rows[store.split(split)].tolist() for split in ("train", "val", "test")} == {
        "train": [3, 0],
        "val": [1],
        "test": [2],
    }
    y = store.targets(store.split("train"))
    if struct:
        assert y[0].tolist() == pytest.approx([3 + c / 10 for c in range(11)])
    else:
        assert y[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_peptides_that_cannot_be_read_are_named_by_their_lines(tmp_path, monkeypatch):
    name = write_peptides(tmp_path, monkeypatch, struct=True, smiles=["C("] * 4)
    with pytest.raises(grit.GritError, match=r"none of 4 rows could be read \(line 2: .*; line 3: .*; line 4: "):
        build(name, root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))


def test_a_row_of_peptides_that_cannot_be_used(tmp_path, monkeypatch):
    name = write_peptides(tmp_path, monkeypatch, struct=False)
    table = tmp_path / DATASETS[name].sources[0].files[0].name
    plain = gzip.decompress(table.read_bytes()).decode() if table.suffix == ".gz" else table.read_text()
    lines = plain.splitlines()
    changed = "\n".join([lines[0], lines[1] + ",more", *lines[2:]]) + "\n"
    table.write_bytes(gzip.compress(changed.encode()) if table.suffix == ".gz" else changed.encode())
    with pytest.raises(grit.GritError, match=f"{table.name}: line 2: 4 fields, the header has 3"):
        build(name, root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))


def test_a_split_file_that_is_not_the_official_one(tmp_path):
    for file in DATASETS["peptides-func"].sources[0].files:
        (tmp_path / file.name).write_bytes(pickle.dumps({}))
    with pytest.raises(grit.GritError, match="not the official splits_random_stratified_peptide.pickle"):
        build("peptides-func", root=tmp_path / "r", folder=tmp_path)


@needs_shared
def test_real_peptides_split_sizes(tmp_path):
    store = build("peptides-func", root=tmp_path, folder=SHARED / "peptides", options=BuildOptions(limit=20))
    assert store.schema.num_outputs == 10
    assert set(np.unique(store.targets(np.arange(len(store)))).tolist()) == {0.0, 1.0}


def write_pcqm4mv2(folder, smiles_of):
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["idx", "smiles", "homolumogap"])
    for number in range(40):
        writer.writerow([number, smiles_of(number), "" if number >= 36 else number / 4])
    split = io.BytesIO()
    content = {
        "train": np.arange(30),
        "valid": np.arange(30, 36),
        "test-dev": np.arange(36, 38),
        "test-challenge": np.arange(38, 40),
    }
    torch.save(content, split)
    with zipfile.ZipFile(folder / "pcqm4m-v2.zip", "w") as archive:
        archive.writestr("pcqm4m-v2/raw/data.csv.gz", gzip.compress(table.getvalue().encode()))
        archive.writestr("pcqm4m-v2/split_dict.pt", split.getvalue())


def test_molecules_of_pcqm4mv2_that_cannot_be_read_are_named_by_their_lines(tmp_path):
    write_pcqm4mv2(tmp_path, lambda number: "C(")
    with pytest.raises(grit.GritError, match=r"none of 36 rows could be read \(line 2: .*; line 3: .*; line 4: "):
        build("pcqm4mv2", root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))


def test_official_pcqm4mv2(tmp_path):
    write_pcqm4mv2(tmp_path, lambda number: "C" * (number % 7 + 1))
    store = build("pcqm4mv2", root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))
    assert len(store) == 36
    rows = {name: store.rows[members].tolist() for name, members in store.splits.items()}
    wanted = paper_splits(np.arange(30), np.arange(30, 36))
    assert rows == {name: members.tolist() for name, members in wanted.items()}
    assert (len(rows["val"]), rows["test"]) == (3, list(range(30, 36)))
    assert store.targets(store.split("test"))[:, 0].tolist() == pytest.approx([number / 4 for number in range(30, 36)])
    write_pcqm4mv2(tmp_path, lambda number: "CC(CCC" if number == 5 else "C" * (number % 7 + 1))
    with pytest.raises(grit.GritError, match="gave 35 of the 36 molecules that its split names"):
        build("pcqm4mv2", root=tmp_path / "q", folder=tmp_path, options=BuildOptions(processes=1))


def test_a_sample_of_pcqm4mv2(tmp_path):
    """A table whose column homo holds the gap; what is not a number is listed."""
    lines = [f"{'C' * (number % 7 + 1)},{'?' if number == 5 else number / 4}" for number in range(30)]
    table = "\n".join(["smiles,homo", *lines]) + "\n"
    (tmp_path / "pcqm4mv2-2k.csv.gz").write_bytes(gzip.compress(table.encode()))
    store = build("pcqm4mv2", root=tmp_path / "r", folder=tmp_path, options=BuildOptions(processes=1))
    rows = [number for number in range(30) if number != 5]
    assert store.rows.tolist() == rows
    assert store.targets(range(29))[:, 0].tolist() == [number / 4 for number in rows]
    few = build("pcqm4mv2", root=tmp_path / "f", folder=tmp_path, options=BuildOptions(processes=1, limit=12))
    assert len(few) == 11


def test_paper_protocol_of_pcqm4mv2():
    """150,000 of the training molecules, the first of NumPy's permutation by the seed 42."""
    train, valid = np.arange(3_378_606), np.arange(3_378_606, 3_378_606 + 73_545)
    splits = paper_splits(train, valid)
    assert {name: members.size for name, members in splits.items()} == {
        "train": 3_228_606,
        "val": 150_000,
        "test": 73_545,
    }
    assert np.array_equal(splits["val"], np.random.default_rng(42).permutation(3_378_606)[:150_000])


def test_damaged_sources(tmp_path):
    (tmp_path / "zinc12k_graphs.npz").write_bytes(b"junk")
    (tmp_path / "MNIST_v2.zip").write_bytes(b"junk")
    (tmp_path / "pcqm4m-v2.zip").write_bytes(b"junk")
    (tmp_path / "cifar10_subset.npz").write_bytes(b"junk")
    (tmp_path / "esol.csv").write_bytes(b"smiles,other\nCC,1\n")
    for name in ("zinc", "mnist", "pcqm4mv2", "cifar10", "esol"):
        with pytest.raises(grit.GritError, match="cannot read|has no column"):
            build(name, root=tmp_path / "r", folder=tmp_path)
    assert not (tmp_path / "r" / "stores" / "zinc").exists()


def test_statistics_of_every_kind_of_target():
    from torch_geometric.data import Data

    def line(y):
        graphs = [Data(edge_index=torch.zeros(2, 0).long(), num_nodes=2, y=torch.tensor(each)) for each in y]
        splits = {"train": range(len(y))}
        return statistics(from_pyg(graphs, splits=splits)).splits[0].targets

    numbers = Data(x=torch.rand(2, 3), edge_index=torch.zeros(2, 0).long(), y=torch.tensor([1.5]))
    kinds = Data(x=torch.tensor([[0, 5], [1, 5]]), edge_index=torch.zeros(2, 0).long(), y=torch.tensor([1.5]))
    assert statistics(from_pyg([numbers], splits={"train": [0]})).categories == ()
    assert statistics(from_pyg([kinds], splits={"train": [0]})).categories == (2, 1)
    assert line([[1.5], [2.5]]) == "mean 2.0000, std 0.5000, 1.50 to 2.50"
    assert line([[0], [1], [1], [2]]) == "0 25.0%, 1 50.0%, 2 25.0%"
    assert line([[[1.0, 0.0]], [[0.0, float("nan")]]]) == "2 labels, 33.3% positive, 25.0% missing"


def small_sources(folder):
    """Small valid files of several forms: (data set, file) each."""
    rng = np.random.default_rng(0)
    np.savez(
        folder / "zinc12k_graphs.npz",
        x=np.array([0, 1, 2, 0, 3], dtype=np.int8),
        edge_index=np.array([[0, 1, 0, 1], [1, 0, 1, 0]], dtype=np.int16),
        edge_attr=np.array([1, 1, 2, 2], dtype=np.int8),
        y=np.array([0.5, 1.5, 2.5], dtype=np.float32),
        node_ptr=np.array([0, 2, 4, 5]),
        edge_ptr=np.array([0, 2, 4, 4]),
        split_sizes=np.array([1, 1, 1]),
    )
    np.savez(
        folder / "cifar10_subset.npz",
        x_train=np.repeat(rng.integers(0, 255, (1003, 4, 4, 1), dtype=np.uint8), 3, axis=3),
        y_train=rng.integers(0, 10, 1003),
        x_test=np.zeros((2, 4, 4, 3), dtype=np.uint8),
        y_test=np.array([1, 2]),
    )
    graphs = [
        {
            "x": torch.rand(3, 1),
            "pos": torch.rand(3, 2),
            "edge_index": torch.tensor([[0], [1]]),
            "edge_attr": torch.ones(1),
            "y": torch.tensor([2]),
        }
    ]
    content = io.BytesIO()
    torch.save([graphs, graphs, graphs], content)
    with zipfile.ZipFile(folder / "MNIST_v2.zip", "w") as archive:
        archive.writestr("MNIST_v2.pt", content.getvalue())
    (folder / "esol.csv").write_text(
        "smiles,measured log solubility in mols per litre\n" + "".join(f"{'C' * n},{n / 2}\n" for n in range(1, 8))
    )
    return {"zinc": "zinc12k_graphs.npz", "cifar10": "cifar10_subset.npz", "mnist": "MNIST_v2.zip", "esol": "esol.csv"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    return folder, small_sources(folder)


@pytest.mark.parametrize("name", ["zinc", "cifar10", "mnist", "esol"])
def test_the_sources_of_the_fuzz_test_are_sound(name, sources, tmp_path):
    assert (
        len(
            build(
                name,
                root=tmp_path,
                folder=sources[0],
                options=BuildOptions(processes=1, limit=1 if name != "esol" else 7),
            )
        )
        >= 3
    )


@given(data=st.data(), name=st.sampled_from(["zinc", "cifar10", "mnist", "esol"]))
def test_fuzz_sources(sources, tmp_path_factory, data, name):
    """Random changes in the files of a source: only our own error comes out, and no half-made store is left."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / sources[1][name]
    content = bytearray((sources[0] / path.name).read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 6))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        build(
            name, root=folder / "r", folder=folder, options=BuildOptions(processes=1, limit=1 if name != "esol" else 7)
        )
    except grit.GritError:
        assert not (folder / "r" / "stores" / name).exists()


@given(st.data())
def test_fuzz_idx(tmp_path_factory, data):
    from grit.datasets.benchmarks.mnist import read_idx

    content = bytearray(b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(18))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    packed = bytearray(gzip.compress(bytes(content), mtime=0))
    for _ in range(data.draw(st.integers(0, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzz.gz"
    path.write_bytes(bytes(packed))
    try:
        assert read_idx(path).dtype == np.uint8
    except grit.GritError:
        pass


def test_a_folder_of_the_same_name_does_not_hide_a_data_set(tmp_path, monkeypatch):
    (tmp_path / "zinc").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(grit.GritError, match="zinc has not been built yet"):
        load("zinc", tmp_path / "data")
    with pytest.raises(grit.GritError, match="not a graph store"):
        load("./zinc")


def test_labels_of_images_that_are_no_class(tmp_path, sources):
    arrays = dict(np.load(sources[0] / "cifar10_subset.npz"))
    for name, wrong in (("y_train", 10), ("y_test", -1)):
        damaged = {**arrays, name: arrays[name].copy()}
        damaged[name][1] = wrong
        np.savez(tmp_path / "cifar10_subset.npz", **damaged)
        with pytest.raises(grit.GritError, match="the labels in .* are not all 0 to 9"):
            build("cifar10", root=tmp_path / "r", folder=tmp_path)


def test_a_molecule_that_is_not_in_the_official_form_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("grit.datasets.benchmarks.zinc.SIZES_12K", (1, 1, 1))
    with zipfile.ZipFile(tmp_path / "molecules.zip", "w") as archive:
        for split in ("train", "val", "test"):
            molecule = official_molecule(3, 0.5)
            if split == "val":
                del molecule["bond_type"]
            archive.writestr(f"molecules/{split}.pickle", pickle.dumps([molecule]))
            (tmp_path / f"{split}.index").write_text("0\n")
    with pytest.raises(grit.GritError, match=r"molecule 0 of molecules\.zip is not in the official form.*bond_type"):
        build("zinc", root=tmp_path / "r", folder=tmp_path, options=BuildOptions(trust=True))


def test_a_source_with_fewer_graphs_than_its_splits_is_refused():
    found = SimpleNamespace(count=6)
    with pytest.raises(grit.GritError, match=r"expected 7 graphs .*, found 6"):
        consecutive({"train": 4, "val": 2, "test": 1})(found)
    assert consecutive({"train": 4, "val": 2})(found)["val"].tolist() == [4, 5]
