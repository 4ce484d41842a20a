"""What a user is told of salts, duplicates and splits, and what becomes of them."""

import json

import numpy as np
import pytest

import grit
from grit.datasets import from_csv, from_smiles
from grit.datasets.own.data_notes import notes_of
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.pipeline.splits import fold_split

ALCOHOLS = [f"{'C' * number}O" for number in range(1, 61)]
RINGS = [f"{'C' * chain}C1{'C' * ring}C1" for ring in range(1, 11) for chain in range(1, 7)]


def table(path, rows, header="smiles,y"):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    return path


def told(path, **options):
    said = []
    store = from_csv(path, **{"targets": "y", "processes": 1, "say": said.append, **options})
    return store, " ".join(said)


def molecules_of(store, split, smiles):
    return {smiles[row] for row in store.rows[store.split(split)].tolist()}


@pytest.mark.parametrize("split", ["random", "scaffold"])
def test_identical_molecules_stay_on_one_side(tmp_path, split):
    """Sixty molecules three times each; the second time written in another way, the third from its other end."""
    written = [*RINGS, *(f"[CH3]{each[1:]}" for each in RINGS), *(f"C({each[1:]})" for each in RINGS)]
    path = table(tmp_path / "t.csv", [(each, number + 0.5) for number, each in enumerate(written)])
    store, said = told(path, split=split)
    names = [RINGS[number % 60] for number in range(180)]
    parts = [molecules_of(store, part, names) for part in ("train", "val", "test")]
    assert all(parts)
    assert sum(map(len, parts)) == 60
    assert "60 molecules occur more than once, in 180 rows (for example lines 2, 62, 122)" in said
    assert "keep identical molecules together" in said


def test_a_list_of_smiles_too():
    store = from_smiles(ALCOHOLS * 3, np.arange(180) / 7, processes=1)
    parts = [molecules_of(store, part, ALCOHOLS * 3) for part in ("train", "val", "test")]
    assert sum(map(len, parts)) == 60


@pytest.mark.parametrize("split", ["random", "scaffold"])
def test_groups_for_folds_survive_another_process(tmp_path, split):
    path = table(tmp_path / "t.csv", [(each, number + 0.5) for number, each in enumerate(RINGS * 2)])
    made = MoleculeTable(path, targets="y", split=split)
    store = made.to_store(tmp_path / "s", processes=1).store
    groups = made.fold_groups(store)
    again = MoleculeTable(path, targets="y", split=split).fold_groups(grit.datasets.load(str(tmp_path / "s")))
    assert np.array_equal(groups, again)
    assert groups[:60].tolist() == groups[60:].tolist()
    assert len(set(groups.tolist())) == (10 if split == "scaffold" else 60)
    assert len(fold_split(120, 3, 0, groups)) == 3


def test_validation_is_drawn_where_only_train_and_test_are_named(tmp_path):
    rows = [(each, number + 0.5, "test" if number % 4 == 0 else "train") for number, each in enumerate(ALCOHOLS)]
    path = table(tmp_path / "t.csv", rows, "smiles,y,part")
    store, said = told(path, split="column:part")
    assert [store.split(part).size for part in ("train", "val", "test")] == [41, 4, 15]
    assert "column:part names no validation part: 4 of 45 molecules are drawn from train" in said
    (tmp_path / "s.json").write_text(json.dumps({"train": list(range(40)), "test": list(range(40, 60))}))
    store, said = told(path, split=f"file:{tmp_path / 's.json'}")
    assert [store.split(part).size for part in ("train", "val", "test")] == [36, 4, 20]
    assert "drawn from train" in said


def test_a_split_of_the_user_is_not_changed_but_its_overlap_is_said(tmp_path):
    rows = [(each, number, part) for part in ("train", "val", "test") for number, each in enumerate(ALCOHOLS[:5])]
    path = table(tmp_path / "t.csv", rows, "smiles,y,part")
    store, said = told(path, split="column:part", task="regression")
    assert [store.split(part).size for part in ("train", "val", "test")] == [5, 5, 5]
    assert "10 of 10 molecules held out (val, test) are in train too (lines 2 and 7, 3 and 8, 4 and 9 ...)" in said
    with pytest.warns(UserWarning, match="10 of 10 molecules held out"):
        from_csv(path, targets="y", split="column:part", task="regression", processes=1)


def test_notes_are_kept_in_the_store(tmp_path):
    path = table(tmp_path / "t.csv", [(each, number + 0.5) for number, each in enumerate([*ALCOHOLS, "CCN.Cl", "CCO"])])
    for store in (told(path)[0], told(path, out=tmp_path / "s")[0], grit.datasets.load(str(tmp_path / "s"))):
        assert [note.kind for note in notes_of(store)] == ["salt", "duplicates", "conflicts", "absent"]


def test_what_there_is_none_of_is_said_too(tmp_path):
    path = table(tmp_path / "t.csv", [(each, number + 0.5) for number, each in enumerate([*ALCOHOLS, "CCN.Cl"])])
    said = told(path)[1]
    assert "1 of 61 molecules are salts or solvates" in said
    assert "(line 62): they are used whole; --standardise parent takes the neutral form of the largest part." in said
    assert "There are no mixtures, metals or duplicates among the 61 molecules." in said
    _, said = told(path, standardise="parent")
    assert "the neutral form of the largest part is used; --standardise none takes them whole" in said


def test_conflicts_of_numbers_and_classes_together(tmp_path):
    """The numbers of the two rows agree, the classes do not."""
    rows = [(each, number + 0.5, "ab"[number % 2]) for number, each in enumerate(ALCOHOLS)]
    path = table(tmp_path / "t.csv", [*rows, ("OC", 0.5, "b")], "smiles,y,kind")
    said = told(path, targets=["y", "kind"])[1]
    assert "1 of them have different labels, or values that differ" in said
    assert "(for example lines 2, 62): all are used" in said
