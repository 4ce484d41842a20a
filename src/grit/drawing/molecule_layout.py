"""Where the atoms of a molecule are drawn, and between which of them a double bond stands."""

from typing import TYPE_CHECKING

import numpy as np

from grit.graphs.chunk import Array

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_TOO_NEAR = 0.75  # for two atoms without a bond, in bond lengths


def kekulised(molecule: "Mol") -> "Mol":
    """A copy with alternating double bonds; aromatic bonds stay where no such structure exists."""
    from rdkit import Chem, rdBase

    copy = Chem.Mol(molecule)
    with rdBase.BlockLogs():
        try:
            Chem.Kekulize(copy)
        except Chem.KekulizeException:
            return Chem.Mol(molecule)
    return copy


def atom_positions(molecule: "Mol") -> Array:
    """Places of the atoms, (n, 2), in units of the median bond length."""
    from rdkit.Chem import rdCoordGen, rdDepictor

    flat = type(molecule)(molecule)
    rdCoordGen.AddCoords(flat)
    rdDepictor.NormalizeDepiction(flat)
    rdDepictor.StraightenDepiction(flat)
    positions: Array = flat.GetConformer().GetPositions()[:, :2]
    lengths = [np.linalg.norm(positions[b.GetBeginAtomIdx()] - positions[b.GetEndAtomIdx()]) for b in flat.GetBonds()]
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in flat.GetBonds()]
    return _separate(positions / (np.median(lengths) if lengths else 1.5), bonds)


def _separate(positions: Array, bonds: list[tuple[int, int]]) -> Array:
    """Turn parts of the molecule about the atom that joins them until no two atoms nearly touch.

    Layouts of spiro compounds put rings on top of each other; rings stay rigid, an angle at the joining atom gives way.
    """
    neighbours: list[set[int]] = [set() for _ in positions]
    for i, j in bonds:
        neighbours[i].add(j)
        neighbours[j].add(i)
    for _ in range(5):
        near, i, j = _closest(positions, neighbours)
        if near > _TOO_NEAR:
            break
        best = (near, positions)
        for pivot in set(range(len(positions))) - {i, j}:
            part = _part_of(j, pivot, neighbours)
            if i in part or pivot not in set().union(*(neighbours[atom] for atom in part)):
                continue
            for angle in np.radians((-20, -15, -10, -5, 5, 10, 15, 20)):
                turned = positions.copy()
                turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
                turned[part] = (positions[part] - positions[pivot]) @ turn + positions[pivot]
                best = max(best, (_closest(turned, neighbours)[0], turned), key=lambda each: each[0])
        if best[0] <= near:
            break
        positions = best[1]
    return positions


def _closest(positions: Array, neighbours: list[set[int]]) -> tuple[float, int, int]:
    """The smallest distance between two atoms without a bond, and the two."""
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    for i, near in enumerate(neighbours):
        distance[i, list(near)] = np.inf
    i, j = divmod(int(np.argmin(distance)), len(positions))
    return float(distance[i, j]), i, j


def _part_of(start: int, pivot: int, neighbours: list[set[int]]) -> list[int]:
    """The atoms that can be reached from ``start`` without passing ``pivot``."""
    seen, waiting = {start}, [start]
    while waiting:
        for atom in neighbours[waiting.pop()] - seen - {pivot}:
            seen.add(atom)
            waiting.append(atom)
    return sorted(seen)
