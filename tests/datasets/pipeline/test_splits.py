import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.datasets.pipeline.splits import file_split, named_split, random_split, read_split_file, scaffold_split


@given(st.integers(3, 500), st.integers(0, 5))
def test_random(count, seed):
    parts = random_split(count, seed)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(count))
    assert all(part.size for part in parts.values())
    assert len(parts["val"]) == len(parts["test"]) == max(1, round(0.1 * count))
    again = random_split(count, seed)
    assert all(np.array_equal(parts[name], again[name]) for name in parts)
    if count > 20:
        assert not np.array_equal(random_split(count, seed + 1)["test"], parts["test"])


def test_too_few():
    with pytest.raises(grit.GritError, match="at least 3"):
        random_split(2, 0)


@given(st.lists(st.sampled_from("abcdefghijklmnopqrst"), min_size=60, max_size=200))
def test_scaffolds_stay_together(scaffolds):
    try:
        parts = scaffold_split(scaffolds)
    except grit.GritError as error:
        assert "leaves" in str(error)
        return
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(len(scaffolds)))
    names = {name: {scaffolds[number] for number in part} for name, part in parts.items()}
    assert not names["train"] & names["val"]
    assert not names["train"] & names["test"]
    assert not names["val"] & names["test"]
    assert len(parts["train"]) <= 0.8 * len(scaffolds) + 1e-9


def test_a_sorted_table_does_not_give_a_test_set_of_one_class():
    scaffolds = [f"scaffold {number}" for number in range(1000)]  # all different; the first half is class 0
    test = scaffold_split(scaffolds)["test"]
    assert 0.3 < (test < 500).mean() < 0.7


def test_one_scaffold_cannot_be_split():
    with pytest.raises(grit.GritError, match="too few different scaffolds .1.\\. Use a random split"):
        scaffold_split(["same"] * 10)


def test_names():
    parts = named_split(["train", "Valid", " TEST", "dev"], [4, 5, 6, 7], "here")
    assert {name: part.tolist() for name, part in parts.items()} == {"train": [0], "val": [1, 3], "test": [2]}
    with pytest.raises(grit.GritError, match="here: line 5 says 'later', expected train, val or test"):
        named_split(["train", "later"], [4, 5], "here")


def test_files(tmp_path):
    rows = np.array([10, 12, 15, 20])  # rows 11, 13 ... gave no graph
    (tmp_path / "s.json").write_text(json.dumps({"train": [20, 10, 11], "valid": [12], "test": [15]}))
    (tmp_path / "s.csv").write_text("row,split\n20,train\n10,train\n11,train\n12,val\n15,test\n")
    for name in ("s.json", "s.csv"):
        parts = file_split(read_split_file(tmp_path / name, has_lines=False), rows)
        assert {name: part.tolist() for name, part in parts.items()} == {"train": [3, 0], "val": [1], "test": [2]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.json", '{"train": [0, 1, 7]}', "names the row 7, which the data does not have: its rows are 0 to 2"),
        (
            "s.csv",
            "line,split\n1,train\n3,val\n",
            "names the line 1, which the data does not have: its lines are 2 to 4",
        ),
    ],
)
def test_rows_that_the_data_does_not_have(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(grit.GritError, match=message):
        file_split(read_split_file(tmp_path / name, has_lines=True), [0, 2], [2, 4], {0: 2, 1: 3, 2: 4})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.json", "{", "cannot read the split file"),
        ("s.json", "[1]", "must be of the form"),
        ("s.json", '{"train": [1.5]}', "'train' must be train, val or test with a list of row numbers"),
        ("s.json", '{"later": [1]}', "'later' must be train"),
        ("s.csv", "row,split\nx,train\n", "line 2: expected a row number and train, val or test"),
        ("s.csv", "row,split\n1,later\n", "line 2: expected a row number and train, val or test"),
        ("s.csv", "a,b\n", "has no column 'row'"),
        ("s.csv", "row,split\n1,train\n2,train,more\n", "line 3: 3 fields, the header has 2"),
        ("s.csv", "row,split\n1,train\n1,test\n", "names the row 1 twice"),
        ("s.json", '{"train": [1, 2], "test": [2]}', "names the row 2 twice"),
        ("s.json", '{"val": [1], "valid": [1]}', "names the row 1 twice"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(grit.GritError, match=message):
        read_split_file(tmp_path / name, has_lines=False)
    with pytest.raises(grit.GritError, match="cannot read"):
        read_split_file(tmp_path / "absent.json", has_lines=False)


@given(st.binary(max_size=200), st.sampled_from(["s.json", "s.csv"]))
def test_fuzz(tmp_path_factory, content, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
        file_split(read_split_file(path, has_lines=False), np.arange(5))
    except grit.GritError:
        pass
