"""Drawing graphs, numbers over their nodes and node pairs, and matrices.

Everything is given an axes of matplotlib and draws on it; nothing touches matplotlib's global state. Lengths are in
units of about one edge, so that a drawing looks the same in a small and in a large panel.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grit.errors import GritError
from grit.graphs.chunk import Array

try:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import EllipseCollection, LineCollection
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D
except ModuleNotFoundError as error:
    raise GritError("drawing needs matplotlib: pip install 'torch-grit[report]'.") from error

if TYPE_CHECKING:
    import networkx as nx

# Light enough at the low end to be seen on white, and never so dark that black lines on it are lost.
PROBABILITIES = LinearSegmentedColormap.from_list(
    "probabilities", ["#dce8f5", "#a6c8e6", "#5d9fd0", "#2470b5", "#0b4a8f"]
)
COMMUNITIES = ("#e07b39", "#4a9d6e", "#8465b5", "#c94f6d", "#6f7d8c", "#b5a02e")
INK = "#1c1c1c"
NODE_RADIUS = 0.15
MOST_POINTS_PER_UNIT = 40.0
_FONT = FontProperties(family="DejaVu Sans")


@dataclass(frozen=True)
class ColourScale:
    """Colours for values from 0 to ``largest``, by their square root, so that small ones can be told apart."""

    largest: float

    @property
    def mappable(self) -> ScalarMappable:
        """The scale as matplotlib has it."""
        return ScalarMappable(PowerNorm(0.5, vmin=0.0, vmax=self.largest or 1.0), PROBABILITIES)

    def colours(self, values: Array) -> Array:
        """(m,) -> (m, 4)."""
        return np.asarray(self.mappable.to_rgba(values))

    def share(self, values: Array) -> Array:
        """Each value's part of the largest, 0 to 1."""
        share: Array = values / (self.largest or 1.0)
        return share


class Frame(NamedTuple):
    """The part of the plane that a drawing needs."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom


class Drawing(ABC):
    """A graph that has a place for each node.

    Attributes:
        positions: (n, 2) in units of about one edge.
        radii: (n,), what each node itself covers.
        margin: What the drawing needs around its outermost nodes.
        band: Width of the widest link between two nodes.
    """

    positions: Array
    radii: Array
    margin: float = 0.75
    band: float = 0.26

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw nodes and edges, over what is there already."""

    @property
    def frame(self) -> Frame:
        """What to show, the same in all panels of a figure."""
        (left, bottom), (right, top) = self.positions.min(0) - self.margin, self.positions.max(0) + self.margin
        return Frame(float(left), float(right), float(bottom), float(top))


