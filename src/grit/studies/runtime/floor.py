"""The matrix products of a layer and nothing else (``cpp/floor.h``): what speed is measured against."""

import torch

from grit.kernels.native import Call, Mirror, integers


class _FloorProblem(Mirror):
    cpp_name = "floor"
    _fields_ = tuple(integers("pairs", "nodes", "width", "threads", "updates_pairs", "backward"))


def run_floor(num_pairs: int, num_nodes: int, hidden_dim: int, num_layers: int, *, training: bool) -> None:
    """The products of a model's layers, forward and, in training, backward with the pair projection computed again."""
    for layer in range(num_layers):
        for backward in (False, True) if training else (False,):
            sizes = (num_pairs, num_nodes, hidden_dim, torch.get_num_threads(), layer + 1 < num_layers, backward)
            Call(_FloorProblem(*sizes), torch.float32).run("grit_floor")
