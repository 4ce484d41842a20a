"""The README's own code, run."""

import re
from pathlib import Path

import torch

import grit

README = Path(__file__).parents[1] / "README.md"


def test_python_of_the_readme_runs():
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    names = {}
    for block in blocks:
        if "path/to" not in block:
            exec(block, names)
    assert names["x"].shape == (6, 64)
    assert grit.rrwp(names["path"], num_nodes=3, walk_steps=4)[0, 2].tolist() == [0.0, 0.0, 0.5, 0.0]
    model = grit.build_model(names["recipe"])
    assert f"{model.num_parameters:,} parameters" in README.read_text(encoding="utf-8")
