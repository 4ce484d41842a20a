"""The tables of molecules of the study: which there are, where they are found, and what stands in for them."""

import csv
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grit.datasets import DATASETS
from grit.datasets.benchmarks.zinc_mini import bundled_smiles
from grit.datasets.molecules.smiles import zinc_terms
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.tables.formats import open_table
from grit.errors import GritError
from grit.files.whole_file import write_text
from grit.studies.study import Workbench

_ROWS_SEED = 0  # of the rows that are taken where not all are


class TableForm(NamedTuple):
    """One file in which a data set is found: its name, the column of SMILES, and those to predict."""

    file: str
    smiles: str
    targets: tuple[str, ...]


class MoleculeData(NamedTuple):
    """A data set of the study.

    Attributes:
        title: What tables call it.
        forms: Files that hold it, the first that is found is read.
        metric: By which predictors are compared; models are trained as `grit fit` trains them, whatever it is.
        compared: Whether simple predictors are trained beside GRIT.
        random: Whether there are random splits, for the coverage of intervals.
    """

    title: str
    forms: tuple[TableForm, ...]
    metric: str
    compared: bool
    random: bool


def _forms(name: str, *files: str) -> tuple[TableForm, ...]:
    return tuple(TableForm(file, "smiles", DATASETS[name].task.targets) for file in files)


MOLECULE_DATA: dict[str, MoleculeData] = {
    "esol": MoleculeData("ESOL", _forms("esol", "esol.csv", "delaney-processed.csv"), "rmse", True, True),
    "qm9-gap": MoleculeData(
        "QM9, gap",
        (TableForm("qm9_gap.csv.gz", "SMILES", ("gap_eV",)), TableForm("qm9.csv", "smiles", ("gap",))),
        "mae",
        False,
        True,
    ),
    "bbbp": MoleculeData("BBBP", _forms("bbbp", "bbbp.csv", "BBBP.csv"), "auroc", True, False),
    "tox21": MoleculeData("Tox21", _forms("tox21", "tox21.csv", "tox21.csv.gz"), "auroc", True, False),
}


class StudyTable(NamedTuple):
    """A table to learn from.

    Attributes:
        path: The file.
        form: Its columns.
        note: What it is, if that is not all of the data set; else empty.
    """

    path: Path
    form: TableForm
    note: str

    def divided(self, split: str, seed: int) -> MoleculeTable:
        """The table as `grit fit` takes it."""
        return MoleculeTable(self.path, targets=self.form.targets, smiles=self.form.smiles, split=split, seed=seed)


def find_table(bench: Workbench, name: str, rows: int | None) -> StudyTable:
    """The table of a data set for a study; one that goes on must find what it began with.

    Args:
        bench: Its option ``tables`` names folders, with commas between; without it the budget ``smoke`` has molecules that
            come with the package.
        name: Entry of `MOLECULE_DATA`.
        rows: At most this many, drawn once with a fixed seed; None for all.
    """
    found = _found(bench, name)
    form, content, note = _content(name, found, rows)
    copy = bench.folder / "tables" / f"{name}.csv"
    copy.parent.mkdir(parents=True, exist_ok=True)  # for the descriptors, too
    if content is not None and (not copy.is_file() or copy.read_text(encoding="utf-8") != content):
        write_text(copy, content)
    table = StudyTable(copy if content is not None or found is None else found[0], form, note)
    now = hashlib.sha256(table.path.read_bytes()).hexdigest()
    if bench.piece(f"table {name}", lambda: now) != now:
        raise GritError(
            f"this study was begun with another table of {name} than {str(table.path)!r} is now. "
            f"Name another folder with --run, or remove {str(bench.folder)!r}."
        )
    return table


def _content(name: str, found: tuple[Path, TableForm] | None, rows: int | None) -> tuple[TableForm, str | None, str]:
    """Form, content and note of the table; no content if it is the file that was found."""
    if found is None:
        form = MOLECULE_DATA[name].forms[0]
        note = "Molecules that come with the package with computed targets, which only prove that the path runs"
        return form, _stand_in(name, form, rows or 60), note
    path, form = found
    content, note = (None, "") if rows is None else _some_rows(path, form, rows)
    return form, content, note


def _found(bench: Workbench, name: str) -> tuple[Path, TableForm] | None:
    forms, given = MOLECULE_DATA[name].forms, bench.option("tables", "")
    if not given and bench.budget == "smoke":
        return None
    folders = [Path(folder) for folder in given.split(",") if folder]
    for folder in folders:
        for form in forms:
            if (folder / form.file).is_file():
                return folder / form.file, form
    looked = f"not in {', '.join(str(folder) for folder in folders)}" if folders else "no folder was named"
    raise GritError(
        f"the table of {name} is missing ({looked}): expected {' or '.join(form.file for form in forms)}. Name the folders "
        "of the tables, with commas between, as tables=FOLDER,FOLDER; or leave the data set out with only=."
    )


def _some_rows(path: Path, form: TableForm, rows: int) -> tuple[str | None, str]:
    """Some rows of a table as a CSV, and what they are; None if it has no more than these."""
    columns = (form.smiles, *form.targets)
    table = open_table(path, columns)
    every = [[row.fields.get(column, "") for column in columns] for row in table.rows()]
    if len(every) <= rows:
        return None, ""
    chosen = np.sort(np.random.default_rng(_ROWS_SEED).permutation(len(every))[:rows])
    note = f"Data: {rows:,} of {len(every):,} rows, drawn once at random"
    return _csv(columns, [every[row] for row in chosen.tolist()]), note


def _stand_in(name: str, form: TableForm, rows: int) -> str:
    """Bundled molecules; numbers are logP, classes whether it, with some noise for each target, is above its median."""
    smiles = bundled_smiles()[:rows]
    values = np.array([zinc_terms(each).logp for each in smiles])[:, None]
    if MOLECULE_DATA[name].metric == "auroc":
        noise = np.random.default_rng(_ROWS_SEED).normal(size=(rows, len(form.targets)))
        values = (values + noise > np.median(values + noise, axis=0)).astype(int)
    cells = [[each, *(f"{value:.6g}" for value in row)] for each, row in zip(smiles, values.tolist(), strict=True)]
    return _csv((form.smiles, *form.targets), cells)


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