class GraphDrawing(Drawing):
    """A graph as discs and lines.

    Args:
        graph: Nodes are numbered in the order in which the graph lists them.
        positions: (n, 2); None for a spring layout turned so that its longest extent lies flat.
        colours: Of the nodes; None for one colour.
        names: Written on the nodes; None for none.
        seed: Of the spring layout.
    """

    def __init__(
        self,
        graph: "nx.Graph",
        *,
        positions: Array | None = None,
        colours: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        number = {node: i for i, node in enumerate(graph.nodes)}
        self.edges: Array = np.array([(number[u], number[v]) for u, v in graph.edges], dtype=np.int64).reshape(-1, 2)
        self.positions = spring_positions(graph, seed) if positions is None else np.asarray(positions, dtype=float)
        self.colours = list(colours) if colours is not None else [COMMUNITIES[0]] * len(number)
        self.names = names
        self.radii = np.full(len(number), NODE_RADIUS if names is None else 2 * NODE_RADIUS)
        for what, given in (("positions", self.positions), ("colours", self.colours), ("names", names)):
            if given is not None and len(given) != len(number):
                raise GritError(f"the graph has {len(number)} nodes, but there are {len(given)} {what}.")

    def draw(self, axes: Axes) -> None:
        """Draw nodes and edges, over what is there already."""
        draw_lines(axes, [self.positions[edge] for edge in self.edges], width=0.4)
        _discs(axes, self.positions, self.radii, self.colours, edge="white", zorder=4)
        for name, position in zip(self.names or (), self.positions, strict=False):
            write(axes, name, position, size=min(0.3, 0.62 / max(len(name), 1)), colour="white", zorder=5)


def spring_positions(graph: "nx.Graph", seed: int = 0) -> Array:
    """A spring layout whose longest extent lies flat, with room for every node, (n, 2)."""
    import networkx as nx

    n = graph.number_of_nodes()
    layout = nx.spring_layout(graph.to_undirected(), seed=seed, iterations=300)
    positions: Array = np.array([layout[node] for node in graph.nodes]).reshape(n, 2)
    positions = positions - positions.mean(0)
    _, _, axes = np.linalg.svd(positions, full_matrices=False)
    turned: Array = positions @ axes.T if n > 1 else positions
    if n > 1:  # a singular vector's sign is arbitrary
        turned = turned * np.where(turned[0] > 0, -1.0, 1.0)
    apart = np.linalg.norm(turned[:, None] - turned[None], axis=-1)
    nearest = np.percentile(np.where(apart > 0, apart, np.inf).min(1), 20) if n > 1 else 1.0
    scaled: Array = turned * np.clip(0.7 / nearest, *(np.array([1.4, 3.0]) * np.sqrt(n) / (apart.max() or 1.0)))
    return scaled


def draw_lines(axes: Axes, lines: Sequence[Array], *, width: float, dashed: bool = False) -> None:
    """Draw lines, each (2, 2): start and end; width in points."""
    style = "--" if dashed else "-"
    axes.add_collection(
        LineCollection(list(lines), colors=INK, linewidths=width, linestyles=style, capstyle="round", zorder=3)
    )


def draw_links(axes: Axes, drawing: Drawing, values: Array, scale: ColourScale, *, unit: float, largest: float) -> None:
    """Draw a band between every two nodes, wider and darker for larger values, and a disc for a node with itself.

    Args:
        axes: Where to draw.
        drawing: Says where the nodes are.
        values: (n, n), not negative; a band shows the mean of both directions. Zero is not drawn.
        scale: Values to colours.
        unit: Points that a unit of the drawing takes on these axes.
        largest: The value of the widest band; the width of the others is in proportion.
    """
    both = mean_of_directions(values)
    i, j = np.nonzero(np.triu(both, 1))
    order = np.argsort(both[i, j], kind="stable")  # the strongest on top
    i, j = i[order], j[order]
    axes.add_collection(
        LineCollection(
            list(np.stack([drawing.positions[i], drawing.positions[j]], axis=1)),
            colors=scale.colours(both[i, j]),
            linewidths=drawing.band * unit * (0.07 + 0.93 * both[i, j] / (largest or 1.0)),
            capstyle="round",
            zorder=1,
        )
    )
    draw_discs(axes, drawing, np.diag(values), scale, largest=0.3)


def mean_of_directions(values: Array) -> Array:
    """What is drawn between i and j: the mean of (i, j) and (j, i), and nothing from a node to itself."""
    both: Array = (values + values.swapaxes(0, 1)) / 2
    both[np.arange(len(both)), np.arange(len(both))] = 0.0
    return both


def draw_discs(axes: Axes, drawing: Drawing, values: Array, scale: ColourScale, largest: float) -> None:
    """Draw a disc, or a ring around what the node itself covers, larger and darker for larger values; zero is not drawn."""
    shown = np.nonzero(values)[0]
    share = np.sqrt(scale.share(values[shown]))
    radii = np.sqrt(drawing.radii[shown] ** 2 + largest**2 * (0.1 + 0.9 * share))
    _discs(axes, drawing.positions[shown], radii, scale.colours(values[shown]), edge="white", zorder=2)
    _discs(axes, drawing.positions, drawing.radii, "white", edge="none", zorder=2.2)


def mark_node(axes: Axes, position: Array, radius: float = 0.44) -> None:
    """Draw a ring around a node."""
    _discs(axes, np.array([position]), np.array([radius]), "none", edge=COMMUNITIES[0], zorder=2.5, width=1.6)


def draw_matrix(
    axes: Axes, values: Array, scale: ColourScale, *, names: Sequence[str] | None = None, blocks: Sequence[int] = ()
) -> None:
    """Draw a matrix as a heat map: row i the start or query, column j the end or key; zero stays white.

    Args:
        axes: Where to draw.
        values: (n, n).
        scale: Values to colours.
        names: Of rows and columns; None leaves them unlabelled.
        blocks: Where lines between blocks of nodes are drawn: the number of the first node of each further block.
    """
    n = len(values)
    colours = scale.colours(values)  # (n, n, 4)
    colours[values == 0] = 1.0
    axes.imshow(colours, interpolation="nearest")
    for first in blocks:
        axes.axhline(first - 0.5, color=INK, linewidth=0.7)
        axes.axvline(first - 0.5, color=INK, linewidth=0.7)
    axes.tick_params(length=0, pad=2)
    axes.set_xticks([] if names is None else range(n), None if names is None else names)
    axes.set_yticks([] if names is None else range(n), None if names is None else names)
    for side in axes.spines.values():
        side.set_linewidth(0.6)


def write(
    axes: Axes, text: str, position: Array, *, size: float, colour: str, halo: bool = False, zorder: float = 5
) -> None:
    """Write a text centred on a place, ``size`` in the drawing's own units."""
    path = text_path(text, size)
    box = path.get_extents()
    x, y = position[0] - (box.x0 + box.x1) / 2, position[1] - (box.y0 + box.y1) / 2
    stamp(axes, path, x, y, colour=colour, halo=halo, zorder=zorder)


def text_path(text: str, size: float) -> TextPath:
    """The outline of a text that begins at the origin."""
    return TextPath((0, 0), text, size=size, prop=_FONT)


def stamp(axes: Axes, path: TextPath, x: float, y: float, *, colour: str, halo: bool, zorder: float) -> None:
    """Draw an outline at a place, with a thin white line around it if asked for."""
    placed = Affine2D().translate(x, y).transform_path(path)
    if halo:
        axes.add_patch(PathPatch(placed, facecolor="white", edgecolor="white", linewidth=2.0, zorder=4.5))
    axes.add_patch(PathPatch(placed, facecolor=colour, edgecolor="none", zorder=zorder))


def show_scale(axes: Axes, scale: ColourScale, label: str) -> None:
    """Turn an axes into the legend of a scale."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    bar = figure.colorbar(scale.mappable, cax=axes)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7, length=2)
    ticks = [tick for tick in (0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0) if tick <= scale.largest + 1e-9]
    if 0.3 <= scale.largest < 0.5:
        ticks.append(0.3)
    if len(ticks) > 2:
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    return Figure(figsize=(width, height))


def points_per_unit(frame: Frame, width: float, height: float) -> float:
    """How large a unit of a drawing is in a panel of that many inches; a tiny drawing is not blown up to fill it."""
    return min(72 * width / frame.width, 72 * height / frame.height, MOST_POINTS_PER_UNIT)


def axes_at(figure: Figure, left: float, top: float, width: float, height: float, frame: Frame | None = None) -> Axes:
    """New axes at a place given in inches from the upper left corner; with a frame they are bare and to scale."""
    total_width, total_height = figure.get_size_inches()
    place = (left / total_width, 1 - (top + height) / total_height, width / total_width, height / total_height)
    axes = figure.add_axes(place)
    if frame is not None:
        unit = points_per_unit(frame, width, height) / 72
        x, y = (frame.left + frame.right) / 2, (frame.bottom + frame.top) / 2
        axes.set_xlim(x - width / unit / 2, x + width / unit / 2)
        axes.set_ylim(y - height / unit / 2, y + height / unit / 2)
        axes.axis("off")
    return axes


def _discs(
    axes: Axes, positions: Array, radii: Array, colours: Any, *, edge: str, zorder: float, width: float = 0.5
) -> None:
    axes.add_collection(
        EllipseCollection(
            2 * radii,
            2 * radii,
            np.zeros(len(radii)),
            units="xy",
            offsets=positions,
            offset_transform=axes.transData,
            facecolors=colours,
            edgecolors=edge,
            linewidths=width,
            zorder=zorder,
        )
    )
