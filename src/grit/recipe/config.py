"""The configuration tree: frozen, complete, and strict about names, types and values.

Field names are stable: recipes, overrides on the command line and users' own files name them.
"""

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, SerializeAsAny, field_validator, model_validator

from grit.batches.spec import BatchSpec
from grit.datasets import find_dataset
from grit.encodings import ENCODINGS
from grit.graphs.schema import TaskSpec
from grit.learning.losses import LOSSES
from grit.learning.metrics import METRICS
from grit.learning.optimizers import OPTIMIZERS
from grit.learning.schedules import SCHEDULES, learning_rate, plateaus
from grit.models import MODELS
from grit.options import Count, Layers, entry_of
from grit.recipe.model_config import Frozen, ModelConfig, parse_model

# What every run folder of version 0.1 lists, whichever model it trained.
_MODEL_KEYS_OF_0_1 = {
    "num_layers",
    "hidden_dim",
    "num_heads",
    "dropout",
    "attention_dropout",
    "attention",
    "pairs",
    "degree",
    "update_pairs",
    "norm",
    "clamp",
    "activation",
    "pooling",
    "head",
    "head_layers",
}


class EncodingConfig(Frozen):
    """Which encoding batches carry.

    Attributes:
        name: Entry of `ENCODINGS`.
        walk_steps: K channels: I, M, ..., M^(K-1). For encodings without walks, their size: distances, eigenvectors.
    """

    name: Annotated[str, entry_of(ENCODINGS)] = "rrwp"
    walk_steps: Layers = 21


class PlateauConfig(Frozen):
    """A learning rate that falls when validation no longer improves, besides what the schedule does.

    Attributes:
        factor: By which it is multiplied.
        patience: Epochs without an improvement that are accepted.
        min_lr: Training ends when the rate falls below it.
    """

    factor: float = Field(default=0.5, gt=0.0, lt=1.0)
    patience: int = Field(default=10, ge=0, le=10**9)
    min_lr: float = Field(default=1e-5, ge=0.0)


class TrainConfig(Frozen):
    """Optimisation.

    Attributes:
        batch_size: Graphs per step.
        epochs: Passes over the training set.
        warmup_epochs: Of these, epochs with a rising learning rate.
        optimizer: Entry of `OPTIMIZERS`.
        schedule: How the learning rate falls afterwards, entry of `SCHEDULES`.
        plateau: Lowers the rate when validation no longer improves; null for never.
        lr: Its peak.
        weight_decay: On every parameter that has a gradient.
        loss: Entry of `LOSSES`; null for that of the data set.
        balance: Whether the classes of each target count alike in the loss, however many rows they have.
        metric: By which the best epoch is chosen, entry of `METRICS`; null for that of the data set.
        clip_norm: Largest norm of the gradient; null leaves it free.
        seed: Of weights, shuffling and dropout.
        accumulate: Batches whose gradients make one step.
        patience: Epochs without a better validation result after which training ends; null never ends early.
        max_seconds: Training and validation end when they have taken this long, in the middle of an epoch if need be; null for
            no limit. A run with a limit depends on the speed of the machine.
        precision: Of the arithmetic.
        max_pairs: Budget of node pairs per batch, see `grit.batches.loader.Loader`; null for none.
    """

    batch_size: Count = 32
    epochs: Count = 100
    warmup_epochs: int = Field(default=5, ge=0, le=10**9)
    optimizer: Annotated[str, entry_of(OPTIMIZERS)] = "adamw"
    schedule: Annotated[str, entry_of(SCHEDULES)] = "cosine"
    plateau: PlateauConfig | None = None
    lr: float = Field(default=1e-3, gt=0.0)
    weight_decay: float = Field(default=1e-5, ge=0.0)
    loss: Annotated[str, entry_of(LOSSES)] | None = None
    balance: bool = False
    metric: Annotated[str, entry_of(METRICS)] | None = None
    clip_norm: float | None = Field(default=1.0, gt=0.0)
    seed: int = Field(default=0, ge=0, lt=2**63)
    accumulate: Count = 1
    patience: Count | None = None
    max_seconds: float | None = Field(default=None, gt=0.0)
    precision: Literal["32-true", "16-mixed", "bf16-mixed", "64-true"] = "32-true"
    max_pairs: int | None = Field(default=None, ge=1, le=10**12)

    def learning_rate(self, epoch: int, costs: Sequence[float] = ()) -> float:
        """Learning rate throughout ``epoch``, counted from 0.

        Args:
            epoch: Which.
            costs: The validation metric of the epochs before, lower being better.
        """
        fallen = 1.0 if self.plateau is None else self.plateau.factor ** plateaus(costs, self.plateau.patience)
        return fallen * learning_rate(
            schedule=self.schedule, lr=self.lr, epochs=self.epochs, warmup_epochs=self.warmup_epochs, epoch=epoch
        )

    def has_fallen(self, costs: Sequence[float]) -> bool:
        """Whether plateaus have brought the learning rate down to its end."""
        plateau = self.plateau
        return plateau is not None and self.lr * plateau.factor ** plateaus(costs, plateau.patience) < plateau.min_lr


