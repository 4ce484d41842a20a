"""How SAT reads the structure around a node; the equations stand in `grit.models.transformers.sat`.

Shape letters: N nodes of the batch, M members of all subgraphs, D channels.
"""

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.models.blocks import FewRowsNorm


class SubtreeExtractor(nn.Module):
    """W_S norm([x ‖ GNN_1(x) ‖ ... ‖ GNN_k(x)]): x (N, D) -> (N, D).

    Args:
        hidden_dim: D.
        num_layers: k.
        towers: Parts into which PNA divides the channels.
        edge_dim: Of edge features; None for none.
    """

    def __init__(self, hidden_dim: int, *, num_layers: int, towers: int, edge_dim: int | None) -> None:
        super().__init__()
        self.convs = _pna_layers(hidden_dim, num_layers, towers, edge_dim)
        self.norm = FewRowsNorm((num_layers + 1) * hidden_dim)
        self.out = nn.Linear((num_layers + 1) * hidden_dim, hidden_dim)

    def forward(self, x: Tensor, edge: Tensor | None, batch: PairBatch) -> Tensor:
        """Extract."""
        found = [x]
        for conv in self.convs:
            found.append(torch.relu(conv(found[-1], batch.graphs.edge_index, edge)))
        extracted: Tensor = self.out(self.norm(torch.cat(found, 1)))
        return extracted


class SubgraphExtractor(nn.Module):
    """W_S norm([x ‖ Σ over the k-hop subgraph of GNN(x)]): x (N, D) -> (N, D); the arguments are as above."""

    def __init__(self, hidden_dim: int, *, num_layers: int, towers: int, edge_dim: int | None) -> None:
        super().__init__()
        self.subgraphs = f"egonets-{num_layers}"
        self.convs = _pna_layers(hidden_dim, num_layers, towers, edge_dim)
        self.norm = FewRowsNorm(2 * hidden_dim)
        self.out = nn.Linear(2 * hidden_dim, hidden_dim)

    def forward(self, x: Tensor, edge: Tensor | None, batch: PairBatch) -> Tensor:
        """Extract."""
        parts = batch.structures[self.subgraphs].parts
        _, root, node, _ = parts["member"]
        source, target, listed = parts["edge"]
        within, edge_within = torch.stack([source, target]), None if edge is None else edge.index_select(0, listed)
        z = x.index_select(0, node)  # (M, D); its backward is faster than that of x[node]
        for conv in self.convs:
            z = torch.relu(conv(z, within, edge_within))
        pooled = z.new_zeros(x.shape[0], z.shape[1]).index_add(0, root, z)
        extracted: Tensor = self.out(self.norm(torch.cat([x, pooled], 1)))
        return extracted


# How the structure around a node is read: entries take hidden_dim, and num_layers, towers and edge_dim as keywords.
EXTRACTORS: dict[str, type[nn.Module]] = {"subgraph": SubgraphExtractor, "subtree": SubtreeExtractor}


def _pna_layers(dim: int, num_layers: int, towers: int, edge_dim: int | None) -> nn.ModuleList:
    from torch_geometric.nn import PNAConv

    return nn.ModuleList(
        PNAConv(
            dim,
            dim,
            aggregators=["mean", "sum", "max"],
            scalers=["identity"],
            deg=torch.tensor([0, 1]),  # which only other scalers read
            edge_dim=edge_dim,
            towers=towers,
            divide_input=True,
        )
        for _ in range(num_layers)
    )
