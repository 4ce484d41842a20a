"""How a table of molecules is divided: identical molecules stay together, unless the user's own split says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grit.datasets.own.data_notes import Note, note_on_overlap
from grit.datasets.pipeline.splits import (
    SPLIT_NAMES,
    SplitFile,
    file_split,
    named_split,
    random_split,
    read_split_file,
    scaffold_groups,
    scaffold_split,
    validation_from,
)
from grit.errors import GritError
from grit.graphs.chunk import Array


@dataclass(frozen=True)
class SplitChoice:
    """A way to split.

    Attributes:
        name: ``random``, ``scaffold``, ``column:NAME`` or ``file:PATH``.
        seed: Of what is drawn.
        file: What the file says, if one is named.
        counted: What places count, for messages: line or entry.
    """

    name: str
    seed: int
    file: SplitFile | None
    counted: str = "line"

    @classmethod
    def named(cls, name: str, seed: int, *, counted: str = "line") -> "SplitChoice":
        """From what the user says; a file is read at once, and anything else that is no way to split is an error."""
        if name not in ("random", "scaffold") and not name.startswith(("column:", "file:")):
            raise GritError(f"split must be random, scaffold, column:NAME or file:PATH, got {name!r}.")
        if counted != "line" and name.startswith("column:"):
            raise GritError(f"a list of SMILES has no columns, so that split={name!r} cannot be.")
        path = Path(name.removeprefix("file:")) if name.startswith("file:") else None
        return cls(name, seed, None if path is None else read_split_file(path, has_lines=counted == "line"), counted)

    @property
    def column(self) -> str | None:
        """The column that names the split of each row, if one does."""
        return self.name.removeprefix("column:") if self.name.startswith("column:") else None

    @property
    def is_given(self) -> bool:
        """Whether the user says which row belongs where."""
        return self.name not in ("random", "scaffold")

    def groups(self, identical: Array, scaffolds: Sequence[str]) -> Array:
        """Molecules that stay together, (n,) whole numbers: identical ones, and with ``scaffold`` those of one scaffold."""
        return scaffold_groups(scaffolds, identical) if self.name == "scaffold" else identical

    def parts(self, places: Mapping[int, tuple[int | None, str]]) -> dict[int, str]:
        """The part of each row, by its number, where the user says which it belongs to; nothing where the split is drawn."""
        if self.column is not None:
            return {row: SPLIT_NAMES.get(name.strip().lower(), name) for row, (_, name) in places.items()}
        if self.file is None:
            return {}
        part_of = {each: name for name, members in self.file.members.items() for each in members}
        by_line = self.file.counted == "line"
        return {
            row: part_of.get(line if by_line and line is not None else row, "") for row, (line, _) in places.items()
        }

    def choose(
        self,
        rows: Array,
        identical: Array,
        scaffolds: Sequence[str],
        places: Mapping[int, tuple[int | None, str]],
        where: str,
    ) -> tuple[dict[str, Array], list[Note]]:
        """The splits, and what should be known of them.

        Args:
            rows: Number of the row of each graph, (n,).
            identical: (n,) whole numbers, equal where molecules are the same.
            scaffolds: Of each, for ``scaffold``.
            places: For each row of the source its line, None where it has none, and the name of its split.
            where: The source, for messages.
        """
        if self.name == "random":
            return random_split(rows.size, self.seed, groups=identical), []
        if self.name == "scaffold":
            return scaffold_split(scaffolds, groups=identical), []
        picked = [places[row] for row in rows.tolist()]
        lines = [line for line, _ in picked if line is not None]
        if self.file is None:
            splits = named_split([name for _, name in picked], lines, where)
        else:
            known = {row: row if line is None else line for row, (line, _) in places.items()}
            splits = file_split(self.file, rows.tolist(), lines, known)
        return self._completed(splits, identical, lines or rows.tolist())

    def _completed(
        self, splits: dict[str, Array], identical: Array, shown: Sequence[int]
    ) -> tuple[dict[str, Array], list[Note]]:
        """With validation drawn from train where there is none."""
        overlap = note_on_overlap(splits, identical, shown, self.counted)
        notes = [] if overlap is None else [overlap]
        if splits["val"].size or not splits["train"].size:
            return splits, notes
        train, val = validation_from(np.sort(splits["train"]), self.seed, identical)
        drawn = (
            f"{self.name} names no validation part: {val.size:,} of {splits['train'].size:,} molecules are drawn from train "
            f"for it (seed {self.seed}). Name it val to choose it yourself."
        )
        return {"train": train, "val": val, "test": splits["test"]}, [*notes, Note("split", drawn)]
