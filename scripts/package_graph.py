"""Write the list of imports between grit's rooms into docs/architecture.md, or check that it is up to date.

python scripts/package_graph.py            # writes
python scripts/package_graph.py --check    # fails if the page is out of date
"""

import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- package graph: begin -->", "<!-- package graph: end -->"


def rooms_in_order() -> list[str]:
    """The rooms from the top down, as import-linter's first contract lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [room.strip() for layer in layers for room in layer.split("|")]


def imports(rooms: list[str]) -> dict[str, set[str]]:
    """For each room, the rooms that any of its modules imports from."""
    sys.path.insert(0, str(ROOT / "src"))
    graph = grimp.build_graph("grit", cache_dir=None)
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        room = _room_of(module)
        if room in found:
            found[room] |= {_room_of(other) for other in graph.find_modules_directly_imported_by(module)} - {room}
    return found


def _room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def listing(rooms: list[str], found: dict[str, set[str]]) -> str:
    """A line per room: its name, then the rooms that it imports from, all in their order from the top down."""
    width = max(map(len, rooms)) + 2
    lines = [room.ljust(width) + "  ".join(other for other in rooms if other in found[room]) for room in rooms]
    return "\n".join(["```", *(line.rstrip() for line in lines), "```"])


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    rooms = rooms_in_order()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n{listing(rooms, imports(rooms))}\n{END}{after}"
    if "--check" not in arguments:
        PAGE.write_text(new, encoding="utf-8")
        return 0
    if new != text:
        print(f"{PAGE.relative_to(ROOT)} is out of date: run python scripts/package_graph.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
