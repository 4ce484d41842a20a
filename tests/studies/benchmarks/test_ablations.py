"""Each ablation changes what it names and nothing else: the recipe, the parameters, and what the model computes."""

import json

import pytest
import torch
from torch_geometric.data import Data

import grit
from grit.studies import STUDIES, Workbench
from grit.studies.benchmarks.ablations import TITLES
from tests.recipe.test_load import leaves
from tests.training.small import small_graphs

SMALL = ("model.num_layers=3", "model.hidden_dim=8", "model.num_heads=2", "encoding.walk_steps=5")
SCALER = {f"layers.{layer}.degree_scaler.theta": (2, 8) for layer in range(3)}
GRIT_ATTENTION = {"pair_scale.weight", "pair_scale.bias", "pair_shift.weight", "pair_shift.bias", "score", "pair_value"}

# Overlay -> (leaves of the recipe that it changes, parameters that it takes away, parameters that it adds).
CHANGES = {
    "zinc-no-degree-scaler": ({"model.degree": "none"}, set(SCALER), {}),
    "zinc-no-pair-update": ({"model.update_pairs": False}, set(), {}),
    "zinc-sparse-attention": ({"model.pairs": "edges"}, set(), {}),
    "zinc-degree-encoding": ({"model.degree": "encoding"}, set(SCALER), {"stem.degree.weight": (151, 8)}),
    "zinc-graphormer-attention": (
        {"model.attention": "graphormer", "model.update_pairs": False, "model.clamp": None},
        {f"layers.{layer}.attention.{name}" for layer in range(3) for name in GRIT_ATTENTION},
        {
            f"layers.{layer}.attention.pair_bias.{name}": shape
            for layer in range(3)
            for name, shape in (("weight", (2, 8)), ("bias", (2,)))
        },
    ),
    "zinc-rwse": ({"encoding.name": "rwse"}, {"stem.pair_encoding.weight"}, {}),
    "zinc-spd": ({"encoding.name": "spd"}, {"stem.node_encoding.weight"}, {}),
    "zinc-no-signed-sqrt": ({"model.attention": "grit-linear"}, set(), {}),
}
OVERLAYS = sorted(CHANGES)


def models(overlay):
    """The base and the overlay in float64 evaluation mode, with the same weights wherever names agree."""
    base, changed = (grit.build_model(grit.load_recipe(name, *SMALL)).double().eval() for name in ("zinc", overlay))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in [*base.parameters(), *changed.parameters()]:
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
        theirs = base.state_dict()
        changed.load_state_dict(
            {**changed.state_dict(), **{k: v for k, v in theirs.items() if k in changed.state_dict()}}
        )
    return base, changed


def outputs(overlay, base, changed, graphs=None):
    """What the two make of the same graphs, each with its own encoding and pairs."""
    graphs = small_graphs(6) if graphs is None else graphs
    result = []
    for name, model in (("zinc", base), (overlay, changed)):
        recipe = grit.load_recipe(name, *SMALL)
        batch = grit.PairBatch.from_data_list(
            graphs,
            recipe.encoding.walk_steps,
            encoding=recipe.encoding.name,
            pairs=recipe.model.pairs,
            dtype=torch.float64,
        )
        with torch.no_grad():
            result.append(model(batch))
    return result


def set_to(model, ending, value):
    """Set all parameters and buffers whose name ends so."""
    found = [tensor for name, tensor in model.state_dict().items() if name.endswith(ending)]
    assert found, ending
    for tensor in found:
        tensor.copy_(torch.as_tensor(value, dtype=tensor.dtype).expand_as(tensor))


def degree_has_no_effect(base, changed):
    set_to(base, "degree_scaler.theta", torch.tensor([[1.0], [0.0]]))


def pairs_stay_as_they_are(base, changed):
    set_to(base, "pair_out.weight", 0.0)
    set_to(base, "pair_out.bias", 0.0)
    for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0 - 1e-5)):
        set_to(base, f"pair_norm.{name}", value)


def nothing(base, changed):
    pass


def degree_has_no_effect_on_either(base, changed):
    degree_has_no_effect(base, changed)
    set_to(changed, "stem.degree.weight", 0.0)


def both_take_the_mean(base, changed):
    """GRIT's ê is 0, so that its logits and its pair values are; Graphormer's logits are 0."""
    for name in ("pair_scale", "pair_shift"):
        set_to(base, f"{name}.weight", 0.0)
        set_to(base, f"{name}.bias", 0.0)
    for name in ("query.weight", "query.bias", "pair_bias.weight", "pair_bias.bias"):
        set_to(changed, name, 0.0)


