"""The rules that every entry of a table keeps, as functions that hold an entry to them: `check_encoding` and the like.

    import grit
    grit.testing.check_encoding("mine")

Each raises `AssertionError`, which says what rule the entry breaks and how. They need no test framework.
"""

from grit.testing.attentions import check_attention
from grit.testing.encodings import check_encoding
from grit.testing.graphs import awkward_graphs
from grit.testing.heads import check_head
from grit.testing.losses import check_loss
from grit.testing.metrics import check_metric
from grit.testing.models import check_model

__all__ = [
    "awkward_graphs",
    "check_attention",
    "check_encoding",
    "check_head",
    "check_loss",
    "check_metric",
    "check_model",
]
