"""How good a trained run is: on a split of its data, or on any labelled table; every row accounted for.

Shapes: `n` rows, `T` targets, `O` outputs (T, or the number of classes).
"""

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grit.datasets.own.number_columns import RowNumbers, read_numbers
from grit.datasets.own.task_inference import Targets
from grit.datasets.pipeline.featurise_rows import MoleculeRow, default_processes, molecule_pieces
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.smiles_column import smiles_column
from grit.datasets.tables.table import listed
from grit.errors import GritError
from grit.files.spreadsheet import guarded
from grit.files.whole_file import whole_file
from grit.graphs.chunk import Array
from grit.graphs.schema import TaskSpec
from grit.graphs.store import GraphStore
from grit.learning.bootstrap import RESAMPLES, Measurement, measure
from grit.training.output_columns import NOTE, prediction_cells, prediction_columns
from grit.training.predictions import Predictions
from grit.training.predictor import Predictor
from grit.training.run_folder import RunFolder


class UnusedRow(NamedTuple):
    """A row of a table that is not measured: its number from 0, its line as an editor shows it, its SMILES, and why."""

    row: int
    line: int
    smiles: str
    reason: str


class Evaluated(NamedTuple):
    """Predictions beside the truth.

    Attributes:
        task: What is predicted.
        rows: (n,) row of the source of each, from 0; empty for nodes and edges.
        smiles: Of each; empty where these are not known.
        outputs: (n, O) numbers or probabilities.
        targets: (n, T) with NaN where missing.
        unused: Rows that are not measured.
        notes: Sentences about what was recognised.
    """

    task: TaskSpec
    rows: Array
    smiles: Sequence[str]
    outputs: Array
    targets: Array
    unused: Sequence[UnusedRow] = ()
    notes: Sequence[str] = ()

    def measured(self, *, resamples: int = RESAMPLES, seed: int = 0) -> Measurement:
        """Metrics with bootstrap intervals; nodes and edges have none, as those of one graph are not independent."""
        return measure(self.task, self.outputs, self.targets, resamples=resamples if self.rows.size else 0, seed=seed)


def evaluate_split(predictor: Predictor, store: GraphStore, split: str) -> Evaluated:
    """Predict a split of a store."""
    outputs, targets = predictor.predict_store(store, split)
    is_graphs = store.schema.level == "graph"
    rows = store.rows[store.split(split)] if is_graphs else np.zeros(0, dtype=np.int64)
    return Evaluated(predictor.task.spec, rows, (), outputs, targets)


