"""Fixtures from the released model (tests/fixtures/golden), as the library's own types."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from grit.graphs.pairs import Pairs

FOLDER = Path(__file__).parent / "fixtures" / "golden"


class Case:
    """One fixture file: arrays as tensors, and its meta data."""

    def __init__(self, name: str) -> None:
        with np.load(FOLDER / f"{name}.npz") as arrays:
            self.meta = json.loads(str(arrays["__meta__"]))
            self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files if key != "__meta__"}

    def __getitem__(self, key: str) -> Tensor:
        return self.arrays[key]

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def under(self, prefix: str) -> dict[str, Tensor]:
        return {key.removeprefix(prefix): value for key, value in self.arrays.items() if key.startswith(prefix)}

    def data_list(self, *, with_rrwp: bool) -> list[Data]:
        """The graphs of the case, one Data each; with the RRWP values that the released code stored, if asked for."""
        node_graph = self["in.batch"]
        num_graphs = len(self.meta["kinds"])
        start = torch.searchsorted(node_graph, torch.arange(num_graphs))
        graphs = []
        for g in range(num_graphs):
            nodes = node_graph == g
            edges = nodes[self["in.edge_index"][0]]
            data = Data(
                x=self["in.x"][nodes],
                edge_index=self["in.edge_index"][:, edges] - start[g],
                num_nodes=int(nodes.sum()),
            )
            if "in.edge_attr" in self:
                data.edge_attr = self["in.edge_attr"][edges]
            if "in.y" in self:
                y = self["in.y"]
                data.y = y[nodes] if y.shape[0] == node_graph.shape[0] else y[g : g + 1]
            if with_rrwp:
                pairs = nodes[self["rrwp.index"][0]]
                data.rrwp = self["rrwp.abs"][nodes]
                data.rrwp_index = self["rrwp.index"][:, pairs] - start[g]
                data.rrwp_val = self["rrwp.val"][pairs]
                data.log_deg = self["rrwp.log_deg"][nodes]
            graphs.append(data)
        return graphs

    def pairs(self) -> tuple[Pairs, Tensor]:
        """The pairs of an attention or layer case, and the position of ours in the order of the file.

        In the file row 0 is the source (our key) and row 1 the destination (our query).
        """
        key, query = self["in.edge_index"]
        num_nodes = self["in.x"].shape[0]
        order = torch.argsort(query * num_nodes + key)
        return Pairs.from_index(query, key, num_nodes), order


def assert_close(got: Tensor, wanted: Tensor, tolerance: float, floor: float = 1e-3) -> None:
    """Largest difference below the tolerance, relative to the largest entry (or to the floor, if all are tiny)."""
    assert got.shape == wanted.shape
    if wanted.numel():
        scale = max(floor, wanted.abs().max().item())
        difference = (got.detach().double() - wanted.double()).abs().max().item()
        assert difference <= tolerance * scale, f"differs by {difference:.3g} where entries reach {scale:.3g}"
