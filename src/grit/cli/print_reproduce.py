"""What ``grit reproduce`` prints."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grit.cli.progress_bar import progress_bar
from grit.errors import GritError
from grit.studies import STUDIES, Workbench
from grit.studies.catalogue import find_study
from grit.studies.study import length


def list_studies() -> None:
    """All studies, a line each."""
    width = max(map(len, STUDIES))
    for name, study in STUDIES.items():
        print(f"{name:{width}}  {study.summary} [{study.paper}]")
    print("\nNext: grit reproduce NAME --budget smoke")


def run_study(name: str, settings: Sequence[str], budget: str, run: Path | None, root: Path | None) -> None:
    """Run one, and say what it made."""
    study = find_study(name)
    folder = Path("runs") / f"{name}-{budget}" if run is None else run
    bench = Workbench(folder, budget, root, say=print, track=_track, options=_parse(settings), free=STUDIES[name].free)
    try:
        study.run(bench)
    except KeyboardInterrupt:
        print(f"stopped; what was done is kept in {folder}. The same command goes on.", file=sys.stderr)
        raise
    print("made: " + ", ".join(str(path) for path in bench.made))
    print(f"Next: read {bench.made[0]}" if bench.made else "Next: grit reproduce")


def _track(items: Iterable[Any], what: str) -> Iterator[Any]:
    with progress_bar() as bar:
        yield from bar.track(items, total=length(items), description=what)


def _parse(settings: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise GritError(f"{setting!r} is not of the form key=value.")
        parsed[key] = value
    return parsed
