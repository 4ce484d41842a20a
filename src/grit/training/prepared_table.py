"""The table of a fit, or of tuning, as a store in its folder: made once, and known again."""

from collections.abc import Callable
from pathlib import Path

from grit.datasets.own.data_notes import notes_of
from grit.datasets.own.molecule_stores import MoleculeStore, unusable_rows
from grit.datasets.own.molecule_tables import MoleculeTable
from grit.datasets.pipeline.write_store import RowProgress
from grit.errors import GritError
from grit.graphs.store import GraphStore
from grit.graphs.store_format import read_manifest


def prepared_table(
    table: MoleculeTable,
    run: Path,
    *,
    begun: bool,
    made_by: str,
    progress: RowProgress | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> MoleculeStore:
    """The table as a store inside a run folder.

    One that is there already is used if it was made of the same table in the same way. If not, it is made again, unless a
    model has been trained on it, or another command made it: then that is an error.

    Args:
        table: The table.
        run: The folder; the store is ``data`` inside it.
        begun: Whether something was learned from the store that is there.
        made_by: The command.
        progress: Called with the number of rows done since the last call.
        say: Told what was inferred, a sentence at a time.

    Returns:
        The store, with fingerprints if it was made now.
    """
    out = run / "data"
    if begun or out.exists():
        try:
            store = GraphStore.open(out)
            _check_same(store, run, table)
        except GritError:
            if begun:
                raise
            _check_made_by(out, made_by)
        else:
            return MoleculeStore(store, None)
    return table.to_store(out, overwrite=True, made_by=made_by, with_fingerprints=True, progress=progress, say=say)


def tell_prepared(
    table: MoleculeTable, run: Path, store: GraphStore, *, again: bool, say: Callable[[str], None]
) -> None:
    """Say how many molecules there are for what, and which rows are not used.

    Args:
        table: The table.
        run: The folder.
        store: That of `prepared_table`.
        again: Whether an earlier process read the table, and was told what it holds.
        say: Told of it, a sentence at a time.
    """
    sizes = ", ".join(f"{members.size:,} {name}" for name, members in store.splits.items())
    say(f"{len(store):,} molecules ({sizes}; split: {table.split}; override with --split, --task, --smiles)")
    if again:
        for note in notes_of(store):
            say(note.text)
    unusable, where = len(unusable_rows(store)), run / "data" / "skipped.csv"
    if unusable:
        say(f"{unusable:,} rows could not be used; {where} says why")
    if store.manifest.skipped > unusable:
        say(f"{store.manifest.skipped - unusable:,} rows were left out as duplicates; {where} lists them")


def _check_made_by(out: Path, made_by: str) -> None:
    """Raise if a store that stands in the way was made by something else."""
    try:
        is_ours = read_manifest(out).built.get("made_by") == made_by
    except GritError:
        is_ours = out.is_dir() and not any(out.iterdir())
    if not is_ours:
        raise GritError(
            f"{str(out)!r} was not made by grit {made_by}, so it is not replaced. Move it away, or name another run with --run."
        )


def _check_same(store: GraphStore, run: Path, table: MoleculeTable) -> None:
    """Raise if a store was made of another table, or otherwise than is asked for now."""
    built = store.manifest.built
    changed = [name for name, value in table.how_built().items() if built.get(name, value) != value]
    changed += ["target"] if store.task.targets != table.targets else []
    changed += ["choice of features or descriptors"] if store.manifest.inputs != table.inputs else []
    changed += ["choice of weights"] if ("weights" in built) != (table.weights is not None) else []
    if changed:
        raise GritError(
            f"the run {str(run)!r} was begun with another {', '.join(changed)}. Repeat the command as it was to go on, or begin "
            "a new run with --run."
        )
