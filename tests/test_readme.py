"""The code in the README and in the tour, run."""

import re
from pathlib import Path

import pytest
import torch

import grit

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md"])
def test_python_of_the_page_runs(page):
    torch.manual_seed(0)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)
    names = {}
    for block in blocks:
        if "path/to" not in block:
            exec(block, names)
    assert names["x"].shape == (6, 64)
    assert grit.rrwp(names["path"], num_nodes=3, walk_steps=4)[0, 2].tolist() == [0.0, 0.0, 0.5, 0.0]


def test_the_readme_counts_the_parameters_right():
    model = grit.build_model(grit.load_recipe("zinc"))
    assert f"{model.num_parameters:,} parameters" in (ROOT / "README.md").read_text(encoding="utf-8")
