"""Mutation tests: do the tests notice small deliberate mistakes? ``make mutants``, or ``python scripts/mutants --help``.

The tests are run once as they are, to learn which of them calls what (`recording.py`). Then mistakes (`changes.py`), drawn
with a seed from all parts of the packages, are put one at a time into a copy of the sources, and the tests that could notice
run on it until one fails. Results go to `.mutants/results.jsonl` one by one: a run that was interrupted goes on where it was.

Importing torch for every mistake would take most of the time. So one process imports everything except the package and forks.
"""

import argparse
import compileall
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from changes import Mutant, mutants
from recording import FOLDER, Recorder, choose

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutants"
PACKAGES = ("files", "graphs", "datasets", "batches", "models", "recipe", "training", "export", "cli")
PER_FUNCTION = 3
HEAVY = (
    "torch", "torch_geometric", "torch.utils.data", "torch.distributed", "lightning_fabric", "sklearn.ensemble",
    "scipy.stats", "rdkit.Chem", "networkx", "matplotlib.figure", "pydantic", "typer", "rich.console", "rich.progress",
    "safetensors.torch", "hypothesis", "pytest", "_pytest.assertion.rewrite",
)  # fmt: skip
KILLED = ("killed", "timed out")


def main() -> None:
    """Sample, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="mistakes in all")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--jobs", type=int, default=2, help="at a time")
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of tests for each mistake, as first recorded"
    )
    parser.add_argument("--retry", action="store_true", help="run those again that survived")
    parser.add_argument("--report", action="store_true", help="only print what is known")
    options = parser.parse_args()
    chosen = sample(options.packages, options.count, options.seed)
    known = results()
    if not options.report:
        missing = [m for m in chosen if m.key not in known or (options.retry and known[m.key]["outcome"] == "survived")]
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            prepare(Path(folder))
            record = recorded(Path(folder))
            run_all(missing, record, Path(folder), options.jobs, options.budget)
    report(chosen, results())


def sample(packages: list[str], count: int, seed: int) -> list[Mutant]:
    """Mistakes from all packages by their lines (but 10 at least), few of one function, none two of a line."""
    lines = dict.fromkeys(packages, 0)
    found: dict[str, list[Mutant]] = defaultdict(list)
    for package in packages:
        for path in sorted((ROOT / "src" / "grit" / package).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            lines[package] += source.count("\n")
            found[package] += mutants(str(path.relative_to(ROOT / "src" / "grit")), source)
    chosen: list[Mutant] = []
    for package in packages:
        wanted = max(10, round(count * lines[package] / sum(lines.values())))
        taken: Counter[tuple[str, ...]] = Counter()
        for mutant in sorted(found[package], key=lambda each: each.draw(seed)):
            function, line = (mutant.file, mutant.function), (mutant.file, mutant.function, str(mutant.line))
            if wanted and not taken[line] and taken[function] < PER_FUNCTION and mutant.is_one():
                taken.update([function, line])
                chosen.append(mutant)
                wanted -= 1
    return sorted(chosen, key=lambda each: each.draw(seed))  # so that a part of them is a sample as well


def results() -> dict[str, dict[str, Any]]:
    """What is known, by key; the latest counts."""
    path = WORK / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {each["key"]: each for each in map(json.loads, lines)}


def prepare(folder: Path) -> None:
    """Import what is large and is never changed; nothing that a fork does may reach the tree or depend on another."""
    os.environ |= {"OMP_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
    os.environ |= {"MPLCONFIGDIR": str(folder / "matplotlib"), "GRIT_DATA": str(folder / "data")}
    for name in HEAVY:
        __import__(name)
    sys.modules["torch"].set_num_threads(1)
    assert not any(name.split(".")[0] == "grit" for name in sys.modules), "the package must not be imported yet"


def copy_of_tree(folder: Path) -> Path:
    """A copy of all that tests may read, where a mistake can do no harm."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "runs"))
    compileall.compile_dir(folder / "src", quiet=2)
    return folder


