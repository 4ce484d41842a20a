"""How molecules become graphs: the table `FEATURISERS`, whose names stores and runs remember."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from grit.datasets.molecules.smiles import ogb_graph, read_smiles, zinc_graph
from grit.datasets.molecules.standardise import STANDARDISATIONS, parent_molecule
from grit.errors import GritError
from grit.graphs.chunk import ArrayGraph

if TYPE_CHECKING:
    from rdkit.Chem import Mol


@dataclass(frozen=True)
class Featuriser:
    """SMILES, or a molecule of `grit.datasets.molecules.smiles.read_smiles` -> graph.

    Attributes:
        graph: Molecule -> graph.
        standardise: What is done to a molecule before, if anything.
    """

    graph: Callable[[Any], ArrayGraph]
    standardise: "Callable[[Mol], Mol] | None" = None

    def molecule(self, item: "str | Mol") -> "Mol":
        """The molecule that the graph is made of."""
        parsed = read_smiles(item) if isinstance(item, str) else item
        return parsed if self.standardise is None else self.standardise(parsed)

    def __call__(self, item: "str | Mol") -> ArrayGraph:
        """The graph."""
        return self.graph(self.molecule(item))


FEATURISERS: dict[str, Featuriser] = {
    "ogb": Featuriser(ogb_graph),
    "ogb-parent": Featuriser(ogb_graph, standardise=parent_molecule),
    "zinc-21": Featuriser(partial(zinc_graph, num_labels=21)),
    "zinc-28": Featuriser(partial(zinc_graph, num_labels=28)),
}
"""The name under which stores and runs remember it -> featuriser."""


def own_featuriser(standardise: str) -> str:
    """The entry of `FEATURISERS` for molecules of your own, by what ``--standardise`` says."""
    if standardise not in STANDARDISATIONS:
        raise GritError(f"standardise must be {' or '.join(STANDARDISATIONS)}, got {standardise!r}.")
    return "ogb" if standardise == "none" else f"ogb-{standardise}"
