"""Your own molecules: a table of SMILES, or a list of them. Graphs of your own are in `grit.datasets.own.graph_lists`."""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grit.datasets.molecules.smiles import murcko_scaffold, ogb_graph, why_no_smiles
from grit.datasets.own.task_inference import ColumnFacts, TaskKind, infer_targets
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, default_processes, molecule_pieces
from grit.datasets.pipeline.splits import file_split, named_split, random_split, scaffold_split
from grit.datasets.pipeline.text_table import TextTable
from grit.datasets.pipeline.write_store import Collected, Description, RowProgress, collect
from grit.errors import GritError, shown
from grit.graphs.chunk import Array
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore


def from_csv(
    path: str | Path,
    *,
    targets: str | Sequence[str],
    smiles: str | None = None,
    task: TaskKind | None = None,
    split: str = "random",
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    processes: int | None = None,
    progress: RowProgress | None = None,
    say: Callable[[str], None] | None = None,
) -> GraphStore:
    """Molecules from a table.

    Args:
        path: CSV or TSV, possibly gzipped, with a header.
        targets: Column or columns to predict; blanks are missing labels.
        smiles: Column of SMILES; found by its name if not given.
        task: ``regression``, ``binary``, ``multiclass`` or ``multilabel``; inferred from the values if not given.
        split: ``random``, ``scaffold`` (Bemis-Murcko), ``column:NAME`` (train, val, test), or ``file:PATH``.
        seed: Of the random split.
        out: Folder of the new store; in memory if not given.
        overwrite: Whether a store at ``out`` is replaced.
        processes: How many convert molecules; all processors if not given.
        progress: Called with the number of rows done since the last call.
        say: Told what was inferred, a sentence at a time. Without it, rows that cannot be used give a warning.
    """
    path = Path(path)
    names = [targets] if isinstance(targets, str) else list(targets)
    column = smiles if smiles is not None else smiles_column(TextTable(path))
    split_column = split.removeprefix("column:") if split.startswith("column:") else None
    _check_columns(column, names)
    table = TextTable(path, list(dict.fromkeys([column, *names, *([split_column] if split_column else [])])))
    facts = [ColumnFacts(name) for name in names]
    for row in table.rows():
        if row.reason is None:
            for fact in facts:
                fact.see(row.fields[fact.name])
    parsed = infer_targets(facts, task)
    if say is not None:
        say(f"SMILES from the column {column!r}; {parsed.task.kind} of {', '.join(names)} ({parsed.why}).")
    places: dict[int, tuple[int, str]] = {}

    def rows() -> Iterator[MoleculeRow]:
        for row in table.rows():
            if split not in ("random", "scaffold"):
                places[row.number] = row.line, row.fields[split_column] if split_column else ""
            y, reason = ((), row.reason) if row.reason else parsed.parse(row.fields[name] for name in names)
            yield MoleculeRow(row.number, row.fields[column], y, reason, row.line)

    chooser = _split_chooser(split, seed, places, str(path))
    pieces = molecule_pieces(rows(), _featurise(split), processes or default_processes())
    description = Description(
        name=path.name.split(".")[0],
        graphs=molecule_schema(parsed.task),
        task=parsed.task,
        source=path.name,
        molecules="ogb",
        built=how_built(path, column, split, seed),
    )
    store = collect(
        pieces, description, chooser, out=None if out is None else Path(out), overwrite=overwrite, progress=progress
    )
    _tell_unused(store, say)
    return store


def how_built(path: Path, smiles: str, split: str, seed: int) -> dict[str, str]:
    """What a store of a table records of its making, by which a resumed fit knows it again."""
    kind = "file" if split.startswith("file:") else split
    with path.open("rb") as file:
        table = hashlib.file_digest(file, "sha256").hexdigest()
    return {"smiles": smiles, "split": kind, "seed": str(seed), "table": table}


