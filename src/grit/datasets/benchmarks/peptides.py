"""Peptides-func and Peptides-struct of the Long Range Graph Benchmark (Dwivedi et al. 2022)."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from grit.datasets.benchmarks.benchmark import Benchmark, BuildOptions, BuildPlan, Published, Source, regression
from grit.datasets.molecules.smiles import ogb_graph
from grit.datasets.own.molecule_tables import molecule_schema
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, molecule_pieces
from grit.datasets.pipeline.source_files import SourceFile, read_pickle
from grit.datasets.pipeline.splits import SPLITS
from grit.datasets.pipeline.write_store import Collected
from grit.datasets.tables.table import TableRow
from grit.datasets.tables.text_table import TextTable
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec

_SPLIT_MD5 = "5a0114bdadc80b94fc7ae974f13ef061"  # the split is the same for both
_FUNC = (
    SourceFile(
        "peptide_multi_class_dataset.csv.gz",
        "https://www.dropbox.com/s/ol2v01usvaxbsr8/peptide_multi_class_dataset.csv.gz?dl=1",
        md5="701eb743e899f4d793f0e13c8fa5a1b4",
    ),
    SourceFile(
        "splits_random_stratified_peptide.pickle",
        "https://www.dropbox.com/s/j4zcnx2eipuo0xz/splits_random_stratified_peptide.pickle?dl=1",
        md5=_SPLIT_MD5,
    ),
)
_STRUCT = (
    SourceFile(
        "peptide_structure_normalized_dataset.csv.gz",
        "https://www.dropbox.com/s/0d4aalmq4b4e2nh/peptide_structure_normalized_dataset.csv.gz?dl=1",
        md5="c240c1c15466b5c907c63e180fa8aa89",
    ),
    SourceFile(
        "splits_random_stratified_peptide_structure.pickle",
        "https://www.dropbox.com/s/9dfifzft1hqgow6/splits_random_stratified_peptide_structure.pickle?dl=1",
        md5=_SPLIT_MD5,
    ),
)
_FUNCTIONS = tuple(f"function {number}" for number in range(10))
_SHAPES = (
    "Inertia_mass_a",
    "Inertia_mass_b",
    "Inertia_mass_c",
    "Inertia_valence_a",
    "Inertia_valence_b",
    "Inertia_valence_c",
    "length_a",
    "length_b",
    "length_c",
    "Spherocity",
    "Plane_best_fit",
)


def _functions(row: TableRow) -> tuple[float, ...]:
    """``[0, 1, ...]`` in the column ``labels``."""
    labels = json.loads(row.fields["labels"])
    if not isinstance(labels, list) or len(labels) != 10 or any(label not in (0, 1) for label in labels):
        raise ValueError(f"expected ten labels 0 or 1, got {row.fields['labels']!r}")
    return tuple(float(label) for label in labels)


def _shapes(row: TableRow) -> tuple[float, ...]:
    return tuple(float(row.fields[name]) for name in _SHAPES)


def _read(
    folder: Path,
    options: BuildOptions,
    *,
    files: tuple[SourceFile, SourceFile],
    columns: tuple[str, ...],
    targets: Callable[[TableRow], tuple[float, ...]],
) -> BuildPlan:
    table_file, split_file = files
    splits = _official_splits(folder / split_file.name, split_file, options.limit)
    wanted = set(np.concatenate(list(splits.values())).tolist())
    table = TextTable(folder / table_file.name, ["smiles", *columns])

    def rows() -> Iterator[MoleculeRow]:
        for row in table.rows():
            if row.number not in wanted:
                continue
            try:
                if row.reason is not None:
                    raise ValueError(row.reason)
                yield MoleculeRow(row.number, row.fields["smiles"], targets(row), line=row.line)
            except ValueError as error:
                raise GritError(f"{table_file.name}: line {row.line}: {error}.") from None

    def choose(found: Collected) -> dict[str, Array]:
        graph_of = {int(row): graph for graph, row in enumerate(found.rows)}
        missing = [row for row in wanted if row not in graph_of]
        if missing:
            raise GritError(
                f"{table_file.name} lacks {len(missing)} rows that the split names, or they cannot be read."
            )
        return {name: np.array([graph_of[row] for row in members.tolist()]) for name, members in splits.items()}

    return BuildPlan(len(wanted), molecule_pieces(rows(), Featurise(graph=ogb_graph), options.num_processes), choose)


def _official_splits(path: Path, file: SourceFile, limit: int | None) -> dict[str, Array]:
    content = read_pickle(path, file)
    try:
        return {name: np.asarray(content[name], dtype=np.int64)[:limit] for name in SPLITS}
    except (KeyError, TypeError, ValueError) as error:
        raise GritError(f"{file.name} does not hold train, val and test: {error!r}.") from None


def _source(
    files: tuple[SourceFile, SourceFile], columns: tuple[str, ...], targets: Callable[[TableRow], tuple[float, ...]]
) -> Source:
    return Source("official", files, partial(_read, files=files, columns=columns, targets=targets))


_FUNC_TASK = TaskSpec(kind="multilabel", targets=_FUNCTIONS, loss="cross_entropy", metric="ap")
_STRUCT_TASK = regression(*_SHAPES)

PEPTIDES_FUNC = Benchmark(
    name="peptides-func",
    title="Peptides-func, 15,535 peptides: ten functions",
    schema=molecule_schema(_FUNC_TASK),
    task=_FUNC_TASK,
    published=Published(graphs=15_535, nodes=150.94, edges=307.30),
    sources=(_source(_FUNC, ("labels",), _functions),),
    featuriser="ogb",
)

PEPTIDES_STRUCT = Benchmark(
    name="peptides-struct",
    title="Peptides-struct, 15,535 peptides: eleven shapes and sizes",
    schema=molecule_schema(_STRUCT_TASK),
    task=_STRUCT_TASK,
    published=Published(graphs=15_535, nodes=150.94, edges=307.30),
    sources=(_source(_STRUCT, _SHAPES, _shapes),),
    featuriser="ogb",
)
