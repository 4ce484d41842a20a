"""Attention maps of one molecule, beside the paper's figure: rows are k, columns the target and what each method learned."""

from collections.abc import Mapping

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array

try:
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise GritError("drawing needs matplotlib: pip install 'torch-grit[report]'.") from error


def draw_maps(title: str, maps: Mapping[str, Array]) -> Figure:
    """All maps in one colour scale, from 0 to the largest weight of the targets.

    Args:
        title: One line.
        maps: Name of the column -> (K, n, n), one matrix for each k = 1, 2, ...; the first column is the target.
    """
    columns = list(maps)
    largest = float(np.max(maps[columns[0]]))
    num_hops = len(maps[columns[0]])
    figure = Figure(figsize=(1.9 * len(columns) + 0.9, 2.0 * num_hops + 0.6), layout="constrained")
    axes = figure.subplots(num_hops, len(columns), squeeze=False)
    for column, name in enumerate(columns):
        for row, matrix in enumerate(maps[name]):
            axis = axes[row, column]
            image = axis.imshow(matrix, cmap="Blues", vmin=0.0, vmax=largest, interpolation="nearest")
            axis.set_xticks([])
            axis.set_yticks([])
            if row == 0:
                axis.set_title(name.replace("+", "\n+ "), fontsize=11)
            if column == 0:
                axis.set_ylabel(f"k = {row + 1}\nquery", fontsize=11)
            if row == num_hops - 1:
                axis.set_xlabel("key", fontsize=11)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.015, extend="max")
    bar.set_label("attention weight", fontsize=11)
    figure.suptitle(title, fontsize=12)
    return figure