def fork(tree: Path, temporary: Path, work: Callable[[], int]) -> int:
    """The id of a new process that imports the package from a tree and ends with what ``work`` gives."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.setsid()
        temporary.mkdir(parents=True)
        output = os.open(temporary / "output", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        sys.path[:0] = [str(tree), str(tree / "src")]
        code = work()
    except BaseException:  # whatever it is, the fork ends here and must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def recorded(folder: Path) -> dict[str, Any]:
    """Which test calls what. Known from the last time, except for tests whose file has changed, or if the sources have."""
    folders = [ROOT / "tests" / package for package in PACKAGES]
    tests = {str(path.relative_to(ROOT)): path for each in folders for path in each.rglob("test_*.py")}
    helpers = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    sources = _checksum(*sorted([*(ROOT / "src").rglob("*.py"), *helpers]))
    now = {name: _checksum(path) for name, path in sorted(tests.items())}
    path = WORK / "record.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    if record.get("sources") != sources:
        record = {"sources": sources, "checksums": {}, "tests": {}, "files": {}, "imported": []}
    changed = [name for name in now if record["checksums"].get(name) != now[name]]
    if changed:
        print(f"running {len(changed)} test files as they are, to learn what they call ...", flush=True)
        found = run_recorded(changed, folder)
        kept = {name: test for name, test in record["tests"].items() if name.split("::")[0] in set(now) - set(changed)}
        record |= {"checksums": now, "tests": kept | found["tests"], "files": record["files"] | found["files"]}
        record["imported"] = sorted({*record["imported"], *found["imported"]})
        WORK.mkdir(exist_ok=True)
        path.write_text(json.dumps(record))
    return record


def _checksum(*paths: Path) -> str:
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def run_recorded(files: list[str], folder: Path) -> dict[str, Any]:
    """Run test files on the sources as they are."""
    tree = copy_of_tree(folder / "unchanged")
    child, result = folder / "child", folder / "record.json"
    child.mkdir()
    (child / "sitecustomize.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from recording import watch_child; watch_child({str(tree / 'src' / 'grit')!r}); sys.path.pop(0)\n"
    )

    def work() -> int:
        import pytest

        os.environ[FOLDER] = str(child)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(child), os.environ["PYTHONPATH"]])
        recorder = Recorder(tree / "src" / "grit", child)
        pytest.main([*arguments(folder / "tests"), *files], plugins=[recorder])
        sys.settrace(None)
        result.write_text(json.dumps(recorder.record()))
        return 0

    os.waitpid(fork(tree, folder / "temporary", work), 0)
    found = json.loads(result.read_text()) if result.exists() else {"tests": {}}
    failed = [name for name, test in found["tests"].items() if not test["passed"] and not test["skipped"]]
    print(f"{len(found['tests'])} tests; left out because they fail without any mistake: {', '.join(failed) or 'none'}")
    if len(failed) > 3 or not found["tests"]:
        sys.exit((folder / "temporary" / "output").read_text()[-5000:])
    return found


def arguments(temporary: Path) -> list[str]:
    """Of pytest: quiet, in one process, nothing left in the tree."""
    imported = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is there already
    plain = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", imported]
    return [*plain, "--basetemp", str(temporary)]


class First:
    """A plugin of pytest that writes down the first test that failed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        """After each part of a test."""
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid)


