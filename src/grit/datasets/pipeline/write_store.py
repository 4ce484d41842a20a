"""From pieces to a store: on disk if a place is given, else in memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from grit.datasets.pipeline.featurise_rows import Piece
from grit.errors import GritError
from grit.graphs.chunk import Array, GraphChunk
from grit.graphs.schema import GraphInputs, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore
from grit.graphs.store_format import SkippedRow
from grit.graphs.store_writer import StoreWriter

RowProgress = Callable[[int], None]


@dataclass(frozen=True)
class Description:
    """What the manifest of a store says: name, features, task, source, kind of molecules, numbers per graph, how it was built.

    ``counted`` is the word for what the numbers of skipped rows count.
    """

    name: str
    graphs: GraphSchema
    task: TaskSpec
    source: str
    molecules: str | None = None
    built: dict[str, str] = field(default_factory=dict)
    inputs: GraphInputs | None = None
    counted: str = "line"


@dataclass
class Collected:
    """What is known once all pieces were seen, for choosing splits."""

    rows: Array
    scaffolds: list[str]

    @property
    def count(self) -> int:
        """Graphs."""
        return int(self.rows.size)


def collect(
    pieces: Iterable[Piece],
    description: Description,
    choose_splits: Callable[[Collected], dict[str, Array]],
    *,
    out: Path | None,
    overwrite: bool = False,
    progress: RowProgress | None = None,
    found_out: Callable[[], dict[str, str]] = dict,
) -> GraphStore:
    """Store graphs.

    Args:
        pieces: The graphs, in order.
        description: For the manifest.
        choose_splits: Called when all graphs are there.
        out: Folder of the new store; None keeps it in memory.
        overwrite: Whether a store at ``out`` is replaced.
        progress: Called with the number of rows done since the last call.
        found_out: Called after that; gives what else the manifest says of how the store was built.
    """
    if out is None:
        return _in_memory(pieces, description, choose_splits, progress, found_out)
    d = description
    with StoreWriter(
        out,
        name=d.name,
        graphs=d.graphs,
        task=d.task,
        source=d.source,
        built=d.built,
        molecules=d.molecules,
        inputs=d.inputs,
        overwrite=overwrite,
    ) as writer:
        rows: list[Array] = []
        skipped: list[SkippedRow] = []
        scaffolds: list[str] = []
        for piece in pieces:
            if piece.chunk is not None:
                writer.append(piece.chunk, piece.rows)
            rows.append(piece.rows)
            skipped += piece.skipped
            scaffolds += piece.scaffolds
            if progress is not None:
                progress(piece.rows.size + len(piece.skipped))
        found = Collected(_joined(rows), scaffolds)
        if not found.count:
            raise _none_readable(description, skipped)
        splits = choose_splits(found)
        writer.finish(splits, rows=found.count + len(skipped), skipped=skipped, found_out=found_out())
    return GraphStore.open(out)


def _in_memory(
    pieces: Iterable[Piece],
    description: Description,
    choose_splits: Callable[[Collected], dict[str, Array]],
    progress: RowProgress | None,
    found_out: Callable[[], dict[str, str]],
) -> GraphStore:
    seen = []
    for piece in pieces:
        seen.append(piece)
        if progress is not None:
            progress(piece.rows.size + len(piece.skipped))
    chunks = [piece.chunk for piece in seen if piece.chunk is not None]
    skipped = [row for piece in seen for row in piece.skipped]
    if not chunks:
        raise _none_readable(description, skipped)
    found = Collected(_joined([piece.rows for piece in seen]), [name for piece in seen for name in piece.scaffolds])
    splits = choose_splits(found)
    return GraphStore.in_memory(
        GraphChunk.join(chunks),
        name=description.name,
        graphs=description.graphs,
        task=description.task,
        splits=splits,
        rows=found.rows,
        skipped=skipped,
        molecules=description.molecules,
        built={**description.built, **found_out()},
        inputs=description.inputs,
    )


def _none_readable(description: Description, skipped: list[SkippedRow]) -> GritError:
    reasons = "; ".join(f"{description.counted} {each.line}: {each.reason}" for each in skipped[:3])
    return GritError(f"{description.name}: none of {len(skipped)} rows could be read ({reasons or 'there are none'}).")


def _joined(rows: list[Array]) -> Array:
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
