"""Drawing molecules as chemists do: a skeleton of bonds, with letters for all atoms but plain carbon."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grit.datasets.molecules.smiles import read_smiles
from grit.drawing.graph_drawing import INK, Drawing, Frame, draw_lines, stamp, text_path, write
from grit.drawing.molecule_layout import atom_positions, kekulised
from grit.errors import GritError
from grit.graphs.chunk import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rdkit.Chem import Atom, Bond

# fmt: off
_COLOURS = {
    "O": "#c4161c", "N": "#1d3fbf", "S": "#8f6b00", "F": "#1b7a36", "Cl": "#1b7a36", "Br": "#8a3b12", "I": "#6a1fa0",
    "P": "#c2570c", "B": "#b05a6a",
}
# fmt: on
_HYDROGENS_FIRST = ("O", "S", "Se", "F", "Cl", "Br", "I")  # H2O and HCl, but NH3
_LETTER = 0.56  # size of letters, in bond lengths
_GAP = 0.13  # between the two lines of a double bond
_NUMBER_AT = 0.62  # an atom's number stands beyond the disc that may lie under the atom
_CLEAR = 0.07  # between a letter and the bonds that end at it


class _Line(NamedTuple):
    start: Array
    end: Array
    dashed: bool = False


class _Part(NamedTuple):
    """A piece of an atom's label: text, size relative to the letters, height of its foot in letter sizes."""

    text: str
    size: float = 1.0
    foot: float = 0.0


