"""From what a user names, a molecule or a file with a graph, to its drawing."""

import os
from pathlib import Path

import numpy as np

from grit.datasets.molecules.smiles import read_smiles
from grit.drawing.compositions import graph_edges
from grit.drawing.graph_drawing import Drawing, GraphDrawing
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.errors import GritError
from grit.graphs.chunk import Array
from grit.graphs.graph_files import GRAPHS, read_graph

MAX_NODES = 400  # more cannot be told apart in a picture, and every pair of nodes may be a link


def read_drawing(source: str) -> tuple[Drawing, Array, str]:
    """The drawing, the (2, E) edge index, and a description of a SMILES or a graph file."""
    path = Path(source)
    known = path.suffix.lower() in GRAPHS
    if os.path.isfile(source):
        if not known:
            raise GritError(
                f"{source!r}: a graph file must end in one of {', '.join(GRAPHS)}. "
                "Save the graph as one of these, for example by networkx.write_graphml."
            )
        graph = read_graph(path, MAX_NODES)
        names = [str(node) for node in graph.nodes]
        readable = len(names) <= 24 and max(map(len, names)) <= 4
        drawing = GraphDrawing(graph, names=names if readable else None)
        directed = ", directed and drawn without arrows" if graph.is_directed() else ""
        what = f"{len(names):,} nodes, {graph.number_of_edges():,} edges{directed}"
        return drawing, graph_edges(graph), what
    if known:
        raise GritError(f"there is no file {source!r}. Expected a graph file ({', '.join(GRAPHS)}) or a SMILES.")
    try:
        atoms = read_smiles(source).GetNumAtoms()
    except GritError as error:
        raise GritError(
            f"{source!r} is neither a file nor a readable SMILES ({error}). Give a molecule such as "
            f"'CC(=O)Oc1ccccc1C(=O)O', or a graph file that ends in one of {', '.join(GRAPHS)}."
        ) from None
    if atoms > MAX_NODES:
        raise GritError(f"the molecule has {atoms:,} atoms; more than {MAX_NODES} are too many for a picture.")
    molecule = MoleculeDrawing(source)
    edges = np.concatenate([molecule.bonds, molecule.bonds[:, ::-1]]).T
    return molecule, edges, f"{atoms} atoms, {len(molecule.bonds)} bonds"
