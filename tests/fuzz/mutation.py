"""Seeded damage: to bytes, to text, to folders."""

import os
import shutil
from pathlib import Path
from random import Random

NUMBERS = [
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "-0.0",
    "9" * 30,
    "1" * 5000,
    "0x10",
    "1_0",
    "１２",
    "1e-400",
    "",
    " ",
    "null",
    "true",
]
TEXTS = [
    "\0",
    "\udcff",
    "\ud800",
    "\ufeff",
    "\u202e",
    "é",
    "🧪",
    "\r",
    "\n",
    "\t",
    "\x1b[31m",
    '"',
    "'",
    ",",
    ";",
    "a" * 3000,
    "../..",
    "/",
]

PLANTED = "0123abcd.part"  # how the temporary file of a killed writer ends, put there as damage


def text_of(rng: Random, alphabet: str, longest: int = 40) -> str:
    """Random text."""
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(0, longest)))


def damaged(rng: Random, data: bytes, rounds: int = 3) -> bytes:
    """The bytes with a few flips, cuts, repetitions, insertions."""
    for _ in range(rng.randint(1, rounds)):
        place = rng.randint(0, len(data))
        other = rng.randint(0, len(data))
        first, last = min(place, other), max(place, other)
        match rng.randint(0, 9):
            case 0:
                data = data[:place]
            case 1:
                data = data[:first] + data[last:]
            case 2 if last - first < 4000:
                data = data[:last] + data[first:last] * rng.randint(1, 5) + data[last:]
            case 3:
                data = data[:place] + rng.randbytes(rng.randint(1, 8)) + data[place:]
            case 4:
                data = data[:place] + rng.choice(TEXTS).encode("utf-8", "surrogatepass") + data[place:]
            case 5:
                data = data[:place] + rng.choice(NUMBERS).encode() + data[place:]
            case 6:
                data = data[:first] + bytes(last - first) + data[last:]
            case _ if data:
                place = min(place, len(data) - 1)
                data = data[:place] + bytes([data[place] ^ (1 << rng.randint(0, 7))]) + data[place + 1 :]
    return data


def folder_damage(rng: Random, names: list[str]) -> list[tuple[str, str, str, int]]:
    """A few steps of damage to the files of a folder, for `damage_folder`."""
    steps = ["bytes"] * 6 + [
        "remove",
        "empty",
        "folder",
        "swap",
        "copy",
        "link",
        "self_link",
        "unreadable",
        "fifo",
        "extra",
    ]
    return [
        (rng.choice(steps), rng.choice(names), rng.choice(names), rng.randint(0, 2**32))
        for _ in range(rng.randint(1, 2))
    ]


def damage_folder(folder: Path, steps: list[tuple[str, str, str, int]]) -> None:
    """Damage the files of a folder."""
    for step, name, second, seed in steps:
        path, other = folder / name, folder / second
        if not path.parent.is_dir():  # an earlier step took it away
            continue
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        match step:
            case "extra":
                path.with_name(f".{path.name}.{PLANTED}").write_bytes(content[:10])
                continue
            case "swap" if path.is_file() and other.is_file():
                path.write_bytes(other.read_bytes())
                other.write_bytes(content)
                continue
            case "copy" if other.is_file():
                content = other.read_bytes()
            case "bytes":
                content = damaged(Random(seed), content)
            case "empty":
                content = b""
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        match step:
            case "remove":
                continue
            case "folder":
                path.mkdir()
            case "link":
                path.symlink_to("absent")
            case "self_link":
                path.symlink_to(path.name)
            case "fifo":
                os.mkfifo(path)
            case _:
                path.write_bytes(content)
                path.chmod(0 if step == "unreadable" else 0o644)
