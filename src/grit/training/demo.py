"""A small GRIT trained in seconds on generated graphs: how many triangles has a graph?"""

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor
from torch_geometric.data import Data

from grit.graphs.batch import PairBatch
from grit.graphs.sampling import shuffled_batches
from grit.graphs.schema import Features, GraphSchema
from grit.nn.model import Grit
from grit.training.config import TrainConfig
from grit.training.optimisation import build_optimizer, train_step

WALK_STEPS = 8


def triangle_graphs(num_graphs: int, seed: int) -> list[Data]:
    """Random graphs of 8 to 20 nodes without any features; y is the number of triangles, in tens."""
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(num_graphs):
        n = int(rng.integers(8, 21))
        upper = np.triu(rng.random((n, n)) < rng.uniform(0.15, 0.5), 1)
        adjacency = (upper | upper.T).astype(np.int64)
        triangles = np.trace(adjacency @ adjacency @ adjacency) / 6
        edge_index = torch.from_numpy(np.stack(np.nonzero(adjacency)))
        graphs.append(Data(edge_index=edge_index, num_nodes=n, y=torch.tensor([triangles / 10], dtype=torch.float32)))
    return graphs


def l1_loss(predicted: Tensor, batch: PairBatch) -> Tensor:
    """Mean absolute error."""
    assert batch.y is not None
    return (predicted - batch.y).abs().mean()


def run_demo(steps: int, seed: int) -> tuple[float, float]:
    """Train, print, and return the test error of the model and of the constant prediction."""
    console = Console()
    train, test = triangle_graphs(512, seed), triangle_graphs(256, seed + 1)
    nothing = Features(kind="none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Grit(
            schema=GraphSchema(node=nothing, edge=nothing),
            walk_steps=WALK_STEPS,
            num_layers=3,
            hidden_dim=32,
            num_heads=4,
        )
    config = TrainConfig(batch_size=32, warmup_epochs=0, lr=2e-3, seed=seed)
    optimizer = build_optimizer(model, config)
    console.print(f"GRIT with {model.num_parameters:,} parameters learns to count triangles in 512 random graphs.")
    per_epoch = -(-len(train) // config.batch_size)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=steps)
        for step in range(steps):
            batches = shuffled_batches(len(train), config.batch_size, config.seed, step // per_epoch)
            chosen = [train[i] for i in batches[step % per_epoch].tolist()]
            train_step(model, PairBatch.from_data_list(chosen, WALK_STEPS), l1_loss, optimizer, config.clip_norm)
            progress.advance(task)
    model.eval()
    with torch.no_grad():
        batch = PairBatch.from_data_list(test, WALK_STEPS)
        error = 10 * l1_loss(model(batch), batch).item()
    targets = torch.cat([graph.y for graph in train])
    constant = 10 * (torch.cat([graph.y for graph in test]) - targets.median()).abs().mean().item()
    console.print(f"test error: {error:.2f} triangles; always the median: {constant:.2f} triangles.")
    console.print("Next: grit recipes zinc shows the published model; README.md shows the library.")
    return error, constant
