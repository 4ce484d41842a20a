"""ZINC: constrained solubility of drug-like molecules; 12,000 of them (Dwivedi et al. 2020), or all 249,456."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from grit.datasets.benchmarks.benchmark import (
    Benchmark,
    BuildOptions,
    BuildPlan,
    Published,
    Source,
    capped,
    consecutive,
    regression,
)
from grit.datasets.molecules.smiles import zinc_graph
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, Piece, batched, molecule_pieces
from grit.datasets.pipeline.source_files import SourceFile, read_member, read_npz, unpickle
from grit.datasets.pipeline.write_store import Collected
from grit.datasets.tables.text_table import TextTable
from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph, GraphChunk
from grit.graphs.schema import Features, GraphSchema

SIZES_12K = (10_000, 1_000, 1_000)
SIZES_FULL = (220_011, 24_445, 5_000)
_INDEX_URL = "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/master/data/molecules/{}.index"
_MOLECULES = SourceFile("molecules.zip", "https://www.dropbox.com/s/feo9qle74kg48gy/molecules.zip?dl=1")
_INDICES = tuple(SourceFile(f"{split}.index", _INDEX_URL.format(split)) for split in ("train", "val", "test"))


def _read_official(folder: Path, options: BuildOptions, *, subset: bool) -> BuildPlan:
    """``molecules.zip`` with one pickle per split; the subset's members are listed in ``*.index``."""
    archive = folder / _MOLECULES.name
    if not options.trust:
        raise GritError(
            f"{archive.name} holds pickles and its authors publish no checksum. If yours comes from {_MOLECULES.url}, "
            "say --trust; only arrays and tensors are read from it in any case."
        )
    members = {split: _index(folder / f"{split}.index") if subset else None for split in ("train", "val", "test")}
    counts = capped(SIZES_12K if subset else SIZES_FULL, options.limit)

    def pieces() -> Iterator[Piece]:
        done = 0
        for split, count in counts.items():
            molecules = unpickle(read_member(archive, f"{split}.pickle"), f"{archive.name}/{split}.pickle")
            wanted = members[split]
            chosen = list(range(len(molecules)) if wanted is None else wanted)[:count]
            for batch in batched(chosen, 512):
                graphs = [_official_graph(molecules, number) for number in batch]
                yield Piece(GraphChunk.of(graphs), np.arange(done, done + len(batch)), [], [])
                done += len(batch)

    return BuildPlan(sum(counts.values()), pieces(), consecutive(counts))


def _index(path: Path) -> list[int]:
    try:
        return [int(number) for number in path.read_text().split(",") if number.strip()]
    except (OSError, ValueError) as error:
        raise GritError(f"cannot read {str(path)!r} as a list of numbers: {error}") from None


