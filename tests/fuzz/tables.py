"""Tables of molecules: damaged CSV, gzip, quotes, odd columns; every row becomes a graph or is listed with its reason.

A third of them are of another format (Excel, Parquet, JSON lines, SDF, SMILES), damaged or not.
"""

import csv
import gzip
import io
import zipfile
from pathlib import Path
from random import Random
from typing import Any

from grit.datasets import from_csv
from grit.datasets.tables.writers.rows import Rows
from grit.datasets.tables.writers.write_table import WRITERS
from grit.errors import GritError
from grit.training.predict_table import NOTE, predict_table
from tests.fuzz import scene
from tests.fuzz.mutation import NUMBERS, TEXTS, damaged

HEADERS = [
    "name,smiles,y",
    "smiles,y",
    "y,SMILES,smiles",
    "smiles;y",
    "smiles\ty",
    "mol,y",
    '"smiles","y"',
    "smiles,y,y",
    "",
    "smiles , y",
    "smiles,y_pred,y",
    "smiles,y,note",
    "smiles,y,",
]
BAD_SMILES = [
    "C(",
    "",
    '"C,C"',
    '"C"',
    "[Xx]",
    "é",
    " CCO ",
    "[*]",
    "nan",
    "C" * 900,
    "c1ccccc",
    '"C""C"',
    '"C\nC"',
    "[Fe+9]",
    "*",
]
OPTIONS: dict[str, list[Any]] = {
    "targets": ["y"] * 8 + [["y"], [], "absent", ["y", "y"], "smiles", ""],
    "smiles": [None] * 6 + ["smiles", "absent"],
    "task": [None] * 6 + ["regression", "binary", "multiclass", "multilabel", "nonsense"],
    "split": ["random"] * 5 + ["scaffold", "column:y", "column:absent", "file:absent", "nonsense", ""],
    "seed": [0, 0, 1, 2**40],
    "name": ["t.csv"] * 5 + ["t.tsv", "t.csv.gz", "t", "é.csv"],
}


FORMATS = [".xlsx", ".parquet", ".jsonl", ".sdf", ".smi"]
LYING_SHEETS = [
    '<row r="1"/><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    '<row r="99999999999"/>',
    '<row r="1"><c r="A1" t="s"><v>7</v></c></row>',
    '<row r="1"><c r="A1" t="str"><v>smiles</v></c></row><row r="2"><c r="A2"><f>1+1</f></c></row>',
    " " * 5_000_000,
]


def other_format(rng: Random, odd: bool) -> dict[str, Any]:
    """The bytes of a table of another format than text, and how it is read."""
    ending = rng.choice(FORMATS)
    rows = [
        [
            f"m{number}",
            rng.choice(scene.GOOD) if rng.random() < 0.8 else rng.choice(BAD_SMILES),
            f"{rng.random() * 9:.2f}",
        ]
        for number in range(rng.randint(4, 12))
    ]
    file = io.BytesIO()
    is_derived = ending in (".sdf", ".smi")
    WRITERS[ending](file, Rows(["name", "smiles", "y"], lambda: iter(rows), "smiles", is_derived=is_derived))
    content = file.getvalue()
    if odd and ending == ".xlsx" and rng.random() < 0.5:
        content = _with_sheet(content, rng.choice(LYING_SHEETS), rng.random() < 0.3)
    if odd:
        content = damaged(rng, content)
    if rng.random() < 0.2:
        content = gzip.compress(content, mtime=0)
        content = damaged(rng, content) if odd else content
    options = {name: choices[0] for name, choices in OPTIONS.items()}
    return {"content": content, **options, "name": f"t{ending}", "on_disk": rng.random() < 0.3}


def _with_sheet(content: bytes, rows: str, has_doctype: bool) -> bytes:
    """A workbook whose sheet has other rows, and perhaps a document type that would expand without end."""
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>' if has_doctype else ""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            is_sheet = name.endswith("sheet1.xml")
            sheet = f"{bomb}<worksheet><sheetData>{rows}{'&b;' if bomb else ''}</sheetData></worksheet>"
            new.writestr(name, sheet if is_sheet else old.read(name))
    return out.getvalue()


def make_input(rng: Random) -> dict[str, Any]:
    """The bytes of a table, and how it is read."""
    odd = rng.random() < 0.5  # half of the tables are odd as a whole, the others in some rows at most
    if rng.random() < 0.33:
        return other_format(rng, odd)
    lines = [rng.choice(HEADERS) if odd and rng.random() < 0.5 else HEADERS[0]]
    for number in range(rng.randint(0 if odd else 4, 12)):
        smiles = rng.choice(scene.GOOD) if rng.random() < 0.8 else rng.choice(TEXTS if odd else BAD_SMILES)
        y = f"{rng.random() * 9:.2f}" if rng.random() < 0.95 - 0.3 * odd else rng.choice([*NUMBERS, *"ABC01"])
        lines.append(f"m{number},{smiles},{y}" + ("" if rng.random() < 0.97 else rng.choice([",", ",x", "\n"])))
    content = rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines).encode("utf-8", "surrogatepass")
    if odd and rng.random() < 0.5:
        content = damaged(rng, content)
    if rng.random() < 0.1:
        content = gzip.compress(content, mtime=0)
        content = damaged(rng, content) if odd else content
    if odd and rng.random() < 0.1:
        content = content.decode("utf-8", "replace").encode(
            rng.choice(["utf-16", "utf-8-sig", "cp037", "utf-32"]), "replace"
        )
    options = {name: rng.choice(choices) if rng.random() < 0.3 else choices[0] for name, choices in OPTIONS.items()}
    return {"content": content, **options, "on_disk": rng.random() < 0.3}


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Make a data set of it, and predict it."""
    path = folder / value["name"]
    path.write_bytes(value["content"])
    refusals = []
    try:
        rows = _predict(path, value, folder)
    except GritError as error:
        refusals.append(error)
        rows = None
    store = from_csv(
        path,
        targets=value["targets"],
        smiles=value["smiles"],
        task=value["task"],
        split=value["split"],
        seed=value["seed"],
        out=folder / "store" if value["on_disk"] else None,
        processes=1,
    )
    rows = store.manifest.rows if rows is None else rows
    assert store.manifest.rows == rows, f"{rows} rows predicted, {store.manifest.rows} read"
    assert len(set(store.rows.tolist())) + len({place for place, *_ in store.skipped}) == rows, "a row is lost"
    assert all(each.reason for each in store.skipped)
    store.verify()
    if refusals:
        raise refusals[0]


def _predict(path: Path, value: dict[str, Any], folder: Path) -> int:
    """Predict it, and check what was written; the number of rows."""
    rows, without = predict_table(scene.predictor(), path, folder / "out.csv", smiles=value["smiles"], processes=1)
    with (folder / "out.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert len(lines) == rows, f"{rows} rows, {len(lines)} written"
    place, note = header.index("y_pred"), header.index(NOTE)
    assert sum(bool(line[note]) for line in lines) == without, "rows without a prediction are miscounted"
    assert all(bool(line[place]) != bool(line[note]) for line in lines), "a row has neither a prediction nor a reason"
    lowered = [name.lower() for name in header]
    if value["smiles"] is None and lowered.count("smiles") == 1:
        for line in lines:
            if line[place]:
                scene.check_good(line[lowered.index("smiles")].strip(), float(line[place]))
    return rows
