"""Your own molecules: a table of SMILES, or a list of them. Graphs of your own are in `grit.datasets.own.graph_lists`.

A row of a table is read once and its SMILES parsed once. It is a `TableRow` of text, then a `MoleculeRow` with numbers as
targets, then, in a worker process, an RDKit molecule from which its graph, scaffold and fingerprint come, in a `Piece`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from grit.datasets.molecules.featurisers import FEATURISERS, own_featuriser
from grit.datasets.molecules.graph_inputs import DESCRIPTORS, graph_inputs
from grit.datasets.molecules.smiles import why_no_smiles
from grit.datasets.molecules.standardise import canonical_smiles
from grit.datasets.own.choose_split import SplitChoice
from grit.datasets.own.data_notes import groups_of
from grit.datasets.own.duplicates import check_duplicates
from grit.datasets.own.molecule_stores import Chemistry, Dividing, Making, MoleculeStore, Seen, make_store
from grit.datasets.own.number_columns import RowNumbers, check_number_columns, missing_numbers, read_numbers
from grit.datasets.own.target_notes import check_varied, target_notes
from grit.datasets.own.task_inference import ColumnFacts, Targets, TaskKind, cells_of, infer_targets
from grit.datasets.pipeline.featurise_rows import Featurise, MoleculeRow, default_processes, molecule_pieces
from grit.datasets.pipeline.write_store import Description, RowProgress
from grit.datasets.tables.formats import open_table
from grit.datasets.tables.smiles_column import smiles_column
from grit.datasets.tables.table import NO_OPTIONS, KeptRows, ReadOptions, TableRow
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.schema import OGB_ATOM, OGB_BOND, GraphInputs, GraphSchema, TaskSpec
from grit.graphs.store import GraphStore

_AT_A_TIME = 4_096  # molecules whose numbers are looked at together


class MoleculeTable:
    """A table of molecules, and what to make of it. The header is read at once, the rows when they are needed, once.

    Args:
        path: A table of any format that `grit.datasets.tables.formats.open_table` reads.
        targets: Column or columns to predict; blanks are missing labels.
        smiles: Column of SMILES; found by its name if not given.
        task: ``regression``, ``binary``, ``multiclass`` or ``multilabel``; inferred from the values if not given.
        split: ``random``, ``scaffold`` (Bemis-Murcko), ``column:NAME`` (train, val, test), or ``file:PATH``.
        seed: Of the random split.
        standardise: ``none``, or ``parent`` for the neutral form of the largest part of each molecule.
        duplicates: What becomes of rows with the same molecule: ``keep`` uses all, ``merge`` makes one row with the mean or the
            majority of their targets, ``drop`` takes the first, ``error`` refuses. See `grit.datasets.own.duplicates`.
        ignore_case: Whether classes that differ only in case or spaces are one.
        options: What the user says about the file: separator, encoding, sheet.
        features: Columns of numbers that a model reads beside the graph; blanks are missing numbers.
        descriptors: Entries of `grit.datasets.molecules.graph_inputs.DESCRIPTORS` that it reads, too.
        weights: Column that says how much each row counts in the loss; all count alike if not given.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        targets: str | Sequence[str],
        smiles: str | None = None,
        task: TaskKind | None = None,
        split: str = "random",
        seed: int = 0,
        standardise: str = "none",
        duplicates: str = "keep",
        ignore_case: bool = False,
        options: ReadOptions = NO_OPTIONS,
        features: str | Sequence[str] = (),
        descriptors: str | Sequence[str] = (),
        weights: str | None = None,
    ) -> None:
        self.path, self.task, self.split, self.seed = Path(path), task, split, seed
        check_duplicates(duplicates)
        self.standardise, self.duplicates, self.featuriser = standardise, duplicates, own_featuriser(standardise)
        self.ignore_case = ignore_case
        self.targets = (targets,) if isinstance(targets, str) else tuple(targets)
        self._table = open_table(self.path, (), options)
        found = None if smiles is not None else smiles_column(self._table)
        self.smiles = found.name if found is not None else str(smiles)
        self.notes = [*self._table.notes, *([found.note] if found is not None and found.note else [])]
        repeated = [name for name in self.targets if self.targets.count(name) > 1 or name == self.smiles]
        if repeated:
            raise GritError(f"the column {repeated[0]!r} is named twice: SMILES and targets must be different columns.")
        self._choice = SplitChoice.named(split, seed)
        self._groups: tuple[Array, Array] | None = None
        self.features = (features,) if isinstance(features, str) else tuple(features)
        self.weights = weights
        self.inputs = graph_inputs(self.features, (descriptors,) if isinstance(descriptors, str) else descriptors)
        check_number_columns(
            self.features, weights, smiles=self.smiles, targets=self.targets, split=self._choice.column
        )
        others = [*self.features, *(name for name in (self._choice.column, weights) if name is not None)]
        self._table.need(list(dict.fromkeys([self.smiles, *self.targets, *others])))

    @cached_property
    def _content(self) -> tuple[KeptRows, list[ColumnFacts]]:
        facts = [ColumnFacts(name) for name in self.targets]

        def seen() -> Iterator[TableRow]:
            for row in self._table.rows():
                if row.reason is None:
                    for fact in facts:
                        fact.see(row.fields[fact.name])
                yield row

        return KeptRows(seen()), facts

    def how_built(self) -> dict[str, str]:
        """What a store of the table records of its making, by which a resumed fit knows it again."""
        file = self._choice.file
        _ = self._content  # the checksum is known once all rows were read
        return {
            "smiles": self.smiles,
            "task": self.task or "inferred",
            "split": self.split if file is None else "file",
            "seed": str(self.seed),
            "table": self._table.sha256,
            "standardise": self.standardise,
            "duplicates": self.duplicates,
            "treatment of case": "ignored" if self.ignore_case else "kept",
            **({} if self._table.options == NO_OPTIONS else {"read as": repr(tuple(self._table.options))}),
            **({} if file is None else {"split file": file.sha256}),
            **({} if self.weights is None else {"weights": self.weights}),
        }

    def smiles_of(self, store: GraphStore) -> list[str]:
        """The SMILES of every graph of a store that was made from the table."""
        by_row = {row.number: row.fields[self.smiles] for row in self._content[0]}
        return [by_row[row] for row in store.rows.tolist()]

    def standard_smiles_of(self, store: GraphStore) -> list[str]:
        """The same, of the molecules as they were standardised."""
        written, featuriser = self.smiles_of(store), FEATURISERS[self.featuriser]
        if featuriser.standardise is None:
            return written
        return [canonical_smiles(featuriser.molecule(each)) for each in written]

    def fold_groups(self, store: GraphStore) -> Array:
        """Which molecules of a store of the table stay together in folds, (n,) whole numbers.

        Identical molecules do, with ``split="scaffold"`` all of one scaffold. A store that an earlier process made is read again.
        """
        if self._groups is None or not np.array_equal(self._groups[0], store.rows):
            self._remember_groups(self._seen_again(store))
        assert self._groups is not None
        return self._groups[1]

    def fingerprints_of(self, store: GraphStore) -> Array:
        """Packed Morgan fingerprints of the molecules of a store of the table, (n, 256), by reading them again."""
        return self._seen_again(store, with_fingerprints=True).packed_fingerprints

    def _seen_again(self, store: GraphStore, *, with_fingerprints: bool = False) -> "Seen":
        seen = Seen()
        rows = (
            MoleculeRow(row, smiles, (), None)
            for row, smiles in zip(store.rows.tolist(), self.smiles_of(store), strict=True)
        )
        for piece in molecule_pieces(rows, self._featurise(with_fingerprints), default_processes()):
            seen.add(piece)
        return seen

    def _featurise(self, with_fingerprints: bool, descriptors: tuple[str, ...] = ()) -> Featurise:
        return Featurise.named(
            self.featuriser,
            with_scaffolds=self.split == "scaffold",
            with_fingerprints=with_fingerprints,
            with_identities=True,
            descriptors=descriptors,
        )

    def _remember_groups(self, seen: "Seen") -> None:
        self._groups = seen.all_rows, self._choice.groups(groups_of(seen.identities), seen.scaffolds)

    def to_store(
        self,
        out: str | Path | None = None,
        *,
        overwrite: bool = False,
        made_by: str = "from_csv",
        with_fingerprints: bool = False,
        processes: int | None = None,
        progress: RowProgress | None = None,
        say: Callable[[str], None] | None = None,
    ) -> MoleculeStore:
        """Turn the molecules into graphs; the arguments are those of `from_csv`."""
        kept, facts = self._content
        check_varied(facts)
        targets = infer_targets(facts, self.task, ignore_case=self.ignore_case)
        if say is not None:
            for note in self.notes:
                say(note)
            names = ", ".join(self.targets)
            say(f"SMILES from the column {self.smiles!r}; {targets.task.kind} of {names} ({targets.why}).")
        self._check_numbers(kept, say or (lambda line: None))
        column = self._choice.column
        places = {row.number: (row.line, row.fields[column] if column else "") for row in kept}
        name, built = self.path.name, {**self.how_built(), "made_by": made_by}
        made, seen = make_store(
            lambda: (self._molecule(row, targets) for row in kept),
            Description(
                name.split(".")[0],
                molecule_schema(targets.task, self.inputs),
                targets.task,
                source=name,
                molecules=self.featuriser,
                built=built,
                inputs=self.inputs,
            ),
            Dividing(self._choice, places, str(self.path)),
            self._featurise(with_fingerprints, () if self.inputs is None else self.inputs.descriptors),
            Chemistry(self.standardise, self.duplicates, target_notes(facts, targets)),
            Making(None if out is None else Path(out), overwrite, processes or default_processes(), progress, say),
        )
        self._remember_groups(seen)
        if say is not None:
            _tell_missing_descriptors(made.store, say)
        return made

    def _molecule(self, row: TableRow, targets: Targets) -> MoleculeRow:
        y, reason = ((), row.reason) if row.reason else targets.parse(row.fields[name] for name in self.targets)
        numbers = RowNumbers() if reason else read_numbers(row.fields, self.features, self.weights)
        reason = reason or numbers.reason
        smiles = row.fields[self.smiles]
        return MoleculeRow(row.number, smiles, y, reason, row.line, numbers.features, numbers.weight)

    def _check_numbers(self, kept: Iterable[TableRow], say: Callable[[str], None]) -> None:
        """Say what the model reads beside the graph, where cells are missing, and what the rows weigh."""
        if self.inputs is not None:
            parts = [*(["the columns " + ", ".join(self.features)] if self.features else [])]
            parts += [f"{name} descriptors ({len(DESCRIPTORS[name].names):,})" for name in self.inputs.descriptors]
            say(f"The model also reads {' and '.join(parts)} of each molecule.")
        for name, count in missing_numbers(kept, self.features).items():
            say(f"{name}: {count:,} blank cells, for which the mean of the training molecules stands.")
        if self.weights is not None:
            say(f"Rows count in the loss by the column {self.weights!r}, in the metrics alike.")


