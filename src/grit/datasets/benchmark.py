"""The type of an entry of the table `DATASETS`."""

from dataclasses import dataclass

from grit.graphs.schema import GraphSchema


@dataclass(frozen=True)
class Benchmark:
    """One data set.

    Attributes:
        schema: Its features and targets.
    """

    schema: GraphSchema
