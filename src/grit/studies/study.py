"""What every study is given and gives: `Study` (an entry of the table `STUDIES`) and `Workbench`.

A study is cut into pieces, each a function without arguments whose result is plain JSON. A piece that is done is written
to the run folder, so that an interrupted study goes on where it was.

    def run(bench: Workbench) -> None:
        for graph in bench.track(graphs, "graphs"):
            errors[graph] = bench.piece(f"error-{graph}", lambda: measure(graph))
        bench.table("errors", ResultsTable(...))
        bench.figure("maps", matplotlib_figure)
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from grit.errors import GritError
from grit.files.whole_file import whole_file, write_text
from grit.studies.results_table import ResultsTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGETS = ("smoke", "small", "paper")
T = TypeVar("T")


class Study(NamedTuple):
    """One entry of the table `STUDIES`.

    Attributes:
        summary: One line for the list.
        paper: Which table, figure or section of the paper it stands beside.
        run: Carries it out.
        free: Options that choose among the pieces and change none, so that a study may go on with others.
    """

    summary: str
    paper: str
    run: "Callable[[Workbench], None]"
    free: tuple[str, ...] = ()


@dataclass
class Workbench:
    """Where a study works: its folder, its budget, and how it tells what it does.

    Attributes:
        folder: The run folder; everything that the study makes is in it.
        budget: ``smoke`` (seconds to a few minutes, proves that it runs), ``small`` (a laptop), ``paper`` (as published).
        root: Folder of the data sets; None for the default.
        say: Told a sentence at a time.
        track: Wraps an iterable in a progress bar with the given description.
        options: Further settings that the user gave, ``key=value``.
        free: `Study.free`.
        made: The files that the study wrote.
    """

    folder: Path
    budget: str = "small"
    root: Path | None = None
    say: Callable[[str], None] = lambda line: None
    track: Callable[[Iterable[Any], str], Iterable[Any]] = lambda items, what: items
    options: dict[str, str] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    made: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.budget not in BUDGETS:
            raise GritError(f"unknown budget {self.budget!r}; there are {', '.join(BUDGETS)}.")
        if self._settings_file.exists() and self._settings_file.read_text() != self._settings:
            raise GritError(
                f"{str(self.folder)!r} holds this study with other settings ({self._settings_file.name}). "
                "Name another folder with --run, or remove it."
            )

    @property
    def _settings_file(self) -> Path:
        return self.folder / "settings.json"

    @property
    def _settings(self) -> str:
        fixed = {name: value for name, value in self.options.items() if name not in self.free}
        return json.dumps({"budget": self.budget, "options": fixed}, indent=1, sort_keys=True) + "\n"

    def _begin(self) -> None:
        """Make the folder when there is something to put into it: by then the study has looked at its settings."""
        (self.folder / "pieces").mkdir(parents=True, exist_ok=True)
        if not self._settings_file.exists():
            write_text(self._settings_file, self._settings)

    def check_options(self, *known: str) -> None:
        """An option that the study does not have is an error."""
        for option in self.options:
            if option not in known:
                raise GritError(f"this study has no option {option!r}; it has {', '.join(known) or 'none'}.")

    def option(self, name: str, default: str, choices: Iterable[str] | None = None) -> str:
        """A setting that the user gave as ``name=value``, or the default."""
        value = self.options.get(name, default)
        if choices is not None and value not in (known := list(choices)):
            raise GritError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
        return value

    def piece(self, key: str, compute: Callable[[], T]) -> T:
        """The result of ``compute``, from disk if it was computed before; plain JSON only."""
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in key)
        file = self.folder / "pieces" / f"{safe[:80]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"
        if file.exists():
            try:
                stored: T = json.loads(file.read_text())["value"]
                return stored
            except (ValueError, KeyError):
                self.say(f"the piece {file.name} is damaged and is computed again")
        self._begin()
        value = compute()
        write_text(file, json.dumps({"key": key, "value": value}) + "\n")
        return value

    def pieces(self, keys: Iterable[str], compute: Callable[[str], T], what: str) -> Iterator[tuple[str, T]]:
        """`piece` for every key, with a progress bar."""
        listed = list(keys)
        for key in self.track(listed, what):
            yield key, self.piece(key, lambda key=key: compute(key))  # type: ignore[misc]

    def table(self, name: str, table: ResultsTable) -> None:
        """Write ``name.md`` and ``name.json``, and show the table."""
        self._keep(f"{name}.md", table.markdown())
        self._keep(f"{name}.json", table.json())
        self.say(table.markdown())

    def figure(self, name: str, figure: "Figure") -> None:
        """Write ``name.svg`` and ``name.png``."""
        self._begin()
        for ending in ("svg", "png"):
            path = self.folder / f"{name}.{ending}"
            try:
                with whole_file(path) as file:
                    figure.savefig(file, format=ending, dpi=200, bbox_inches="tight")
            except OSError as error:
                raise GritError(f"cannot write {str(path)!r}: {error}") from None
            self.made.append(path)

    def _keep(self, name: str, content: str) -> None:
        self._begin()
        write_text(self.folder / name, content)
        self.made.append(self.folder / name)


def length(items: Iterable[Any]) -> int | None:
    """How many there are, where that is known."""
    return len(items) if isinstance(items, Sized) else None
