"""Your own PyG graphs: any features, any targets, in a data set that is stored once and read batch by batch."""

import tempfile
from pathlib import Path

import torch
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg
from grit.recipe.presets import preset_recipe


def cycle_or_path(n):
    """A ring or a chain with random numbers on its nodes; which of the two is the question."""
    nodes = torch.arange(n)
    edges = torch.stack([nodes[:-1], nodes[1:]])
    is_ring = n % 2
    if is_ring:
        edges = torch.cat([edges, torch.tensor([[n - 1], [0]])], 1)
    both = torch.cat([edges, edges.flip(0)], 1)
    return Data(x=torch.randn(n, 4), edge_index=both, y=torch.tensor([is_ring]))


def main(epochs=6):
    torch.manual_seed(0)
    folder = Path(tempfile.mkdtemp())
    graphs = [cycle_or_path(4 + k % 10) for k in range(200)]
    store = from_pyg(graphs, name="rings", out=folder / "rings")  # classes, features and splits are inferred
    print(store, "->", store.task.kind, "of", store.schema.node)
    recipe = preset_recipe(
        "fast", store.schema, f"train.epochs={epochs}", "model.num_layers=2", dataset=str(folder / "rings")
    )
    result = grit.train(recipe, folder / "run", store=store)
    print("test:", result["test"])
    return result


if __name__ == "__main__":
    main()
