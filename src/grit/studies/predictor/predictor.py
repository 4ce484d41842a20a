"""GRIT on tables of molecules beside what chemists use today, and whether its intervals cover what they promise.

``grit reproduce predictor tables=FOLDER[,FOLDER] [only=esol,bbbp] [seeds=0,1] [device=cuda]``

ESOL, BBBP and Tox21 by scaffold split: one model, an ensemble, forests on fingerprints and on descriptors, LightGBM, a constant.
ESOL on random splits as well, without the ensemble.
ESOL and the gap of QM9: coverage of 90 % intervals on random splits and on the scaffold split. GRIT is trained by the presets of
`grit fit` as they come; the budget fixes the number of epochs beforehand, and no setting was chosen by these test sets.
"""

from typing import Any, NamedTuple

from grit.errors import Interrupted
from grit.studies.predictor.molecule_data import MOLECULE_DATA, StudyTable, find_table
from grit.studies.predictor.tables import comparison_figure, comparison_table, coverage_figure, coverage_table
from grit.studies.predictor.trial import Settings, Trial, as_trials, run_trial
from grit.studies.race.race import parse_seeds
from grit.studies.runs import chosen
from grit.studies.runtime.runtime_table import describe_machine
from grit.studies.study import Workbench

OPTIONS = ("tables", "only", "seeds", "device")
_TINY = (
    "encoding.walk_steps=4",
    "model.num_layers=1",
    "model.hidden_dim=8",
    "model.num_heads=2",
    "train.warmup_epochs=0",
)


class Scale(NamedTuple):
    """How much of the study a budget carries out.

    Attributes:
        preset: Of `grit fit`.
        overrides: Changes to it.
        epochs: Where they are not the preset's, by data set.
        rows: At most so many rows, by data set.
        ensemble: Models of an ensemble, on scaffold splits of data sets where GRIT is compared; one model elsewhere.
        seeds: Of scaffold splits, which are always the same: models and simple predictors differ.
        splits: Number of random splits.
    """

    preset: str
    overrides: tuple[str, ...]
    epochs: dict[str, int]
    rows: dict[str, int]
    ensemble: int
    seeds: tuple[int, ...]
    splits: int

    def words(self, name: str) -> str:
        """How GRIT was trained on a data set."""
        count = self.epochs.get(name)
        epochs = "all its epochs" if count is None else f"{count} epoch{'s' * (count != 1)}"
        changes = f" ({', '.join(self.overrides)})" if self.overrides else ""
        return f"the preset {self.preset!r} of grit fit with {epochs}{changes}"


SCALES = {
    "smoke": Scale("fast", _TINY, dict.fromkeys(MOLECULE_DATA, 1), dict.fromkeys(MOLECULE_DATA, 120), 2, (0, 1), 2),
    "small": Scale(
        "fast",
        (),
        {"esol": 20, "qm9-gap": 10, "bbbp": 10, "tox21": 4},
        {"qm9-gap": 3_000},
        5,
        (0, 1, 2, 3, 4),
        10,
    ),
    "paper": Scale("default", (), {}, {"qm9-gap": 20_000}, 5, (0, 1, 2, 3, 4), 10),
}


class Unit(NamedTuple):
    """One fit: a data set, a way to split, a seed."""

    name: str
    split: str
    seed: int

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self.name}, {self.split} split, seed {self.seed}"


def run(bench: Workbench) -> None:
    """Write a table and a figure for each comparison, then those of the coverage."""
    names = chosen(bench, MOLECULE_DATA, known=OPTIONS)
    scale = SCALES[bench.budget]
    seeds = parse_seeds(bench.option("seeds", ",".join(map(str, scale.seeds))))
    tables = {name: find_table(bench, name, scale.rows.get(name)) for name in names}
    planned = {"scaffold": seeds, "random": tuple(range(scale.splits))}
    units = [
        Unit(name, split, seed)
        for name in names
        for split, each in planned.items()
        if split == "scaffold" or MOLECULE_DATA[name].random
        for seed in each
    ]
    machine = bench.piece("machine", lambda: describe_machine(f"device {bench.option('device', 'auto')}"))
    found: dict[tuple[str, str], list[dict[str, Any]]] = {(unit.name, unit.split): [] for unit in units}
    for unit in bench.track(units, "fits"):
        trials = found[unit.name, unit.split]
        trials.append(bench.piece(unit.title, lambda unit=unit: _trial(bench, unit, tables[unit.name], scale)))  # type: ignore[misc]
        if MOLECULE_DATA[unit.name].compared and len(trials) == len(planned[unit.split]):
            remarks = [f"{tables[unit.name].note}." if tables[unit.name].note else "", f"Measured on: {machine}."]
            _report(bench, unit, as_trials(trials), planned[unit.split], scale, remarks)
    covered = {key: as_trials(trials) for key, trials in found.items() if MOLECULE_DATA[key[0]].random}
    if covered:
        how = {name: ". ".join(filter(None, (scale.words(name), tables[name].note))) for name, _ in covered}
        bench.table("coverage", coverage_table(covered, how, bench.budget))
        bench.figure("coverage", coverage_figure(covered))


def _report(
    bench: Workbench, unit: Unit, trials: list[Trial], seeds: tuple[int, ...], scale: Scale, remarks: list[str]
) -> None:
    """Write the comparison that ends with this unit."""
    data, name = MOLECULE_DATA[unit.name], f"{unit.name}-{unit.split}"
    words = scale.words(unit.name)
    bench.table(name, comparison_table(data, unit.split, trials, seeds, words, bench.budget, remarks))
    bench.figure(name, comparison_figure(data, unit.split, trials))


def _trial(bench: Workbench, unit: Unit, table: StudyTable, scale: Scale) -> dict[str, Any]:
    data = MOLECULE_DATA[unit.name]
    epochs = (f"train.epochs={scale.epochs[unit.name]}",) if unit.name in scale.epochs else ()
    several = scale.ensemble if data.compared and unit.split == "scaffold" else 1
    try:
        found = run_trial(
            data,
            table,
            bench.folder / "fits" / f"{unit.name}-{unit.split}-{unit.seed}",
            bench.folder / "tables" / f"{unit.name}.npy",
            split=unit.split,
            seed=unit.seed,
            settings=Settings(scale.preset, (*scale.overrides, *epochs), several, bench.option("device", "auto")),
            say=bench.say,
        )
    except Interrupted as stopped:
        raise Interrupted(f"{unit.title}: {stopped} The same command goes on.") from None
    values = ", ".join(f"{name} {value:.4g}" for name, value in found["values"].items())
    bench.say(f"{unit.title}: test {data.metric} {values}")
    return found
