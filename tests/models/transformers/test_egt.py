from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data

import grit
from grit.datasets import DATASETS
from grit.graphs.schema import Features, GraphSchema
from grit.models import Egt
from grit.models.blocks import with_virtual_nodes
from grit.models.transformers.egt_layer import EgtLayer
from grit.testing import check_model
from tests.training.small import small_graphs

SCHEMA = GraphSchema(
    node=Features(kind="category", sizes=(21,)), edge=Features(kind="category", sizes=(4,)), num_outputs=2
)


def batch_of(graphs, rank=4):
    return grit.PairBatch.from_data_list(graphs, rank, encoding="svd-loops", dtype=torch.float64)


def layer_of(num_heads=2, hidden_dim=6, edge_dim=4, **options):
    torch.manual_seed(0)
    given = {
        "ffn_factor": 2.0,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "scales_degree": True,
        "updates_pairs": True,
        **options,
    }
    return EgtLayer(hidden_dim=hidden_dim, edge_dim=edge_dim, num_heads=num_heads, **given).double().eval()


def norm(x):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)


def test_a_layer_by_hand():
    """Node by node; products are made so large that the clip at 5 takes effect."""
    layer = layer_of()
    layer.query.weight.data *= 20
    (graph,) = small_graphs(4)[3:]
    n = graph.num_nodes
    x, pair = torch.randn(n, 6).double(), torch.randn(n * n, 4).double()
    with torch.no_grad():
        new_x, new_pair = layer(x, pair, with_virtual_nodes(batch_of([graph]), 0), n)
        h, e = norm(x), norm(pair).view(n, n, 4)
        q, k, v = (linear(h).view(n, 2, 3) for linear in (layer.query, layer.key, layer.value))
        clipped = 0
        wanted = torch.zeros(n, 6).double()
        logits = torch.zeros(n, n, 2).double()
        for i in range(n):
            for head in range(2):
                product = torch.stack([q[i, head] @ k[j, head] / 3**0.5 for j in range(n)])
                clipped += int((product.abs() > 5).sum())
                logits[i, :, head] = product.clamp(-5, 5) + layer.bias(e[i])[:, head]
                gate = 1 / (1 + torch.exp(-layer.gate(e[i])[:, head]))
                weights = torch.exp(logits[i, :, head]) / torch.exp(logits[i, :, head]).sum()
                total = sum(weights[j] * gate[j] * v[j, head] for j in range(n))
                wanted[i, 3 * head : 3 * head + 3] = torch.log(1 + gate.sum()) * total
        x = x + layer.node_out[0](wanted)
        x = x + layer.node_ffn[3](F.elu(layer.node_ffn[1](norm(x))))
        pair = pair + layer.pair_out[0](logits.view(n * n, 2))
        pair = pair + layer.pair_ffn[3](F.elu(layer.pair_ffn[1](norm(pair))))
    assert clipped
    torch.testing.assert_close(new_x, x)
    torch.testing.assert_close(new_pair, pair)


def test_a_shut_gate_silences_a_neighbour():
    """Rows of the gated attention sum to less than 1, and what a node behind a shut gate says is not heard."""
    layer = layer_of(scales_degree=False)
    batch = batch_of([Data(x=torch.zeros(3, 1).long(), edge_index=torch.empty(2, 0).long(), edge_attr=torch.empty(0))])
    tokens = with_virtual_nodes(batch, 0)
    pair = torch.zeros(9, 4).double()
    pair[tokens.key == 2] = torch.tensor([1.0, -1.0, 0.0, 0.0]).double()  # keeps its direction when it is normalised
    layer.gate.weight.data.zero_()
    layer.gate.weight.data[:, 0] = -1e3
    x = torch.randn(3, 6).double()
    with torch.no_grad():
        _, weights, gate = layer.attend(layer.node_norm(x), layer.pair_norm(pair), tokens)
        torch.testing.assert_close(weights.view(3, 3, 2).sum(1), torch.ones(3, 2).double())
        assert ((weights * gate).view(3, 3, 2).sum(1) < 1).all()
        assert (gate[tokens.key == 2] < 1e-9).all()
        layer.key.weight.data.zero_()  # who is silenced still has a share in the softmax
        before = layer(x, pair, tokens, 3)[0]
        other = x.clone()
        other[2] = torch.randn(6)
        after = layer(other, pair, tokens, 3)[0]
    torch.testing.assert_close(after[:2], before[:2])
    assert not torch.allclose(after[2], before[2])


