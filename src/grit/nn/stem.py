"""The stem: features and encodings of nodes and pairs become vectors of width D, Section 3.2 of the paper.

    x_i = encode(x'_i) + W P_ii          e_ij = Σ_{observed j -> i} encode(e'_ji) + W P_ij

The paper concatenates [x'_i ‖ P_ii] before a linear map; the released code, and this one, add two maps, which is the same
thing. A pair that is no edge has only its encoding; parallel edges add up.

Shape letters: N nodes of the batch, P node pairs, E edges, F features, K walk steps, D channels.
"""

import torch
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.errors import GritError
from grit.graphs.schema import Features


class NumberEncoder(nn.Module):
    """Numbers (R, F) -> (R, D) by a linear map with bias."""

    def __init__(self, features: Features, hidden_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features.width, hidden_dim)

    def forward(self, values: Tensor) -> Tensor:
        """Encode."""
        encoded: Tensor = self.linear(values)
        return encoded


class CategoryEncoder(nn.Module):
    """One category (R, 1) -> (R, D) by an embedding, initialised N(0, 1)."""

    def __init__(self, features: Features, hidden_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(features.sizes[0], hidden_dim)

    def forward(self, values: Tensor) -> Tensor:
        """Encode."""
        encoded: Tensor = self.embedding(values[:, 0])
        return encoded


class ColumnsEncoder(nn.Module):
    """Several categories (R, F) -> (R, D): the sum of one embedding per column, as OGB's atom and bond encoders."""

    def __init__(self, features: Features, hidden_dim: int) -> None:
        super().__init__()
        tables = [nn.Embedding(size, hidden_dim) for size in features.sizes]
        for table in tables:
            nn.init.xavier_uniform_(table.weight)
        self.embeddings = nn.ModuleList(tables)

    def forward(self, values: Tensor) -> Tensor:
        """Encode."""
        columns = [embedding(values[:, c]) for c, embedding in enumerate(self.embeddings)]
        return torch.stack(columns).sum(0)


class ConstantEncoder(nn.Module):
    """Nothing is known (R, 0) -> (R, D): the same learned vector for all, so that edges can be told from other pairs."""

    def __init__(self, features: Features, hidden_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1, hidden_dim)

    def forward(self, values: Tensor) -> Tensor:
        """Encode."""
        return self.embedding.weight.expand(values.shape[0], -1)


FEATURE_ENCODERS: dict[str, type[nn.Module]] = {
    "numeric": NumberEncoder,
    "category": CategoryEncoder,
    "columns": ColumnsEncoder,
    "none": ConstantEncoder,
}


class Stem(nn.Module):
    """Features and encodings -> x (N, D) and pair (P, D).

    Args:
        node: What a node carries.
        edge: What an observed edge carries.
        node_encoding_dim: Width of the batch's node encoding, 0 for none.
        pair_encoding_dim: Width of its pair encoding, 0 for none.
        hidden_dim: D.
        max_degree: If given, an embedding of the degree, up to this one, is added to each node (Graphormer's degree
            encoding, a row of the ablations).
    """

    def __init__(
        self,
        *,
        node: Features,
        edge: Features,
        node_encoding_dim: int,
        pair_encoding_dim: int,
        hidden_dim: int,
        max_degree: int | None = None,
    ) -> None:
        super().__init__()
        self.node_features, self.edge_features = node, edge
        self.hidden_dim = hidden_dim
        self.encoding_dims = (node_encoding_dim, pair_encoding_dim)
        self.node = FEATURE_ENCODERS[node.kind](node, hidden_dim)
        self.edge = FEATURE_ENCODERS[edge.kind](edge, hidden_dim)
        self.node_encoding = _encoding_map(node_encoding_dim, hidden_dim)
        self.pair_encoding = _encoding_map(pair_encoding_dim, hidden_dim)
        self.degree = None if max_degree is None else nn.Embedding(max_degree + 1, hidden_dim)

    def forward(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """Encode a batch."""
        self._check(batch)
        x = self.node(batch.graphs.x)  # (N, D)
        if self.node_encoding is not None:
            x = x + self.node_encoding(batch.node_encoding)
        if self.degree is not None:
            x = x + self.degree(batch.degree.clamp(max=self.degree.num_embeddings - 1))
        if self.pair_encoding is None:
            pair = x.new_zeros(batch.num_pairs, self.hidden_dim)  # (P, D)
        else:
            pair = self.pair_encoding(batch.pair_encoding)  # (P, D)
        edge = self.edge(batch.graphs.edge_attr).to(
            pair.dtype
        )  # under autocast, linear maps and embeddings differ in type
        return x, pair.index_add_(0, batch.pairs.edge_pair, edge)  # (N, D), (P, D)

    def _check(self, batch: PairBatch) -> None:
        _check_features("node features (x)", batch.graphs.x, self.node_features)
        _check_features("edge features (edge_attr)", batch.graphs.edge_attr, self.edge_features)
        got = (batch.node_encoding.shape[1], batch.pair_encoding.shape[1])
        if got != self.encoding_dims:
            raise GritError(
                f"the batch carries encodings of width {got[0]} (nodes) and {got[1]} (pairs), the model was built for "
                f"{self.encoding_dims[0]} and {self.encoding_dims[1]}. Build the batch with the model's encoding and walk_steps."
            )


def _encoding_map(width: int, hidden_dim: int) -> nn.Linear | None:
    if width == 0:
        return None
    linear = nn.Linear(width, hidden_dim, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear


def _check_features(name: str, values: Tensor, features: Features) -> None:
    if values.shape[1] != features.width:
        raise GritError(f"{name} have {values.shape[1]} columns, the model was built for {features}.")
    if features.kind == "none":
        return
    if features.is_integer != (not values.is_floating_point()):
        wanted = "integers (.long())" if features.is_integer else "floating-point numbers (.float())"
        raise GritError(f"{name} are {values.dtype}, the model was built for {features}: pass {wanted}.")
    # Reading the largest category would stop a compiled graph, and a GPU; there the embedding's own check remains.
    if features.is_integer and values.numel() and values.device.type == "cpu" and not torch.compiler.is_compiling():
        largest, smallest = values.amax(0).tolist(), values.amin(0).tolist()
        for column, (high, low, size) in enumerate(zip(largest, smallest, features.sizes, strict=True)):
            if high >= size or low < 0:
                raise GritError(
                    f"{name}, column {column}, hold the category {high if high >= size else low}; the model has a table of "
                    f"{size}: 0 to {size - 1}. Rebuild the model for this data, or map unknown categories to a known one."
                )
