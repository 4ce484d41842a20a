"""The systems that recipes stand for: what they are called, and which of them compete on a data set."""

from typing import NamedTuple

from grit.errors import GritError
from grit.models import MODELS
from grit.recipe.config import Recipe
from grit.recipe.load import load_recipe, recipes

GRIT = "GRIT"

# End of a recipe's name -> the system as the paper's tables print it. What is not here goes by the end itself.
TITLES = {
    "crawl": "CRaW1",
    "cin": "CIN",
    "cin-small": "CIN-small",
    "delta-2-gnn": "δ-2-GNN",
    "delta-2-lgnn": "δ-2-LGNN",
    "dgn": "DGN",
    "egt": "EGT",
    "egt-small": "EGT-small",
    "gat": "GAT",
    "gatedgcn": "GatedGCN",
    "gatedgcn-lspe": "GatedGCN-LSPE",
    "gatedgcn-rwse": "GatedGCN+RWSE",
    "gatv2": "GATv2",
    "gcn": "GCN",
    "gcn-virtual": "GCN-virtual",
    "gin": "GIN",
    "gin-ak": "GIN-AK+",
    "gin-virtual": "GIN-virtual",
    "gine": "GINE",
    "gps": "GPS",
    "gps-deep": "GPS-deep",
    "gps-medium": "GPS-medium",
    "gps-small": "GPS-small",
    "graphormer": "Graphormer",
    "graphormer-gd": "Graphormer-GD",
    "graphormer-urpe": "Graphormer-URPE",
    "graphsage": "GraphSAGE",
    "grpe": "GRPE",
    "gsn": "GSN",
    "monet": "MoNet",
    "pna": "PNA",
    "san": "SAN",
    "san-lappe": "SAN+LapPE",
    "san-rwse": "SAN+RWSE",
    "sat": "K-Subgraph SAT",
    "signnet": "SignNet",
    "tokengt-lap": "TokenGT (Lap)",
    "tokengt-orf": "TokenGT (ORF)",
    "transformer-lappe": "Transformer+LapPE",
    "transformer-rwse": "Transformer+RWSE",
}


class System(NamedTuple):
    """One system on one data set.

    Attributes:
        title: As the paper's tables print it.
        recipe: Its published configuration.
    """

    title: str
    recipe: Recipe

    @property
    def family(self) -> str:
        """Message passing, transformer, or GRIT."""
        if self.recipe.model.name == "grit":
            return GRIT
        room = MODELS[self.recipe.model.name].build.__module__
        return "message passing" if ".message_passing" in room else "transformer"

    @property
    def approximation(self) -> str | None:
        """What differs from the authors' computation; None where nothing does."""
        return None if self.recipe.paper is None else self.recipe.paper.approximation

    @property
    def paper(self) -> str | None:
        """The paper's figure as printed."""
        return None if self.recipe.paper is None else self.recipe.paper.printed

    @property
    def marked(self) -> str:
        """The title, with ≈ after it where the model is an approximation."""
        return f"{self.title} ≈" if self.approximation else self.title


APPROXIMATION = "≈: not exactly what the authors' code computes; docs/baselines.md says what differs."


def system_title(recipe: str, dataset: str) -> str | None:
    """The system that a recipe of a data set is named after; None if the name is of another form."""
    if recipe == dataset:
        return GRIT
    end = recipe.removeprefix(f"{dataset}-")
    return None if end == recipe else TITLES.get(end, end)


def find_systems(dataset: str) -> dict[str, System]:
    """All systems with a recipe for a data set, by recipe, GRIT first; its ablations are none."""
    found = {}
    for name in sorted(recipes(), key=lambda name: (name != dataset, name)):
        title = system_title(name, dataset)
        if title is None:
            continue
        recipe = load_recipe(name)
        if recipe.dataset == dataset and (name == dataset or recipe.model.name != "grit"):
            found[name] = System(title, recipe)
    if not found:
        known = sorted({load_recipe(name).dataset for name in recipes() if not name.startswith("own-")})
        raise GritError(f"there is no recipe for the data set {dataset!r}; there are recipes for {', '.join(known)}.")
    return found