def from_csv(
    path: str | Path,
    *,
    targets: str | Sequence[str],
    smiles: str | None = None,
    task: TaskKind | None = None,
    split: str = "random",
    seed: int = 0,
    standardise: str = "none",
    duplicates: str = "keep",
    ignore_case: bool = False,
    out: str | Path | None = None,
    overwrite: bool = False,
    made_by: str = "from_csv",
    processes: int | None = None,
    progress: RowProgress | None = None,
    say: Callable[[str], None] | None = None,
    features: str | Sequence[str] = (),
    descriptors: str | Sequence[str] = (),
    weights: str | None = None,
    options: ReadOptions = NO_OPTIONS,
) -> GraphStore:
    """Molecules from a table.

    Args:
        path: See `MoleculeTable`, as are the next eight.
        targets: See `MoleculeTable`.
        smiles: See `MoleculeTable`.
        task: See `MoleculeTable`.
        split: See `MoleculeTable`.
        seed: See `MoleculeTable`.
        standardise: See `MoleculeTable`.
        duplicates: See `MoleculeTable`.
        ignore_case: See `MoleculeTable`.
        out: Folder of the new store; in memory if not given.
        overwrite: Whether a store at ``out`` is replaced.
        made_by: What the store says about who made it.
        processes: How many convert molecules; all processors if not given.
        progress: Called with the number of rows done since the last call.
        say: Told what was inferred, a sentence at a time. Without it, rows that cannot be used give a warning.
        features: See `MoleculeTable`.
        descriptors: See `MoleculeTable`.
        weights: See `MoleculeTable`.
        options: See `MoleculeTable`.
    """
    table = MoleculeTable(
        path,
        targets=targets,
        smiles=smiles,
        task=task,
        split=split,
        seed=seed,
        standardise=standardise,
        duplicates=duplicates,
        ignore_case=ignore_case,
        features=features,
        descriptors=descriptors,
        weights=weights,
        options=options,
    )
    return table.to_store(
        out, overwrite=overwrite, made_by=made_by, processes=processes, progress=progress, say=say
    ).store


