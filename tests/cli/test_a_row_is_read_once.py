"""How often a command opens its table, and how often it parses each molecule of it."""

import sys
from collections import Counter

import pytest

pytest.importorskip("rdkit")

from rdkit import Chem

from tests.training.small import SMALL

RINGS = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1", "c1ccncc1", "c1ccoc1", "c1ccsc1"]
SMILES = ["C" * carbons + end for carbons in range(1, 7) for end in ("O", "N", "F", "Cl", "Br")] + RINGS
TINY = [*SMALL, "train.epochs=1"]

_opened: list[str] = []


def _note(event, arguments):
    if event == "open":
        _opened.append(str(arguments[0]))


sys.addaudithook(_note)  # the one way that sees every open, whoever calls it; it cannot be removed


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """``counted(path)``: how often a file was opened and each SMILES parsed since the last call, workers included."""
    log, parse = tmp_path / "parsed.txt", Chem.MolFromSmiles

    def noted(smiles, *arguments, **options):
        with log.open("a") as file:  # the worker processes write here, too
            file.write(f"{smiles}\n")
        return parse(smiles, *arguments, **options)

    monkeypatch.setattr(Chem, "MolFromSmiles", noted)

    def call(path):
        opened, parsed = _opened.count(str(path)), Counter(log.read_text().split()) if log.exists() else Counter()
        _opened.clear()
        log.unlink(missing_ok=True)
        return opened, {smiles: parsed[smiles] for smiles in SMILES}

    yield call
    _opened.clear()


def write_table(path):
    path.write_text("smiles,y\n" + "".join(f"{each},{len(each)}.5\n" for each in SMILES))
    _opened.clear()
    return path


@pytest.mark.parametrize("split", ["scaffold", "random"])
def test_fit_and_predict(command, counted, tmp_path, split):
    table, run = write_table(tmp_path / "t.csv"), tmp_path / "run"
    once, twice = ((1, dict.fromkeys(SMILES, times)) for times in (1, 2))
    options = ["--target", "y", "--split", split, "--preset", "fast", "--device", "cpu", "--run", run]
    command("fit", table, *options, "--no-forest", *TINY)
    assert counted(table) == once
    command("fit", table, *options[:-1], tmp_path / "other", *TINY)
    assert counted(table) == twice  # once more for the descriptors of the simple predictors
    command("fit", table, *options[:-1], tmp_path / "other", "--resume", *TINY)
    opened, parsed = counted(table)
    assert (opened, max(parsed.values())) == (1, 1)
    command("predict", run / "model", table, "-o", tmp_path / "out.csv")
    assert counted(table) == once


@pytest.mark.parametrize("split", ["scaffold", "random"])
def test_from_csv_and_from_smiles(counted, tmp_path, split):
    from grit.datasets import from_csv, from_smiles

    table = write_table(tmp_path / "t.csv")
    from_csv(table, targets="y", split=split, out=tmp_path / "store")
    assert counted(table) == (1, dict.fromkeys(SMILES, 1))
    from_smiles(SMILES, [float(len(each)) for each in SMILES], split=split)
    assert counted(table) == (0, dict.fromkeys(SMILES, 1))


def test_the_target_of_zinc_and_its_graph_come_from_one_parse(counted, tmp_path):
    from grit.datasets.benchmarks.zinc_mini import labelled_graph

    for smiles in SMILES:
        labelled_graph(smiles)
    assert counted(tmp_path / "t.csv") == (0, dict.fromkeys(SMILES, 1))
