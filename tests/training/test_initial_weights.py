"""Beginning a run with the weights of another."""

import hashlib
import json
import shutil

import pytest
import torch
from safetensors.torch import save_file

import grit
from grit.errors import GritError
from grit.training.checkpoint import read_checkpoint
from grit.training.run_folder import RunFolder
from grit.training.train import RunOptions, train
from tests.golden import Case
from tests.training.small import recipe_of, small_recipe, small_store

ALWAYS = RunOptions(device="cpu", checkpoint_seconds=0)
STILL = ("train.epochs=1", "train.lr=1e-30", "train.weight_decay=0.0")  # too small a step to change a float32


@pytest.fixture(scope="module")
def store():
    return small_store()


@pytest.fixture(scope="module")
def first(store, tmp_path_factory):
    """A trained run."""
    run = tmp_path_factory.mktemp("first") / "run"
    train(small_recipe(), run, store=store, options=ALWAYS)
    return run


def parameters(run, which="last"):
    names = [name for name, _ in grit.build_model(small_recipe()).named_parameters()]
    found = read_checkpoint(run / "checkpoints" / f"{which}.safetensors").under("model.")
    return {name: found[name] for name in names if name in found}


def same(a, b, names=None):
    return all(torch.equal(a[name], b[name]) for name in (names or a))


def test_a_run_begins_with_the_best_weights_of_another(store, first, tmp_path):
    said = []
    recipe = small_recipe("train.seed=5", *STILL)
    train(recipe, tmp_path / "run", store=store, init=first, options=ALWAYS, say=said.append)
    assert same(parameters(tmp_path / "run"), parameters(first, "best"))
    record = json.loads((tmp_path / "run" / "init.json").read_text())
    file = first / "checkpoints" / "best.safetensors"
    assert record["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (record["source"], record["part"], record["kept"]) == (str(first.resolve()), "all", {})
    assert any(record["sha256"][:12] in line for line in said)
    assert any("taken: stem" in line and "head" in line for line in said)


def test_the_encoder_is_everything_but_the_head(store, first, tmp_path):
    recipe = small_recipe("train.seed=5", *STILL)
    train(recipe, tmp_path / "run", store=store, init=first, init_part="encoder", options=ALWAYS)
    fresh, now, before = (
        dict(grit.build_model(recipe).named_parameters()),
        parameters(tmp_path / "run"),
        parameters(first, "best"),
    )
    head = [name for name in now if name.startswith("head.")]
    assert head
    assert same(now, fresh, head)
    assert same(now, before, now.keys() - set(head))


def test_what_does_not_fit_keeps_its_own_values_and_is_told(store, first, tmp_path):
    said = []
    recipe = small_recipe("model.num_layers=3", "encoding.walk_steps=5", *STILL)
    train(recipe, tmp_path / "run", store=store, init=first, options=ALWAYS, say=said.append)
    now = read_checkpoint(tmp_path / "run" / "checkpoints" / "last.safetensors").under("model.")
    fresh, before = grit.build_model(recipe).state_dict(), parameters(first, "best")
    new = "layers.2.attention.query.weight"
    assert torch.equal(now[new], fresh[new])
    assert torch.equal(now["stem.pair_encoding.weight"], fresh["stem.pair_encoding.weight"])
    taken = "layers.0.attention.query.weight"
    assert torch.equal(now[taken], before[taken])
    text = "\n".join(said)
    assert "layers: not in the file: layers." in text
    assert "stem: of another shape: stem.node_encoding.weight (8, 4) there, (8, 5) here" in text
    assert "model.num_layers was 2, is now 3" in text


def test_a_checkpoint_of_the_released_code(store, tmp_path):
    case = Case("model_zinc_l2_steps")
    recipe = grit.load_recipe("zinc", "model.num_layers=2", "train.warmup_epochs=0", *STILL)
    torch.save({"model_state": case.under("sd.")}, tmp_path / "released.ckpt")
    train(recipe, tmp_path / "run", store=store, init=tmp_path / "released.ckpt", options=ALWAYS)
    wanted = dict(grit.load_reference_checkpoint(case.under("sd."), recipe).named_parameters())
    assert same(read_checkpoint(tmp_path / "run" / "checkpoints" / "last.safetensors").under("model."), wanted, wanted)


def test_files_of_weights(store, tmp_path):
    recipe = small_recipe(*STILL)
    weights = {name: torch.full_like(value, 0.25) for name, value in grit.build_model(recipe).named_parameters()}
    save_file(weights, tmp_path / "mine.safetensors")
    train(recipe, tmp_path / "run", store=store, init=tmp_path / "mine.safetensors", options=ALWAYS)
    assert same(parameters(tmp_path / "run"), weights)
    torch.save({"model_state": {"model.other": torch.zeros(1)}}, tmp_path / "other.ckpt")
    with pytest.raises(GritError, match="does not fit the recipe's model"):
        train(recipe, tmp_path / "no", store=store, init=tmp_path / "other.ckpt", options=ALWAYS)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("absent", "there is no run folder or file"),
        ("text.safetensors", "cannot read weights"),
        ("alien.safetensors", "no weights in .* fit the model"),
        ("empty", "not a run folder"),
    ],
)
def test_weights_that_cannot_be_used_are_an_error_and_leave_nothing(store, tmp_path, source, message):
    (tmp_path / "text.safetensors").write_text("no weights")
    save_file({"stem.banana": torch.zeros(3)}, tmp_path / "alien.safetensors")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GritError, match=message):
        train(small_recipe(), tmp_path / "run", store=store, init=tmp_path / source, options=ALWAYS)
    assert not (tmp_path / "run").exists()


