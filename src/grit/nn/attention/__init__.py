"""Attention modules, interchangeable in `GritLayer`: the table `ATTENTIONS`."""

from grit.nn.attention.contract import AttentionOutput, PairAttention
from grit.nn.attention.graphormer import GraphormerAttention
from grit.nn.attention.grit import GritAttention

ATTENTIONS: dict[str, type[PairAttention]] = {
    "grit": GritAttention,
    "graphormer": GraphormerAttention,
}

__all__ = ["ATTENTIONS", "AttentionOutput", "GraphormerAttention", "GritAttention", "PairAttention"]
