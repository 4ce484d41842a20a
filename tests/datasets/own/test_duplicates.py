"""What ``--duplicates`` makes of identical molecules, and that every row that is not used is accounted for."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.datasets import from_csv, from_smiles
from grit.datasets.own.data_notes import notes_of
from grit.datasets.own.duplicates import merge
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.pipeline.featurise_rows import MoleculeRow
from grit.graphs.schema import TaskSpec

OTHERS = [f"{'C' * number}N" for number in range(2, 22)]  # lines 2 to 21
NUMBERS = TaskSpec(kind="regression", targets=("y",), loss="l1", metric="mae")
CLASSES = TaskSpec(kind="multiclass", targets=("y",), classes=("a", "b", "c"), loss="cross_entropy", metric="accuracy")


def table(path, rows, header="smiles,y"):
    """Twenty other molecules on lines 2 to 21, and the rows below them."""
    is_class = isinstance(rows[0][1], str)
    usual = {"y": "a" if is_class else 0.5, "part": "train"}
    names = header.split(",")[1:]
    filling = [(each, *(usual.get(name, 1) for name in names)) for each in OTHERS]
    if not is_class:
        filling = [(each[0], number / 7, *each[2:]) for number, each in enumerate(filling)]
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in [*filling, *rows])]))
    return path


def made(path, **options):
    said = []
    store = from_csv(path, **{"targets": "y", "processes": 1, "say": said.append, **options})
    return store, " ".join(said)


def targets_by_line(store):
    """Line -> target; rows count from 0 below the header."""
    values = store.targets(np.arange(len(store)))[:, 0]
    return {int(row) + 2: float(value) for row, value in zip(store.rows, values, strict=True)}


def reasons(store):
    return {row.line: row.reason for row in store.skipped}


def test_merging_takes_the_mean(tmp_path):
    path = table(tmp_path / "t.csv", [("CCO", 1), ("OCC", 2), ("C(O)C", 6)])
    store, said = made(path, duplicates="merge")
    assert len(store) == 21
    assert targets_by_line(store)[22] == 3
    assert (
        "1 molecules occur more than once, in 3 rows (for example lines 22, 23, 24): each becomes one row, with the mean"
        in said
    )
    assert (
        "values that differ by more than a standard deviation of the column (for example lines 22, 23, 24): the mean is used"
        in said
    )
    assert reasons(store) == dict.fromkeys(
        (23, 24), "identical to line 22, with which it is merged; their values conflict"
    )
    assert [note.kind for note in notes_of(store)] == ["duplicates", "conflicts", "absent"]


def test_merging_takes_the_majority_and_leaves_out_a_tie(tmp_path):
    rows = [("CCO", "b"), ("OCC", "a"), ("C(O)C", "b"), ("CCS", "a"), ("SCC", "b")]
    store, said = made(table(tmp_path / "t.csv", rows), duplicates="merge")
    assert store.task.classes == ("a", "b")
    found = targets_by_line(store)
    assert found[22] == 1
    assert found.keys().isdisjoint({23, 24, 25, 26})
    assert reasons(store)[23] == "identical to line 22, with which it is merged; y: 'b' by majority, 2 of 3 rows"
    assert reasons(store)[25] == "identical to line 26; y: 'a' and 'b' are equally frequent, so it is not used"
    assert reasons(store)[26] == "identical to line 25; y: 'a' and 'b' are equally frequent, so it is not used"
    assert (
        "1 of them have no majority, as two classes are equally frequent (for example lines 25, 26): none of their 2 rows"
        in said
    )


def test_dropping_takes_the_first(tmp_path):
    store, said = made(table(tmp_path / "t.csv", [("CCO", 1), ("OCC", 2)]), duplicates="drop")
    assert targets_by_line(store)[22] == 1
    assert reasons(store) == {23: "identical to line 22, which is used (--duplicates drop)"}
    assert "the first row of each is used" in said


def test_an_error_names_the_lines(tmp_path):
    path = table(tmp_path / "t.csv", [("CCO", 1), ("OCC", 2), ("CCS", 1), ("SCC", 1)])
    with pytest.raises(
        grit.GritError, match="2 molecules occur more than once, in 4 rows: lines 22, 23; lines 24, 25. --dup"
    ):
        made(path, duplicates="error")


def test_keeping_names_the_option(tmp_path):
    store, said = made(table(tmp_path / "t.csv", [("CCO", 1), ("OCC", 2)]))
    assert len(store) == 22
    assert "--duplicates merge makes one row of each" in said


@pytest.mark.parametrize("how", ["keep", "merge", "drop", "error"])
def test_without_duplicates_nothing_changes(tmp_path, how):
    store, said = made(table(tmp_path / "t.csv", [("CCO", 1)]), duplicates=how)
    assert (len(store), store.skipped) == (21, [])
    assert "There are no salts, mixtures, metals or duplicates among the 21 molecules." in said


def test_another_way_is_refused(tmp_path):
    path = table(tmp_path / "t.csv", [("CCO", 1)])
    with pytest.raises(grit.GritError, match="duplicates must be one of keep, merge, drop, error, got 'join'"):
        MoleculeTable(path, targets="y", duplicates="join")
    with pytest.raises(grit.GritError, match="got 'join'"):
        from_smiles(OTHERS, np.arange(20) / 7, duplicates="join")


def test_standardising_comes_first(tmp_path):
    path = table(tmp_path / "t.csv", [("CC(=O)O", 1), ("CC(=O)[O-].[Na+]", 3)])
    assert len(made(path, duplicates="merge")[0]) == 22
    store, _ = made(path, duplicates="merge", standardise="parent")
    assert targets_by_line(store)[22] == 2
    assert len(store) == 21


def test_rows_with_other_features_are_not_the_same(tmp_path):
    rows = [("CCO", 1, 20), ("OCC", 2, 20), ("CCO", 9, 37)]
    path = table(tmp_path / "t.csv", rows, "smiles,y,celsius")
    store, _ = made(path, duplicates="merge", features="celsius")
    assert targets_by_line(store)[22] == 1.5
    assert targets_by_line(store)[24] == 9


def test_weights_count_in_the_mean(tmp_path):
    path = table(tmp_path / "t.csv", [("CCO", 1, 3), ("OCC", 5, 1)], "smiles,y,w")
    store, _ = made(path, duplicates="merge", weights="w")
    assert targets_by_line(store)[22] == 2


@pytest.mark.parametrize("by", ["column", "row", "line"])
def test_labels_of_the_test_part_stay_out_of_training(tmp_path, by):
    rows = [("CCO", 1, "train"), ("OCC", 2, "Training"), ("CCO", 9, "test"), ("CCF", 1, "test"), ("CCCl", 1, "val")]
    path = table(tmp_path / "t.csv", rows, "smiles,y,part")
    parts = ["train"] * 22 + ["test", "test", "val"]
    (tmp_path / "row.json").write_text(
        json.dumps({part: [row for row, each in enumerate(parts) if each == part] for part in ("train", "val", "test")})
    )
    (tmp_path / "line.csv").write_text("\n".join(["line,split", *(f"{n + 2},{part}" for n, part in enumerate(parts))]))
    split = {"column": "column:part", "row": f"file:{tmp_path / 'row.json'}", "line": f"file:{tmp_path / 'line.csv'}"}[
        by
    ]
    store, said = made(path, duplicates="merge", split=split)
    found = targets_by_line(store)
    assert (found[22], found[24]) == (1.5, 9)
    assert "1 of 3 molecules held out (val, test) are in train too (lines 22 and 24)" in said
    assert 23 not in found
    assert reasons(made(path, duplicates="drop", split=split)[0]).keys() == {23, 24}


def test_a_list_of_smiles_counts_entries():
    y = [number / 7 for number in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a row that was merged on request is nothing to warn of
        store = from_smiles([*OTHERS, "CCO", "OCC"], [*y, 1, 1.5], duplicates="merge", processes=1)
    assert reasons(store) == {21: "identical to entry 20, with which it is merged"}
    with pytest.raises(grit.GritError, match="in 2 rows: entries 20, 21"):
        from_smiles([*OTHERS, "CCO", "OCC"], [*y, 1, 2], duplicates="error", processes=1)


def test_a_bad_row_is_still_listed(tmp_path):
    store, _ = made(table(tmp_path / "t.csv", [("CCO", 1), ("C(", 2), ("OCC", 1)]), duplicates="merge")
    assert reasons(store).keys() == {23, 24}
    assert not reasons(store)[23].startswith("identical")


def row(y, weight=None):
    return MoleculeRow(0, "C", (y,), None, 2, (), weight)


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=6))
def test_the_mean_is_of_what_is_known(values):
    merged, _ = merge([row(value) for value in values], NUMBERS)
    known = [value for value in values if value == value]
    if known:
        assert merged.y[0] == pytest.approx(sum(known) / len(known), abs=1e-6)
    else:
        assert merged is None


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=9))
def test_the_majority_is_the_class_that_beats_all_others(labels):
    merged, why = merge([row(label) for label in labels], CLASSES)
    winners = [
        each for each in (0.0, 1.0, 2.0) if all(labels.count(each) > labels.count(o) for o in (0, 1, 2) if o != each)
    ]
    assert (merged is None) == (not winners)
    if winners:
        assert merged.y == (winners[0],)
    assert (why == "") == (len(set(labels)) == 1)


def test_one_label_of_several_may_tie():
    task = TaskSpec(kind="multilabel", targets=("a", "b"), loss="cross_entropy", metric="auroc")
    rows = [MoleculeRow(0, "C", (1, 0), None, 2), MoleculeRow(1, "C", (1, 1), None, 3)]
    merged, why = merge(rows, task)
    assert merged.y[0] == 1
    assert np.isnan(merged.y[1])
    assert why == "b: '0' and '1' are equally frequent, so it is not used"
