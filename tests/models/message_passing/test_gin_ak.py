"""GIN-AK+: one layer by hand, net by net; what ego nets tell it, and how far they reach."""

import networkx as nx
import torch

from grit.models import GinAk, Gine
from grit.studies.theory.hard_graphs import witness_pairs
from tests.models.by_hand import GRAPHS, PLAIN, SCHEMA, batch_of, norm, of_matrix, with_own_norms


def mlp(module, x):
    for part in module:
        x = part(x) if isinstance(part, torch.nn.Linear) else x
        x = norm(part, x) if isinstance(part, torch.nn.BatchNorm1d) else x
        x = x.clamp(min=0) if isinstance(part, torch.nn.ReLU) else x
    return x


def nets_by_hand(layer, x, edge, graph, num_hops):
    """{root: {node: (z, h)}}, after the GIN on the net of each root."""
    joined = nx.Graph(graph.edge_index.T.tolist())
    joined.add_nodes_from(range(graph.num_nodes))
    nets = {}
    for root in range(graph.num_nodes):
        steps = nx.single_source_shortest_path_length(joined, root, cutoff=num_hops)
        hop = {node: layer.hop.weight[count] for node, count in steps.items()}
        z = {node: torch.cat([x[node], hop[node]]) for node in steps}
        for conv, normed in zip(layer.convs, layer.norms, strict=True):
            received = {node: (1 + conv.eps) * z[node] for node in z}
            for (j, i), e in zip(graph.edge_index.T.tolist(), edge, strict=True):
                if i in z and j in z:
                    received[i] = received[i] + (z[j] + e).clamp(min=0)
            z = {node: z[node] + norm(normed, mlp(conv.nn, received[node])).clamp(min=0) for node in z}
        nets[root] = {node: (layer.narrow(z[node]), hop[node]) for node in z}
    return nets


def test_a_model_of_one_layer():
    torch.manual_seed(0)
    options = {"num_layers": 1, "hidden_dim": 6, "num_hops": 2, "hop_dim": 3, "inner_layers": 2, "mlp_layers": 2}
    model = with_own_norms(GinAk(SCHEMA, **options))
    (layer,), (encoder,) = model.layers, model.edges
    of_root, of_net, of_context = layer.gates
    with torch.no_grad():
        found = model(batch_of(GRAPHS, structures=("egonets-2",)))
        for number, graph in enumerate(GRAPHS):
            x = model.node.embedding.weight[graph.x[:, 0]]
            nets = nets_by_hand(layer, x, encoder.embedding.weight[graph.edge_attr], graph, 2)
            rows = []
            for r in range(graph.num_nodes):
                z, hop = nets[r][r]
                whole = sum(mlp(layer.of_net, z_i) * of_net(h_i).sigmoid() for z_i, h_i in nets[r].values())
                others = [net[r] for net in nets.values() if r in net]
                context = sum(mlp(layer.of_context, z_i) * of_context(h_i).sigmoid() for z_i, h_i in others)
                rows.append(torch.cat([z * of_root(hop).sigmoid(), whole, context]))
            x = x + norm(layer.norm, mlp(layer.combine, torch.stack(rows))).clamp(min=0)
            torch.testing.assert_close(found[number], mlp(model.head, x.sum(0)))


def test_it_separates_a_ring_of_six_from_two_triangles():
    """One step from a node of a triangle, its neighbours are joined; in a ring of six they are not."""
    graphs = [of_matrix(adjacency) for adjacency in witness_pairs()["C6 / 2 C3"]]
    torch.manual_seed(0)
    with torch.no_grad():
        one, other = Gine(PLAIN).double().eval()(batch_of(graphs))
        torch.testing.assert_close(one, other)
        model = GinAk(PLAIN, num_layers=2, num_hops=1).double().eval()
        one, other = model(batch_of(graphs, structures=("egonets-1",)))
    assert (one - other).abs().max() > 1e-3


def test_a_layer_reads_as_far_as_its_nets_reach():
    path = of_matrix(nx.to_numpy_array(nx.path_graph(9), dtype=int))
    path.x, path.edge_attr = torch.zeros(9, 1, dtype=torch.int64), torch.zeros(16, dtype=torch.int64)
    torch.manual_seed(0)
    schema = SCHEMA.model_copy(update={"level": "node"})
    model = GinAk(schema, num_layers=1, hidden_dim=8, num_hops=3).double().eval()
    with torch.no_grad():
        before = model(batch_of([path], structures=("egonets-3",)))
        path.x[0] = 1
        after = model(batch_of([path], structures=("egonets-3",)))
    changed = (before != after).any(1).tolist()
    assert changed == [True] * 4 + [False] * 5


def test_published_widths():
    model = GinAk(SCHEMA)
    (conv,) = model.layers[0].convs
    assert conv.nn[0].weight.shape == (144, 144)
    assert model.layers[0].hop.weight.shape == (4, 16)
    assert len(model.layers) == len(model.edges) == 6
