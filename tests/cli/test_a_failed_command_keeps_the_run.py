"""Commands that go on with a run and fail leave it as it was; and what is told about a run is true. Called in this process."""

import numpy as np
import pytest

FIT = ("fit", "mine.csv", "--target", "y", "--preset", "fast", "--split", "random", "--no-forest", "--run", "run")
SMALL = ("encoding.walk_steps=4", "model.num_layers=1", "model.hidden_dim=8", "model.num_heads=2", "train.epochs=1")


@pytest.fixture
def run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{'C' * (k % 9 + 1)}{'O' if k % 2 else 'N'},{k % 9 + 0.5}\n" for k in range(40)]
    (tmp_path / "mine.csv").write_text("smiles,y\n" + "".join(lines))
    command(*FIT, *SMALL)
    return tmp_path / "run"


def content(run):
    return {path.relative_to(run): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def damage_table(run):
    table = run.parent / "mine.csv"
    table.write_text(table.read_text() + "CCC,3.5\n")


def damage_manifest(run):
    (run / "data" / "manifest.json").write_text("{")


def damage_array(run):
    largest = max((run / "data").rglob("*.npy"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-8])


def remove_table(run):
    (run.parent / "mine.csv").unlink()


@pytest.mark.parametrize("damage", [damage_table, damage_manifest, damage_array, remove_table])
@pytest.mark.parametrize("finished", [True, False])
def test_a_resume_that_fails_keeps_the_run(command, run, damage, finished):
    if not finished:
        (run / "model" / "result.json").unlink()
    damage(run)
    before = content(run)
    assert command(*FIT, *SMALL, "--resume", code=2).startswith("error: ")
    assert content(run) == before


def test_the_favourite_atom_is_the_one_that_others_attend_to(command, run, monkeypatch):
    """Every atom looks at atom 2; atom 1 looks the hardest."""
    weights = np.array([[0.2, 0.2, 0.6], [0.05, 0.05, 0.9], [0.3, 0.3, 0.4]])
    monkeypatch.setattr("grit.cli.print_plot.attention_maps", lambda predictor, smiles: weights[None, None])
    said = command("plot", "attention", run / "model", "CCO", "-o", "a.png")
    assert "most attended to is O" in said
    assert "with a mean weight of 0.633" in said
    assert "--atom 2" in said


def test_interrupted_is_a_word_and_the_usual_code(command, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr("grit.cli.app", stop)
    assert command("recipes", code=130) == "interrupted\n"
