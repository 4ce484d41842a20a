"""GRIT itself: stem, layers, readout, head."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from grit.batches.pair_batch import PairBatch
from grit.encodings import check_walk_steps, encoding_kind
from grit.errors import GritError
from grit.graphs.schema import GraphSchema
from grit.memory import check_fits
from grit.nn.activation import ACTIVATIONS
from grit.nn.attention import ATTENTIONS
from grit.nn.attention.contract import check_heads
from grit.nn.can_fuse import why_not_fused
from grit.nn.fused_stack import run_stack
from grit.nn.graph_features import JoinFeatures
from grit.nn.heads import HEADS, READOUTS, readout_class
from grit.nn.layer import GritLayer
from grit.nn.norm import NORMS
from grit.nn.stem import Stem
from grit.options import Dropout, Layers, Width, entry_of

_MAX_WEIGHTS = 10**11
MAX_DEGREE = 150  # of the degree encoding; larger degrees share the last row, as Graphormer has it


class Grit(nn.Module):
    """The Graph Inductive bias Transformer.

    Args:
        schema: Features and targets of the data.
        encoding: Entry of `ENCODINGS` with which batches are built.
        walk_steps: K, its length.
        num_layers: L.
        hidden_dim: D.
        num_heads: H, a divisor of D.
        dropout: On the attention's outputs and inside the FFNs.
        attention_dropout: On the attention weights.
        attention: Entry of `ATTENTIONS`.
        degree: ``scaler`` in every layer (the paper), ``encoding`` at the input (Graphormer), or ``none``.
        update_pairs: Whether layers rewrite the pair representation.
        norm: Entry of `NORMS`.
        clamp: Bound on the attention logits; None for none.
        activation: Of FFNs and head, entry of `ACTIVATIONS`.
        pooling: ``sum`` or ``mean`` for graphs, ``none`` for nodes and edges.
        head: Entry of `HEADS`.
        head_layers: Linear maps in the head.
    """

    def __init__(
        self,
        *,
        schema: GraphSchema,
        encoding: str = "rrwp",
        walk_steps: int = 21,
        num_layers: Layers = 10,
        hidden_dim: Width = 64,
        num_heads: Width = 8,
        dropout: Dropout = 0.0,
        attention_dropout: Dropout = 0.0,
        attention: Annotated[str, entry_of(ATTENTIONS)] = "grit",
        degree: Literal["scaler", "encoding", "none"] = "scaler",
        update_pairs: bool = True,
        norm: Annotated[str, entry_of(NORMS)] = "batch",
        clamp: Annotated[float, Field(gt=0.0)] | None = 5.0,
        activation: Annotated[str, entry_of(ACTIVATIONS)] = "relu",
        pooling: str = "sum",
        head: Annotated[str, entry_of(HEADS)] = "halving",
        head_layers: Layers = 3,
    ) -> None:
        super().__init__()
        _check_arguments(num_layers=num_layers, degree=degree, head=head, head_layers=head_layers)
        kind = encoding_kind(encoding)
        check_walk_steps(walk_steps)
        self.schema = schema
        self.stem = Stem(
            node=schema.node,
            edge=schema.edge,
            node_encoding_dim=kind.node_dim(walk_steps),
            pair_encoding_dim=kind.pair_dim(walk_steps),
            hidden_dim=hidden_dim,
            max_degree=MAX_DEGREE if degree == "encoding" else None,
        )
        readout = readout_class(schema.level, pooling)
        self.layers = nn.ModuleList(
            GritLayer(
                hidden_dim=hidden_dim,
                num_heads=num_heads,
                dropout=dropout,
                attention_dropout=attention_dropout,
                attention=attention,
                scale_by_degree=degree == "scaler",
                # What the last layer would write to the pairs is read by nobody, except by an edge readout.
                update_pairs=update_pairs and (layer < num_layers - 1 or readout.reads_pairs),
                norm=norm,
                clamp=clamp,
                activation=activation,
            )
            for layer in range(num_layers)
        )
        self.readout = readout(hidden_dim)
        self.joined = JoinFeatures(schema, hidden_dim)
        self.head = HEADS[head](
            hidden_dim=hidden_dim, num_outputs=schema.num_outputs, num_layers=head_layers, activation=activation
        )

    def forward(self, batch: PairBatch) -> Tensor:
        """Predict: (B, T) for graphs, (N, T) for nodes, (Q, T) for labelled pairs."""
        predicted: Tensor = self.head(self.embed(batch))
        return predicted

    def embed(self, batch: PairBatch) -> Tensor:
        """What the head reads, with the numbers of graphs that carry such: (B, D), (N, D) or (Q, D)."""
        if not isinstance(batch, PairBatch):
            raise GritError(
                f"Grit reads a PairBatch, got {type(batch).__name__}. "
                "Make one with grit.PairBatch.from_data_list([...], walk_steps) or PairBatch.from_pyg(batch, walk_steps)."
            )
        self._check_fits(batch)
        x, pair = self.stem(batch)  # (N, D), (P, D)
        layers: list[GritLayer] = list(self.layers)  # type: ignore[arg-type]
        if layers and why_not_fused(layers, x, pair, batch.log_degree) is None:
            layers[0].check(x, batch.log_degree)
            x, pair = run_stack(layers, x, pair, batch.pairs, batch.log_degree)
        else:
            for layer in layers:
                x, pair = layer(x, pair, batch.pairs, batch.log_degree)
        rows: Tensor = self.joined(self.readout(x, pair, batch), batch)
        return rows

    def why_plain(self, batch: PairBatch) -> str | None:
        """Why the layers do not run in the fused unit on this batch, as the model is now; None if they do."""
        with torch.no_grad():
            x, pair = self.stem(batch)
        return why_not_fused(list(self.layers), x, pair, batch.log_degree)  # type: ignore[arg-type]

    def _check_fits(self, batch: PairBatch) -> None:
        """An error now is better than a process that the system kills for its memory."""
        if torch.compiler.is_compiling():
            return
        tensors = len(self.layers) + 2 if torch.is_grad_enabled() else 2  # one per layer is kept for the backward pass
        width = self.stem.hidden_dim * next(self.parameters()).element_size()
        what = "a training step" if torch.is_grad_enabled() else "a prediction"
        check_fits(batch.num_pairs, tensors * width, batch.pairs.query.device, what)

    @property
    def num_parameters(self) -> int:
        """Trainable numbers, those of the unused last pair update included, as published."""
        return sum(parameter.numel() for parameter in self.parameters())


def _check_arguments(*, num_layers: int, degree: str, head: str, head_layers: int) -> None:
    if num_layers < 1 or head_layers < 1:
        raise GritError(f"num_layers and head_layers must be at least 1, got {num_layers} and {head_layers}.")
    if degree not in ("scaler", "encoding", "none"):
        raise GritError(f"degree must be scaler, encoding or none, got {degree!r}.")
    if head not in HEADS:
        raise GritError(f"unknown head {head!r}; there are {', '.join(HEADS)}.")


def check_grit(options: Mapping[str, Any]) -> None:
    """Raise where options of `Grit` do not go together, before anything is built."""
    num_layers, hidden_dim, attention = options["num_layers"], options["hidden_dim"], options["attention"]
    check_heads(hidden_dim, options["num_heads"])
    weights = 10 * (num_layers + options["head_layers"]) * hidden_dim**2
    if weights > _MAX_WEIGHTS:
        raise GritError(
            f"{num_layers:,} layers of {hidden_dim:,} have about {weights:.0e} weights, too many; "
            "reduce num_layers or hidden_dim"
        )
    poolings = {name for readouts in READOUTS.values() for name in readouts}
    if options["pooling"] not in poolings:
        raise GritError(f"pooling {options['pooling']!r}: there are {', '.join(sorted(poolings))}")
    if options["update_pairs"] and not ATTENTIONS[attention].makes_pairs:
        raise GritError(f"{attention} attention does not rewrite pairs: it goes with model.update_pairs=false")
