"""Mixed precision: forward and backward under autocast to bfloat16.

In a process of its own, because the instruction set must be chosen before torch starts: with bfloat16 matrix products of
newer sets oneDNN fails on some virtual machines.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema

EDGES = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
KINDS = {
    "none": ((), None),
    "numeric": ((2,), lambda rows: torch.linspace(-1, 1, 2 * rows).view(rows, 2)),
    "category": ((4,), lambda rows: torch.arange(rows) % 4),
    "columns": ((4, 3), lambda rows: torch.stack([torch.arange(rows) % 4, torch.arange(rows) % 3], 1)),
}
MODELS = {
    "rrwp": {},
    "no encoding": {"encoding": "none"},
    "graphormer": {"attention": "graphormer", "update_pairs": False, "norm": "layer", "degree": "encoding"},
}


def test_forward_and_backward_of_every_feature_kind():
    done = subprocess.run(
        [sys.executable, "-m", "tests.nn.test_autocast"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{kind}, {name}: fine" for kind in KINDS for name in MODELS]


def check(kind: str, name: str) -> None:
    torch.manual_seed(0)
    options = MODELS[name]
    sizes, make = KINDS[kind]
    features = Features(kind=kind, sizes=sizes)
    schema = GraphSchema(node=features, edge=features)
    model = grit.Grit(schema=schema, walk_steps=4, num_layers=2, hidden_dim=32, num_heads=4, **options)
    data = Data(edge_index=EDGES, num_nodes=4)
    if make is not None:
        data.x, data.edge_attr = make(4), make(5)
    other = Data(**{**data.to_dict(), "edge_index": EDGES.flip(0)})
    batch = grit.PairBatch.from_data_list([data, other], walk_steps=4, encoding=options.get("encoding", "rrwp"))
    wanted = model(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = model(batch)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), wanted, rtol=0.1, atol=0.1)
    got.float().square().sum().backward()
    unused = tuple(f"layers.{i}.pair_" for i, layer in enumerate(model.layers) if not layer.update_pairs)
    for parameter_name, parameter in model.named_parameters():
        if not parameter_name.startswith(unused):
            assert parameter.grad.dtype == torch.float32, parameter_name
            assert torch.isfinite(parameter.grad).all(), parameter_name
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.stem.node.parameters())
    print(f"{kind}, {name}: fine")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for kind_ in KINDS:
        for name_ in MODELS:
            check(kind_, name_)
