"""Columns of numbers beside the targets: what a model reads of each row, and how much the row counts."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rdkit")

from grit.datasets import from_csv
from grit.datasets.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors
from grit.datasets.molecules.graph_inputs import DESCRIPTORS, graph_inputs
from grit.datasets.molecules.smiles import morgan_counts, morgan_fingerprint
from grit.datasets.own.number_columns import read_numbers
from grit.errors import GritError

SMILES = ["CCO", "c1ccccc1", "CCN", "CC(=O)O", "C", "CCCl"]


def write(path, *rows, header="smiles,y,temp,pH,w"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    return write(
        tmp_path / "a.csv", *(f"{each},{k}.5,{20 + k},{'' if k == 2 else k / 2},{k}" for k, each in enumerate(SMILES))
    )


class TestReading:
    @given(st.lists(st.floats(-3e38, 3e38), min_size=1, max_size=4))
    def test_numbers_are_read_as_they_are_written(self, values):
        fields = {f"c{k}": repr(value) for k, value in enumerate(values)}
        assert read_numbers(fields, list(fields)).features == tuple(values)

    @pytest.mark.parametrize("blank", ["", "  ", "NA", "nan", "?"])
    def test_a_blank_is_missing(self, blank):
        found = read_numbers({"a": blank, "b": "2"}, ["a", "b"])
        assert isnan(found.features[0])
        assert found.missing == ("a",)
        assert found.reason is None

    @pytest.mark.parametrize("cell", ["abc", "1_000", "inf", "1e39", "1;2"])
    def test_what_is_no_number_is_a_reason(self, cell):
        assert (
            read_numbers({"a": cell}, ["a"]).reason
            == f"a is {cell!r}, expected a number (or a blank, if it is not known)"
        )

    @pytest.mark.parametrize("cell", ["", "-1", "inf", "x", "nan"])
    def test_a_weight_is_finite_and_not_negative(self, cell):
        reason = read_numbers({"w": cell}, [], "w").reason
        assert reason == f"the weight w is {cell!r}, expected a number that is not negative"
        assert read_numbers({"w": "0"}, [], "w").weight == 0.0


class TestTables:
    def test_rows_keep_their_numbers(self, table):
        said = []
        store = from_csv(table, targets="y", features=["pH", "temp"], weights="w", say=said.append, processes=1)
        wanted = np.array([[np.nan if k == 2 else k / 2, 20 + k] for k in range(6)])
        np.testing.assert_allclose(store.graph_attr(range(6)), wanted)
        assert store.weights(range(6)).tolist() == [0, 1, 2, 3, 4, 5]
        assert store.manifest.inputs.columns == store.manifest.inputs.names == ("pH", "temp")
        assert "The model also reads the columns pH, temp of each molecule." in said
        assert "pH: 1 blank cells, for which the mean of the training molecules stands." in said
        assert "Rows count in the loss by the column 'w', in the metrics alike." in said

    def test_descriptors_follow_the_columns(self, table, tmp_path):
        store = from_csv(table, targets="y", features="temp", descriptors=["rdkit", "morgan"], out=tmp_path / "s")
        assert store.manifest.inputs.names[:2] == ("temp", RDKIT_DESCRIPTORS[0])
        for number, smiles in enumerate(SMILES):
            parts = [[20.0 + number], rdkit_descriptors(smiles), morgan_counts(smiles)]
            wanted = np.concatenate(parts).astype(np.float32)
            np.testing.assert_array_equal(store.graph_attr([number])[0], wanted)

    def test_molecules_without_some_descriptor_are_counted(self, tmp_path):
        rows = [f"{each},{k}.5,{20 + k},1,1" for k, each in enumerate([*SMILES, "[Na+].[Cl-]", "[Pt]"])]
        said = []
        store = from_csv(
            write(tmp_path / "a.csv", *rows), targets="y", features=["temp"], descriptors=["rdkit"], say=said.append
        )
        lacking = np.isnan(store.graph_attr(range(8))[:, 1:])
        assert 0 < lacking.any(1).sum() < 8
        (told,) = [line for line in said if "lack descriptors" in line]
        assert told.startswith(f"{lacking.any(1).sum()} molecules lack descriptors, such as ")
        assert told.split("such as ")[1].split(";")[0] == RDKIT_DESCRIPTORS[int(lacking.any(0).argmax())]

    def test_rows_that_cannot_be_used_are_listed(self, tmp_path):
        rows = [f"{each},{k}.5,{20 + k},1,1" for k, each in enumerate(SMILES)]
        path = write(tmp_path / "a.csv", *rows, "CCCC,1.5,warm,1,1", "CCCCC,1.5,2,1,-2")
        store = from_csv(path, targets="y", features=["temp"], weights="w", say=lambda line: None)
        assert [(each.line, each.reason) for each in store.skipped] == [
            (8, "temp is 'warm', expected a number (or a blank, if it is not known)"),
            (9, "the weight w is '-2', expected a number that is not negative"),
        ]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"features": ["y"]}, "--features 'y': this column is a target already"),
            ({"features": ["smiles"]}, "--features 'smiles': this column is the SMILES already"),
            ({"features": ["temp", "temp"]}, "--features 'temp': this column is --features already"),
            ({"features": ["temp"], "weights": "temp"}, "--weights 'temp': this column is --features already"),
            ({"weights": "y"}, "--weights 'y': this column is a target already"),
            ({"features": ["w"], "split": "column:w"}, "--features 'w': this column is the split already"),
            ({"features": ["warmth"]}, "no column 'warmth'"),
            ({"descriptors": ["mordred"]}, "no descriptors 'mordred'; --descriptors takes rdkit or morgan"),
            ({"descriptors": ["rdkit", "rdkit"]}, "named twice"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, table, options, message):
        with pytest.raises(GritError, match=message):
            from_csv(table, targets="y", **options)

    @pytest.mark.parametrize(("cell", "message"), [("", "all its cells are blank"), ("red", "for example 'red'")])
    def test_a_column_without_numbers_is_refused(self, tmp_path, cell, message):
        path = write(tmp_path / "a.csv", *(f"{each},{number}.5,{cell},1,1" for number, each in enumerate(SMILES)))
        with pytest.raises(GritError, match=f"'temp' has no numbers.*{message}"):
            from_csv(path, targets="y", features=["temp"])


class TestDescriptors:
    @pytest.mark.parametrize("name", sorted(DESCRIPTORS))
    def test_every_kind_has_a_name_for_each_of_its_numbers(self, name):
        kind = DESCRIPTORS[name]
        values = kind.compute("CC(=O)Oc1ccccc1C(=O)O")
        assert values.shape == (len(kind.names),)
        assert len(set(kind.names)) == len(kind.names)

    def test_counts_are_of_the_fingerprint(self):
        for smiles in SMILES:
            np.testing.assert_array_equal(morgan_counts(smiles) > 0, morgan_fingerprint(smiles) > 0)
        assert morgan_counts("CCCCCC").max() > 1

    def test_nothing_is_nothing(self):
        assert graph_inputs([], []) is None
