"""GIN-AK+, a GIN as kernel (Zhao et al. 2022): a small GIN runs on the ego net of every node, and that is one layer.

    z_ri = GINE on the net of r, from [x_i ‖ h_ri]      node i of that net; h_ri embeds its distance from r
    x_r <- x_r + ReLU(norm(W [ z_rr σ(h_rr) ‖ Σ_i f(z_ri) σ'(h_ri) ‖ Σ_i g(z_ir) σ''(h_ir) ]))

r as the centroid of its net, the net as a whole, and r in the nets of other nodes, each gated by distance. f and g are linear
maps with norm and ReLU; the σ are linear maps of h with a sigmoid. Nets ignore the directions of edges; messages within them
follow the listed edges, each of them once.

Shape letters: N nodes of the batch, E edges, M members of all nets, D channels, H channels of distances.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings.structures import Structure
from grit.graphs.schema import GraphSchema
from grit.models.blocks import FewRowsNorm, normed_mlp
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import readout_class
from grit.nn.stem import FEATURE_ENCODERS
from grit.options import Dropout, Layers, Width


def gin_ak_structures(options: Mapping[str, Any]) -> tuple[str, ...]:
    """What `GinAk` reads of a batch besides nodes and edges."""
    return (f"egonets-{options['num_hops']}",)


class GinAk(nn.Module):
    """A GIN on every ego net, layer by layer, then a sum over nodes for graphs, and an MLP.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        num_layers: Rounds; each has embeddings of edges and distances of its own.
        hidden_dim: D.
        num_hops: Steps that a net reaches.
        hop_dim: H.
        inner_layers: Layers of the GIN on the nets.
        mlp_layers: Linear maps of f, g and W.
        dropout: After each layer, and before f, g, W and the head.
    """

    def __init__(
        self,
        schema: GraphSchema,
        num_layers: Layers = 6,
        hidden_dim: Width = 128,
        num_hops: Width = 3,
        hop_dim: Width = 16,
        inner_layers: Layers = 1,
        mlp_layers: Layers = 1,
        dropout: Dropout = 0.0,
    ) -> None:
        super().__init__()
        self.nets = f"egonets-{num_hops}"
        self.node = FEATURE_ENCODERS[schema.node.kind](schema.node, hidden_dim)
        self.edges = nn.ModuleList(
            FEATURE_ENCODERS[schema.edge.kind](schema.edge, hidden_dim + hop_dim) for _ in range(num_layers)
        )
        self.layers = nn.ModuleList(
            GinAkLayer(
                hidden_dim=hidden_dim,
                num_hops=num_hops,
                hop_dim=hop_dim,
                inner_layers=inner_layers,
                mlp_layers=mlp_layers,
                dropout=dropout,
            )
            for _ in range(num_layers)
        )
        self.dropout = nn.Dropout(dropout)
        self.readout = readout_class(schema.level, "sum" if schema.level == "graph" else "none")(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = normed_mlp(hidden_dim, hidden_dim, schema.num_outputs, final=False, bias=False)

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes."""
        nets = batch.structures[self.nets]
        x = self.node(batch.graphs.x)
        for edge, layer in zip(self.edges, self.layers, strict=True):
            x = layer(x, edge(batch.graphs.edge_attr), nets)
        predicted: Tensor = self.head(self.dropout(self.joined(self.readout(x, x, batch), batch)))
        return predicted


class GinAkLayer(nn.Module):
    """One round; the arguments are those of `GinAk`."""

    def __init__(
        self, *, hidden_dim: int, num_hops: int, hop_dim: int, inner_layers: int, mlp_layers: int, dropout: float
    ) -> None:
        from torch_geometric.nn import GINEConv

        super().__init__()
        inner_dim = hidden_dim + hop_dim
        self.hop = nn.Embedding(num_hops + 1, hop_dim)
        self.convs = nn.ModuleList(GINEConv(_inner_mlp(inner_dim), train_eps=True) for _ in range(inner_layers))
        self.norms = nn.ModuleList(FewRowsNorm(inner_dim) for _ in range(inner_layers))
        self.narrow = nn.Linear(inner_dim, hidden_dim)
        widths = [hidden_dim] * (mlp_layers + 1)
        self.of_net = normed_mlp(*widths, final=True, bias=False)
        self.of_context = normed_mlp(*widths, final=True, bias=False)
        self.gates = nn.ModuleList(nn.Linear(hop_dim, hidden_dim) for _ in range(3))
        self.combine = normed_mlp(*[3 * hidden_dim] * mlp_layers, hidden_dim, final=False, bias=False, last_bias=False)
        self.norm = FewRowsNorm(hidden_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge: Tensor, nets: Structure) -> Tensor:
        """Update: x (N, D), edge (E, D + H) -> (N, D)."""
        _, root, node, steps = nets.parts["member"]
        source, target, listed = nets.parts["edge"]
        within, edge_within = torch.stack([source, target]), edge.index_select(0, listed)
        hop = self.hop(steps)  # (M, H)
        z = torch.cat([x.index_select(0, node), hop], 1)  # (M, D + H)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            z = z + self.dropout(torch.relu(norm(conv(z, within, edge_within))))
        z = self.narrow(z)  # (M, D)
        of_root, of_net, of_context = (torch.sigmoid(gate(hop)) for gate in self.gates)
        is_root = root == node  # once for each node, in the order of nodes
        parts = [
            z[is_root] * of_root[is_root],
            _sum(self.of_net(self.dropout(z)) * of_net, root, x.shape[0]),
            _sum(self.of_context(self.dropout(z)) * of_context, node, x.shape[0]),
        ]
        combined = self.combine(self.dropout(torch.cat(parts, 1)))  # (N, D)
        updated: Tensor = x + self.dropout(torch.relu(self.norm(combined)))
        return updated


def _inner_mlp(dim: int) -> nn.Sequential:
    return normed_mlp(dim, dim, dim, final=False, bias=False, last_bias=False)


def _sum(x: Tensor, index: Tensor, size: int) -> Tensor:
    return x.new_zeros(size, x.shape[1]).index_add(0, index, x)
