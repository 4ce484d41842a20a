import networkx as nx
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch_geometric.data import Data

import grit
from grit.datasets import DATASETS
from grit.graphs.convert import pack
from grit.graphs.schema import Features, GraphSchema
from grit.models import Grpe
from grit.models.transformers.grpe import components
from tests.graph_strategies import graphs
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)
HOPS = 2


def batch_of(data_list):
    return grit.PairBatch.from_data_list(data_list, HOPS, encoding="spd", dtype=torch.float64)


def model_of(**options):
    torch.manual_seed(0)
    given = {"walk_steps": HOPS, "num_layers": 1, "hidden_dim": 6, "ffn_dim": 5, "num_heads": 2, **options}
    return Grpe(SCHEMA, **given).double().eval()


def path(*edges, num_nodes):
    both = [pair for a, b in edges for pair in ((a, b), (b, a))]
    return Data(
        x=torch.arange(num_nodes)[:, None],
        edge_index=torch.tensor(both).T,
        edge_attr=torch.ones(len(both)).long(),
    )


def norm(x):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)


def relation(model, which, graph, distance, i, j):
    """P_d + E_ij of tokens i and j for query, key or value, the last token being the task token."""
    table = model.embeddings[which]
    n = graph.num_nodes
    if i == j == n:
        return table.hop.weight[0] + table.kind.weight[0]
    if n in (i, j):
        return table.hop.weight[HOPS + 1] + table.kind.weight[1]
    d = distance[i].get(j)
    hop = table.hop.weight[HOPS + 2 if d is None else min(d, HOPS)]
    bond = [a for (s, t), a in zip(graph.edge_index.T.tolist(), graph.edge_attr, strict=True) if (s, t) == (j, i)]
    return hop + (table.edge.embedding.weight[bond[0]] if bond else table.kind.weight[0])


@pytest.mark.parametrize("graph", [*small_graphs(4)[1:], path((0, 1), (1, 2), (2, 3), (4, 5), num_nodes=6)])
def test_by_hand(graph):
    """With every relation between two tokens looked up by itself. Edges reach the task token in the second layer."""
    model = model_of(num_layers=2)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)  # the first weights are small enough to hide a mistake
    n = graph.num_nodes
    nodes = nx.Graph()
    nodes.add_nodes_from(range(n))
    nodes.add_edges_from(graph.edge_index.T.tolist())
    distance = dict(nx.all_pairs_shortest_path_length(nodes))
    with torch.no_grad():
        found = model(batch_of([graph]))[0]
        x = torch.cat([model.node.embedding.weight[graph.x[:, 0]], model.task])  # (n + 1, 6)
        for layer in model.layers:
            q, k, v = (linear(norm(x)).view(n + 1, 2, 3) for linear in (layer.query, layer.key, layer.value))
            out = torch.zeros(n + 1, 6).double()
            for i in range(n + 1):
                for_query, for_key, for_value = (
                    torch.stack([relation(model, which, graph, distance, i, j).view(2, 3) for j in range(n + 1)])
                    for which in range(3)
                )
                for head in range(2):
                    score = k[:, head] @ q[i, head] + for_query[:, head] @ q[i, head]
                    score = (score + (for_key[:, head] * k[:, head]).sum(1)) / 3**0.5
                    weights = torch.exp(score) / torch.exp(score).sum()
                    out[i, 3 * head : 3 * head + 3] = weights @ (v[:, head] + for_value[:, head])
            x = x + layer.out[0](out)
            x = x + layer.ffn[3](F.gelu(layer.ffn[1](norm(x))))
    torch.testing.assert_close(found, model.head(norm(x[n])).detach())


def test_distances_beyond_the_last_share_an_embedding():
    relations = model_of().relate(batch_of([path((0, 1), (1, 2), (2, 3), (3, 4), num_nodes=6)]))
    assert relations.hop[:6].tolist() == [0, 1, HOPS, HOPS, HOPS, HOPS + 2]


def test_a_longer_path_looks_the_same_from_its_end():
    """Beyond the last distance a model of one layer sees how many nodes there are and what they are, not where."""
    here = path((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), num_nodes=6)
    there = path((0, 1), (1, 2), (2, 3), (2, 4), (4, 5), num_nodes=6)
    schema = SCHEMA.model_copy(update={"level": "node"})
    torch.manual_seed(0)
    model = Grpe(schema, walk_steps=HOPS, num_layers=1, hidden_dim=6, ffn_dim=5, num_heads=2).double().eval()
    with torch.no_grad():
        one, other = model(batch_of([here])), model(batch_of([there]))
    torch.testing.assert_close(one[:2], other[:2])
    assert not torch.allclose(one[2], other[2])


@given(graphs(max_nodes=9))
def test_components(data):
    wanted = nx.Graph()
    wanted.add_nodes_from(range(data.num_nodes))
    wanted.add_edges_from(data.edge_index.T.tolist())
    found = components(pack([data]))
    groups = {tuple((found == label).nonzero()[:, 0].tolist()) for label in found.unique()}
    assert groups == {tuple(sorted(nodes)) for nodes in nx.connected_components(wanted)}


def test_noise_on_nodes_only_in_training():
    batch = batch_of(small_graphs(4)[1:])
    model = model_of(dropout=0.0, attention_dropout=0.0, perturb_noise=0.5)
    assert torch.equal(model(batch), model(batch))
    model.train()
    assert not torch.allclose(model(batch), model(batch))
    calm = model_of(dropout=0.0, attention_dropout=0.0, perturb_noise=0.0).train()
    assert torch.equal(calm(batch), calm(batch))


def test_self_loops_are_not_seen():
    graph = path((0, 1), num_nodes=2)
    looped = Data(x=graph.x, edge_index=torch.tensor([[0, 1, 1], [1, 0, 1]]), edge_attr=torch.tensor([1, 1, 2]))
    model = model_of()
    torch.testing.assert_close(model(batch_of([graph])), model(batch_of([looped])))


def test_the_numbers_of_parameters_of_the_authors():
    """46.2 million are published for PCQM4Mv2; for ZINC their code gives 478,001."""
    for name, width, atoms, bonds, wanted in (
        ("pcqm4mv2", 768, 512 * 9 + 1, 34, 46_199_041),
        ("zinc", 80, 25, 14, 478_001),
    ):
        schema = DATASETS[name].schema
        model = grit.build_model(grit.load_recipe(f"{name}-grpe"))
        rows = atoms - sum(schema.node.sizes) + 3 * (bonds - 2 - sum(schema.edge.sizes))
        assert sum(p.numel() for p in model.parameters()) + rows * width == wanted


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(grit.GritError, match="hidden_dim 80 is not divisible by num_heads 7"):
        grit.load_recipe("zinc-grpe", "model.num_heads=7")