def evaluate_table(
    predictor: Predictor,
    path: Path,
    *,
    smiles: str | None = None,
    processes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluated:
    """Predict the molecules of a labelled table. Its targets are the columns of their names; blanks are missing labels.

    Args:
        predictor: The model.
        path: A table of any format that `grit.datasets.tables.formats.open_table` reads.
        smiles: Column of SMILES; found by its name if not given.
        processes: How many convert molecules; all processors if not given.
        progress: Called with the number of rows done since the last call.
    """
    task, featurise = predictor.task.spec, predictor.featurise()
    table = open_table(path)
    notes = list(table.notes)
    found = None if smiles is not None else smiles_column(table)
    column = found.name if found is not None else str(smiles)
    notes += [found.note] if found is not None and found.note else []
    there = [name for name in task.targets if name in table.header]
    if not there:
        raise GritError(
            f"{str(path)!r} has no labels: the run predicts {', '.join(map(repr, task.targets))}, and there is no such column; "
            f"there are {listed(table.header)}. Rename the column of the labels, or predict with grit predict."
        )
    missing = [name for name in task.targets if name not in there]
    notes += [f"No column of {', '.join(missing)}, so that these are not measured."] if missing else []
    table.need([column, *there, *predictor.columns])
    parse, given = Targets(task, "").parse, {}

    def rows() -> Iterator[MoleculeRow]:
        for row in table.rows():
            y, reason = ((), row.reason) if row.reason else parse(row.fields.get(name, "") for name in task.targets)
            numbers = RowNumbers() if reason else read_numbers(row.fields, predictor.columns)
            given[row.line] = row.number
            kept[row.number] = row.fields.get(column, "")
            yield MoleculeRow(row.number, kept[row.number], y, reason or numbers.reason, row.line, numbers.features)

    kept: dict[int, str] = {}
    places, outputs, targets, unused = [], [], [], []
    for piece in molecule_pieces(rows(), featurise, processes or default_processes()):
        unused += [UnusedRow(given[each.line], each.line, each.content, each.reason) for each in piece.skipped]
        if piece.chunk is not None:
            places.append(piece.rows)
            outputs.append(predictor.predict_piece(piece))
            targets.append(np.asarray(piece.chunk.y, dtype=np.float64).reshape(len(piece.rows), -1))
        if progress is not None:
            progress(len(piece.rows) + len(piece.skipped))
    if not places:
        first = f" The first, line {unused[0].line}: {unused[0].reason}." if unused else ""
        raise GritError(f"{str(path)!r} has no row that can be measured ({len(unused):,} rows).{first}")
    order = np.concatenate(places)
    return Evaluated(
        task,
        order,
        [kept[row] for row in order.tolist()],
        np.concatenate(outputs),
        np.concatenate(targets),
        unused,
        notes,
    )


def write_evaluated(out: Path, found: Evaluated) -> None:
    """Write truth and prediction of every row as a CSV, rows that were not measured with the reason, in their order."""
    task, has_smiles = found.task, bool(found.smiles)
    names, classes = prediction_columns(task), [part.spec.classes for part in task.by_target()]
    lines: list[tuple[int, list[str]]] = []
    for place, (row, truth, cells) in enumerate(
        zip(
            found.rows.tolist(),
            found.targets.tolist(),
            prediction_cells(task, Predictions(found.outputs)),
            strict=True,
        )
    ):
        known = ["" if value != value else _truth(labels, value) for value, labels in zip(truth, classes, strict=True)]
        lines.append((row, [str(row), *([found.smiles[place]] if has_smiles else []), *known, *cells, ""]))
    blank = [""] * (len(task.targets) + len(names))
    lines += [
        (each.row, [str(each.row), *([each.smiles] if has_smiles else []), *blank, each.reason])
        for each in found.unused
    ]
    if not out.parent.is_dir():
        raise GritError(
            f"cannot write {str(out)!r}: there is no folder {str(out.parent)!r}. Name another file with -o."
        )
    try:
        with whole_file(out) as file:
            writer = csv.writer(codecs.getwriter("utf-8")(file))
            header = ["row", *(["smiles"] if has_smiles else []), *task.targets, *names, NOTE]
            writer.writerow(map(guarded, header))
            writer.writerows(map(guarded, cells) for _, cells in sorted(lines, key=lambda line: line[0]))
    except OSError as error:
        raise GritError(f"cannot write {str(out)!r}: {error.strerror or error}. Name another file with -o.") from None


def _truth(labels: Sequence[str], value: float) -> str:
    return labels[int(value)] if labels else f"{value:.9g}"


def unfinished(run: Path) -> str | None:
    """A sentence about a run whose training has not ended, or is not known to have; None if it has.

    Args:
        run: A run folder, or the folder of a fit with one model; nothing is said of a checkpoint file.
    """
    folders = [path for path in (run, run / "model") if (path / "config.yaml").is_file()]
    if not folders:
        return None
    folder = RunFolder.open(folders[0])
    if folder.result() is not None:
        return None
    history: list[dict[str, Any]] = folder.history()
    used = "the best weights so far" if folder.best.exists() else "the last weights"
    return (
        f"{str(folders[0])!r} is not finished: {len(history):,} of {folder.recipe().train.epochs:,} epochs; {used} are used. "
        "Go on with the command that began it and --resume."
    )


def default_place(run: Path, what: str) -> Path:
    """Where predictions go unless told otherwise: beside the run, as files inside would not be its own.

    Args:
        run: What the user named: a run folder, the folder of a fit, or a checkpoint file.
        what: A split, or the name of a table.
    """
    folder = run.resolve()
    folder = folder.parent.parent if folder.is_file() else folder
    name = folder.name
    if (folder.parent / "data").is_dir() and name == "model":
        folder = folder.parent
        name = folder.name
    elif folder.parent.name == "models":
        name = f"{folder.parent.parent.name}-{name}"
        folder = folder.parent.parent
    return folder.parent / f"{name}-{what}-predictions.csv"
