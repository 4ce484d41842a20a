"""Beginning a new run with the weights of another: `grit.train(..., init=...)`, ``grit train --init``.

A tensor is taken where its name and its shape fit; what does not fit keeps the values that ``train.seed`` gives. The run
folder says so in ``init.json``, with the SHA-256 of the file. The weights are read when the run begins, never when it is resumed.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from grit.errors import GritError, shown
from grit.files.ordinary_file import check_ordinary
from grit.recipe.config import Recipe
from grit.recipe.reference_weights import load_reference_checkpoint
from grit.training.checkpoint import FORMAT, read_checkpoint
from grit.training.dotted import different_keys, dotted
from grit.training.run_folder import INIT, RunFolder

InitPart = Literal["all", "encoder"]
HEAD = "head."
TORCH_ENDINGS = (".ckpt", ".pt", ".pth", ".bin")


class InitRecord(BaseModel):
    """What ``init.json`` holds.

    Attributes:
        source: The run folder or the file that the user named.
        file: The file that was read.
        sha256: Of the file.
        part: ``all``, or ``encoder`` for everything but the head.
        taken: Names of the tensors that were taken.
        kept: Those that were not, each with the reason.
        unused: Tensors of the file that the model has no place for.
        differences: Settings of model and encoding that differ from those the weights were trained with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    file: str
    sha256: str
    part: InitPart
    taken: tuple[str, ...]
    kept: dict[str, str]
    unused: tuple[str, ...]
    differences: tuple[str, ...] = ()


def find_initial_weights(source: str | Path, part: InitPart, recipe: Recipe, network: nn.Module) -> InitRecord:
    """Read weights, and say which of them the model of a run takes.

    Args:
        source: A run folder, a checkpoint of grit, any safetensors file with the names of the model's tensors, or a checkpoint
            of the released research code.
        part: Which part of the model.
        recipe: Of the run that begins.
        network: Its model.
    """
    _check_part(part)
    path = Path(source)
    file = _weights_file(path)
    weights, trained_with = _read(file, recipe)
    state = network.state_dict()
    if part == "encoder" and not any(name.startswith(HEAD) for name in state):
        raise GritError(
            f"--init-part encoder takes everything but the head, and the model {recipe.model.name!r} has no part of the "
            "name 'head'. Use --init-part all."
        )
    kept = {name: why for name, value in state.items() if (why := _why_not(name, value, weights, part))}
    taken = tuple(name for name in state if name not in kept)
    if not {name for name, _ in network.named_parameters()} & set(taken):
        listed = "; ".join(f"{name}: {why}" for name, why in list(kept.items())[:3])
        raise GritError(
            f"no weights in {str(file)!r} fit the model of this run ({listed}). Train the same model with the same sizes, "
            "or leave out --init."
        )
    return InitRecord(
        source=str(path.resolve()),
        file=str(file.resolve()),
        sha256=_sha256(file),
        part=part,
        taken=taken,
        kept=kept,
        unused=tuple(sorted(weights.keys() - state.keys())),
        differences=tuple(_differences(trained_with, recipe)),
    )


def recorded_weights(folder: RunFolder, recipe: Recipe) -> dict[str, Tensor] | None:
    """The tensors that ``init.json`` of a run lists; None where a run begins with weights of its own."""
    record = read_record(folder)
    if record is None:
        return None
    file = Path(record.file)
    if not file.is_file():
        raise GritError(
            f"the run {str(folder.path)!r} begins with weights of {record.file!r}, which is gone. Use --init again."
        )
    weights, _ = _read(file, recipe)
    if _sha256(file) != record.sha256:
        raise GritError(
            f"the run {str(folder.path)!r} begins with weights of {record.file!r}, which has changed. Use --init again."
        )
    return {name: weights[name] for name in record.taken if name in weights}


