import importlib
import itertools
import sys

import networkx as nx
import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import to_rgba
from rdkit import Chem
from rdkit.Chem import rdCoordGen

from grit.drawing.graph_drawing import (
    ColourScale,
    GraphDrawing,
    axes_at,
    draw_discs,
    draw_links,
    draw_matrix,
    new_figure,
    points_per_unit,
    show_scale,
    spring_positions,
)
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.errors import GritError

FLUORESCEIN = "O=C1OC2(c3ccc(O)cc3Oc3cc(O)ccc32)c2ccccc21"


def panel(drawing=None):
    return axes_at(new_figure(4, 3), 0.1, 0.1, 3.8, 2.8, None if drawing is None else drawing.frame)


def drawn(smiles, **options):
    """The lines, as (m, 2, 2), and the letters' patches of a molecule."""
    drawing = MoleculeDrawing(smiles, **options)
    axes = panel(drawing)
    drawing.draw(axes)
    solid, dashed = (collection for collection in axes.collections if isinstance(collection, LineCollection))
    assert not dashed.get_segments()
    return drawing, np.array(solid.get_segments()), list(axes.patches)


def test_links_grow_with_the_value():
    drawing = GraphDrawing(nx.path_graph(3), positions=np.array([[0.0, 0], [1, 0], [2, 0]]))
    values = np.array([[0.0, 0.2, 0.0], [0.6, 0.0, 0.1], [0.0, 0.1, 0.5]])
    axes = panel(drawing)
    draw_links(axes, drawing, values, ColourScale(0.6), unit=10.0, largest=0.4)
    links = axes.collections[0]
    assert [segment.tolist() for segment in links.get_segments()] == [[[1, 0], [2, 0]], [[0, 0], [1, 0]]]  # weak first
    weak, strong = links.get_linewidths()
    assert strong == pytest.approx(drawing.band * 10)  # the mean of both directions is the largest
    assert weak == pytest.approx(drawing.band * 10 * (0.07 + 0.93 / 4))
    light, dark = links.get_colors()
    assert dark[:3].sum() < light[:3].sum()
    rings, covers = (each for each in axes.collections if isinstance(each, EllipseCollection))
    assert rings.get_offsets().tolist() == [[2, 0]]  # only this node returns to itself
    assert len(covers.get_offsets()) == 3


def test_discs_grow_with_the_value():
    drawing = GraphDrawing(nx.path_graph(3))
    axes = panel(drawing)
    draw_discs(axes, drawing, np.array([0.0, 0.1, 0.4]), ColourScale(0.4), largest=0.5)
    small, large = axes.collections[0].get_widths() / 2
    assert drawing.radii[0] < small < large == pytest.approx(np.hypot(drawing.radii[0], 0.5))


def test_a_matrix_shows_zero_as_white_and_names_its_rows():
    axes = panel()
    draw_matrix(axes, np.array([[0.0, 0.5], [0.25, 0.0]]), ColourScale(0.5), names=["a", "b"], blocks=[1])
    image = axes.images[0].get_array()
    assert np.array_equal(image[0, 0], [1, 1, 1, 1])
    assert image[0, 1, :3].sum() < image[1, 0, :3].sum() < 3
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert len(axes.lines) == 2


def test_the_scale_is_shown_with_its_largest_value():
    figure = new_figure(2, 2)
    axes = axes_at(figure, 0.2, 0.2, 0.2, 1.6)
    show_scale(axes, ColourScale(1 / 3), "probability")
    assert axes.get_ylabel() == "probability"
    assert axes.get_ylim() == pytest.approx((0, 1 / 3))
    assert max(axes.get_yticks()) == 0.3


def test_axes_are_to_scale_and_small_drawings_are_not_blown_up():
    drawing = MoleculeDrawing("O")
    assert points_per_unit(drawing.frame, 3.8, 2.8) == 40
    for each in (drawing, MoleculeDrawing(FLUORESCEIN)):
        axes = panel(each)
        assert np.ptp(axes.get_xlim()) / 3.8 == pytest.approx(np.ptp(axes.get_ylim()) / 2.8)
        assert axes.get_xlim()[0] <= each.frame.left < each.frame.right <= axes.get_xlim()[1]


def test_a_spring_layout_is_seeded_and_lies_flat():
    graph = nx.barbell_graph(5, 3)
    positions = spring_positions(graph, seed=3)
    assert np.array_equal(positions, spring_positions(graph, seed=3))
    assert not np.allclose(positions, spring_positions(graph, seed=4))
    assert np.ptp(positions[:, 0]) > np.ptp(positions[:, 1])
    assert spring_positions(nx.empty_graph(1)).shape == (1, 2)


def test_a_graph_shows_colours_and_names():
    drawing = GraphDrawing(nx.path_graph(2), colours=["red", "blue"], names=["ab", "c"])
    axes = panel(drawing)
    drawing.draw(axes)
    lines, nodes = axes.collections
    assert len(lines.get_segments()) == 1
    assert [tuple(colour) for colour in nodes.get_facecolors()] == [to_rgba("red"), to_rgba("blue")]
    assert len(axes.patches) == 2
    with pytest.raises(GritError, match="2 nodes, but there are 1 colours"):
        GraphDrawing(nx.path_graph(2), colours=["red"])


