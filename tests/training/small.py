"""A small data set and a small recipe, for tests of the loop."""

import numpy as np
import torch
from torch_geometric.data import Data

import grit
from grit.datasets import from_pyg

SMALL = (
    "encoding.walk_steps=4",
    "model.num_layers=2",
    "model.hidden_dim=8",
    "model.num_heads=2",
    "train.epochs=3",
    "train.warmup_epochs=1",
    "train.batch_size=16",
    "train.lr=3e-3",
)


def small_graphs(count=70, seed=0):
    """Random graphs; the target is the mean degree, a little noise, and the share of one node type."""
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        n = int(rng.integers(3, 9))
        upper = np.triu(rng.random((n, n)) < 0.4, 1)
        edges = torch.from_numpy(np.stack(np.nonzero(upper | upper.T)))
        x = torch.from_numpy(rng.integers(0, 21, (n, 1)))
        y = edges.shape[1] / n + float((x < 5).float().mean())
        graphs.append(
            Data(
                x=x,
                edge_index=edges,
                edge_attr=torch.from_numpy(rng.integers(1, 4, edges.shape[1])),
                y=torch.tensor([y]),
            )
        )
    # Every category occurs, so that the schema is that of ZINC.
    graphs[0].x = torch.arange(21)[:, None]
    nodes = torch.arange(21)
    graphs[0].edge_index = torch.stack([nodes, (nodes + 1) % 21])
    graphs[0].edge_attr = nodes % 4
    return graphs


def small_store(**options):
    graphs = small_graphs()
    return from_pyg(
        graphs, splits={"train": range(50), "val": range(50, 60), "test": range(60, 70)}, name="small", **options
    )


def small_recipe(*overrides):
    return grit.load_recipe("zinc", *SMALL, *overrides)


def recipe_of(model, *overrides):
    """As `small_recipe`, of another model with its own options."""
    return grit.load_recipe(
        "zinc", f"model.name={model}", *[each for each in SMALL if "model." not in each], *overrides
    )


def divided_graph(num_nodes=60, seed=0, kind="classes"):
    """One graph of two communities whose nodes are divided by masks; the feature says little about the class.

    The targets are classes, or numbers far from 0.
    """
    rng = np.random.default_rng(seed)
    community = rng.integers(0, 2, num_nodes)
    same = community[:, None] == community
    upper = np.triu(rng.random(same.shape) < np.where(same, 0.2, 0.02), 1)
    part = rng.permutation(np.arange(num_nodes) % 4)  # 0 train, 1 val, 2 test, 3 none
    y = torch.from_numpy(community)
    x = torch.from_numpy(rng.normal(size=(num_nodes, 3)) + 0.5 * community[:, None]).float()
    return Data(
        x=x,
        edge_index=torch.from_numpy(np.stack(np.nonzero(upper | upper.T))),
        y=y if kind == "classes" else y.float() * 10 + 1000 + x[:, :1].mean(1),
        **{f"{name}_mask": torch.from_numpy(part == number) for number, name in enumerate(("train", "val", "test"))},
    )


def node_recipe(*overrides):
    """As `small_recipe`, for nodes."""
    return grit.load_recipe("own-nodes", *SMALL, "model.dropout=0.0", *overrides)
