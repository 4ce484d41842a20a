"""TokenGT (Kim et al. 2022): nodes and edges are the tokens of a plain transformer; identifiers tell it what joins what.

    node v:       encode(x_v)   + W [P_v ‖ P_v] + T_node
    edge u -> v:  encode(e_uv)  + W [P_u ‖ P_v] + T_edge
    tokens <- tokens + attention(LayerNorm(tokens)),     tokens <- tokens + FFN(LayerNorm(tokens))

P are node identifiers, orthonormal ones: either drawn at random (ORF), or eigenvectors of the Laplacian. A graph token, from
which graphs are read, and a null token stand beside them. Every listed edge is a token, so that a bond listed in both
directions is two and parallel edges are several; a self-loop has the type of a node, as in the authors' code.

Shape letters: N nodes, E edges, B graphs, M tokens of the batch, M = N + E + 2B, L the most that one graph has, d width of an
identifier, D channels, T targets.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from grit.batches.pair_batch import PairBatch
from grit.graphs.schema import GraphSchema
from grit.models.blocks import Draws
from grit.models.transformers.tokengt_base import TokenGt, orthonormal
from grit.nn.attention.contract import check_heads
from grit.options import Dropout, Layers, Width


class TokenGtOrf(TokenGt, Draws):
    """TokenGT with orthogonal random features as identifiers: other ones at every training step, fixed ones in evaluation.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        identifier_dim: d. Identifiers are orthonormal in graphs of up to d nodes; beyond, d columns of an orthogonal matrix.
        num_layers: Layers.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: Of the attention, a divisor of D.
        dropout: On tokens, after attention and FFN.
        attention_dropout: On the attention weights.
        activation_dropout: Inside the FFNs.
        stochastic_depth: Probability with which a graph skips the last layer in training; of those before it skips fewer.
    """

    def __init__(
        self,
        schema: GraphSchema,
        identifier_dim: Width = 64,
        num_layers: Layers = 12,
        hidden_dim: Width = 80,
        ffn_dim: Width = 80,
        num_heads: Width = 8,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.1,
        activation_dropout: Dropout = 0.1,
        stochastic_depth: Dropout = 0.1,
    ) -> None:
        super().__init__(
            schema,
            identifier_dim=identifier_dim,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            stochastic_depth=stochastic_depth,
        )
        self.identifier_dim = identifier_dim

    def identify(self, batch: PairBatch) -> Tensor:
        """Rows of a random orthogonal matrix, a different one for each graph."""
        drawn = self.normal(batch.graphs, self.identifier_dim, self.draw_seed())
        return orthonormal(drawn, batch.graphs).to(batch.log_degree.dtype)


class TokenGtLap(TokenGt):
    """TokenGT with eigenvectors of the Laplacian as identifiers, their signs drawn anew at every training step.

    Args:
        schema: Features and targets of the data; graphs or nodes.
        walk_steps: d of the encoding ``laplacian``, whose eigenvalues are left out.
        eigenvector_dropout: On single entries of the identifiers.
        num_layers: Layers.
        hidden_dim: D.
        ffn_dim: Width of the FFNs.
        num_heads: Of the attention, a divisor of D.
        dropout: On tokens, after attention and FFN.
        attention_dropout: On the attention weights.
        activation_dropout: Inside the FFNs.
        stochastic_depth: Probability with which a graph skips the last layer in training; of those before it skips fewer.
    """

    def __init__(
        self,
        schema: GraphSchema,
        walk_steps: int = 16,
        eigenvector_dropout: Dropout = 0.2,
        num_layers: Layers = 12,
        hidden_dim: Width = 80,
        ffn_dim: Width = 80,
        num_heads: Width = 8,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.1,
        activation_dropout: Dropout = 0.1,
        stochastic_depth: Dropout = 0.1,
    ) -> None:
        super().__init__(
            schema,
            identifier_dim=walk_steps,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            ffn_dim=ffn_dim,
            num_heads=num_heads,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            stochastic_depth=stochastic_depth,
        )
        self.eigenvector_dropout = eigenvector_dropout

    def identify(self, batch: PairBatch) -> Tensor:
        """The lowest eigenvectors at each node."""
        vectors = batch.node_encoding[:, : batch.node_encoding.shape[1] // 2]
        if not self.training:
            return vectors
        signs = torch.randint(0, 2, (batch.num_graphs, vectors.shape[1]), device=vectors.device) * 2 - 1
        return F.dropout(vectors, self.eigenvector_dropout) * signs[batch.graphs.graph_of_node]


def check_tokengt(options: Mapping[str, Any]) -> None:
    """Raise where options of TokenGT do not go together, before anything is built."""
    check_heads(options["hidden_dim"], options["num_heads"])