def test_fluorescein_is_drawn_with_its_double_bonds_and_hydroxyls():
    drawing, lines, patches = drawn(FLUORESCEIN)
    assert (len(drawing.positions), len(drawing.bonds)) == (25, 29)
    assert len(lines) == 29 + 10  # nine in the benzene rings, and C=O
    assert len(patches) == 2 * (5 + 2)  # O five times, H twice, each with its halo
    assert drawing.names[:3] == ["O 0", "C 1", "O 2"]


@pytest.mark.parametrize("smiles", [FLUORESCEIN, "c1ccccc1C(c1ccccc1)(c1ccccc1)c1ccccc1", "CC(C)(C)C(C)(C)C(C)(C)C"])
def test_crowded_parts_are_turned_so_that_no_atoms_nearly_touch_and_bonds_keep_their_length(smiles):
    """RDKit's layout of each has two atoms too near, where rings or branches meet in one atom."""
    drawing = MoleculeDrawing(smiles)
    crowded = Chem.MolFromSmiles(smiles)
    rdCoordGen.AddCoords(crowded)
    bonds = tuple(drawing.bonds.T)
    bonded = {frozenset(bond) for bond in drawing.bonds.tolist()}
    others = [pair for pair in itertools.combinations(range(len(drawing.positions)), 2) if {*pair} not in bonded]
    others = tuple(np.transpose(others))
    before, after = (
        np.linalg.norm(each[:, None] - each, axis=-1)
        for each in (crowded.GetConformer().GetPositions()[:, :2], drawing.positions)
    )
    before /= np.median(before[bonds])
    assert before[others].min() < 0.75
    assert after[others].min() > 0.8
    assert after[bonds] == pytest.approx(before[bonds], rel=1e-6)


def test_the_second_line_of_a_ring_bond_lies_inside():
    drawing, lines, _ = drawn("c1ccccc1")
    middle = drawing.positions.mean(0)
    distances = sorted(np.linalg.norm(line.mean(0) - middle) for line in lines)
    assert len(lines) == 9
    assert distances[2] < distances[3] - 0.1
    assert distances[3] == pytest.approx(distances[8], abs=1e-3)


@pytest.mark.parametrize(("smiles", "count"), [("CC", 1), ("C=C", 2), ("C#C", 3), ("CC=O", 3), ("C/C=C/C", 4)])
def test_bonds_have_as_many_lines_as_their_order(smiles, count):
    assert len(drawn(smiles)[1]) == count


def test_a_carbonyl_is_symmetric_about_its_bond():
    drawing, lines, _ = drawn("CC(C)=O")
    axis = drawing.positions[3] - drawing.positions[1]
    across = [line.mean(0) - drawing.positions[1] for line in lines]
    sides = sorted(float(np.cross([*axis, 0], [*middle, 0])[2]) for middle in across)
    assert sum(abs(side) < 0.1 for side in sides) == 2
    assert sum(sides) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("smiles", "parts"),
    [
        ("CC", 0),
        ("C", 3),  # C H 4
        ("O", 3),  # H 2 O
        ("CO", 2),
        ("C[NH3+]", 4),  # N H 3 +
        ("CC(=O)[O-]", 3),  # O, O, -
        ("[13CH3]C", 4),  # 13 C H 3
        ("[Fe+2]", 2),  # Fe, 2+
        ("c1ccc[nH]1", 2),
    ],
)
def test_atoms_with_letters(smiles, parts):
    assert len(drawn(smiles)[2]) == 2 * parts


def test_letters_stay_inside_the_frame():
    drawing, _, patches = drawn("C[NH3+].OCC(=O)NC[NH3+]")
    for patch in patches:
        box = patch.get_path().get_extents()
        assert drawing.frame.left < box.x0 < box.x1 < drawing.frame.right
        assert drawing.frame.bottom < box.y0 < box.y1 < drawing.frame.top


def test_numbers_are_written_once_and_apart():
    _, _, without = drawn(FLUORESCEIN)
    _, lines, patches = drawn(FLUORESCEIN, numbers=True)
    numbers = patches[len(without) :]
    assert len(numbers) == 2 * 25
    boxes = [patch.get_path().get_extents() for patch in numbers[1::2]]
    places = np.array([[(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2] for box in boxes])
    distance = np.linalg.norm(places[:, None] - places, axis=-1) + 9 * np.eye(25)
    assert distance.min() > 0.25
    on_lines = np.concatenate([line[0] + share * (line[1] - line[0]) for line in lines for share in (0, 0.5, 1)])
    assert np.linalg.norm(places[:, None] - on_lines.reshape(-1, 2), axis=-1).min() > 0.2


def test_an_unreadable_molecule_says_why():
    with pytest.raises(GritError, match=r"cannot draw 'C\(': not valid SMILES. Expected a SMILES such as"):
        MoleculeDrawing("C(")


def test_nothing_touches_the_global_state():
    before = "matplotlib.pyplot" in sys.modules
    drawn(FLUORESCEIN)
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    monkeypatch.delitem(sys.modules, "grit.drawing.graph_drawing")
    with pytest.raises(GritError, match=r"pip install 'torch-grit\[report\]'"):
        importlib.import_module("grit.drawing.graph_drawing")
