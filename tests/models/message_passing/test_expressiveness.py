"""What message passing can tell apart: no more than 1-WL; and sums can tell apart what means cannot."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.graphs.schema import Features, GraphSchema
from grit.models import MODELS

NAMES = [
    "gat",
    "gatv2",
    "gcn",
    "gcn-ogb",
    "gcn-symmetric",
    "gcn-virtual",
    "gin",
    "gin-ogb",
    "gin-virtual",
    "gine",
    "graphsage",
    "monet",
    "pna",
]
SCHEMA = GraphSchema(node=Features(kind="category", sizes=(3,)), edge=Features(kind="none"), num_outputs=2)


def data_of(graph, atoms=None):
    """The graph with both directions of each edge; all atoms alike unless given."""
    edges = torch.tensor(list(graph.to_directed().edges)).t()
    x = torch.zeros(len(graph), 1, dtype=torch.int64) if atoms is None else torch.tensor(atoms)[:, None]
    return Data(x=x, edge_index=edges)


def gap(name, one, other, seed=0):
    """How far apart the predictions for two graphs are, with random weights."""
    torch.manual_seed(seed)
    statistics = {"degree_histogram": [0, 5, 10, 5]} if name == "pna" else {}
    model = MODELS[name].build(SCHEMA, **statistics, num_layers=3).double().eval()
    with torch.no_grad():
        predicted = model(grit.PairBatch.from_data_list([one, other], encoding="none", dtype=torch.float64))
    return float((predicted[0] - predicted[1]).abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_a_ring_of_six_and_two_rings_of_three_look_alike(name):
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    for seed in range(3):
        assert gap(name, data_of(nx.cycle_graph(6)), data_of(triangles), seed) < 1e-11
    other = data_of(nx.cycle_graph(6), [0, 0, 1, 0, 0, 2])
    assert gap(name, data_of(nx.cycle_graph(6)), other) > 1e-9


@pytest.mark.parametrize("name", ["gcn", "gat", "gatv2", "graphsage"])
def test_means_and_maxima_do_not_see_degrees(name):
    """Where all atoms are alike, the mean of neighbours is the same for every node; so are attention and maximum."""
    assert gap(name, data_of(nx.star_graph(3)), data_of(nx.path_graph(4))) < 1e-11


@pytest.mark.parametrize("name", ["gin", "gine", "gcn-ogb", "monet", "pna"])
def test_sums_and_degree_scalers_tell_a_star_from_a_path(name):
    assert gap(name, data_of(nx.star_graph(3)), data_of(nx.path_graph(4))) > 1e-9
