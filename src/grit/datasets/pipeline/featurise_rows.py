"""From the rows of a source to graphs: in order, by several processes, with every unreadable row accounted for."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import connection
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from grit.datasets.molecules.featurisers import FEATURISERS
from grit.datasets.molecules.graph_inputs import molecule_numbers
from grit.datasets.molecules.smiles import morgan_fingerprint, murcko_scaffold, read_smiles
from grit.datasets.molecules.standardise import RecordKind, identity, kind_of_record
from grit.errors import GritError
from grit.graphs.chunk import Array, ArrayGraph, GraphChunk
from grit.graphs.store_format import SkippedRow

Item = TypeVar("Item")
Result = TypeVar("Result")

ROWS_PER_PIECE = 512


class Piece(NamedTuple):
    """Some consecutive rows of a source, turned into graphs.

    Attributes:
        chunk: The graphs; None if no row gave one.
        rows: Number of the source row of each graph.
        skipped: Rows that gave none.
        scaffolds: Bemis-Murcko scaffold of each graph, where asked for.
        fingerprints: Morgan fingerprint of each graph in packed bits, (B, 256), where asked for.
        identities: `identity` of the molecule of each graph, where asked for.
        kinds: `kind_of_record` of each graph, where asked for.
    """

    chunk: GraphChunk | None
    rows: Array
    skipped: list[SkippedRow]
    scaffolds: list[str]
    fingerprints: Array | None = None
    identities: Sequence[bytes] = ()
    kinds: Sequence[RecordKind] = ()


class MoleculeRow(NamedTuple):
    """A row with a molecule.

    Attributes:
        row: Its number in the source, from 0.
        smiles: The molecule.
        y: Its targets, (T,).
        reason: Why it cannot be used, if so.
        line: Its line in a text file, by which the user is told of it; where there is none, as in a list, the number serves.
        features: Numbers that the graph carries beside its nodes and edges, before any descriptors; NaN where missing.
        weight: How much it counts in the loss; None where all count alike.
    """

    row: int
    smiles: str
    y: tuple[float, ...]
    reason: str | None = None
    line: int | None = None
    features: tuple[float, ...] = ()
    weight: float | None = None


@dataclass(frozen=True)
class Featurise:
    """What a worker process does with rows: each SMILES is parsed once, and all that is asked for comes from that molecule.

    Attributes:
        graph: Molecule -> graph, raising `GritError` with the reason where there is none; see `FEATURISERS`. Targets that it
            computes come before those of the row.
        with_scaffolds: Whether scaffolds are needed.
        with_fingerprints: Whether fingerprints are.
        with_identities: Whether it is needed which molecules are the same, and which are salts and the like.
        standardise: What is done to a molecule before all that; what it is, salt or not, is said of the molecule as written.
        descriptors: Entries of `DESCRIPTORS` whose numbers the graph carries, after those of the row.
    """

    graph: Callable[[Any], ArrayGraph]
    with_scaffolds: bool = False
    with_fingerprints: bool = False
    with_identities: bool = False
    standardise: Callable[[Any], Any] | None = None
    descriptors: tuple[str, ...] = ()

    @classmethod
    def named(
        cls,
        name: str,
        *,
        with_scaffolds: bool = False,
        with_fingerprints: bool = False,
        with_identities: bool = False,
        descriptors: tuple[str, ...] = (),
    ) -> Self:
        """As an entry of `FEATURISERS` says."""
        entry = FEATURISERS[name]
        return cls(entry.graph, with_scaffolds, with_fingerprints, with_identities, entry.standardise, descriptors)

    def __call__(self, rows: list[MoleculeRow]) -> Piece:
        """Turn rows into a `Piece`."""
        graphs, numbers, skipped, scaffolds, fingerprints = [], [], [], [], []
        identities: list[bytes] = []
        kinds: list[RecordKind] = []
        for row in rows:
            line = row.row if row.line is None else row.line
            if row.reason is not None:
                skipped.append(SkippedRow(line, row.smiles, row.reason))
                continue
            try:
                written = read_smiles(row.smiles)
                molecule = written if self.standardise is None else self.standardise(written)
                graph = self.graph(molecule)
            except GritError as error:
                skipped.append(SkippedRow(line, row.smiles, str(error)))
                continue
            given = np.array([row.y], dtype=np.float32).reshape(1, -1)
            graphs.append(
                graph._replace(
                    y=np.concatenate([graph.y.astype(np.float32), given], axis=1),
                    graph_attr=molecule_numbers(molecule, row.features, self.descriptors),
                    weight=row.weight,
                )
            )
            numbers.append(row.row)
            if self.with_scaffolds:
                scaffolds.append(murcko_scaffold(molecule))
            if self.with_fingerprints:
                fingerprints.append(np.packbits(morgan_fingerprint(molecule)))
            if self.with_identities:
                identities.append(identity(molecule))
                kinds.append(kind_of_record(written))
        chunk = GraphChunk.of(graphs) if graphs else None
        packed = np.stack(fingerprints) if fingerprints else None
        return Piece(chunk, np.array(numbers, dtype=np.int64), skipped, scaffolds, packed, identities, kinds)


def molecule_pieces(rows: Iterable[MoleculeRow], featurise: Featurise, processes: int) -> Iterator[Piece]:
    """Rows with SMILES -> pieces, in order."""
    read_smiles("C")  # a missing RDKit is the user's to know once, not a reason to skip every row
    return in_order(featurise, batched(rows, ROWS_PER_PIECE), processes)


def graph_pieces(make: Callable[[int], ArrayGraph], count: int, processes: int, per_piece: int = 64) -> Iterator[Piece]:
    """Graphs number 0 to count-1 of a generator -> pieces, in order."""
    return in_order(_PieceOfGraphs(make), batched(range(count), per_piece), processes)


@dataclass(frozen=True)
class _PieceOfGraphs:
    make: Callable[[int], ArrayGraph]

    def __call__(self, numbers: list[int]) -> Piece:
        chunk = GraphChunk.of([self.make(number) for number in numbers])
        return Piece(chunk, np.array(numbers, dtype=np.int64), [], [])


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of ``size`` consecutive items, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def in_order(function: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """``map`` by several processes: results in order, only a few items under way at a time."""
    if processes <= 1:
        yield from map(function, items)
        return
    # Forking is what lets a user's plain script use several processes without a __main__ guard; workers use no torch.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_the_parent)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise GritError(
            "a worker process ended unexpectedly, perhaps for want of memory. Try again with fewer processes."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_the_parent() -> None:
    """In a worker: end as soon as the process that started it is gone. One that was killed cannot end its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; what it means is the parent's to say
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def default_processes() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1