def test_signs_of_singular_vectors():
    """The product of both halves does not tell a sign, the model does; in training it meets both signs, whichever it is given."""
    (graph,) = small_graphs(3)[2:]
    batch = batch_of([graph], rank=1)
    flipped = replace(batch, node_encoding=-batch.node_encoding)
    left, right = batch.node_encoding.T
    torch.testing.assert_close(torch.outer(left, right), torch.outer(*flipped.node_encoding.T))
    torch.manual_seed(0)
    model = Egt(SCHEMA, walk_steps=1, num_layers=1, hidden_dim=8, edge_dim=4).double()
    with torch.no_grad():
        model.eval()
        plus, minus = model(batch), model(flipped)
        assert not torch.allclose(plus, minus)
        model.train()
        for given in (batch, flipped):
            found = torch.stack([model(given) for _ in range(30)])
            is_plus, is_minus = ((found - each).abs().amax((1, 2)) < 1e-12 for each in (plus, minus))
            assert (is_plus ^ is_minus).all()
            assert is_plus.any()
            assert is_minus.any()


def test_the_signs_of_two_graphs_and_two_columns_are_drawn_apart():
    batch = batch_of(small_graphs(3)[1:], rank=2)
    model = Egt(SCHEMA, walk_steps=2, num_layers=1)
    first = batch.graphs.graph_of_node == 0
    seen = set()
    for _ in range(60):
        signs = (model.signed(batch) * batch.node_encoding).view(-1, 2, 2).sign()  # (N, half, column)
        assert ((signs[:, 0] == signs[:, 1]) | (signs[:, 0] == 0) | (signs[:, 1] == 0)).all()
        seen.add(tuple(signs[mine, 0, column].sum().sign().item() for mine in (first, ~first) for column in (0, 1)))
    assert len(seen) == 16


def test_pairs_at_the_beginning():
    """An edge, a node with itself and everybody else; or distances, those beyond the last sharing an embedding."""
    path = Data(
        x=torch.zeros(5, 1).long(),
        edge_index=torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        edge_attr=torch.ones(6).long(),
    )
    batch = batch_of([path])
    near = Egt(SCHEMA, walk_steps=4, num_layers=1, hidden_dim=8, edge_dim=3).double()
    far = Egt(SCHEMA, walk_steps=4, num_layers=1, hidden_dim=8, edge_dim=3, max_hop=2).double()
    with torch.no_grad():
        found = near.embed_pairs(batch).view(5, 5, 3)
        bias, step, bond = near.structure.bias, near.structure.weight[:, 0], near.edge.embedding.weight[1]
        torch.testing.assert_close(found[0, 0], bias + step)
        torch.testing.assert_close(found[0, 1], bias + step + bond)
        torch.testing.assert_close(found[0, 2], bias)
        found = far.embed_pairs(batch).view(5, 5, 3)
        table = far.structure.weight
        torch.testing.assert_close(found[0, 0], table[0])
        torch.testing.assert_close(found[0, 1], table[1] + far.edge.embedding.weight[1])
        torch.testing.assert_close(found[0, 2], table[2])
        for j in (3, 4):  # three steps away, and out of reach
            torch.testing.assert_close(found[0, j], table[3])


def test_the_rules_with_all_options():
    options = {"num_layers": 2, "max_hop": 2, "virtual_nodes": 2, "degree": "scaler", "head_factor": 1.0}
    check_model("egt", encoding="svd-loops", options=options)
    # For nodes as for graphs: virtual nodes are seen through attention.
    check_model("egt", encoding="none", options={**options, "num_layers": 1, "dropout": 0.3, "attention_dropout": 0.3})


def test_virtual_nodes_join_nodes_that_no_pair_joins():
    """With pairs=edges a node without edges hears of the others only through a virtual node, in the second layer."""
    x = torch.tensor([[0], [1], [2]])
    changed = torch.tensor([[0], [1], [3]])
    edges = torch.tensor([[0, 1], [1, 0]])
    schema = SCHEMA.model_copy(update={"level": "node"})

    def predict(model, x):
        data = Data(x=x, edge_index=edges, edge_attr=torch.ones(2).long())
        return model(grit.PairBatch.from_data_list([data], 4, encoding="none", pairs="edges", dtype=torch.float64))

    for count in (0, 1):
        model = Egt(schema, encoding="none", walk_steps=4, num_layers=2, virtual_nodes=count).double().eval()
        same = torch.allclose(predict(model, x)[:2], predict(model, changed)[:2])
        assert same == (count == 0)


def test_the_published_number_of_parameters():
    """47.4 million with the authors' tables: 9 x 128 + 1 rows for atoms, 3 x 8 + 1 for bonds."""
    recipe = grit.load_recipe("pcqm4mv2-egt")
    model = grit.build_model(recipe)
    schema = DATASETS["pcqm4mv2"].schema
    rows = (1153 - sum(schema.node.sizes)) * 640 + (25 - sum(schema.edge.sizes)) * 64
    assert round((sum(p.numel() for p in model.parameters()) + rows) / 1e6, 1) == 47.4
    assert sum(isinstance(module, nn.LayerNorm) for module in model.modules()) == 4 * 18 - 1 + 1
