"""Graphs in files: damaged edge lists, GraphML and GML."""

import functools
import io
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx

from grit.graphs.graph_files import GRAPHS, read_graph
from tests.fuzz.mutation import damaged, text_of


@functools.cache
def _samples() -> dict[str, bytes]:
    found = {
        ending: b"a,b\nb,c\nc,d\n".replace(b",", {".csv": b",", ".tsv": b"\t"}.get(ending, b" ")) for ending in GRAPHS
    }
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    for ending, write in ((".graphml", nx.write_graphml), (".gml", nx.write_gml)):
        buffer = io.BytesIO()
        write(graph, buffer)
        found[ending] = buffer.getvalue()
    return found


def make_input(rng: Random) -> dict[str, Any]:
    """The bytes of a file, and its ending."""
    ending = rng.choice([*GRAPHS])
    content = (
        text_of(rng, "ab,\t\n #[]<>&;\"'", 80).encode() if rng.random() < 0.2 else damaged(rng, _samples()[ending])
    )
    return {"ending": ending, "content": content}


def try_it(value: dict[str, Any], folder: Path) -> None:
    """Read it."""
    path = folder / f"graph{value['ending']}"
    path.write_bytes(value["content"])
    graph = read_graph(path, 50)
    assert 0 < graph.number_of_nodes() <= 50
