"""Points with names in a plane with logarithmic axes, the names beside the points and not over one another."""

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart without colour, too.
STYLES = (("*", "#c1121f", 130), ("o", "#1d6fa5", 34), ("s", "#e08e0b", 32), ("^", "#4b8b3b", 38))
RADII = (7, 13, 20, 28, 38, 50, 65, 85, 110)  # distances of a name from its point, in points of type
ANGLES = 16
LEAST_RANGE = 3.0
POINT = 5  # half the width of what a point takes
Box = tuple[float, float, float, float]  # left, bottom, right, top


class LabelledPoint(NamedTuple):
    """One point.

    Attributes:
        name: Written beside it.
        family: Which marker it has.
        x: More than 0.
        y: More than 0.
        sd: Of y; 0 for none.
    """

    name: str
    family: str
    x: float
    y: float
    sd: float = 0.0


def labelled_scatter(
    points: Sequence[LabelledPoint], *, families: Sequence[str], x_label: str, y_label: str, title: str
) -> "Figure":
    """A figure for print: white ground, a marker per family, every point with its name."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 6.5), facecolor="white", layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots()
    for family, (marker, colour, size) in zip(families, STYLES, strict=False):
        members = [point for point in points if point.family == family]
        if not members:
            continue
        x, y = [point.x for point in members], [point.y for point in members]
        axes.errorbar(
            x, y, [_drawn_sd(point) for point in members], fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.5
        )
        axes.scatter(x, y, s=size, marker=marker, c=colour, edgecolors="black", linewidths=0.5, label=family, zorder=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.12)
    axes.set_xlim(*_wide(axes.get_xlim()))
    axes.set_ylim(*_wide(axes.get_ylim()))
    for axis in (axes.xaxis, axes.yaxis):
        _readable_ticks(axis)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title, fontsize=11)
    axes.grid(which="major", alpha=0.25, linewidth=0.6)
    axes.legend(fontsize=9, framealpha=0.9)
    canvas.draw()  # type: ignore[no-untyped-call]  # only then are places known
    _write_names(axes, points, canvas.get_renderer())  # type: ignore[no-untyped-call]
    return figure


def _drawn_sd(point: LabelledPoint) -> float:
    """A bar that would reach 0 has no end on a logarithmic axis."""
    return min(point.sd, 0.9 * point.y)


def _wide(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits that are a factor of `LEAST_RANGE` apart, so that what is nearly equal looks so."""
    missing = max(1.0, LEAST_RANGE * limits[0] / limits[1]) ** 0.5
    return limits[0] / missing, limits[1] * missing


def _readable_ticks(axis: Any) -> None:
    """1, 2, 3, 5, 7, 10 ... written as numbers, and more of them where the axis is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few, many = (1.0, 2.0, 3.0, 5.0, 7.0), (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    axis.set_major_locator(LogLocator(subs=few if high > 8 * low else many))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _write_names(axes: "Axes", points: Sequence[LabelledPoint], renderer: Any) -> None:
    """Put every name where it covers least; a line leads from a name that had to go far."""
    assert axes.figure is not None
    scale = axes.figure.dpi / 72  # pixels per point of type
    texts = [axes.annotate(point.name, (point.x, point.y), fontsize=8) for point in points]
    extents = [text.get_window_extent(renderer) for text in texts]
    sizes = [(extent.width / scale, extent.height / scale) for extent in extents]
    places = [tuple(place / scale) for place in axes.transData.transform([(point.x, point.y) for point in points])]
    frame = axes.get_window_extent(renderer)
    legend = axes.get_legend()
    taken = [] if legend is None else [_box_of(legend.get_window_extent(renderer), scale)]
    offsets = place_names(places, sizes, _box_of(frame, scale), taken)
    for text, point, (dx, dy) in zip(texts, points, offsets, strict=True):
        text.remove()
        far = max(abs(dx), abs(dy)) > RADII[1] + 1
        axes.annotate(
            point.name,
            (point.x, point.y),
            xytext=(dx, dy),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            zorder=4,
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": "0.45", "shrinkA": 0, "shrinkB": 3} if far else None,
        )


def _box_of(extent: Any, scale: float) -> Box:
    return (extent.x0 / scale, extent.y0 / scale, extent.x1 / scale, extent.y1 / scale)


def place_names(
    places: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    taken: Sequence[Box] = (),
) -> list[tuple[float, float]]:
    """For each point, how far from it the middle of its name stands.

    Every name takes the best of some places around its point: least over points, other names and the edge, then nearest.
    All take their turn several times, because the first to be placed did not know of the others.

    Args:
        places: Of the points.
        sizes: Widths and heights of the names.
        frame: That names should stay in.
        taken: Where no name should be.
    """
    dots = [(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in places]
    chosen: list[tuple[float, float] | None] = [None] * len(places)
    for _ in range(3):
        for number, (place, size) in enumerate(zip(places, sizes, strict=True)):
            names = [
                _box(places[other], sizes[other], offset)
                for other, offset in enumerate(chosen)
                if offset is not None and other != number
            ]
            avoided = [*dots, *names, *taken]
            costs = {offset: _cost(_box(place, size, offset), frame, avoided, offset) for offset in _candidates(*size)}
            chosen[number] = min(costs, key=costs.__getitem__)
    return [offset for offset in chosen if offset is not None]


def _cost(box: Box, frame: Box, avoided: Sequence[Box], offset: tuple[float, float]) -> float:
    """What a name covers, three times what is outside the frame, and a little for the distance."""
    outside = (box[2] - box[0]) * (box[3] - box[1]) - _overlap(box, frame)
    return sum(_overlap(box, each) for each in avoided) + 3 * outside + 0.02 * hypot(*offset)


def _candidates(width: float, height: float) -> list[tuple[float, float]]:
    """Places around a point, nearest first: the name's edge, not its middle, is at each distance."""
    turns = [2 * pi * turn / ANGLES for turn in range(ANGLES)]
    return [(cos(turn) * (radius + width / 2), sin(turn) * (radius + height / 2)) for radius in RADII for turn in turns]


def _box(place: tuple[float, float], size: tuple[float, float], offset: tuple[float, float]) -> Box:
    x, y = place[0] + offset[0], place[1] + offset[1]
    return (x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)


def _overlap(one: Box, other: Box) -> float:
    """Area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)
