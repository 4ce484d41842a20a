"""Whole figures: `rrwp_figure` for any graph or molecule, `attention_figure` for a molecule and a trained model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grit.drawing.graph_drawing import (
    ColourScale,
    Drawing,
    axes_at,
    draw_discs,
    draw_links,
    draw_matrix,
    mark_node,
    mean_of_directions,
    new_figure,
    points_per_unit,
    show_scale,
)
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.graphs.chunk import Array

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

MOST_NAMED_ROWS = 60  # beyond, the names of a matrix's rows cannot be read


def graph_edges(graph: "nx.Graph") -> Array:
    """The (2, E) edge index of a NetworkX graph, both directions of an undirected edge, nodes in the graph's order."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    edges = [(number[u], number[v]) for u, v in graph.edges]
    if not graph.is_directed():
        edges += [(v, u) for u, v in edges if u != v]
    return np.array(edges, dtype=np.int64).reshape(-1, 2).T


def joined_pairs(matrices: Array) -> list[int]:
    """Ordered pairs of two different nodes with a nonzero entry, for each matrix of (n, n, S)."""
    elsewhere = ~np.eye(len(matrices), dtype=bool)
    return [int(np.count_nonzero(matrices[elsewhere, k])) for k in range(matrices.shape[2])]


def rrwp_figure(
    drawing: Drawing, matrices: Array, steps: Sequence[int], *, with_matrices: bool = False, blocks: Sequence[int] = ()
) -> "Figure":
    """A panel for each length of walk: the graph with the probabilities drawn over it, and below it the matrix if wanted.

    Args:
        drawing: The graph.
        matrices: (n, n, S), M^k for each of the steps.
        steps: The S lengths k.
        with_matrices: Whether M^k is shown as a heat map too.
        blocks: See `draw_matrix`.
    """
    columns = min(len(steps), 4)
    rows = -(-len(steps) // columns)
    frame = drawing.frame
    width = 2.75
    height = width * float(np.clip(frame.height / frame.width, 0.4, 1.15))
    row_height = height + 0.5 + (width * 0.8 + 0.3 if with_matrices else 0.0)
    figure = new_figure(columns * (width + 0.15) + 0.95, rows * row_height + 0.1)
    scale = ColourScale(float(matrices.max()))
    unit, widest = points_per_unit(frame, width, height), float(mean_of_directions(matrices).max())
    n = len(matrices)
    for panel, (k, joined) in enumerate(zip(steps, joined_pairs(matrices), strict=True)):
        left, top = 0.1 + (panel % columns) * (width + 0.15), 0.35 + (panel // columns) * row_height
        axes = axes_at(figure, left, top, width, height, frame)
        axes.set_title(f"{k} step{'s' * (k != 1)}: {joined:,} of {n * (n - 1):,} pairs", fontsize=9, pad=4)
        draw_links(axes, drawing, matrices[..., panel], scale, unit=unit, largest=widest)
        drawing.draw(axes)
        if with_matrices:
            below = axes_at(figure, left + 0.1 * width, top + height + 0.15, 0.8 * width, 0.8 * width)
            draw_matrix(below, matrices[..., panel], scale, blocks=blocks)
    bar_height = min(2.6, rows * row_height - 0.4)
    bar = axes_at(figure, columns * (width + 0.15) + 0.2, (rows * row_height - bar_height) / 2, 0.12, bar_height)
    show_scale(bar, scale, "probability of the walk")
    return figure


def attention_figure(drawing: MoleculeDrawing, weights: Array, query: int, heading: str) -> "Figure":
    """Attention of one layer over a molecule: what each atom receives, the matrix, and the row of one query atom.

    Args:
        drawing: The molecule, with numbers.
        weights: (n, n), row i the weights of query i.
        query: The atom whose row is shown on the molecule.
        heading: Says which layer and head.
    """
    frame, size, names = drawing.frame, 3.7, drawing.names
    flat = frame.width > 1.6 * frame.height  # flat molecules one above the other, others side by side
    width, height = (1.4 * size, (size - 0.3) / 2) if flat else (size, size)
    second = (0.1, 0.95 + height) if flat else (size + 0.2, 0.65)
    left_of_matrix = second[0] + width + 0.65
    figure = new_figure(left_of_matrix + size + 0.85, size + 1.15)
    figure.suptitle(heading, fontsize=10, y=1 - 0.12 / (size + 1.15))
    scale = ColourScale(float(weights.max()))
    for (left, top), values, title in (
        ((0.1, 0.65), weights.mean(0), "what each atom receives, mean of all queries"),
        (second, weights[query], f"what query {names[query]} gives to each atom"),
    ):
        axes = axes_at(figure, left, top, width, height, frame)
        axes.set_title(title, fontsize=9, pad=2)
        draw_discs(axes, drawing, values, scale, largest=0.42)
        drawing.draw(axes)
    mark_node(axes, drawing.positions[query])
    matrix = axes_at(figure, left_of_matrix, 0.65, size, size)
    draw_matrix(matrix, weights, scale, names=names if len(names) <= MOST_NAMED_ROWS else None)
    matrix.tick_params(labelsize=float(np.clip(200 / len(names), 4, 7)))
    matrix.tick_params(axis="x", labelrotation=90)
    matrix.set_title("row: query atom, column: key atom", fontsize=9, pad=4)
    show_scale(axes_at(figure, left_of_matrix + size + 0.15, 1.15, 0.12, size - 1.0), scale, "attention weight")
    return figure