class PaperConfig(Frozen):
    """What is published of the recipe's model, for tables; never read by training.

    Attributes:
        metric: What is measured; null where there is no figure for this data set.
        mean: The figure of the paper's tables; null where they have none for this data set.
        sd: The deviation of that; null for a single run.
        num_parameters: As a paper or its authors print it to the last digit; docs/baselines.md says where.
        approximation: What the model here does differently, where it does not compute what its authors' code computes.
    """

    metric: str | None = None
    mean: float | None = None
    sd: float | None = None
    num_parameters: int | None = None
    approximation: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.metric is None) != (self.mean is None) or (self.sd is not None and self.mean is None):
            raise ValueError("metric and mean go together, and sd needs them")
        return self

    @property
    def printed(self) -> str | None:
        """The figure as the paper has it, ``0.059 ± 0.002``; None where there is none."""
        given = [number for number in (self.mean, self.sd) if number is not None]
        # YAML drops the zeros at the end: 0.070 ± 0.004 has as many places in both numbers.
        places = max((-int(Decimal(repr(number)).as_tuple().exponent) for number in given), default=0)
        return " ± ".join(f"{number:.{max(places, 0)}f}" for number in given) or None


class Recipe(Frozen):
    """Everything that determines a run.

    Attributes:
        dataset: Entry of `grit.datasets.DATASETS`, or the folder of a store.
        encoding: Of the batches.
        model: Which model, and its options.
        train: Optimisation.
        paper: What the paper reports.
        plugins: Modules that add to the tables, see `grit.recipe.plugins`.
    """

    dataset: str
    encoding: EncodingConfig = EncodingConfig()
    model: SerializeAsAny[ModelConfig] = Field(default_factory=lambda: parse_model({}))
    train: TrainConfig = TrainConfig()
    paper: PaperConfig | None = None
    plugins: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="before")
    @classmethod
    def _of_older_versions(cls, tree: Any) -> Any:
        return without_baseline(tree) if isinstance(tree, Mapping) else tree

    @field_validator("dataset")
    @classmethod
    def _known(cls, name: str) -> str:
        # A folder may be elsewhere by now: a trained run predicts without its data, and loading data checks for itself.
        if "/" not in name and not os.path.isdir(name):  # unlike Path.is_dir, no error for a name that is too long
            find_dataset(name)
        return name

    @field_validator("model", mode="before")
    @classmethod
    def _of_its_own_type(cls, model: Any) -> Any:
        return parse_model(model) if isinstance(model, Mapping) else model

    @model_validator(mode="after")
    def _model_reads_the_batches(self) -> Self:
        MODELS[self.model.name].check_batches(self.model.name, self.encoding.name, self.model.pairs)
        return self

    def task(self, task: TaskSpec) -> TaskSpec:
        """The task of a data set with the loss and the metric that this recipe names."""
        named = {"loss": self.train.loss, "metric": self.train.metric}
        return task.model_copy(update={key: value for key, value in named.items() if value is not None})

    def batch_spec(self, dtype: torch.dtype = torch.float32) -> BatchSpec:
        """How the batches of this recipe's model are made."""
        structures = MODELS[self.model.name].structures(self.model.options())
        return BatchSpec(self.encoding.walk_steps, self.encoding.name, self.model.pairs, dtype, structures)


def without_baseline(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe that says ``baseline: gps``, as version 0.1 had it, with ``model.name: gps``.

    A baseline ignored all keys of ``model`` but ``pairs``. A saved run lists all of GRIT's, which its own user never wrote.
    """
    if "baseline" not in tree:
        return dict(tree)
    changed = dict(tree)
    name, model = changed.pop("baseline"), tree.get("model", {})
    if name is not None and isinstance(model, Mapping):
        is_saved = model.keys() >= _MODEL_KEYS_OF_0_1
        changed["model"] = {**({"pairs": model.get("pairs", "all")} if is_saved else model), "name": name}
    return changed
