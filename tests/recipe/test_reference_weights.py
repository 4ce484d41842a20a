"""Parity with the released model: the fixtures in tests/fixtures/golden."""

import pytest
import torch
import torch.nn.functional as F

import grit
from tests.golden import Case, assert_close

pytestmark = pytest.mark.usefixtures("each_form")

MODELS = ["model_zinc_full", "model_zinc_l2_steps", "model_mnist_l2", "model_pattern_l2", "model_peptides-func_l1"]


def recipe_of(case):
    return grit.load_recipe(
        case.meta["config"],
        f"model.num_layers={case.meta['layers']}",
        "model.dropout=0.0",
        "model.attention_dropout=0.0",
    )


def build(case):
    recipe = recipe_of(case)
    batch = grit.PairBatch.from_data_list(case.data_list(with_rrwp=True), recipe.encoding.walk_steps)
    return grit.load_reference_checkpoint(case.under("sd."), recipe).double(), batch.to(torch.float64)


def loss_of(case, predicted, batch):
    """The released losses of these cases, written out."""
    y = batch.y
    if case.meta["config"] == "zinc":
        return (predicted - y).abs().mean()
    if case.meta["config"] == "mnist":
        return F.nll_loss(F.log_softmax(predicted, -1), y[:, 0])
    if case.meta["config"] == "peptides-func":
        return F.binary_cross_entropy_with_logits(predicted, y)
    positive = y.double().mean()  # PATTERN: weight (V - n_c) / V
    weight = torch.where(y == 1, 1 - positive, positive)
    return F.binary_cross_entropy_with_logits(predicted, y.double(), weight=weight)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_of_the_released_model(name):
    case = Case(name)
    model, batch = build(case)
    assert model.num_parameters == case.meta["nparam"]
    assert_close(model(batch), case["eval64.pred"], 1e-9)
    model.train()
    predicted = model(batch)
    assert_close(predicted, case["train64.pred"], 1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_intermediate_nodes_and_pairs(name):
    case = Case(name)
    model, batch = build(case)
    x, pair = model.stem(batch)
    assert_close(x, case["mid64.rrwp.x"], 1e-6)
    key, query = case["mid32.rrwp.edge_index"]
    at = batch.pairs.find(query=query, key=key)
    assert sorted(at.tolist()) == list(range(batch.num_pairs))
    assert_close(pair[at], case["mid32.rrwp.edge_attr"], 1e-6)
    for i, layer in enumerate(model.layers):
        x, pair = layer(x, pair, batch.pairs, batch.log_degree)
        assert_close(x, case[f"mid64.layer{i}.x"], 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_training_loss_and_gradients(name):
    case = Case(name)
    model, batch = build(case)
    model.train()
    loss = loss_of(case, model(batch), batch)
    # The released loss of PATTERN and Peptides is computed in float32, whatever the model's type.
    assert_close(loss, case["train64.loss"], 1e-9 if case["train64.loss"].dtype == torch.float64 else 1e-6)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    assert_close(norm, case["train64.gradnorm"], 1e-9 if case["train64.loss"].dtype == torch.float64 else 1e-6)


def test_every_gradient_of_a_stored_case():
    stored = [name for name in MODELS if Case(name).under("traingrad.")]
    assert stored
    for name in stored:
        case = Case(name)
        model, batch = build(case)
        model.train()
        loss_of(case, model(batch), batch).backward()
        # Gradients have the names and shapes of the weights, so they are read in the same way.
        theirs = grit.load_reference_checkpoint({**case.under("sd."), **case.under("traingrad.")}, recipe_of(case))
        wanted = dict(theirs.named_parameters())
        for name, parameter in model.named_parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            assert_close(gradient, wanted[name], 1e-6)


def test_float32_from_the_graphs_alone():
    case = Case("model_zinc_full")
    recipe = grit.load_recipe("zinc")
    model = grit.load_reference_checkpoint(case.under("sd."), recipe)
    batch = grit.PairBatch.from_data_list(case.data_list(with_rrwp=False), recipe.encoding.walk_steps)
    assert_close(model(batch), case["eval64.pred"], 5e-6)


def test_file_prefix_and_padding(tmp_path):
    case = Case("model_zinc_l2_steps")
    recipe = grit.load_recipe("zinc", "model.num_layers=2")
    wanted = grit.load_reference_checkpoint(case.under("sd."), recipe).state_dict()
    prefixed = {f"model.{name}": value for name, value in case.under("sd.").items()}
    for content in (prefixed, {"model_state": prefixed, "optimizer_state": {}}):
        torch.save(content, tmp_path / "0.ckpt")
        got = grit.load_reference_checkpoint(tmp_path / "0.ckpt", recipe).state_dict()
        assert all(torch.equal(got[name], value) for name, value in wanted.items())
    del prefixed["model.rrwp_rel_encoder.padding"]
    grit.load_reference_checkpoint(prefixed, recipe)


def test_misfits_are_listed(tmp_path):
    case = Case("model_zinc_l2_steps")
    recipe = grit.load_recipe("zinc", "model.num_layers=2")
    state = case.under("sd.")
    state["layers.0.attention.K.bias"] = torch.zeros(64)
    state["rrwp_abs_encoder.fc.weight"] = torch.zeros(64, 20)
    del state["layers.1.O_e.weight"]
    with pytest.raises(grit.GritError) as error:
        grit.load_reference_checkpoint(state, recipe)
    message = str(error.value)
    assert "missing (1): layers.1.O_e.weight" in message
    assert "unexpected (1): layers.0.attention.K.bias" in message
    assert "rrwp_abs_encoder.fc.weight: (64, 20), expected (64, 21)" in message


def test_padding_must_be_zero():
    state = Case("model_zinc_l2_steps").under("sd.")
    state["rrwp_rel_encoder.padding"] = torch.ones(1, 64)
    with pytest.raises(grit.GritError, match="padding: expected zeros"):
        grit.load_reference_checkpoint(state, grit.load_recipe("zinc", "model.num_layers=2"))


def test_unreadable_files(tmp_path):
    (tmp_path / "junk.ckpt").write_bytes(b"not a checkpoint")
    torch.save([1, 2], tmp_path / "list.ckpt")
    torch.save({"evil": ExecutesOnLoad()}, tmp_path / "pickle.ckpt")
    for name in ("junk", "pickle", "absent"):
        with pytest.raises(grit.GritError, match="cannot read the checkpoint"):
            grit.load_reference_checkpoint(tmp_path / f"{name}.ckpt", "zinc")
    with pytest.raises(grit.GritError, match="holds no state dict"):
        grit.load_reference_checkpoint(tmp_path / "list.ckpt", "zinc")


def test_a_text_file_is_no_checkpoint(tmp_path):
    (tmp_path / "notes.txt").write_text("epoch 0: loss 1.5\nepoch 1: loss 1.2\n")
    (tmp_path / "empty.ckpt").write_text("")
    for name in ("notes.txt", "empty.ckpt"):
        with pytest.raises(grit.GritError, match=f"cannot read the checkpoint .*{name}"):
            grit.load_reference_checkpoint(tmp_path / name, "zinc")
        with pytest.raises(grit.GritError, match=f"cannot read the checkpoint .*{name}"):
            grit.load_reference_checkpoint(str(tmp_path / name), "zinc")


def test_values_that_are_no_tensors(tmp_path):
    recipe = grit.load_recipe("zinc", "model.num_layers=2")
    state = Case("model_zinc_l2_steps").under("sd.")
    state["layers.1.O_e.weight"] = state["layers.1.O_e.weight"].tolist()
    with pytest.raises(grit.GritError, match=r"something other than tensors: layers\.1\.O_e\.weight"):
        grit.load_reference_checkpoint(state, recipe)
    torch.save(state, tmp_path / "0.ckpt")
    with pytest.raises(grit.GritError, match="holds no state dict: expected names and tensors"):
        grit.load_reference_checkpoint(tmp_path / "0.ckpt", recipe)


def test_a_recipe_of_another_attention():
    recipe = grit.load_recipe("zinc", "model.num_layers=2", "model.attention=graphormer", "model.update_pairs=false")
    linear = grit.load_recipe("zinc", "model.num_layers=2", "model.attention=grit-linear")
    with pytest.raises(
        grit.GritError, match="GRIT with its own attention, the recipe has the model 'grit' with 'grit-linear'"
    ):
        grit.load_reference_checkpoint(Case("model_zinc_l2_steps").under("sd."), linear)
    with pytest.raises(
        grit.GritError, match="GRIT with its own attention, the recipe has the model 'grit' with 'graphormer'"
    ):
        grit.load_reference_checkpoint(Case("model_zinc_l2_steps").under("sd."), recipe)


def test_a_head_that_the_released_code_does_not_have(forget_plugins):
    class Linear(torch.nn.Linear):
        def __init__(self, *, hidden_dim, num_outputs, num_layers, activation):
            super().__init__(hidden_dim, num_outputs)

    grit.HEADS["linear"] = Linear
    with pytest.raises(grit.GritError, match="no head such as Linear: use model.head=halving or mlp"):
        grit.load_reference_checkpoint(
            Case("model_zinc_l2_steps").under("sd."),
            grit.load_recipe("zinc", "model.num_layers=2", "model.head=linear"),
        )


def test_layer_norms_under_their_released_names():
    state = {}
    for name, value in Case("model_zinc_l2_steps").under("sd.").items():
        if "batch_norm" not in name:
            state[name] = value
        elif name.endswith(("weight", "bias")):
            state[name.replace("batch_norm", "layer_norm")] = torch.randn_like(value)
    model = grit.load_reference_checkpoint(state, grit.load_recipe("zinc", "model.num_layers=2", "model.norm=layer"))
    for i, layer in enumerate(model.layers):
        for ours, theirs in (("node_norm", "1_h"), ("pair_norm", "1_e"), ("ffn_norm", "2_h")):
            norm = layer.get_submodule(ours)
            assert isinstance(norm, torch.nn.LayerNorm)
            assert torch.equal(norm.weight, state[f"layers.{i}.layer_norm{theirs}.weight"])
            assert torch.equal(norm.bias, state[f"layers.{i}.layer_norm{theirs}.bias"])
    with pytest.raises(grit.GritError, match=r"missing .*batch_norm1_e.*\n.*unexpected .*layer_norm1_e"):
        grit.load_reference_checkpoint(state, grit.load_recipe("zinc", "model.num_layers=2"))


class ExecutesOnLoad:
    def __reduce__(self):
        return (eval, ("1/0",))
