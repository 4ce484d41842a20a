"""What the features and targets of a data set look like: all that a model must know to be built for it."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

FeatureKind = Literal["none", "numeric", "category", "columns"]


class Features(BaseModel):
    """The features of every node, or of every edge.

    Attributes:
        kind: ``none``: nothing is known of it. ``numeric``: ``sizes[0]`` numbers. ``category``: one integer below
            ``sizes[0]``. ``columns``: several integers, column c below ``sizes[c]``.
        sizes: As above; empty for ``none``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FeatureKind
    sizes: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _sizes_fit_kind(self) -> "Features":
        wanted = {"none": 0, "numeric": 1, "category": 1, "columns": len(self.sizes) or 1}[self.kind]
        if len(self.sizes) != wanted or any(size < 1 for size in self.sizes):
            raise ValueError(f"{self.kind} features take {wanted} positive size(s), got {self.sizes}")
        return self

    @property
    def width(self) -> int:
        """Number of columns of the feature tensor."""
        return self.sizes[0] if self.kind == "numeric" else len(self.sizes)

    @property
    def is_integer(self) -> bool:
        """Whether the feature tensor is int64."""
        return self.kind in ("category", "columns")

    def __str__(self) -> str:
        match self.kind:
            case "none":
                return "no features"
            case "numeric":
                return f"{self.width} number{'s' if self.width > 1 else ''}"
            case "category":
                return f"one category of {self.sizes[0]}"
            case _:
                return f"{len(self.sizes)} categories of {', '.join(map(str, self.sizes))}"


# The feature tables of OGB 1.3.6 (`ogb.utils.features`): nine atom and three bond columns.
OGB_ATOM = Features(kind="columns", sizes=(119, 5, 12, 12, 10, 6, 6, 2, 2))
OGB_BOND = Features(kind="columns", sizes=(5, 6, 2))


class GraphSchema(BaseModel):
    """The shape of a data set.

    Attributes:
        node: Features of a node.
        edge: Features of an observed edge.
        level: What a prediction is for: a whole ``graph``, every ``node``, or the listed ``edge`` pairs.
        num_outputs: Numbers that the model gives for each.
        graph_features: Numbers that each graph carries beside its nodes and edges, such as descriptors of a molecule. They are
            joined to the pooled graph before the head, so that they go with predictions for graphs only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: Features
    edge: Features
    level: Literal["graph", "node", "edge"] = "graph"
    num_outputs: int = Field(default=1, ge=1)
    graph_features: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _features_of_whole_graphs(self) -> "GraphSchema":
        if self.graph_features and self.level != "graph":
            raise ValueError(f"numbers per graph go with predictions for graphs, not for {self.level}s")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unused(dump(self), "graph_features")


class GraphInputs(BaseModel):
    """What the numbers that each graph carries are, in their order: columns of a table, then descriptors.

    Attributes:
        columns: Columns of the table that they were read from.
        descriptors: Entries of `grit.datasets.molecules.graph_inputs.DESCRIPTORS` that were computed.
        names: Of all numbers: the columns, then the values of the descriptors.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[str, ...] = ()
    descriptors: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def without_unused(content: dict[str, Any], *names: str) -> dict[str, Any]:
    """What is written of a record: later keys are left out where they say nothing, so that files stay as they were."""
    return {key: value for key, value in content.items() if key not in names or value}


MIXED_LOSS = "standardised"
"""The loss of targets of several kinds: that of each, in units of what it is without any knowledge."""


class TargetPart(NamedTuple):
    """One target of a task.

    Attributes:
        spec: The target as a task of its own: ``regression``, ``binary`` or ``multiclass``.
        column: Its column of y.
        outputs: Its columns of what a model gives.
    """

    spec: "TaskSpec"
    column: int
    outputs: slice


class TaskSpec(BaseModel):
    """What is predicted, how training measures it and how results are reported.

    Attributes:
        kind: ``regression`` of one or more numbers, ``binary`` (one label 0 or 1), ``multiclass`` (one of ``classes``),
            ``multilabel`` (several labels 0 or 1, some possibly unknown), ``mixed`` (targets of several kinds, see ``parts``).
        targets: Their names, one per column of y.
        classes: Names of the classes of ``binary`` and ``multiclass``, in the order of their numbers.
        loss: Entry of `grit.LOSSES`.
        metric: What is reported and chosen by, an entry of `grit.METRICS`.
        standardise: Whether a regression is trained on targets of mean 0 and deviation 1 (metrics keep their own units).
        parts: Of ``mixed`` each target as a task of its own, ``regression``, ``binary`` or ``multiclass``, in the order of
            ``targets``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["regression", "binary", "multiclass", "multilabel", "mixed"]
    targets: tuple[str, ...] = Field(min_length=1)
    classes: tuple[str, ...] = ()
    loss: str
    metric: str
    standardise: bool = False
    parts: tuple["TaskSpec", ...] = ()

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_unused(dump(self), "parts")

    @model_validator(mode="after")
    def _consistent(self) -> "TaskSpec":
        if self.kind in ("binary", "multiclass") and len(self.targets) != 1:
            raise ValueError(f"{self.kind} has one target, got {len(self.targets)}; several labels are multilabel")
        if self.kind == "binary" and len(self.classes) != 2:
            raise ValueError(f"binary has two classes, got {len(self.classes)}")
        if self.kind == "multiclass" and len(self.classes) < 2:
            raise ValueError("multiclass needs the names of its classes")
        if (self.kind == "mixed") != bool(self.parts):
            raise ValueError("mixed needs its parts, and other kinds have none")
        if self.parts and self.targets != tuple(name for part in self.parts for name in part.targets):
            raise ValueError("the targets of mixed are those of its parts, one each")
        if any(
            len(part.targets) != 1 or part.kind not in ("regression", "binary", "multiclass") for part in self.parts
        ):
            raise ValueError("each part of mixed is a regression, binary or multiclass of one target")
        return self

    @property
    def num_outputs(self) -> int:
        """Numbers that a model must give for each prediction."""
        if self.parts:
            return sum(part.num_outputs for part in self.parts)
        return len(self.classes) if self.kind == "multiclass" else len(self.targets)

    def by_target(self) -> list[TargetPart]:
        """Every target as a task of its own, of whatever kind the whole is; the labels of ``multilabel`` have classes 0 and 1."""
        single: Sequence[TaskSpec] = self.parts
        if not single and self.kind in ("binary", "multiclass"):
            single = (self,)
        elif not single:
            changes = {"kind": "binary", "classes": ("0", "1")} if self.kind == "multilabel" else {}
            single = [self.model_copy(update={"targets": (name,), **changes}) for name in self.targets]
        ends = list(accumulate(spec.num_outputs for spec in single))
        return [
            TargetPart(spec, column, slice(end - spec.num_outputs, end))
            for column, (spec, end) in enumerate(zip(single, ends, strict=True))
        ]