def test_another_model_does_not_fit(store, first, tmp_path):
    with pytest.raises(GritError, match="there are all, encoder"):
        train(small_recipe(), tmp_path / "run", store=store, init=first, init_part="head", options=ALWAYS)
    with pytest.raises(GritError, match="no weights in .* fit the model of this run"):
        train(recipe_of("gine", *STILL), tmp_path / "run", store=store, init=first, options=ALWAYS)


class Stopped(Exception):
    pass


def stop_after(steps):
    left = [steps]

    def watch(event):
        left[0] -= 1
        if left[0] == 0:
            raise Stopped

    return watch


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_a_resumed_run_equals_an_uninterrupted_one_and_does_not_read_the_weights_again(store, first, tmp_path, steps):
    source = shutil.copytree(first, tmp_path / "source")
    recipe = small_recipe("train.seed=3")
    whole = train(recipe, tmp_path / "whole", store=store, init=source, options=ALWAYS)
    options = ALWAYS._replace(checkpoint_seconds=1e9) if steps == 1 else ALWAYS
    with pytest.raises(Stopped):
        train(recipe, tmp_path / "run", store=store, init=source, options=options, watch=stop_after(steps))
    if RunFolder(tmp_path / "run").state() == "trained":
        shutil.rmtree(source)
    result = train(recipe, tmp_path / "run", store=store, resume=True, options=ALWAYS)
    assert {**result, "seconds": 0} == {**whole, "seconds": 0}
    assert same(parameters(tmp_path / "run"), parameters(tmp_path / "whole"))
    assert (tmp_path / "run" / "init.json").read_text() == (tmp_path / "whole" / "init.json").read_text()


def test_resuming_with_other_weights_is_refused(store, first, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        train(small_recipe(), run, store=store, init=first, options=ALWAYS, watch=stop_after(6))
    for init, part in ((tmp_path, "all"), (first, "encoder")):
        with pytest.raises(GritError, match="was begun with --init .* --init-part all"):
            train(small_recipe(), run, store=store, init=init, init_part=part, resume=True, options=ALWAYS)
    train(small_recipe(), run, store=store, init=first, resume=True, options=ALWAYS)
    with pytest.raises(GritError, match="was begun without --init"):
        train(small_recipe(), first, store=store, init=run, resume=True, options=ALWAYS)


def test_a_run_killed_before_it_learned_anything_needs_its_weights(store, first, tmp_path):
    source, run = shutil.copytree(first, tmp_path / "source"), tmp_path / "run"
    never = ALWAYS._replace(checkpoint_seconds=1e9)
    with pytest.raises(Stopped):
        train(small_recipe(), run, store=store, init=source, options=never, watch=stop_after(1))
    assert RunFolder(run).state() == "begun"
    (run / "config.yaml").unlink()
    assert RunFolder(run).state() == "new"  # killed a moment earlier
    file = source / "checkpoints" / "best.safetensors"
    shutil.copy(source / "checkpoints" / "previous-last.safetensors", file)
    with pytest.raises(GritError, match="which has changed. Use --init again"):
        train(small_recipe(), run, store=store, resume=True, options=never)
    file.unlink()
    with pytest.raises(GritError, match="which is gone. Use --init again"):
        train(small_recipe(), run, store=store, resume=True, options=never)
    train(small_recipe("train.epochs=1"), run, store=store, options=never)  # a corrected command begins anew
    assert not (run / "init.json").exists()