def run_all(missing: list[Mutant], record: dict[str, Any], folder: Path, jobs: int, budget: float) -> None:
    """Run them, ``jobs`` at a time, each job with its own copy of the tree."""
    trees = [copy_of_tree(folder / f"job{number}") for number in range(min(jobs, len(missing)))]
    waiting, free = list(enumerate(missing, 1)), list(range(len(trees)))
    running: dict[int, tuple[Mutant, int, float, float, int, Path]] = {}
    while waiting or running:
        while waiting and free:
            number, mutant = waiting.pop(0)
            tests = choose(record, mutant.file, mutant.function, mutant.in_function, budget)
            if not tests:
                keep(mutant, "survived", "no test calls it", 0.0, number, len(missing))
                continue
            job, temporary = free.pop(), folder / f"mutant{number}"
            limit = 60 + 6 * sum(record["tests"][name]["seconds"] for name in tests)
            process = start(mutant, trees[job], temporary, tests)
            running[process] = mutant, job, time.monotonic(), limit, number, temporary
        time.sleep(0.05)
        for process, (mutant, job, begun, limit, number, temporary) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            outcome, spent = "", time.monotonic() - begun
            if ended:
                code = os.waitstatus_to_exitcode(status)
                outcome = "survived" if code == 0 else "broken" if code in (70, 5) else "killed"
            elif spent > limit:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                outcome = "timed out"
            if outcome:
                first = temporary / "first"
                by = first.read_text() if first.exists() else "" if outcome != "killed" else "an error on import"
                if outcome == "broken":
                    by = (temporary / "output").read_text()[-500:]
                keep(mutant, outcome, by, spent, number, len(missing))
                put(trees[job] / "src" / "grit" / mutant.file, mutant.original)
                shutil.rmtree(temporary, ignore_errors=True)
                free.append(job)
                del running[process]


def start(mutant: Mutant, tree: Path, temporary: Path, tests: list[str]) -> int:
    """Put a mistake into a copy of the tree and run tests on it, in a new process."""
    put(tree / "src" / "grit" / mutant.file, mutant.source)

    def work() -> int:
        import pytest

        return int(pytest.main([*arguments(temporary / "t"), "-x", *tests], plugins=[First(temporary / "first")]))

    return fork(tree, temporary, work)


def put(path: Path, source: str) -> None:
    """Write a module, with a time that belongs to its text: the compiled form of another is never taken for it."""
    path.write_text(source, encoding="utf-8")
    os.utime(path, (0, int(sha256(source.encode()).hexdigest()[:7], 16)))


def keep(mutant: Mutant, outcome: str, by: str, seconds: float, number: int, count: int) -> None:
    """Append a result."""
    line = {"key": mutant.key, "outcome": outcome, "by": by, "seconds": round(seconds, 1)}
    where = {"file": mutant.file, "line": mutant.line, "kind": mutant.kind, "diff": mutant.diff}
    with (WORK / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, **where}) + "\n")
    print(f"{number}/{count} {outcome:9s} {seconds:5.0f} s  {mutant.file}:{mutant.line} {by}", flush=True)


def report(chosen: list[Mutant], known: dict[str, dict[str, Any]]) -> None:
    """Survivors, and the score of each package."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in sorted(chosen, key=lambda each: (each.file, each.line)):
        outcome = known.get(mutant.key, {"outcome": "not run"})["outcome"]
        for package in (mutant.file.split("/")[0], "all"):
            outcomes[package][outcome] += 1
        if outcome not in ("killed", "not run"):
            by = known[mutant.key]["by"] if outcome != "timed out" else ""
            print(f"\n{outcome}: src/grit/{mutant.file}:{mutant.line} ({mutant.kind}) {by}\n{mutant.diff}")
    print(f"\n{'':10s} {'killed':>9s} {'timed out':>9s} {'survived':>9s} {'broken':>9s} {'not run':>9s} {'score':>9s}")
    for package, counts in sorted(outcomes.items(), key=lambda item: (item[0] == "all", item[0])):
        dead = sum(counts[each] for each in KILLED)
        score = dead / max(1, dead + counts["survived"])
        shown = [counts[each] for each in (*KILLED, "survived", "broken", "not run")]
        print(f"{package:10s} {' '.join(f'{each:9d}' for each in shown)} {score:9.0%}")


if __name__ == "__main__":
    main()
