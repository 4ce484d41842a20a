"""Predictions for a whole table, streamed: every row in its place, with a reason where there is no prediction."""

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
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
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.smiles_column import smiles_column
from grit.datasets.tables.table import Record, Table, listed
from grit.errors import GritError
from grit.files.spreadsheet import guarded
from grit.files.whole_file import whole_file
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
    processes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[int, int]:
    """Read a table of SMILES and write it again with predictions beside them.

    Cells that a spreadsheet would run as formulas are written as text, see `grit.files.spreadsheet`.

    Args:
        predictor: The model.
        path: CSV or TSV, possibly gzipped.
        out: The new CSV, written whole or not at all.
        smiles: Column of SMILES; found by its name if not given.
        processes: How many convert molecules; all processors if not given.
        progress: Called with the number of rows done since the last call.

    Returns:
        Rows, and rows without a prediction.
    """
    table = open_table(path)
    column = smiles if smiles is not None else smiles_column(table).name
    _check_features(predictor, table)
    table.need([column, *predictor.columns])
    names = prediction_columns(predictor.task.spec)
    taken = [name for name in (*names, NOTE) if name in table.header]
    if taken:
        raise GritError(f"{str(path)!r} has a column {taken[0]!r} already; rename it.")

    if out.exists() and out.samefile(path):
        raise GritError(f"{str(out)!r} is the table to read; name another CSV to write.")

    imputed: dict[int, str] = {}

    def rows() -> Iterator[tuple[Record, MoleculeRow]]:
        for number, record in enumerate(table.records()):
            row = table.parse(number, record)
            numbers = RowNumbers() if row.reason else read_numbers(row.fields, predictor.columns)
            if numbers.missing:
                imputed[row.line] = f"{', '.join(numbers.missing)}: blank, the mean of the training molecules was used"
            reason = row.reason or numbers.reason
            yield record, MoleculeRow(number, row.fields[column], (), reason, row.line, numbers.features)

    converted = in_order(
        _Convert(predictor.featurise()), batched(rows(), ROWS_PER_PIECE), processes or default_processes()
    )
    width, total, without = len(table.header), 0, 0

    def lines() -> Iterator[list[str]]:
        nonlocal total, without
        for records, piece in converted:
            reasons = {each.line: each.reason for each in piece.skipped}
            cells = prediction_cells(predictor.task.spec, Predictions(predictor.predict_piece(piece)))
            for line, fields, _ in records:
                note = imputed.pop(line, "")
                values = [*[""] * len(names), reasons[line]] if line in reasons else [*next(cells), note]
                yield [*(fields + [""] * width)[:width], *values]
            total += len(records)
            without += len(reasons)
            if progress is not None:
                progress(len(records))

    _write(out, [*table.header, *names, NOTE], lines())
    return total, without


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
    total = 0

    def lines() -> Iterator[list[str]]:
        nonlocal total
        done = 0
        for graphs, outputs, _ in predictor.predict_batches(store):
            rows = store.rows[done : done + len(graphs)]
            cells = prediction_cells(predictor.task.spec, Predictions(outputs))
            yield from (
                [*map(str, place), *each]
                for place, each in zip(_places(graphs, rows, store.schema.level), cells, strict=True)
            )
            done += len(graphs)
            total += len(outputs)
            if progress is not None:
                progress(len(graphs))

    _write(out, [*places[store.schema.level], *prediction_columns(predictor.task.spec)], lines())
    return total


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


def _write(out: Path, header: Sequence[str], lines: Iterator[list[str]]) -> None:
    if out.is_dir():
        raise GritError(f"cannot write {str(out)!r}: it is a folder. Name the CSV to write.")
    if out.exists() and not out.is_file():
        raise GritError(f"cannot write {str(out)!r}: it is not an ordinary file. Name the CSV to write.")
    if not out.parent.is_dir():
        raise GritError(f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}.")
    try:
        with whole_file(out) as file:
            writer = csv.writer(codecs.getwriter("utf-8")(file))
            writer.writerow(map(guarded, header))
            writer.writerows(map(guarded, line) for line in lines)
    except OSError as error:
        raise GritError(f"cannot write {str(out)!r}: {error.strerror or error}.") from None
