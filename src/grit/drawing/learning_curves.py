"""Learning curves as a figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learning_curves_figure(curves: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """One panel per metric, one line per run.

    Args:
        curves: By metric and by name of the run, the value of each epoch.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4 * len(curves)), layout="constrained")
    panels = figure.subplots(len(curves), squeeze=False)[:, 0]
    for panel, (metric, runs) in zip(panels, curves.items(), strict=True):
        for name, values in runs.items():
            panel.plot(range(1, len(values) + 1), values, label=name, marker="." if len(values) < 2 else None)
        panel.set_xlabel("epoch")
        panel.set_ylabel(f"validation {metric}")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return figure
