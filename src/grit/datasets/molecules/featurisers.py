"""How molecules become graphs: the table `FEATURISERS`, whose names stores and runs remember."""

from collections.abc import Callable
from functools import partial
from typing import Any

from grit.datasets.molecules.smiles import ogb_graph, zinc_graph
from grit.graphs.chunk import ArrayGraph

FEATURISERS: dict[str, Callable[[Any], ArrayGraph]] = {
    "ogb": ogb_graph,
    "zinc-21": partial(zinc_graph, num_labels=21),
    "zinc-28": partial(zinc_graph, num_labels=28),
}
"""SMILES, or a molecule of `grit.datasets.molecules.smiles.read_smiles` -> graph."""
