"""Graphs in files of their own: edge lists, GraphML, GML."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from grit.errors import GritError

if TYPE_CHECKING:
    import networkx as nx

EDGE_LISTS = {".csv": ",", ".tsv": "\t", ".txt": None, ".edgelist": None}  # what separates the columns; None: blanks
GRAPHS = (*EDGE_LISTS, ".graphml", ".gml")
_HEADERS = {("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2")}


def read_graph(path: Path, max_nodes: int) -> "nx.Graph":
    """A graph from an edge list, GraphML or GML; parallel edges are joined, weights are not read.

    Args:
        path: The file; its ending, one of `GRAPHS`, says what it is.
        max_nodes: More are an error.
    """
    try:
        import networkx as nx
    except ModuleNotFoundError as error:
        raise GritError("reading graphs needs NetworkX: pip install 'torch-grit[mol]'.") from error

    try:
        match path.suffix.lower():
            case ".graphml":
                graph = nx.read_graphml(path)
            case ".gml":
                graph = nx.read_gml(path, label=None)
                labels = nx.get_node_attributes(graph, "label")
                if len(set(labels.values())) == len(graph):
                    graph = nx.relabel_nodes(graph, labels)
            case _:
                graph = nx.Graph()
                graph.add_edges_from(_edges(path, max_nodes))
    except OSError as error:
        raise GritError(f"cannot read {str(path)!r}: {error.strerror}.") from None
    # The readers of NetworkX stumble over damaged files in the words of Python.
    except (nx.NetworkXError, ParseError, ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        raise GritError(f"{str(path)!r} is not a readable {path.suffix.lower()} file: {error}.") from None
    if graph.number_of_nodes() == 0:
        raise GritError(f"{str(path)!r} has no nodes. Expected a line for each edge, or a GraphML or GML graph.")
    if graph.number_of_nodes() > max_nodes:
        raise GritError(_too_large(path, max_nodes))
    return nx.DiGraph(graph) if graph.is_directed() else nx.Graph(graph)


def _edges(path: Path, max_nodes: int) -> Iterator[tuple[str, str]]:
    """The first two columns of an edge list; a heading and lines that begin with # are passed over."""
    separator = EDGE_LISTS[path.suffix.lower()]
    nodes: set[str] = set()
    first = True
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, delimiter=separator) if separator else (line.split() for line in file)
        for number, row in enumerate(rows, 1):
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if len(cells) < 2 or not cells[0] or not cells[1]:
                raise GritError(
                    f"{str(path)!r}, line {number}: expected the names of two nodes"
                    f"{f' with {separator!r} between' if separator else ' with a blank between'}, got {' '.join(cells)!r}."
                )
            heading = first and (cells[0].lower(), cells[1].lower()) in _HEADERS
            first = False
            if heading:
                continue
            nodes.update(cells[:2])
            if len(nodes) > max_nodes:
                raise GritError(_too_large(path, max_nodes))
            yield cells[0], cells[1]


def _too_large(path: Path, max_nodes: int) -> str:
    return f"{str(path)!r} has more than {max_nodes} nodes, too many for a picture. Draw a part of it."
