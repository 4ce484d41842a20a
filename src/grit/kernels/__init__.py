"""The operations over node pairs that attention is made of, in two forms.

`grit.kernels.plain` has them in plain PyTorch: the definition, on any device and in any floating-point type. The fused form
(``cpp/``, `grit.kernels.stack`) does everything between one layer's pair tensor and the next in one pass, tile by
tile in cache, on CPU in float32 and float64. It comes with the wheel, or is compiled on first use.
``GRIT_KERNELS=plain|fused|auto``, or `use` within a program, chooses.
"""

from grit.kernels.backend import Status, status, use
from grit.memory import keep_freed_memory

__all__ = ["Status", "keep_freed_memory", "status", "use"]
