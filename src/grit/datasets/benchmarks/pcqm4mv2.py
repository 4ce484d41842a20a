"""PCQM4Mv2 of the OGB Large-Scale Challenge (Hu et al. 2021): the HOMO-LUMO gap of 3.7 million molecules.

Protocol of GraphGPS and of the paper: 150,000 training molecules, the first of a permutation by NumPy's ``default_rng(42)``,
are the validation set, and the official validation set is the test set, because the official test labels are private.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from grit.datasets.benchmarks.benchmark import Benchmark, BuildOptions, BuildPlan, Published, Source, regression, seeded
from grit.datasets.molecules.smiles import ogb_graph
from grit.datasets.own.molecule_tables import molecule_schema
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, molecule_pieces
from grit.datasets.pipeline.source_files import SourceFile, read_member, read_tensors
from grit.datasets.pipeline.write_store import Collected
from grit.datasets.tables.text_table import TextTable
from grit.errors import GritError
from grit.graphs.chunk import Array

_ARCHIVE = SourceFile(
    "pcqm4m-v2.zip",
    "https://dgl-data.s3-accelerate.amazonaws.com/dataset/OGB-LSC/pcqm4m-v2.zip",
    md5="65b742bafca5670be4497499db7d361b",
)
_SAMPLE = SourceFile("pcqm4mv2-2k.csv.gz")
_VALIDATION = 150_000


def paper_splits(train: Array, valid: Array) -> dict[str, Array]:
    """Train, val and test of the paper from the official train and valid."""
    count = min(_VALIDATION, train.size // 10)  # a tenth, where the data is a sample
    order = np.random.default_rng(42).permutation(train.size)
    return {"train": train[order[count:]], "val": train[order[:count]], "test": valid}


def _read_official(folder: Path, options: BuildOptions) -> BuildPlan:
    archive = folder / _ARCHIVE.name
    splits = {name: rows[: options.limit] for name, rows in paper_splits(*_official_split(archive)).items()}
    wanted = np.sort(np.concatenate(list(splits.values())))

    def rows() -> Iterator[MoleculeRow]:
        chosen = set(wanted.tolist())
        for number, (line, smiles, gap) in enumerate(_molecules(archive)):
            if number in chosen:
                yield MoleculeRow(number, smiles, (gap,), line=line)

    def choose(found: Collected) -> dict[str, Array]:
        place = np.searchsorted(found.rows, wanted)
        if found.count != wanted.size or not np.array_equal(found.rows[place], wanted):
            raise GritError(
                f"{_ARCHIVE.name} gave {found.count:,} of the {wanted.size:,} molecules that its split names."
            )
        return {name: np.searchsorted(found.rows, members) for name, members in splits.items()}

    return BuildPlan(wanted.size, molecule_pieces(rows(), Featurise(graph=ogb_graph), options.num_processes), choose)


def _official_split(archive: Path) -> tuple[Array, Array]:
    """``split_dict.pt``: NumPy arrays under train, valid, test-dev and test-challenge."""
    data = read_member(archive, "split_dict.pt")
    multiarray = np._core.multiarray  # type: ignore[attr-defined]
    dtypes = [type(np.dtype(name)) for name in ("int64", "int32")]
    allowed = [
        (multiarray._reconstruct, "numpy.core.multiarray._reconstruct"),
        multiarray._reconstruct,
        np.ndarray,
        np.dtype,
        *dtypes,
    ]
    content = read_tensors(data, f"split_dict.pt in {str(archive)!r}", allowed)
    try:
        return np.asarray(content["train"], dtype=np.int64), np.asarray(content["valid"], dtype=np.int64)
    except (LookupError, TypeError, ValueError) as error:
        raise GritError(f"split_dict.pt in {str(archive)!r} does not hold train and valid: {error!r}") from None


def _molecules(archive: Path) -> Iterator[tuple[int, str, float]]:
    """``raw/data.csv.gz`` with the columns idx, smiles and homolumogap: the line of each molecule, its SMILES and its gap."""
    try:
        text = io.TextIOWrapper(
            gzip.GzipFile(fileobj=io.BytesIO(read_member(archive, "data.csv.gz"))), encoding="utf-8", newline=""
        )
        table = csv.DictReader(text)
        for row in table:
            yield table.line_num, row["smiles"], float(row["homolumogap"] or "nan")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise GritError(f"data.csv.gz in {str(archive)!r} cannot be read: {error!r}") from None


def _read_sample(folder: Path, options: BuildOptions) -> BuildPlan:
    """A sample of the molecules: columns smiles and homo, which holds the gap."""

    def rows() -> Iterator[MoleculeRow]:
        for row in TextTable(folder / _SAMPLE.name, ["smiles", "homo"]).rows():
            if options.limit is not None and row.number >= options.limit:
                return
            try:
                gap: tuple[float, ...] = (float(row.fields["homo"]),)
                reason = row.reason
            except ValueError:
                gap, reason = (), row.reason or "the gap is not a number"
            yield MoleculeRow(row.number, row.fields["smiles"], gap, reason, row.line)

    return BuildPlan(None, molecule_pieces(rows(), Featurise(graph=ogb_graph), options.num_processes), seeded(options))


_TASK = regression("gap (eV)")

PCQM4MV2 = Benchmark(
    name="pcqm4mv2",
    title="PCQM4Mv2, 3.7 million molecules: HOMO-LUMO gap in eV",
    schema=molecule_schema(_TASK),
    task=_TASK,
    published=Published(graphs=3_746_620, nodes=14.1, edges=29.1),
    sources=(
        Source("official", (_ARCHIVE,), _read_official),
        Source("sample", (_SAMPLE,), _read_sample, "a sample with a random split, not the benchmark"),
    ),
    featuriser="ogb",
)
