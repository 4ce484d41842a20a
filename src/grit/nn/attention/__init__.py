"""Attention modules, interchangeable in `GritLayer`: the table `ATTENTIONS`."""

from grit.nn.attention.contract import AttentionOutput, PairAttention
from grit.nn.attention.egt import EgtAttention
from grit.nn.attention.graphormer import GraphormerAttention
from grit.nn.attention.grit import GritAttention
from grit.nn.attention.grit_linear import GritLinearAttention
from grit.nn.attention.san import SanAttention
from grit.nn.attention.transformer import TransformerAttention

ATTENTIONS: dict[str, type[PairAttention]] = {
    "grit": GritAttention,
    "graphormer": GraphormerAttention,
    "transformer": TransformerAttention,
    "san": SanAttention,
    "egt": EgtAttention,
    "grit-linear": GritLinearAttention,
}

__all__ = ["ATTENTIONS", "AttentionOutput", "GraphormerAttention", "GritAttention", "PairAttention"]
