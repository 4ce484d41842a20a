"""The configuration of a model: its options are the parameters of its entry in `MODELS`."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model, model_validator

from grit.errors import GritError
from grit.graphs.pairs import check_pairs_kind
from grit.models import MODELS, STATISTICS, ModelKind
from grit.options import entry_of

_GIVEN = ("schema", "encoding", "walk_steps")  # by the data and the batches


class Frozen(BaseModel):
    """Base of all parts of a recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ModelConfig(Frozen):
    """Which model, and the pairs of its batches. Each model adds its options: `model_config` gives the whole type.

    Attributes:
        name: Entry of `MODELS`.
        pairs: ``all``, ``edges``, ``khop-2`` ...
    """

    name: Annotated[str, entry_of(MODELS)] = "grit"
    pairs: Annotated[str, AfterValidator(check_pairs_kind)] = "all"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def options(self) -> dict[str, Any]:
        """The options of the model itself."""
        return self.model_dump(exclude={"name", "pairs"})

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        check = MODELS[self.name].check
        if check is not None and type(self) is not ModelConfig:
            check(self.options())
        return self


def model_config(name: str) -> type[ModelConfig]:
    """The configuration of the model of that name."""
    try:
        return _config_of(name, MODELS[name])
    except GritError as error:
        raise GritError(f"the model {name!r}: {error}") from None


def parse_model(tree: Mapping[str, Any]) -> ModelConfig:
    """The checked configuration of the model that ``tree`` names, GRIT if it names none."""
    name = tree.get("name", "grit")
    if not isinstance(name, str) or name not in MODELS:
        return ModelConfig.model_validate({"name": name})  # which says what is wrong with it
    return model_config(name).model_validate(dict(tree))


def wanted_statistics(name: str) -> tuple[str, ...]:
    """The entries of `STATISTICS` that a model asks for."""
    return tuple(each for each in MODELS[name].parameters() if each in STATISTICS)


@lru_cache(maxsize=1000)
def _config_of(name: str, kind: ModelKind) -> type[ModelConfig]:
    options = {
        option: declared
        for option, declared in kind.parameters().items()
        if option not in _GIVEN and option not in STATISTICS
    }
    fields: dict[str, Any] = {"name": (Annotated[str, entry_of(MODELS)], name), **options}
    return create_model(f"{name} model", __base__=ModelConfig, **fields)
