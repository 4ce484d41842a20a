"""What ``grit datasets`` prints."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import TaskID
from rich.table import Table

from grit.cli.progress_bar import progress_bar
from grit.datasets import DATASETS, BuildOptions, build, data_root, is_built, load, store_path, verify
from grit.datasets.building import Report
from grit.datasets.pipeline.dataset_statistics import statistics


def print_list(root: Path | None) -> None:
    """All data sets, and which of them are there."""
    console = Console()
    table = Table(box=None)
    for column in ("name", "built", "what it is"):
        table.add_column(column)
    for name, benchmark in DATASETS.items():
        bundled = not benchmark.sources[0].files
        built = "yes" if is_built(name, root) else "on first use" if bundled else "no"
        table.add_row(name, built, benchmark.title)
    console.print(table)
    console.print(f"\nStores are in {data_root(root) / 'stores'}.")
    console.print("Next: grit datasets build NAME, or grit datasets NAME for one that is built.", markup=False)


def print_one(name: str, root: Path | None) -> None:
    """Statistics of one data set beside the published ones."""
    console = Console()
    store = load(name, root)
    found = statistics(store)
    table = Table(box=None)
    for column in ("", "here", "published"):
        table.add_column(column, justify="left" if not column else "right")
    published = DATASETS[name].published if name in DATASETS else None
    for label, here, there in (
        ("graphs", f"{found.graphs:,}", published and f"{published.graphs:,}"),
        ("nodes per graph", f"{found.nodes:.3f}", published and f"{published.nodes:,}"),
        ("edges per graph, both directions", f"{found.edges:.3f}", published and f"{published.edges:,}"),
        ("smallest and largest graph", f"{found.smallest} to {found.largest} nodes", ""),
        ("node features", str(store.schema.node), ""),
        ("edge features", str(store.schema.edge), ""),
        ("distinct node categories", ", ".join(map(str, found.categories)) or "-", ""),
        ("task", f"{store.schema.level} {store.task.kind}, {store.task.metric}", ""),
        ("size of the store", f"{found.bytes / 1e6:.1f} MB", ""),
        ("rows skipped", f"{store.manifest.skipped:,} of {store.manifest.rows:,}", ""),
    ):
        table.add_row(label, here, there or "")
    console.print(table)
    for split in found.splits:
        size = f"{split.graphs:,} graphs, {split.nodes:.2f} nodes, {split.edges:.2f} edges"
        if split.counted is not None:
            size = f"{split.counted:,} nodes of {split.graphs:,} {'graph' if split.graphs == 1 else 'graphs'}"
        console.print(
            f"{split.name}: {size}; {split.targets}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if store.manifest.built.get("note"):
        console.print(f"note: {store.manifest.built['note']}.", markup=False, highlight=False, soft_wrap=True)
    if store.manifest.skipped and store.path is not None:
        console.print(f"skipped rows are listed in {store.path / 'skipped.csv'}", markup=False, soft_wrap=True)
    if store.divides_nodes:
        console.print(f"Next: grit train own-nodes dataset={name}", markup=False, highlight=False, soft_wrap=True)


def build_with_progress(
    name: str, *, root: Path | None, folder: Path | None, how: str | None, options: BuildOptions, overwrite: bool
) -> None:
    """Build a store, showing a progress bar."""
    with _reported() as report:
        build(name, root=root, folder=folder, how=how, options=options, overwrite=overwrite, report=report)
    Console().print(f"built {store_path(name, root)}", markup=False, soft_wrap=True)


def verify_with_progress(name: str, root: Path | None) -> None:
    """Verify a store, showing a progress bar."""
    with _reported() as report:
        store = verify(name, root, report)
    size = f"{len(store):,} graphs, {store.num_bytes / 1e6:.1f} MB"
    note = "" if store.manifest.sha256 else " Its manifest has no checksum: an older version of grit built it."
    Console().print(f"{store.path} is sound: {size}.{note}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _reported() -> Iterator[Report]:
    """Something to tell of progress, which becomes a bar for each thing that is being done."""
    with progress_bar() as bar:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.advance(tasks[what], done)

        yield report
