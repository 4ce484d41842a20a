from itertools import combinations

import pytest

pytest.importorskip("matplotlib")

from grit.drawing.labelled_scatter import LabelledPoint, labelled_scatter, place_names

FRAME = (0.0, 0.0, 400.0, 300.0)


def boxes(places, sizes, offsets):
    return [
        (x + dx - w / 2, y + dy - h / 2, x + dx + w / 2, y + dy + h / 2)
        for (x, y), (w, h), (dx, dy) in zip(places, sizes, offsets, strict=True)
    ]


def meet(one, other):
    return min(one[2], other[2]) > max(one[0], other[0]) and min(one[3], other[3]) > max(one[1], other[1])


@pytest.mark.parametrize("step", [12, 25, 60])
def test_names_cover_neither_one_another_nor_points(step):
    """A crowd of twelve points, with names wider than the space between them."""
    places = [(150 + step * (k % 4), 120 + step * (k // 4)) for k in range(12)]
    sizes = [(40.0, 9.0)] * 12
    found = boxes(places, sizes, place_names(places, sizes, FRAME))
    assert not any(meet(one, other) for one, other in combinations(found, 2))
    if step > 12:
        assert not any(meet(box, (x - 4, y - 4, x + 4, y + 4)) for box in found for x, y in places)


def test_names_stay_in_the_frame_and_off_what_is_taken():
    places, sizes = [(2.0, 2.0), (398.0, 298.0), (200.0, 150.0)], [(60.0, 10.0)] * 3
    taken = (201.0, 100.0, 300.0, 200.0)  # right of the third point
    found = boxes(places, sizes, place_names(places, sizes, FRAME, [taken]))
    assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= 400 and box[3] <= 300 for box in found)
    assert not meet(found[2], taken)


def test_what_is_nearly_equal_looks_so():
    points = [LabelledPoint(f"system {k}", "a", 10 + 0.01 * k, 0.5 + 0.001 * k) for k in range(3)]
    (axes,) = labelled_scatter(points, families=("a",), x_label="", y_label="", title="").axes
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert high / low >= 2.9


def test_every_point_has_its_name_on_white():
    points = [LabelledPoint(f"system {k}", "ab"[k % 2], 1.0 + k, 0.5 / (1 + k), 0.01 * k) for k in range(6)]
    figure = labelled_scatter(points, families=("a", "b"), x_label="minutes", y_label="error", title="race")
    (axes,) = figure.axes
    assert {text.get_text() for text in axes.texts} == {point.name for point in points}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert figure.get_facecolor()[:3] == (1.0, 1.0, 1.0)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
