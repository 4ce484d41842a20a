"""Which test calls which function: the tests are run once as they are, and every call into the package is written down.

A function is its file and qualified name, so that the record stays valid when lines move. Processes that a test starts are
recorded too (by `sitecustomize`, in a folder that they find on PYTHONPATH). What a fixture calls counts for the whole test file.
"""

import atexit
import json
import os
import sys
import threading
from collections import defaultdict
from itertools import accumulate
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from uuid import uuid4

FOLDER = "GRIT_MUTANTS_RECORD"  # environment variable: where child processes put what they called


class Calls:
    """Collects the code objects of the package that are called."""

    def __init__(self, package: Path) -> None:
        self.package = str(package) + os.sep
        self.seen: set[CodeType] = set()

    def start(self) -> None:
        """Begin to watch this process."""
        threading.settrace(self._watch)
        sys.settrace(self._watch)

    def _watch(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code not in self.seen:
            self.seen.add(frame.f_code)

    def take(self) -> set[str]:
        """What was called since the last time, as file:function."""
        codes, self.seen = self.seen, set()
        ours = [code for code in codes if code.co_filename.startswith(self.package)]
        return {f"{code.co_filename.removeprefix(self.package)}:{named(code.co_qualname)}" for code in ours}


def named(qualified: str) -> str:
    """The function that a lambda or a comprehension is in."""
    parts = qualified.split(".")
    while parts and parts[-1].startswith("<"):
        parts.pop()
    return ".".join(parts)


class Recorder:
    """A plugin of pytest: outcome, seconds and calls of every test."""

    def __init__(self, package: Path, folder: Path) -> None:
        self.calls = Calls(package)
        self.folder = folder
        self.tests: dict[str, dict[str, Any]] = defaultdict(
            lambda: {"seconds": 0.0, "passed": True, "skipped": False, "calls": set()}
        )
        self.files: dict[str, set[str]] = defaultdict(set)
        self.imported: set[str] = set()
        self.calls.start()

    def pytest_collection_finish(self) -> None:
        """All test files, and with them the package, have been imported."""
        self.imported = self.calls.take()

    def pytest_runtest_setup(self, item: Any) -> None:
        """Watch again: some tests stop it."""
        self.calls.start()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """After the setup, the call and the teardown of each test."""
        called = self.calls.take()
        for path in sorted(self.folder.glob("*.calls")):
            called |= set(json.loads(path.read_text()))
            path.unlink()
        test = self.tests[report.nodeid]
        test["seconds"] += report.duration
        test["passed"] &= report.outcome == "passed"
        test["skipped"] |= report.outcome == "skipped"
        if report.when == "setup":
            self.files[report.nodeid.split("::")[0]] |= called
        else:
            test["calls"] |= called

    def record(self) -> dict[str, Any]:
        """All of it, in plain values."""
        tests = {name: {**test, "calls": sorted(test["calls"])} for name, test in self.tests.items()}
        files = {name: sorted(calls) for name, calls in self.files.items()}
        return {"tests": tests, "files": files, "imported": sorted(self.imported)}


def watch_child(package: str) -> None:
    """In a process that a test starts: leave behind what it called."""
    calls = Calls(Path(package))
    path = Path(os.environ[FOLDER]) / f"{uuid4().hex}.calls"

    def leave() -> None:
        sys.settrace(None)
        path.with_suffix(".part").write_text(json.dumps(sorted(calls.take())))
        path.with_suffix(".part").rename(path)

    atexit.register(leave)
    calls.start()


def choose(record: dict[str, Any], file: str, function: str, in_function: bool, budget: float) -> list[str]:
    """The tests that could notice a mistake, as many as fit into ``budget`` seconds.

    They are those that call the function. For what runs on import: those that call anything of the class, of the module, or,
    where there is nothing to call, all of the package. Quick ones come first, and the module's own test file before others.
    """
    package = Path(file).parts[0]
    prefixes = [f"{file}:{function}", f"{file}:", f"{package}/"]
    if f"{file}:{function}" in record["imported"]:
        in_function, prefixes = False, prefixes[1:]
    elif in_function:
        prefixes = prefixes[:1]
    chosen: list[str] = []
    for prefix in prefixes:
        chosen = chosen or [name for name in record["tests"] if _touches(record, name, prefix, exactly=in_function)]
    costs = {name: record["tests"][name]["seconds"] for name in chosen}
    mirror = f"{package}/test_{Path(file).stem}.py"
    homes = {name: name.split("::")[0] for name in chosen}
    chosen.sort(key=lambda n: (costs[n] > 3, not homes[n].endswith(mirror), f"/{package}/" not in n, homes[n]))
    spent = list(accumulate(costs[name] for name in chosen))
    return [name for name, until in zip(chosen, spent, strict=True) if until <= max(budget, spent[0])]


def _touches(record: dict[str, Any], name: str, prefix: str, exactly: bool) -> bool:
    test = record["tests"][name]
    calls = (test["calls"], record["files"].get(name.split("::")[0], ()))
    if exactly:
        return test["passed"] and any(prefix in each for each in calls)
    return test["passed"] and any(call.startswith(prefix) for each in calls for call in each)