def _official_graph(molecules: object, number: int) -> ArrayGraph:
    try:
        molecule = molecules[number]  # type: ignore[index]
        bonds = molecule["bond_type"].numpy()
        source, target = np.nonzero(bonds)
        return ArrayGraph(
            x=molecule["atom_type"].numpy().reshape(-1, 1).astype(np.int64),
            edge_index=np.stack([source, target]),
            edge_attr=bonds[source, target].reshape(-1, 1).astype(np.int64),
            y=molecule["logP_SA_cycle_normalized"].numpy().reshape(1, 1).astype(np.float32),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise GritError(f"molecule {number} of molecules.zip is not in the official form: {error!r}") from None


def _read_arrays(folder: Path, options: BuildOptions) -> BuildPlan:
    """``zinc12k_graphs.npz``: the twelve thousand graphs as arrays, in official order."""
    path = folder / "zinc12k_graphs.npz"
    arrays = read_npz(path, ("x", "edge_index", "edge_attr", "y", "node_ptr", "edge_ptr", "split_sizes"))
    _check_arrays(arrays, path)
    sizes = arrays["split_sizes"].tolist()
    counts = capped((sizes[0], sizes[1], sizes[2]), options.limit)
    first = dict(zip(counts, np.cumsum([0, *sizes[:2]]).tolist(), strict=True))
    chosen = np.concatenate([np.arange(first[split], first[split] + count) for split, count in counts.items()])

    def pieces() -> Iterator[Piece]:
        for batch in batched(chosen.tolist(), 1000):
            graphs = [_array_graph(arrays, number) for number in batch]
            yield Piece(GraphChunk.of(graphs), np.array(batch), [], [])

    return BuildPlan(chosen.size, pieces(), consecutive(counts))


def _check_arrays(arrays: dict[str, Array], path: Path) -> None:
    graphs, nodes, edges = arrays["y"].shape, arrays["x"].shape, arrays["edge_attr"].shape
    sound = (
        len(graphs) == len(nodes) == len(edges) == 1
        and arrays["node_ptr"].shape == arrays["edge_ptr"].shape == (graphs[0] + 1,)
        and arrays["edge_index"].shape == (2, *edges)
        and arrays["split_sizes"].shape == (3,)
        and all(arrays[name].dtype.kind in "iu" for name in arrays if name != "y")
        and int(arrays["split_sizes"].min()) >= 0
        and int(arrays["split_sizes"].sum()) == graphs[0]
        and all(
            int(arrays[name][0]) == 0
            and int(arrays[name][-1]) == total
            and (np.diff(arrays[name].astype(np.int64)) >= 0).all()
            for name, total in (("node_ptr", nodes[0]), ("edge_ptr", edges[0]))
        )
    )
    if not sound:
        raise GritError(f"the arrays in {str(path)!r} do not fit together.")


def _array_graph(arrays: dict[str, Array], number: int) -> ArrayGraph:
    nodes = slice(int(arrays["node_ptr"][number]), int(arrays["node_ptr"][number + 1]))
    edges = slice(int(arrays["edge_ptr"][number]), int(arrays["edge_ptr"][number + 1]))
    return ArrayGraph(
        x=arrays["x"][nodes, None],
        edge_index=arrays["edge_index"][:, edges],
        edge_attr=arrays["edge_attr"][edges, None],
        y=arrays["y"][number].reshape(1, 1),
    )


def _read_smiles(folder: Path, options: BuildOptions, *, file: str, num_labels: int) -> BuildPlan:
    """A table of SMILES with ``split`` and target ``y``; graphs are made with RDKit."""
    table = TextTable(folder / file, ["split", "smiles", "y"])
    left: dict[str, int | None] = dict.fromkeys(("train", "val", "test"), options.limit)
    order: dict[str, list[int]] = {"train": [], "val": [], "test": []}

    def rows() -> Iterator[MoleculeRow]:
        for row in table.rows():
            split = row.fields["split"]
            if row.reason is not None or split not in order:
                raise GritError(f"{file}: line {row.line}: {row.reason or f'unknown split {split!r}'}.")
            remaining = left[split]
            if remaining == 0:
                continue
            left[split] = None if remaining is None else remaining - 1
            order[split].append(row.number)
            try:
                y = (float(row.fields["y"]),)
            except ValueError:
                raise GritError(f"{file}: line {row.line}: y is {row.fields['y']!r}, expected a number.") from None
            yield MoleculeRow(row.number, row.fields["smiles"], y, line=row.line)

    def splits(found: Collected) -> dict[str, Array]:
        graph_of = {int(row): graph for graph, row in enumerate(found.rows)}
        return {
            name: np.array([graph_of[row] for row in members if row in graph_of]) for name, members in order.items()
        }

    featurise = Featurise(graph=partial(zinc_graph, num_labels=num_labels))
    sizes = SIZES_12K if num_labels == 21 else SIZES_FULL
    return BuildPlan(
        sum(capped(sizes, options.limit).values()), molecule_pieces(rows(), featurise, options.num_processes), splits
    )


def _schema(num_labels: int) -> GraphSchema:
    return GraphSchema(node=Features(kind="category", sizes=(num_labels,)), edge=Features(kind="category", sizes=(4,)))


ZINC = Benchmark(
    name="zinc",
    title="ZINC, 12,000 molecules: constrained solubility",
    schema=_schema(21),
    task=regression("constrained solubility"),
    published=Published(graphs=12_000, nodes=23.16, edges=49.83),
    sources=(
        Source("official", (_MOLECULES, *_INDICES), partial(_read_official, subset=True)),
        Source("arrays", (SourceFile("zinc12k_graphs.npz"),), _read_arrays),
        Source("smiles", (SourceFile("zinc12k.tsv.gz"),), partial(_read_smiles, file="zinc12k.tsv.gz", num_labels=21)),
    ),
    featuriser="zinc-21",
)

ZINC_FULL = Benchmark(
    name="zinc-full",
    title="ZINC-full, 249,456 molecules: constrained solubility",
    schema=_schema(28),
    task=regression("constrained solubility"),
    published=Published(graphs=249_456, nodes=23.15, edges=49.83),
    sources=(
        Source("official", (_MOLECULES,), partial(_read_official, subset=False)),
        Source(
            "smiles", (SourceFile("zinc_full.tsv.gz"),), partial(_read_smiles, file="zinc_full.tsv.gz", num_labels=28)
        ),
    ),
    featuriser="zinc-28",
)
