"""The configuration tree: frozen, complete, and strict about names, types and values.

Field names are stable: recipes, overrides on the command line and users' own files name them.
"""

import os
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

if TYPE_CHECKING:
    import torch

    from grit.batches.spec import BatchSpec

# Generous, and there so that a slip of the finger is an error and not a machine without memory.
Count = Annotated[int, Field(ge=1, le=10**9)]
Layers = Annotated[int, Field(ge=1, le=10**4)]
Width = Annotated[int, Field(ge=1, le=10**5)]
_MAX_WEIGHTS = 10**11


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class EncodingConfig(_Frozen):
    """Which encoding batches carry.

    Attributes:
        name: Entry of `grit.encodings.ENCODINGS`.
        walk_steps: K channels: I, M, ..., M^(K-1).
    """

    name: str = "rrwp"
    walk_steps: Layers = 21

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        from grit.encodings import encoding_kind

        encoding_kind(name)
        return name


class ModelConfig(_Frozen):
    """The arguments of `grit.Grit`, and the pairs that its batches have (``all``, ``edges``, ``khop-2`` ...)."""

    num_layers: Layers = 10
    hidden_dim: Width = 64
    num_heads: Width = 8
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    attention_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    attention: str = "grit"
    pairs: str = "all"
    degree: Literal["scaler", "encoding", "none"] = "scaler"
    update_pairs: bool = True
    norm: Literal["batch", "layer"] = "batch"
    clamp: float | None = Field(default=5.0, gt=0.0)
    activation: Literal["relu", "gelu"] = "relu"
    pooling: Literal["sum", "mean", "none"] = "sum"
    head: Literal["halving", "mlp"] = "halving"
    head_layers: Layers = 3

    @field_validator("attention")
    @classmethod
    def _known(cls, name: str) -> str:
        from grit.nn.attention import ATTENTIONS

        if name not in ATTENTIONS:
            raise ValueError(f"there are {', '.join(ATTENTIONS)}")
        return name

    @field_validator("pairs")
    @classmethod
    def _pairs(cls, kind: str) -> str:
        from grit.graphs.pairs import check_pairs_kind

        return check_pairs_kind(kind)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        from grit.nn.attention import ATTENTIONS
        from grit.nn.attention.contract import check_heads

        check_heads(self.hidden_dim, self.num_heads)
        weights = 10 * (self.num_layers + self.head_layers) * self.hidden_dim**2
        if weights > _MAX_WEIGHTS:
            raise ValueError(
                f"{self.num_layers:,} layers of {self.hidden_dim:,} have about {weights:.0e} weights, too many; "
                "reduce num_layers or hidden_dim"
            )
        if self.update_pairs and not ATTENTIONS[self.attention].makes_pairs:
            raise ValueError(
                f"{self.attention} attention does not rewrite pairs: it goes with model.update_pairs=false"
            )
        return self


class TrainConfig(_Frozen):
    """Optimisation.

    Attributes:
        batch_size: Graphs per step.
        epochs: Passes over the training set.
        warmup_epochs: Of these, epochs with a rising learning rate.
        schedule: How the learning rate falls afterwards.
        lr: Its peak.
        weight_decay: AdamW's, on every parameter that has a gradient.
        clip_norm: Largest norm of the gradient; null leaves it free.
        seed: Of weights, shuffling and dropout.
        accumulate: Batches whose gradients make one step.
        patience: Epochs without a better validation result after which training ends; null never ends early.
        precision: Of the arithmetic.
        max_pairs: Budget of node pairs per batch, see `grit.batches.loader.Loader`; null for none.
    """

    batch_size: Count = 32
    epochs: Count = 100
    warmup_epochs: int = Field(default=5, ge=0, le=10**9)
    schedule: Literal["cosine", "linear"] = "cosine"
    lr: float = Field(default=1e-3, gt=0.0)
    weight_decay: float = Field(default=1e-5, ge=0.0)
    clip_norm: float | None = Field(default=1.0, gt=0.0)
    seed: int = Field(default=0, ge=0, lt=2**63)
    accumulate: Count = 1
    patience: Count | None = None
    precision: Literal["32-true", "16-mixed", "bf16-mixed", "64-true"] = "32-true"
    max_pairs: int | None = Field(default=None, ge=1, le=10**12)


class PaperConfig(_Frozen):
    """What the paper reports, for tables; never read by training."""

    metric: str
    mean: float
    sd: float | None = None
    num_parameters: int | None = None


class Recipe(_Frozen):
    """Everything that determines a run.

    Attributes:
        dataset: Entry of `grit.datasets.DATASETS`, or the folder of a store.
        encoding: Of the batches.
        model: GRIT's arguments.
        baseline: Entry of `grit.models.BASELINES` that is trained in GRIT's place; null for GRIT.
        train: Optimisation.
        paper: What the paper reports.
    """

    dataset: str
    encoding: EncodingConfig = EncodingConfig()
    model: ModelConfig = ModelConfig()
    baseline: str | None = None
    train: TrainConfig = TrainConfig()
    paper: PaperConfig | None = None

    @field_validator("dataset")
    @classmethod
    def _known(cls, name: str) -> str:
        from grit.datasets import find_dataset

        # A folder may be elsewhere by now: a trained run predicts without its data, and loading data checks for itself.
        if "/" not in name and not os.path.isdir(name):  # unlike Path.is_dir, no error for a name that is too long
            find_dataset(name)
        return name

    @field_validator("baseline")
    @classmethod
    def _known_baseline(cls, name: str | None) -> str | None:
        from grit.models import BASELINES

        if name is not None and name not in BASELINES:
            raise ValueError(f"there are {', '.join(BASELINES)}")
        return name

    def batch_spec(self, dtype: "torch.dtype | None" = None) -> "BatchSpec":
        """How the batches of this recipe's model are made; 32-bit numbers unless ``dtype`` says otherwise."""
        import torch

        from grit.batches.spec import BatchSpec

        return BatchSpec(self.encoding.walk_steps, self.encoding.name, self.model.pairs, dtype or torch.float32)