def from_smiles(
    smiles: Sequence[str],
    y: Sequence[float] | Sequence[Sequence[float]] | Array,
    *,
    task: TaskKind | None = None,
    split: str = "random",
    seed: int = 0,
    name: str = "molecules",
    out: str | Path | None = None,
    overwrite: bool = False,
    processes: int | None = None,
    say: Callable[[str], None] | None = None,
) -> GraphStore:
    """Molecules from a list of SMILES and an array of targets, (n,) or (n, T), NaN where missing; otherwise as `from_csv`."""
    values = np.asarray(y)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(smiles):
        raise GritError(f"y has shape {np.shape(y)}, expected one row for each of {len(smiles)} molecules.")
    names = ["y"] if values.shape[1] == 1 else [f"y{column}" for column in range(values.shape[1])]
    texts = [[target_text(value) for value in row] for row in values.tolist()]
    facts = [ColumnFacts(each) for each in names]
    for row in texts:
        for fact, text in zip(facts, row, strict=True):
            fact.see(text)
    parsed = infer_targets(facts, task)

    def rows() -> Iterator[MoleculeRow]:
        for number, (each, row) in enumerate(zip(smiles, texts, strict=True)):
            target, reason = parsed.parse(row)
            yield MoleculeRow(number, str(each), target, why_no_smiles(each) or reason)

    description = Description(
        name=name,
        graphs=molecule_schema(parsed.task),
        task=parsed.task,
        source="a list of SMILES",
        molecules="ogb",
        counted="entry",
    )
    if split.startswith("column:"):
        raise GritError(f"a list of SMILES has no columns, so that split={split!r} cannot be.")
    chooser = _split_chooser(split, seed, dict.fromkeys(range(len(smiles)), (None, "")), name)
    pieces = molecule_pieces(rows(), _featurise(split), processes or default_processes())
    store = collect(pieces, description, chooser, out=None if out is None else Path(out), overwrite=overwrite)
    _tell_unused(store, say)
    return store


def _tell_unused(store: GraphStore, say: Callable[[str], None] | None) -> None:
    """Rows that gave no graph and graphs that are in no split: nobody should have to look for them."""
    tell = say if say is not None else partial(warnings.warn, stacklevel=4)
    in_a_split = np.unique(np.concatenate([*store.splits.values(), np.zeros(0, dtype=np.int64)])).size
    if in_a_split < len(store):
        tell(f"{len(store) - in_a_split:,} of {len(store):,} molecules are in no split, and will not be used.")
    if store.manifest.skipped and say is None:  # a command tells it with the place of the list
        first = store.skipped[0]
        tell(
            f"{store.manifest.skipped:,} of {store.manifest.rows:,} rows could not be used; store.skipped lists them. "
            f"The first: {shown(first.content)}: {first.reason}"
        )


def molecule_schema(task: TaskSpec) -> GraphSchema:
    """Molecules with OGB's atom and bond features."""
    return GraphSchema(node=OGB_ATOM, edge=OGB_BOND, num_outputs=task.num_outputs)


def smiles_column(table: TextTable) -> str:
    """The column that holds SMILES, by its name."""
    candidates = [
        name for name in table.header if name.lower() in ("smiles", "smile", "canonical_smiles", "mol", "molecule")
    ]
    if not candidates:
        raise GritError(
            f"{str(table.path)!r} has no column called smiles. Name the one that holds them with --smiles (smiles= in Python); "
            f"there are {', '.join(table.header)}. If these are values, the line with the names of the columns is missing."
        )
    return candidates[0]


def _check_columns(smiles: str, targets: list[str]) -> None:
    repeated = [name for name in targets if targets.count(name) > 1 or name == smiles]
    if repeated:
        raise GritError(f"the column {repeated[0]!r} is named twice: SMILES and targets must be different columns.")


def _featurise(split: str) -> Featurise:
    return Featurise(graph=ogb_graph, scaffold=murcko_scaffold if split == "scaffold" else None)


def _split_chooser(
    split: str, seed: int, places: Mapping[int, tuple[int | None, str]], where: str
) -> Callable[[Collected], dict[str, Array]]:
    """How to split; ``places`` gives for each row its line and the name of its split, once the rows were read."""

    def choose(found: Collected) -> dict[str, Array]:
        if split == "random":
            return random_split(found.count, seed)
        if split == "scaffold":
            return scaffold_split(found.scaffolds)
        picked = [places[row] for row in found.rows.tolist() if row in places]
        lines = [line for line, _ in picked if line is not None]
        if split.startswith("column:"):
            return named_split([name for _, name in picked], lines, where)
        known = {row: row if line is None else line for row, (line, _) in places.items()}
        return file_split(Path(split.removeprefix("file:")), found.rows.tolist(), lines, known)

    if split not in ("random", "scaffold") and not split.startswith(("column:", "file:")):
        raise GritError(f"split must be random, scaffold, column:NAME or file:PATH, got {split!r}.")
    return choose


def target_text(value: Any) -> str:
    """A target as a table would hold it; blank where it is missing."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
