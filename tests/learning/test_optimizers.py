import json

import pytest
import torch

import grit
from grit.graphs.chunk import GraphChunk
from grit.graphs.store import GraphStore
from grit.learning.task import Task
from grit.recipe.builder import build_optimizer
from grit.recipe.config import TrainConfig
from grit.training.loop import TrainingLoop
from grit.training.run_folder import RunFolder, describe_data
from grit.training.train import make_fabric
from tests.golden import FOLDER, Case, assert_close

SCHEDULES = json.loads((FOLDER / "misc.json").read_text())["schedules"]


@pytest.mark.parametrize("case", SCHEDULES, ids=lambda case: case["config"])
def test_the_released_schedules(case):
    config = grit.load_recipe(case["config"]).train
    for epoch, wanted in case["lr_at_epoch"].items():
        assert config.learning_rate(int(epoch)) == pytest.approx(wanted, rel=1e-12, abs=1e-18)
    total = sum(config.learning_rate(epoch) for epoch in range(case["max_epoch"]))
    assert total == pytest.approx(case["lr_sum"], rel=1e-9)
    group = build_optimizer(torch.nn.Linear(1, 1), config).param_groups[0]
    assert list(group["betas"]) == case["betas"]
    assert (group["eps"], group["weight_decay"]) == (case["eps"], case["weight_decay"])


def test_linear_schedule():
    config = TrainConfig(epochs=10, warmup_epochs=2, schedule="linear", lr=1.0)
    rates = [config.learning_rate(epoch) for epoch in range(11)]
    assert rates == pytest.approx([1e-6, 0.5, 1.0, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0.0])


def test_no_epochs_after_the_warm_up():
    config = TrainConfig(epochs=2, warmup_epochs=2, lr=1.0)
    assert [config.learning_rate(epoch) for epoch in range(3)] == [1e-6, 0.5, 1.0]


def test_the_released_adamw_trajectory_through_our_loop(tmp_path):
    """Eight steps on one batch, with clipping: losses, gradient norms before clipping, and predictions afterwards."""
    case = Case("model_zinc_l2_steps")
    steps = case.meta["steps"]
    recipe = grit.load_recipe(
        "zinc",
        f"model.num_layers={case.meta['layers']}",
        "model.attention_dropout=0.0",
        f"train.lr={case.meta['lr']}",
        f"train.weight_decay={case.meta['weight_decay']}",
        "train.precision=64-true",
    )
    graphs = case.data_list(with_rrwp=True)
    batch = grit.PairBatch.from_data_list(graphs, recipe.encoding.walk_steps).to(torch.float64)
    benchmark = grit.datasets.DATASETS["zinc"]
    chunk = GraphChunk(
        num_nodes=batch.graphs.nodes_per_graph.numpy(),
        num_edges=batch.graphs.edge_ptr.diff().numpy(),
        x=batch.x.numpy(),
        edge_index=torch.cat([graph.edge_index for graph in graphs], 1).numpy(),
        edge_attr=batch.graphs.edge_attr.numpy(),
        y=batch.y.numpy(),
    )
    everything = list(range(len(graphs)))
    store = GraphStore.in_memory(
        chunk,
        name="case",
        graphs=benchmark.schema,
        task=benchmark.task,
        splits={},
    ).with_splits({"train": everything, "val": everything})
    task = Task(benchmark.task)
    data = describe_data(store, task, {})
    loop = TrainingLoop(recipe, store, RunFolder(tmp_path), make_fabric("64-true", "cpu"), task, data)
    released = grit.load_reference_checkpoint(case.under("sd."), recipe).double()
    loop.network.load_state_dict(released.state_dict())
    for group in loop.optimizer.param_groups:
        group["lr"] = case.meta["lr"]
    norms, clip = [], loop.fabric.clip_gradients

    def clipping(*arguments, **options):
        norms.append(clip(*arguments, **options).item())

    loop.fabric.clip_gradients = clipping
    loop.model.train()
    losses = [loop.step(batch, ends_step=True) for _ in range(steps)]
    assert losses == pytest.approx(case["steps64.loss"].tolist(), rel=0, abs=1e-8)
    assert norms == pytest.approx(case["steps64.gradnorm"].tolist(), rel=1e-7)
    assert_close(loop.network.eval()(batch), case["steps64.eval_pred_after"], 1e-7)