def pair_encoding_is_ignored(base, changed):
    set_to(base, "stem.pair_encoding.weight", 0.0)


def encodings_are_ignored(base, changed):
    set_to(base, "stem.node_encoding.weight", 0.0)
    for model in (base, changed):
        set_to(model, "stem.pair_encoding.weight", 0.0)


def products_are_one(base, changed):
    for model in (base, changed):
        for name in ("query.weight", "key.weight", "pair_scale.weight"):
            set_to(model, name, 0.0)
        for name in ("query.bias", "pair_scale.bias"):
            set_to(model, name, 1.0)


# What makes base and overlay the same function, that is, all that tells them apart.
NEUTRAL = {
    "zinc-no-degree-scaler": degree_has_no_effect,
    "zinc-no-pair-update": pairs_stay_as_they_are,
    "zinc-sparse-attention": nothing,
    "zinc-degree-encoding": degree_has_no_effect_on_either,
    "zinc-graphormer-attention": both_take_the_mean,
    "zinc-rwse": pair_encoding_is_ignored,
    "zinc-spd": encodings_are_ignored,
    "zinc-no-signed-sqrt": products_are_one,
}


def complete_graphs():
    """Where every pair is an edge, sparse attention is global."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for n in (3, 5):
        edges = (~torch.eye(n, dtype=torch.bool)).nonzero().T
        kinds = torch.randint(1, 4, (edges.shape[1],), generator=generator)
        graphs.append(Data(x=torch.randint(21, (n, 1), generator=generator), edge_index=edges, edge_attr=kinds))
    return graphs


def test_all_rows_are_here():
    assert [*CHANGES] == list(TITLES)[1:]


@pytest.mark.parametrize("overlay", OVERLAYS)
class TestOverlay:
    def test_names_what_it_changes(self, overlay):
        base, changed = (leaves(grit.load_recipe(name)) for name in ("zinc", overlay))
        different = {path: changed[path] for path in changed if changed[path] != base.get(path)}
        assert {path: value for path, value in different.items() if not path.startswith("paper")} == CHANGES[overlay][0]

    def test_changes_these_parameters_and_no_others(self, overlay):
        base, changed = (
            {name: tuple(value.shape) for name, value in model.named_parameters()} for model in models(overlay)
        )
        _, removed, added = CHANGES[overlay]
        assert base.keys() - changed.keys() == removed
        assert {name: changed[name] for name in changed.keys() - base.keys()} == added
        assert all(base[name] == changed[name] for name in base.keys() & changed.keys())

    def test_computes_something_else(self, overlay):
        base, changed = outputs(overlay, *models(overlay))
        assert not torch.allclose(base, changed, rtol=1e-4)

    def test_computes_the_same_where_the_change_is_neutral(self, overlay):
        pair = models(overlay)
        NEUTRAL[overlay](*pair)
        graphs = complete_graphs() if overlay == "zinc-sparse-attention" else None
        torch.testing.assert_close(*outputs(overlay, *pair, graphs), rtol=1e-9, atol=1e-9)


def test_sparse_attention_is_over_edges_and_self_pairs():
    graphs = small_graphs(6)[1:]
    batch = grit.build_batch(grit.load_recipe("zinc-sparse-attention"), graphs)
    assert batch.num_pairs == sum(graph.num_edges + graph.num_nodes for graph in graphs)


def test_smoke(tmp_path):
    bench = Workbench(tmp_path / "study", "smoke", root=tmp_path / "data")
    STUDIES["ablations"].run(bench)
    table = json.loads((bench.folder / "results.json").read_text())
    *paper, signed_sqrt = [row["paper, MAE"] for row in table["rows"]]
    assert [float(printed.split()[0]) for printed in paper] == [0.059, 0.076, 0.066, 0.066, 0.072, 0.117, 0.081, 0.067]
    assert signed_sqrt is None  # the paper has no such row
    assert table["rows"][0]["ours, change"] is None
    assert all(row["ours, change"] for row in table["rows"][1:])
    assert "ours - paper" not in table["rows"][0]
    remarks = " ".join(table["remarks"])
    for text in ("NOT COMPARABLE", "zinc-mini", "rebuttal", "model.num_layers=2"):
        assert text in remarks
