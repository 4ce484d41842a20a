"""Building a data set's store from its sources, and opening it."""

import os
from collections.abc import Callable
from pathlib import Path

from grit.datasets.benchmarks.benchmark import Benchmark, BuildOptions, Source
from grit.datasets.pipeline.download import fetch
from grit.datasets.pipeline.source_files import data_root
from grit.datasets.pipeline.write_store import Description, collect
from grit.datasets.registry import DATASETS, find_dataset
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.graphs.store import GraphStore
from grit.graphs.store_check import CheckProgress
from grit.graphs.store_format import read_manifest
from grit.graphs.store_place import is_there

Report = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it was done since the last call, and how much there is in all, if known."""


def store_path(name: str, root: str | Path | None = None) -> Path:
    """Where the store of a data set is, or will be."""
    return data_root(root) / "stores" / name


def is_built(name: str, root: str | Path | None = None) -> bool:
    """Whether the store of a data set is there."""
    return is_there(store_path(name, root))


def load(name: str, root: str | Path | None = None) -> GraphStore:
    """Open a data set by name, or any store by its path; data that comes with the package is built on first use.

    A name of the table is the data set even where a folder happens to be called the same; ``./zinc`` is that folder.
    """
    return GraphStore.open(_find(name, root))


def verify(name: str, root: str | Path | None = None, progress: CheckProgress | None = None) -> GraphStore:
    """Read a whole data set, or any store by its path, and raise unless it is as it was built; see `GraphStore.verify`."""
    path = _find(name, root)
    try:
        store = GraphStore.open(path, verify=False)
        store.verify(progress)
    except GritError as error:
        hint = f"\n  grit datasets build {name} --overwrite" if name in DATASETS else ""
        raise GritError(f"{error}{hint}") from None
    return store


def _find(name: str, root: str | Path | None) -> Path:
    """The folder of a store, after building it if it comes with the package."""
    if _is_folder(name):
        return Path(name)
    if Path(name).parent != Path("."):
        raise GritError(f"there is no store at {name!r}. If it was moved, name its new place.")
    benchmark = find_dataset(name)
    path = store_path(name, root)
    if not is_there(path):
        if benchmark.sources[0].files:
            raise GritError(
                f"{name} has not been built yet (there is no {str(path)!r}). Build it with\n  grit datasets build {name}\n"
                f"or, from files that you have, grit datasets build {name} --from FOLDER."
            )
        try:
            build(name, root=root)
        except GritError:
            if not is_there(path):  # otherwise another process has built it by now
                raise
    return path


def load_schema(name: str) -> GraphSchema:
    """Features and targets of a data set by name, or of a store by its folder, without opening its arrays."""
    return read_manifest(Path(name)).graphs if _is_folder(name) else find_dataset(name).schema


def _is_folder(name: str) -> bool:
    return name not in DATASETS and is_there(Path(name)) and os.path.isdir(name)


def build(
    name: str,
    *,
    root: str | Path | None = None,
    folder: str | Path | None = None,
    how: str | None = None,
    options: BuildOptions | None = None,
    overwrite: bool = False,
    report: Report | None = None,
) -> GraphStore:
    """Build the store of a data set.

    Args:
        name: Entry of `DATASETS`.
        root: Folder for downloads and stores, see `data_root`.
        folder: Where the files of a source are; they are downloaded if not given.
        how: Name of the source; if not given, the first whose files are in ``folder``, or the official one.
        options: Processes, seed, limit, trust.
        overwrite: Whether an existing store is replaced.
        report: Told of progress.
    """
    benchmark = find_dataset(name)
    options = BuildOptions() if options is None else options
    path = store_path(name, root)
    if is_there(path) and not overwrite:
        raise GritError(f"{name} is built already, in {str(path)!r}. Say --overwrite to build it again.")
    source = _choose(benchmark, None if folder is None else Path(folder), how)
    files = Path(folder) if folder is not None else _download(benchmark, source, root, report)
    plan = source.read(files, options)
    description = Description(
        name=name,
        graphs=benchmark.schema,
        task=benchmark.task,
        source=", ".join(file.url or file.name for file in source.files) or source.name,
        molecules=benchmark.featuriser,
        built={
            "source": source.name,
            "note": source.note,
            "seed": "default" if options.seed is None else str(options.seed),
            "limit": "none" if options.limit is None else str(options.limit),
        },
    )

    def progress(rows: int) -> None:
        if report is not None:
            report("building", rows, plan.total)

    return collect(plan.pieces, description, plan.splits, out=path, overwrite=overwrite, progress=progress)


def _choose(benchmark: Benchmark, folder: Path | None, how: str | None) -> Source:
    if folder is not None and not folder.is_dir():
        raise GritError(f"--from names {str(folder)!r}, which is not a folder.")
    if how is not None:
        named = [source for source in benchmark.sources if source.name == how]
        if not named:
            names = ", ".join(source.name for source in benchmark.sources)
            raise GritError(f"{benchmark.name} cannot be built from {how!r}; there are {names}.")
        missing = [file.name for file in named[0].files if folder is not None and not (folder / file.name).is_file()]
        if missing:
            raise GritError(f"{str(folder)!r} lacks {', '.join(missing)}, which {benchmark.name} from {how!r} needs.")
        return named[0]
    if folder is None:
        return benchmark.sources[0]
    for source in benchmark.sources:
        if source.files and all((folder / file.name).is_file() for file in source.files):
            return source
    lines = [
        f"  {source.name}: {', '.join(file.name for file in source.files)}"
        for source in benchmark.sources
        if source.files
    ]
    raise GritError(f"{str(folder)!r} has no files of {benchmark.name}. Expected one of\n" + "\n".join(lines))


def _download(benchmark: Benchmark, source: Source, root: str | Path | None, report: Report | None) -> Path:
    folder = data_root(root) / "downloads" / benchmark.name
    others = [other for other in benchmark.sources if not other.files and other is not source]
    for file in source.files:
        done = 0

        def progress(so_far: int, total: int | None, name: str = file.name) -> None:
            nonlocal done
            if report is not None:
                report(f"downloading {name}", so_far - done, total)
            done = so_far

        try:
            fetch(file, folder, progress=progress)
        except GritError as error:
            hint = "".join(f"\nOr say --how {other.name}: {other.note}." for other in others)
            raise GritError(f"{error}{hint}") from None
    return folder