def read_record(folder: RunFolder) -> InitRecord | None:
    """The content of ``init.json``, if the run has one."""
    path = folder.path / INIT
    if not path.exists():
        return None
    try:
        return InitRecord.model_validate_json(check_ordinary(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise GritError(f"{str(path)!r} cannot be read: {error}") from None


def check_same_init(folder: RunFolder, source: str | Path | None, part: InitPart) -> None:
    """Raise if a run that is resumed was begun with other weights than are named now. The weights are not read."""
    if source is None:
        return
    _check_part(part)
    record = read_record(folder)
    if record is None or (record.source, record.part) != (str(Path(source).resolve()), part):
        before = "without --init" if record is None else f"with --init {record.source} --init-part {record.part}"
        raise GritError(
            f"the run {str(folder.path)!r} was begun {before}. Resume it without --init, or begin a new one with --run."
        )


def tell_taken(record: InitRecord, say: Callable[[str], None]) -> None:
    """Say what was taken, what was not, and why, in a few lines."""
    say(f"weights from {record.file} (sha256 {record.sha256[:12]})")
    say(f"  taken: {_counted(record.taken)}")
    reasons: dict[str, list[str]] = {}
    for name, why in record.kept.items():
        reasons.setdefault(f"{name.partition('.')[0]}: {why.partition(':')[0]}", []).append(
            f"{name} {why.partition(':')[2].strip()}".strip()
        )
    for reason, names in reasons.items():
        say(f"  not taken, {reason}: {_some(names)}")
    if record.unused:
        say(f"  no place for: {_counted(record.unused)}")
    if record.differences:
        say(f"  trained with other settings: {_some(record.differences)}")


def _check_part(part: str) -> None:
    if part not in get_args(InitPart):
        raise GritError(f"--init-part {shown(part)}: there are {', '.join(get_args(InitPart))}.")


def _weights_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise GritError(f"--init: there is no run folder or file {str(path)!r}.")
    folder = RunFolder.open(path)
    chosen = folder.best if folder.best.exists() else folder.last
    if not chosen.exists():
        raise GritError(f"--init: the run {str(path)!r} has no checkpoint yet.")
    return chosen


def _read(file: Path, recipe: Recipe) -> tuple[dict[str, Tensor], Mapping[str, Any] | None]:
    """Tensors by name, and the recipe that they were trained with, where the file says so."""
    if file.suffix.lower() in TORCH_ENDINGS:
        return dict(load_reference_checkpoint(file, recipe).state_dict()), None
    try:
        with safe_open(check_ordinary(file), framework="pt") as content:
            is_checkpoint = (content.metadata() or {}).get("format") == FORMAT
            if not is_checkpoint:
                return {name: content.get_tensor(name) for name in content.keys()}, None  # noqa: SIM118  (no dict)
    except (SafetensorError, OSError) as error:
        raise GritError(
            f"cannot read weights from {str(file)!r}: {error}. Expected a safetensors file, or a checkpoint of the released "
            f"research code that ends in {', '.join(TORCH_ENDINGS)}."
        ) from None
    checkpoint = read_checkpoint(file)
    return checkpoint.under("model."), checkpoint.state.get("recipe")


def _why_not(name: str, value: Tensor, weights: Mapping[str, Tensor], part: InitPart) -> str | None:
    if part == "encoder" and name.startswith(HEAD):
        return "of the head"
    if name not in weights:
        return "not in the file"
    there = weights[name]
    if there.shape != value.shape:
        return f"of another shape: {tuple(there.shape)} there, {tuple(value.shape)} here"
    if there.is_floating_point() != value.is_floating_point():
        return f"of another type: {there.dtype} there, {value.dtype} here"
    return None


def _differences(trained_with: Mapping[str, Any] | None, recipe: Recipe) -> list[str]:
    if trained_with is None:
        return []
    sections = ("model", "encoding")
    before = dotted({name: trained_with.get(name, {}) for name in sections})
    now = dotted({name: recipe.model_dump(mode="json")[name] for name in sections})
    return [f"{key} was {before.get(key)}, is now {now.get(key)}" for key in different_keys(before, now)]


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _counted(names: Sequence[str]) -> str:
    """``stem 5, layers 240 tensors``."""
    counts: dict[str, int] = {}
    for name in names:
        part = name.partition(".")[0]
        counts[part] = counts.get(part, 0) + 1
    shown_counts = [f"{part} {count}" for part, count in list(counts.items())[:8]]
    return f"{', '.join(shown_counts)}{' ...' if len(counts) > 8 else ''} ({len(names):,} tensors)"


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
