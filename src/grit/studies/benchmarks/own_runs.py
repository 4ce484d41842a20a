"""Runs that were made here before, to stand beside published numbers: the option ``ours=FOLDER`` of the tables.

A folder is that of a study with run folders ``runs/RECIPE/seedN`` in it, such as those of ``race`` or of another table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from grit.errors import GritError
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe, recipes
from grit.studies.runs import mean_and_sd, outcome_of
from grit.studies.systems import system_title
from grit.training.run_folder import RunFolder


class OwnRun(NamedTuple):
    """What one system reached here.

    Attributes:
        result: Mean ± s.d. of its runs.
        budget: How long it trained, on what.
        is_approximation: Whether the model is one.
    """

    result: str
    budget: str
    is_approximation: bool

    @property
    def words(self) -> str:
        """For a cell."""
        return f"{'≈ ' if self.is_approximation else ''}{self.result} ({self.budget})"


def read_own_runs(folders: Sequence[str]) -> dict[tuple[str, str], OwnRun]:
    """(data set, system) -> what was reached; of a system that several folders hold, what the last of them holds."""
    found: dict[tuple[str, str], OwnRun] = {}
    for folder in folders:
        runs = Path(folder) / "runs"
        names = sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []
        if not names:
            raise GritError(
                f"ours={folder}: there are no runs in it; expected the folder of `grit reproduce race` or of a table, with runs "
                f"in {str(runs / 'RECIPE' / 'seed0')!r}."
            )
        for name in names:
            if name in recipes():
                recipe = load_recipe(name)
                title = system_title(name, recipe.dataset)
                done = [each for path in sorted((runs / name).glob("seed*")) if (each := _finished(path)) is not None]
                if title is not None and done:
                    paper = recipe.paper
                    found[recipe.dataset, title] = OwnRun(
                        mean_and_sd(outcome_of([result for _, result in done]).row),
                        _budget(recipe, done),
                        paper is not None and paper.approximation is not None,
                    )
    return found


def _finished(path: Path) -> tuple[RunFolder, dict[str, Any]] | None:
    """A run and its result; None if it has none on the test set."""
    folder = RunFolder(path)
    result = folder.result() if (path / "result.json").is_file() else None
    return None if result is None or "test" not in result else (folder, result)


def _budget(recipe: Recipe, done: Sequence[tuple[RunFolder, dict[str, Any]]]) -> str:
    """How the runs differ from what is published, in words."""
    epochs = sorted({result["epochs"] for _, result in done})
    shown = str(epochs[0]) if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
    parts = [f"{shown} epoch{'s' * (epochs[-1] != 1)}"]
    parts += ["the last cut short"] if any("cut_at" in result for _, result in done) else []
    folder = done[0][0]
    data, trained = folder.data(), folder.recipe()
    parts.append(f"{data.split_sizes['train']:,} training graphs")
    parts += ["not of the data set itself"] if data.name.startswith("stand-in") else []
    parts += ["a changed model"] if (trained.model, trained.encoding) != (recipe.model, recipe.encoding) else []
    return ", ".join([*parts, f"{len(done)} run{'s' * (len(done) != 1)}"])
