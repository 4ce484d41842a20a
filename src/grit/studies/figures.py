"""The paper's pictures of RRWP: fluorescein, a stochastic block model, and the Dodecahedron beside the Desargues graph.

The study takes seconds and is the same in every budget.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from grit.datasets.molecules.smiles import read_smiles
from grit.drawing.compositions import graph_edges, joined_pairs, rrwp_figure
from grit.drawing.graph_drawing import (
    COMMUNITIES,
    ColourScale,
    GraphDrawing,
    axes_at,
    draw_matrix,
    new_figure,
    show_scale,
)
from grit.drawing.molecule_drawing import MoleculeDrawing
from grit.encodings.rrwp import rrwp
from grit.graphs.chunk import Array
from grit.studies.results_table import ResultsTable
from grit.studies.study import Workbench

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.figure import Figure

FLUORESCEIN = "O=C1OC2(c3ccc(O)cc3Oc3cc(O)ccc32)c2ccccc21"
STEPS = (1, 2, 3, 4)
EXPECTED_PAIRS = (58, 90, 170, 224)  # off-diagonal nonzero entries of M^k, counted once by adjacency powers
BLOCKS, INSIDE, BETWEEN, SBM_SEED = (12, 12), 0.35, 0.02, 7


def run(bench: Workbench) -> None:
    """Draw the three figures, each with a table of the numbers behind it."""
    bench.check_options()
    _fluorescein(bench)
    _communities(bench)
    _cubic_graphs(bench)


def walks(edge_index: Array, num_nodes: int, steps: Sequence[int]) -> Array:
    """M^k for each k of ``steps``, (n, n, len(steps)) float64."""
    channels = rrwp(torch.as_tensor(edge_index).long(), num_nodes, max(steps) + 1, dtype=torch.float64)
    chosen: Array = channels[..., list(steps)].numpy()
    return chosen


def petersen_positions(graph: "nx.Graph", skip: int) -> Array:
    """Places for a generalised Petersen graph G(n/2, skip): an outer ring, and an inner one whose edges skip nodes."""
    import networkx as nx

    half = graph.number_of_nodes() // 2
    model = nx.Graph()
    for i in range(half):
        model.add_edges_from([(i, (i + 1) % half), (i, half + i), (half + i, half + (i + skip) % half)])
    matcher = nx.isomorphism.GraphMatcher(graph, model)
    if not matcher.is_isomorphic():
        raise ValueError(f"the graph is not the generalised Petersen graph G({half}, {skip}).")
    angle = {i: np.pi / 2 - 2 * np.pi * i / half for i in range(half)}
    places = [(angle[m % half], 2.4 if m < half else 1.45) for m in (matcher.mapping[node] for node in graph.nodes)]
    return np.array([(radius * np.cos(at), radius * np.sin(at)) for at, radius in places])


def schlegel_positions(graph: "nx.Graph", radii: Sequence[float]) -> Array:
    """Places for a polyhedron seen through one of its faces: rings of nodes by their distance from that face."""
    import networkx as nx

    face = min(nx.minimum_cycle_basis(graph), key=len)
    around = [face[0]]
    while len(around) < len(face):
        around.append(next(node for node in graph[around[-1]] if node in face and node not in around))
    turn = {node: np.exp(1j * (np.pi / 2 + 2 * np.pi * i / len(face))) for i, node in enumerate(around)}
    distance = nx.multi_source_dijkstra_path_length(graph, face)
    for node in sorted(set(graph) - set(face), key=distance.__getitem__):
        inward = sum(turn[near] for near in graph[node] if distance[near] < distance[node])
        turn[node] = inward / abs(inward)
    places = [radii[int(distance[node])] * turn[node] for node in graph.nodes]
    return np.array([(place.real, place.imag) for place in places])


def _fluorescein(bench: Workbench) -> None:
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    drawing = MoleculeDrawing(FLUORESCEIN)
    n, edges = len(drawing.positions), np.concatenate([drawing.bonds, drawing.bonds[:, ::-1]]).T
    matrices = walks(edges, n, STEPS)
    rows = [
        (k, joined, expected, joined == expected, joined / (n * (n - 1)))
        for k, joined, expected in zip(STEPS, joined_pairs(matrices), EXPECTED_PAIRS, strict=True)
    ]
    bench.table(
        "fluorescein",
        ResultsTable(
            "RRWP of fluorescein: atoms joined by a walk of exactly k steps",
            ("k", "ordered pairs", "expected", "equal", f"share of {n * (n - 1)}"),
            rows,
            (
                f"{CalcMolFormula(read_smiles(FLUORESCEIN))}, {n} atoms, {len(drawing.bonds)} bonds; an atom with itself "
                "is not counted. The paper shows the picture and no numbers; expected is a count by adjacency powers.",
                "In fluorescein.svg a band is as wide as the mean of M^k_ij and M^k_ji, a disc is M^k_ii.",
            ),
        ),
    )
    bench.figure("fluorescein", rrwp_figure(drawing, matrices, STEPS))


def _communities(bench: Workbench) -> None:
    import networkx as nx

    graph = nx.stochastic_block_model(BLOCKS, [[INSIDE, BETWEEN], [BETWEEN, INSIDE]], seed=SBM_SEED)
    block = np.repeat([0, 1], BLOCKS)
    matrices = walks(graph_edges(graph), len(block), STEPS)
    within = (block[:, None] == block) & ~np.eye(len(block), dtype=bool)
    across = block[:, None] != block
    rows = []
    for place, k in enumerate(STEPS):
        inside, between = matrices[within, place], matrices[across, place]
        ratio = float(inside.mean() / between.mean()) if between.any() else None
        rows.append((k, float((inside > 0).mean()), float((between > 0).mean()), ratio))
    bench.table(
        "communities",
        ResultsTable(
            "RRWP of a stochastic block model with two communities",
            ("k", "pairs joined within a block", "pairs joined between blocks", "mean probability within / between"),
            rows,
            (
                f"{BLOCKS[0]} + {BLOCKS[1]} nodes, edge probability {INSIDE} within and {BETWEEN} between blocks, "
                f"seed {SBM_SEED}. The paper gives neither sizes nor probabilities.",
                "Longer walks cover a whole block; the contrast between the blocks falls.",
            ),
        ),
    )
    drawing = GraphDrawing(graph, colours=[COMMUNITIES[b] for b in block])
    bench.figure("communities", rrwp_figure(drawing, matrices, STEPS, with_matrices=True, blocks=[BLOCKS[0]]))


def _cubic_graphs(bench: Workbench) -> None:
    import networkx as nx

    dodecahedron, desargues = nx.dodecahedral_graph(), nx.desargues_graph()
    drawings = {
        "Dodecahedron": GraphDrawing(dodecahedron, positions=schlegel_positions(dodecahedron, (2.4, 1.75, 1.2, 0.6))),
        "Desargues graph": GraphDrawing(desargues, positions=petersen_positions(desargues, 3), colours=None),
    }
    steps = (1, 2, 3, 4, 5)
    matrices = [walks(graph_edges(graph), len(graph), steps) for graph in (dodecahedron, desargues)]
    counts = [[int(np.count_nonzero(each[..., k])) for k in range(len(steps))] for each in matrices]
    bench.table(
        "dodecahedron-desargues",
        ResultsTable(
            "Dodecahedron and Desargues graph: ordered pairs joined by a walk of exactly k steps, of 400",
            ("k", *drawings, "tells them apart"),
            [(k, one, other, one != other) for k, one, other in zip(steps, *counts, strict=True)],
            (
                "Every two nodes of the Dodecahedron are joined by a walk of 5 steps, and half of those of the Desargues graph, "
                "which is bipartite: the argument of the proof that GD-WL with RRWP is stronger than with shortest paths.",
                "The paper's caption does not say which five powers its panels show; here M to M^5, as the proof uses.",
            ),
        ),
    )
    bench.figure("dodecahedron-desargues", _two_graphs(drawings, matrices, steps))


def _two_graphs(drawings: dict[str, GraphDrawing], matrices: Sequence[Array], steps: Sequence[int]) -> "Figure":
    """A row for each graph: its drawing and its matrices, one scale for all."""
    size, gap = 1.75, 0.15
    figure = new_figure((len(steps) + 1) * (size + gap) + 0.9, 2 * (size + 0.45) + 0.1)
    scale = ColourScale(max(float(each.max()) for each in matrices))
    for row, (name, drawing) in enumerate(drawings.items()):
        top = 0.3 + row * (size + 0.45)
        axes = axes_at(figure, 0.05, top, size, size, drawing.frame)
        axes.set_title(name, fontsize=9, pad=4)
        drawing.draw(axes)
        for panel, k in enumerate(steps):
            axes = axes_at(figure, (panel + 1) * (size + gap) + 0.05, top, size, size)
            draw_matrix(axes, matrices[row][..., panel], scale)
            axes.set_title(f"{k} step{'s' * (k != 1)}", fontsize=9, pad=4)
    bar = axes_at(figure, (len(steps) + 1) * (size + gap) + 0.1, 0.9, 0.12, 2 * (size + 0.45) - 1.6)
    show_scale(bar, scale, "probability of the walk")
    return figure
