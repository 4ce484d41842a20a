"""Predictions for a whole table, streamed: every row in its place, with a reason where there is no prediction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from grit.datasets.own.number_columns import RowNumbers, read_numbers
from grit.datasets.pipeline.featurise_rows import (
    ROWS_PER_PIECE,
    Featurise,
    MoleculeRow,
    Piece,
    batched,
    default_processes,
    in_order,
)
from grit.datasets.tables.formats import ending_of, open_table
from grit.datasets.tables.smiles_column import SmilesColumn, smiles_column
from grit.datasets.tables.table import NO_OPTIONS, ReadOptions, Record, Table, listed
from grit.datasets.tables.writers.rows import Rows
from grit.datasets.tables.writers.write_table import check_output, write_table
from grit.errors import GritError, Interrupted
from grit.files.unfinished_rows import Finished, UnfinishedRows
from grit.graphs.chunk import Array
from grit.graphs.packed import PackedGraphs
from grit.graphs.store import GraphStore
from grit.training.output_columns import NOTE, prediction_cells, prediction_columns
from grit.training.predictions import Predictions
from grit.training.predictor import Predictor


@dataclass(frozen=True)
class _Convert:
    """What a worker does: rows of text -> the records, and the graphs that they gave."""

    featurise: Featurise

    def __call__(self, rows: list[tuple[Record, MoleculeRow]]) -> tuple[list[Record], Piece]:
        return [record for record, _ in rows], self.featurise([row for _, row in rows])


def predict_table(
    predictor: Predictor,
    path: Path,
    out: Path,
    *,
    smiles: str | None = None,
    confidence: float | None = None,
    options: ReadOptions = NO_OPTIONS,
    resume: bool = False,
    processes: int | None = None,
    progress: Callable[[int], None] | None = None,
    expect: Callable[[int | None], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[int, int]:
    """Read a table of SMILES and write it again with predictions beside them.

    The rows that are done are kept in a hidden file beside ``out`` until all are: work that was stopped can be resumed, and
    its result is that of work that was not, byte for byte.

    Args:
        predictor: The model.
        path: A table of any format that `grit.datasets.tables.formats.open_table` reads.
        out: The new table, in the format of its ending, written whole or not at all.
        smiles: Column of SMILES; found by its name if not given.
        confidence: Of intervals and sets; that of the fit if not given.
        options: What the user says about the file.
        resume: Whether to go on where the last attempt was stopped.
        processes: How many convert molecules; all processors if not given.
        progress: Called with the number of rows done since the last call.
        expect: Called with about how many rows there are, if that is known.
        say: Told what was recognised, and what the new file could not hold, a sentence at a time.

    Returns:
        Rows, and rows without a prediction.

    Raises:
        Interrupted: On Ctrl-C, after the rows that are done were kept.
    """
    check_output(out)
    table = open_table(path, (), options)
    found = SmilesColumn(smiles, None) if smiles is not None else smiles_column(table)
    column = found.name
    _check_features(predictor, table)
    table.need([column, *predictor.columns])
    names = predictor.output_columns()
    taken = [name for name in (*names, NOTE) if name in table.header]
    if taken:
        raise GritError(f"{str(path)!r} has a column {taken[0]!r} already; rename it.")
    if out.exists() and out.samefile(path):
        raise GritError(f"{str(out)!r} is the table to read; name another file to write.")
    if say is not None:
        for note in [*table.notes, *([found.note] if found.note else [])]:
            say(note)

    header = [*table.header, *names, NOTE]
    made_of = {
        "table": table.sha256,
        "model": predictor.weights_digest(),
        "column of SMILES": column,
        "confidence": str(confidence),
        "way to read the table": repr(tuple(options)),
        "set of columns": "\n".join(header),
        "size of pieces": str(ROWS_PER_PIECE),
    }
    done = UnfinishedRows(out, made_of, resume=resume)
    try:
        if expect is not None:
            expect(table.expected_rows())
        if progress is not None and done.count:
            progress(done.count)
        pieces = _predicted_pieces(predictor, table, column, done.count, processes or default_processes(), confidence)
        for piece in pieces:
            done.append(piece)
            if progress is not None:
                progress(len(piece.rows))
        is_derived = table.molecules == column and ending_of(path) in (".sdf", ".sd")
        lost = write_table(out, Rows(header, done.rows, column, table.titles, is_derived))
        done.remove()
    except KeyboardInterrupt:
        raise Interrupted(f"stopped after {done.count:,} rows of {str(path)!r}.") from None
    finally:
        done.close()
    if say is not None:
        for note in lost:
            say(note)
    return done.count, done.without


def _predicted_pieces(
    predictor: Predictor, table: Table, column: str, skipped: int, processes: int, confidence: float | None
) -> Iterator[Finished]:
    """The rows of a table with predictions beside them, without the first of them, which were done before."""
    imputed: dict[int, str] = {}
    names, width = predictor.output_columns(), len(table.header)

    def rows() -> Iterator[tuple[Record, MoleculeRow]]:
        for number, record in enumerate(table.records()):
            if number < skipped:
                continue
            row = table.parse(number, record)
            numbers = RowNumbers() if row.reason else read_numbers(row.fields, predictor.columns)
            if numbers.missing:
                imputed[row.line] = f"{', '.join(numbers.missing)}: blank, the mean of the training molecules was used"
            reason = row.reason or numbers.reason
            yield record, MoleculeRow(number, row.fields[column], (), reason, row.line, numbers.features)

    converted = in_order(_Convert(predictor.featurise()), batched(rows(), ROWS_PER_PIECE), processes)
    for records, piece in converted:
        reasons = {each.line: each.reason for each in piece.skipped}
        found = predictor.predictions_of(piece, confidence)
        cells, own_notes = prediction_cells(predictor.task.spec, found), iter(found.notes)
        finished = []
        for line, fields, *_ in records:
            blanks = imputed.pop(line, "")
            if line in reasons:
                values = [*[""] * len(names), reasons[line]]
            else:
                values = [*next(cells), "; ".join(each for each in (blanks, next(own_notes, "")) if each)]
            finished.append([*(fields + [""] * width)[:width], *values])
        yield Finished(finished, len(reasons))


def _check_features(predictor: Predictor, table: Table) -> None:
    missing = [name for name in predictor.columns if name not in table.header]
    if missing:
        raise GritError(
            f"the model reads the columns {', '.join(map(repr, predictor.columns))} beside the SMILES, and {str(table.path)!r} "
            f"has no {', '.join(map(repr, missing))}; there are {listed(table.header)}. Add them; unknown cells may be "
            "blank."
        )


def predict_stored(
    predictor: Predictor,
    store: GraphStore,
    out: Path,
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Predictions for every graph of a store, or for every node or labelled pair of nodes of every graph, one line each.

    The column ``row`` is the row of the source that a graph came from, from 0: a store need not come from a text file.

    Returns:
        Lines.
    """
    places = {"graph": ["row"], "node": ["row", "node"], "edge": ["row", "source", "target"]}
    check_output(out, has_molecules=False)
    header = [*places[store.schema.level], *prediction_columns(predictor.task.spec)]
    lines = UnfinishedRows(out, {}, resume=False)
    try:
        done = 0
        for graphs, outputs, _ in predictor.predict_batches(store):
            rows = store.rows[done : done + len(graphs)]
            cells = prediction_cells(predictor.task.spec, Predictions(outputs))
            places_of = _places(graphs, rows, store.schema.level)
            found = [[*map(str, place), *each] for place, each in zip(places_of, cells, strict=True)]
            lines.append(Finished(found, 0))
            done += len(graphs)
            if progress is not None:
                progress(len(graphs))
        write_table(out, Rows(header, lines.rows))
    finally:
        lines.remove()
    return lines.count


def _places(graphs: PackedGraphs, rows: Array, level: str) -> list[list[int]]:
    """What each prediction is for: the graph's row in its source, then the number of a node, or of two, within it."""
    if level == "graph":
        return [[row] for row in rows.tolist()]
    if level == "node":
        nodes = torch.arange(graphs.num_nodes).unsqueeze(0)  # (1, N)
    else:
        assert graphs.label_index is not None
        nodes = graphs.label_index  # (2, Q)
    graph = graphs.graph_of_node[nodes[0]]
    places: list[list[int]] = torch.stack(
        [torch.from_numpy(rows.astype(np.int64))[graph], *(nodes - graphs.node_ptr[graph])], 1
    ).tolist()
    return places