class MoleculeDrawing(Drawing):
    """The structural formula of a molecule, with implicit hydrogens shown on the atoms that have letters.

    Stereochemistry is not shown.

    Args:
        smiles: The molecule.
        numbers: Whether each atom's number is written beside it.

    Attributes:
        positions: (n, 2) in bond lengths, atoms numbered as in the SMILES.
        bonds: (number of bonds, 2).
        names: Element symbol and number of each atom, such as ``O 0``.
    """

    band = 0.3

    def __init__(self, smiles: str, *, numbers: bool = False) -> None:
        try:
            molecule = read_smiles(smiles)
        except GritError as error:
            raise GritError(
                f"cannot draw {smiles!r}: {error}. Expected a SMILES such as CC(=O)Oc1ccccc1C(=O)O."
            ) from None
        self.molecule = kekulised(molecule)
        self.numbers = numbers
        self.margin = 0.95 if numbers else 0.75
        self.positions = atom_positions(self.molecule)
        self.radii = np.array([0.26 if _has_letters(atom) else 0.0 for atom in molecule.GetAtoms()])
        self.bonds: Array = np.array(
            [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()], dtype=np.int64
        ).reshape(-1, 2)
        self.names = [f"{atom.GetSymbol()} {atom.GetIdx()}" for atom in molecule.GetAtoms()]

    @property
    def frame(self) -> Frame:
        """What to show, with room for letters and hydrogens beside an atom."""
        beside = np.array([_width_beside(atom) for atom in self.molecule.GetAtoms()])
        x, y = self.positions.T
        return Frame(
            float((x - beside).min()) - self.margin,
            float((x + beside).max()) + self.margin,
            float(y.min()) - self.margin,
            float(y.max()) + self.margin,
        )

    def draw(self, axes: "Axes") -> None:
        """Draw bonds and atoms, over what is there already."""
        lines = [line for bond in self.molecule.GetBonds() for line in self._bond_lines(bond)]
        for dashed in (False, True):
            chosen = [np.stack([line.start, line.end]) for line in lines if line.dashed == dashed]
            draw_lines(axes, chosen, width=1.0, dashed=dashed)
        for atom in self.molecule.GetAtoms():
            if _has_letters(atom):
                self._draw_letters(axes, atom)
        if self.numbers:
            self._draw_numbers(axes, lines)

    def _bond_lines(self, bond: "Bond") -> Iterator[_Line]:
        begin, end = bond.GetBeginAtom(), bond.GetEndAtom()
        p, q = self.positions[begin.GetIdx()], self.positions[end.GetIdx()]
        along = (q - p) / (np.linalg.norm(q - p) or 1.0)
        start, stop = p + along * self._clearance(begin, along), q - along * self._clearance(end, -along)
        across = np.array([-along[1], along[0]])
        kind = str(bond.GetBondType())
        if kind == "DOUBLE" and not bond.IsInRing() and 1 in (begin.GetDegree(), end.GetDegree()):
            for side in (-0.5, 0.5):
                yield _Line(start + side * _GAP * across, stop + side * _GAP * across)
            return
        yield _Line(start, stop, dashed=kind not in ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"))
        if kind == "TRIPLE":
            for side in (-1, 1):
                yield _Line(start + side * _GAP * across, stop + side * _GAP * across)
        elif kind in ("DOUBLE", "AROMATIC"):
            inward = across * self._inner_side(bond, across)
            shorten = [0.0 if _has_letters(atom) else 0.13 for atom in (begin, end)]
            yield _Line(
                start + inward * _GAP + along * shorten[0],
                stop + inward * _GAP - along * shorten[1],
                dashed=kind == "AROMATIC",
            )

    def _inner_side(self, bond: "Bond", across: Array) -> int:
        """+1 or -1: the side of the bond on which its smallest ring lies, or else most neighbours."""
        ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        rings: list[tuple[int, ...]] = [
            ring for ring in self.molecule.GetRingInfo().AtomRings() if set(ends) <= set(ring)
        ]
        if rings:
            # Of two rings the one with more double bonds: benzene's keep together.
            rings.sort(key=lambda ring: (-self._num_double(ring), len(ring)))
            beside = list(rings[0])
        else:
            atoms = (bond.GetBeginAtom(), bond.GetEndAtom())
            beside = [near.GetIdx() for atom in atoms for near in atom.GetNeighbors() if near.GetIdx() not in ends]
        offset = (self.positions[beside] - self.positions[list(ends)].mean(0)).sum(0) if beside else across
        return 1 if offset @ across >= -1e-9 else -1

    def _num_double(self, ring: tuple[int, ...]) -> int:
        steps = zip(ring, (*ring[1:], ring[0]), strict=True)
        return sum(self.molecule.GetBondBetweenAtoms(i, j).GetBondTypeAsDouble() > 1 for i, j in steps)

    def _clearance(self, atom: "Atom", direction: Array) -> float:
        """How far from the atom's place a bond in this direction begins."""
        if not _has_letters(atom):
            return 0.0
        box = text_path(atom.GetSymbol(), _LETTER).get_extents()
        half_width, half_height = box.width / 2 + _CLEAR, box.height / 2 + _CLEAR
        return float(min(half_width / max(abs(direction[0]), 1e-9), half_height / max(abs(direction[1]), 1e-9)))

    def _draw_letters(self, axes: "Axes", atom: "Atom") -> None:
        position, colour = self.positions[atom.GetIdx()], _COLOURS.get(atom.GetSymbol(), INK)
        symbol = text_path(atom.GetSymbol(), _LETTER).get_extents()
        foot = position[1] - (symbol.y0 + symbol.y1) / 2
        hydrogens = _hydrogens(atom)
        side = self._side_for_hydrogens(atom)
        before = [*(hydrogens if side == "left" else []), *_isotope(atom)]
        after = [*(hydrogens if side == "right" else []), *_charge(atom)]
        x = position[0] - (symbol.x0 + symbol.x1) / 2
        stamp(axes, text_path(atom.GetSymbol(), _LETTER), x, foot, colour=colour, halo=True, zorder=5)
        right = position[0] + symbol.width / 2 + 0.05
        for part in after:
            right += _stamp_part(axes, part, right, foot, colour)
        left = position[0] - symbol.width / 2 - 0.01 - sum(_width(part) for part in before)
        for part in before:
            left += _stamp_part(axes, part, left, foot, colour)
        if side in ("above", "below"):
            level = foot + (1 if side == "above" else -1) * 0.85 * _LETTER
            left = position[0] - text_path("H", _LETTER).get_extents().width / 2
            for part in hydrogens:
                left += _stamp_part(axes, part, left, level, colour)

    def _side_for_hydrogens(self, atom: "Atom") -> str:
        """The side away from the neighbours."""
        place = self.positions[atom.GetIdx()]
        neighbours = [self.positions[near.GetIdx()] - place for near in atom.GetNeighbors()]
        x, y = np.sum(neighbours, axis=0) if neighbours else (0.0, 0.0)
        if len(neighbours) > 1 and abs(y) > abs(x) + 1e-6:
            return "below" if y > 0 else "above"
        alone = not neighbours and atom.GetSymbol() in _HYDROGENS_FIRST
        return "left" if x > 1e-6 or alone else "right"

    def _letter_places(self, atom: "Atom") -> Array:
        """Points that an atom's letters cover, relative to the atom, (m, 2)."""
        x, y = {"left": (-1, 0), "right": (1, 0), "above": (0, 1), "below": (0, -1)}[self._side_for_hydrogens(atom)]
        reach = 0.2 + _width_beside(atom) if x else 0.55
        away = [(reach * share * x, reach * share * y) for share in (0.5, 1.0)] if _width_beside(atom) else []
        return np.array([(-0.2, 0.0), (0.2, 0.0), *away])

    def _draw_numbers(self, axes: "Axes", lines: list[_Line]) -> None:
        """Write each atom's number where there is most room around it."""
        ink = [line.start + share * (line.end - line.start) for line in lines for share in np.linspace(0, 1, 9)]
        for atom in self.molecule.GetAtoms():
            if _has_letters(atom):
                ink += list(self.positions[atom.GetIdx()] + self._letter_places(atom))
        angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        for atom in self.molecule.GetAtoms():
            places = self.positions[atom.GetIdx()] + _NUMBER_AT * np.stack([np.cos(angles), np.sin(angles)], axis=1)
            distance = np.linalg.norm(places[:, None] - np.array(ink)[None], axis=-1).min(1) if ink else angles * 0
            place = places[int(np.argmax(distance.round(3)))]
            ink.append(place)
            write(axes, str(atom.GetIdx()), place, size=0.33, colour="#666666", halo=True, zorder=5.5)


def _has_letters(atom: "Atom") -> bool:
    bare = atom.GetDegree() == 0 or atom.GetIsotope() or atom.GetFormalCharge() or atom.GetNumRadicalElectrons()
    return bool(atom.GetSymbol() != "C" or bare)


def _hydrogens(atom: "Atom") -> list[_Part]:
    count = atom.GetTotalNumHs()
    if count == 0 or not _has_letters(atom):
        return []
    return [_Part("H"), *([_Part(str(count), 0.65, -0.16)] if count > 1 else [])]


def _charge(atom: "Atom") -> list[_Part]:
    charge = atom.GetFormalCharge()
    if charge == 0:
        return []
    return [_Part((str(abs(charge)) if abs(charge) > 1 else "") + ("+" if charge > 0 else "−"), 0.68, 0.42)]


def _isotope(atom: "Atom") -> list[_Part]:
    return [_Part(str(atom.GetIsotope()), 0.62, 0.42)] if atom.GetIsotope() else []


def _width_beside(atom: "Atom") -> float:
    """What an atom's label needs beside its symbol."""
    return sum(_width(part) for part in (*_hydrogens(atom), *_charge(atom), *_isotope(atom)))


def _width(part: _Part) -> float:
    return float(text_path(part.text, part.size * _LETTER).get_extents().width) + 0.04


def _stamp_part(axes: "Axes", part: _Part, left: float, foot: float, colour: str) -> float:
    """Draw a part with its left edge and its foot at a place; returns how far the next one is moved."""
    path = text_path(part.text, part.size * _LETTER)
    x = left - path.get_extents().x0
    stamp(axes, path, x, foot + part.foot * _LETTER, colour=colour, halo=True, zorder=5)
    return _width(part)
