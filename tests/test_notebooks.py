"""Every notebook runs from its first cell to its last, in small, and is stored without outputs."""

import asyncio
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"
SMALL = {"GRIT_NOTEBOOK_MOLECULES": "60", "GRIT_NOTEBOOK_EPOCHS": "2", "OMP_NUM_THREADS": "1"}
EXPECTED = {
    "own_molecules": ["regression of logp", "not valid SMILES", "forest", "61 rows, 1 without a prediction"],
    "reproduce_and_ablate": ["(473473, 473473)", "RRWP -> RWSE", "K = 3: the same", "K = 4: different"],
    "one_layer": ["PairBatch(16 graphs", "with one layer", "within two hops"],
}


def read(name):
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def test_every_notebook_has_a_test():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_no_outputs_are_stored(name):
    cells = [cell for cell in read(name).cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("default")  # of Jupyter itself; the notebook's code runs in a process of its own
def test_the_notebook_runs(name, tmp_path, monkeypatch):
    for variable, value in {**SMALL, "GRIT_DATA": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(variable, value)
    client = nbclient.NotebookClient(read(name), timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    printed = text_of(asyncio.run(client.async_execute()))
    for expected in EXPECTED[name]:
        assert expected in printed


def text_of(notebook):
    """All text that the cells printed or ended with."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
