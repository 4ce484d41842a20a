"""CIN: one layer by hand on a molecule of two rings, and what rings tell it that 3-WL cannot."""

import networkx as nx
import torch
from torch_geometric.data import Data

from grit.models import Cin
from grit.models.message_passing.cin import cells_of
from grit.studies.theory.hard_graphs import witness_pairs
from tests.models.by_hand import PLAIN, SCHEMA, batch_of, norm, of_matrix, with_own_norms


def naphthalene(seed=0):
    """Two rings of six that share an edge, with random features."""
    graph = nx.cycle_graph(10)
    graph.add_edge(0, 5)
    data = of_matrix(nx.to_numpy_array(graph, dtype=int))
    generator = torch.Generator().manual_seed(seed)
    data.x = torch.randint(21, (10, 1), generator=generator)
    kinds = torch.randint(4, (10, 10), generator=generator)
    source, target = data.edge_index
    data.edge_attr = torch.maximum(kinds, kinds.T)[source, target]
    return data


RINGS = ((0, 1, 2, 3, 4, 5), (0, 5, 6, 7, 8, 9))


def mlp(module, x):
    for part in module:
        x = part(x) if isinstance(part, torch.nn.Linear) else x
        x = norm(part, x) if isinstance(part, torch.nn.BatchNorm1d) else x
        x = x.clamp(min=0) if isinstance(part, torch.nn.ReLU) else x
    return x


def rounds_by_hand(model, data):
    """Features of nodes, edges and rings after every layer of the model, cell by cell."""
    kinds = {
        tuple(sorted(edge)): kind
        for edge, kind in zip(data.edge_index.T.tolist(), data.edge_attr.tolist(), strict=True)
    }
    edges = sorted(kinds)
    on_ring = [[edge for edge in edges if set(edge) <= set(ring) and edge in pairs_of(ring)] for ring in RINGS]
    cells = [list(range(10)), edges, list(range(len(RINGS)))]
    xs = [
        {v: model.node.embedding.weight[int(data.x[v])] for v in cells[0]},
        {e: model.edge.embedding.weight[kinds[e]] for e in edges},
        {},
    ]
    xs[2] = {r: sum(xs[0][v] for v in ring) for r, ring in enumerate(RINGS)}
    for layer in model.layers:
        up = [dict.fromkeys(each, 0) for each in cells]
        boundary = [dict.fromkeys(each, 0) for each in cells]
        for edge in edges:
            for one, other in (edge, edge[::-1]):
                up[0][one] = up[0][one] + message(layer, 0, xs[0][other], xs[1][edge])
                boundary[1][edge] = boundary[1][edge] + xs[0][one]
        for ring, members in enumerate(on_ring):
            for one in members:
                boundary[2][ring] = boundary[2][ring] + xs[1][one]
                for other in members:
                    if one != other:
                        up[1][one] = up[1][one] + message(layer, 1, xs[1][other], xs[2][ring])
        xs = [
            {
                cell: mlp(
                    layer.combine[d],
                    torch.cat([mlp(layer.up[d], x + up[d][cell]), mlp(layer.boundary[d], x + boundary[d][cell])]),
                )
                for cell, x in xs[d].items()
            }
            for d in range(3)
        ]
    return xs


def pairs_of(ring):
    return {tuple(sorted((one, other))) for one, other in zip(ring, ring[1:] + ring[:1], strict=True)}


def message(layer, dimension, x, above):
    return layer.message[dimension](torch.cat([x, above])).clamp(min=0)


def test_two_layers():
    torch.manual_seed(0)
    model = with_own_norms(Cin(SCHEMA, num_layers=2, hidden_dim=5, max_ring=6))
    graphs = [naphthalene(0), naphthalene(1)]
    with torch.no_grad():
        found = model(batch_of(graphs, structures=("rings-6",)))
        for number, data in enumerate(graphs):
            xs = rounds_by_hand(model, data)
            pooled = [model.of_dimension[d](sum(xs[d].values())).clamp(min=0) for d in range(3)]
            torch.testing.assert_close(found[number], model.out(sum(pooled)))


def test_the_cells_of_a_directed_graph_with_loops_and_parallel_edges():
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2, 3, 0, 2], [1, 0, 2, 0, 3, 1, 3]]), num_nodes=4)
    cells = cells_of(batch_of([data], structures=("rings-3",)), "rings-3")
    assert cells.edge_node.T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert cells.edge_of_listed.tolist() == [0, 0, 2, 1, 0, 3]
    assert cells.ring_edge.T.tolist() == [[0, 0], [0, 1], [0, 2]]
    assert sorted(zip(*(each.tolist() for each in cells.ring_pairs), strict=True)) == [
        (a, b, 0) for a in range(3) for b in range(3) if a != b
    ]


def test_it_separates_shrikhande_from_rook():
    """Both are strongly regular with the same parameters, so that 3-WL cannot; the rook's graph has cliques of four."""
    pair = witness_pairs()["Shrikhande / rook 4x4"]
    torch.manual_seed(0)
    model = Cin(PLAIN, num_layers=2, hidden_dim=16, max_ring=4).double().eval()
    with torch.no_grad():
        one, other = model(batch_of([of_matrix(adjacency) for adjacency in pair], structures=("rings-4",)))
        assert (one - other).abs().max() > 1e-2 * one.abs().max()
