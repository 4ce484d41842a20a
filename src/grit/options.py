"""Types of options, with the values they may have: for signatures of models and for the configuration alike."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

# Generous, and there so that a slip of the finger is an error and not a machine without memory.
Count = Annotated[int, Field(ge=1, le=10**9)]
Layers = Annotated[int, Field(ge=1, le=10**4)]
Width = Annotated[int, Field(ge=1, le=10**5)]
Dropout = Annotated[float, Field(ge=0.0, lt=1.0)]


def entry_of(table: Mapping[str, Any]) -> AfterValidator:
    """Mark a text as the name of an entry of a table, as the table is when the option is read.

    Args:
        table: For example ``HEADS``, in ``head: Annotated[str, entry_of(HEADS)]``.
    """

    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"there are {', '.join(table)}")
        return name

    return AfterValidator(check)
