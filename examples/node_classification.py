"""Predictions for every node: which of two communities is it in, given one named member of each?

The paper's CLUSTER benchmark in small. The benchmark itself: ``grit datasets build cluster --how generate``, then
``grit train cluster``.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg
from grit.recipe.presets import preset_recipe


def two_communities(rng, size=7):
    community = rng.permutation(np.repeat([0, 1], size))
    same = community[:, None] == community
    upper = np.triu(rng.random(same.shape) < np.where(same, 0.8, 0.1), 1)
    named = np.zeros(2 * size, dtype=np.int64)
    for number in (0, 1):
        named[rng.choice(np.flatnonzero(community == number))] = number + 1
    edges = torch.from_numpy(np.stack(np.nonzero(upper | upper.T)))
    return Data(x=torch.from_numpy(named), edge_index=edges, y=torch.from_numpy(community))


def main(graphs=200, epochs=10):
    rng = np.random.default_rng(0)
    folder = Path(tempfile.mkdtemp())
    store = from_pyg([two_communities(rng) for _ in range(graphs)], name="communities")
    changes = (
        "model.num_layers=2",
        "model.hidden_dim=32",
        "model.num_heads=4",
        "model.attention_dropout=0.0",
        "train.batch_size=16",
    )
    recipe = preset_recipe("fast", store.schema, *changes, f"train.epochs={epochs}")
    result = grit.train(recipe, folder / "run", store=store)
    print(f"{store.schema.level}-level {store.task.kind}: accuracy {result['test']['accuracy']:.2f}, by chance 0.50")
    return result


if __name__ == "__main__":
    main()