def from_smiles(
    smiles: Sequence[str],
    y: Sequence[float] | Sequence[Sequence[float]] | Array,
    *,
    task: TaskKind | None = None,
    split: str = "random",
    seed: int = 0,
    standardise: str = "none",
    duplicates: str = "keep",
    ignore_case: bool = False,
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
    check_duplicates(duplicates)
    choice = SplitChoice.named(split, seed, counted="entry")
    facts = [ColumnFacts(f"y{column}" if values.shape[1] > 1 else "y") for column in range(values.shape[1])]
    cells = cells_of(values)
    for row in cells:
        for fact, cell in zip(facts, row, strict=True):
            fact.see(cell)
    check_varied(facts)
    targets = infer_targets(facts, task, ignore_case=ignore_case)

    def rows() -> Iterator[MoleculeRow]:
        for number, (each, row) in enumerate(zip(smiles, cells, strict=True)):
            target, reason = targets.parse(row)
            yield MoleculeRow(number, str(each), target, why_no_smiles(each) or reason)

    schema, source, featuriser = molecule_schema(targets.task), "a list of SMILES", own_featuriser(standardise)
    return make_store(
        rows,
        Description(name, schema, targets.task, source=source, molecules=featuriser, counted="entry"),
        Dividing(choice, dict.fromkeys(range(len(smiles)), (None, "")), name),
        Featurise.named(featuriser, with_scaffolds=split == "scaffold", with_identities=True),
        Chemistry(standardise, duplicates, target_notes(facts, targets)),
        Making(None if out is None else Path(out), overwrite, processes or default_processes(), None, say),
    )[0].store


def _tell_missing_descriptors(store: GraphStore, say: Callable[[str], None]) -> None:
    """Say how many molecules have no value for some descriptor, as metals have no partial charges."""
    inputs = store.manifest.inputs
    if inputs is None or not inputs.descriptors:
        return
    first, count, lacking = len(inputs.columns), 0, np.zeros(len(inputs.names), dtype=bool)
    for start in range(0, len(store), _AT_A_TIME):
        missing = np.isnan(store.graph_attr(np.arange(start, min(start + _AT_A_TIME, len(store)))))  # (n, F)
        count += int(missing[:, first:].any(1).sum())
        lacking |= missing.any(0)
    if count:
        name = inputs.names[first + int(lacking[first:].argmax())]
        say(
            f"{count:,} molecules lack descriptors, such as {name}; for these the mean of the training molecules stands."
        )


def molecule_schema(task: TaskSpec, inputs: GraphInputs | None = None) -> GraphSchema:
    """Molecules with OGB's atom and bond features, and perhaps numbers of their own."""
    width = 0 if inputs is None else len(inputs.names)
    return GraphSchema(node=OGB_ATOM, edge=OGB_BOND, num_outputs=task.num_outputs, graph_features=width)
