"""Which keys are tuned, and between which values; mistakes in a space are found before any work."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.errors import GritError
from grit.recipe.presets import PRESETS
from grit.training.dotted import dotted
from grit.training.tune import checked_space
from grit.training.tune_space import SPACE, Choices, Range, override, read_space


def space_of(preset, *fixed, space=None):
    return checked_space(
        space,
        grit.load_recipe(f"own-{preset}", *fixed),
        fixed,
        lambda *changes: grit.load_recipe(f"own-{preset}", *fixed, *changes),
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_lies_within_its_own_space(preset):
    own, space = dotted(grit.load_recipe(f"own-{preset}").model_dump()), space_of(preset)
    assert set(space) == set(SPACE)
    for key, part in space.items():
        assert part.has(own[key]), key
        assert len(set(part.ends())) > 1, key


def test_what_the_user_fixes_or_the_model_lacks_is_not_tuned():
    assert set(SPACE) - set(space_of("fast", "train.lr=0.01", "train.batch_size=8")) == {"train.lr", "train.batch_size"}
    lacking = set(SPACE) - set(space_of("fast", "model.name=gatedgcn"))
    options = grit.load_recipe("own-fast", "model.name=gatedgcn").model.options()
    assert lacking == {key for key in SPACE if key.startswith("model.") and key.removeprefix("model.") not in options}
    with pytest.raises(GritError, match="nothing is left to tune.*--space"):
        space_of("fast", *(override(key, dotted(grit.load_recipe("own-fast").model_dump())[key]) for key in SPACE))


def test_widths_that_do_not_divide_into_the_heads_are_left_out():
    assert space_of("fast")["model.hidden_dim"] == Choices((24, 48, 96))
    assert space_of("fast", "model.num_heads=16")["model.hidden_dim"] == Choices((48, 96))


def test_a_space_of_ones_own():
    tree = {
        "train.lr": {"low": 1e-4, "high": 1e-2, "log": True},
        "model.num_layers": {"low": 2, "high": 8},
        "train.weight_decay": {"low": 0, "high": 1},
        "model.norm": ["batch", "layer"],
        "train.clip_norm": [1.0, None],
    }
    space = space_of("fast", space=tree)
    assert space["train.lr"] == Range(1e-4, 1e-2, log=True)
    assert space["model.num_layers"].is_whole
    assert not space["train.weight_decay"].is_whole  # 0 to 1 of a fraction does not mean 0 or 1
    assert space["train.clip_norm"] == Choices((1.0, None))
    assert {key: part.plain() for key, part in space.items()} == {
        **tree,
        "train.weight_decay": {"low": 0.0, "high": 1.0},
    }


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"train.rate": [1, 2]}, r"train.rate: unknown key \(did you mean"),
        ({"model.hidden": [32, 64]}, r"model.hidden: unknown key \(did you mean 'hidden_dim'\?\)"),
        ({"train": {"lr": [1, 2]}}, r"train: unknown key 'lr'; .* with dots, such as train.lr"),
        ({"train.lr": 1e-3}, r"train.lr: expected a range or a list of values.*got 0.001"),
        ({"train.lr": {"low": 1e-3}}, r"train.lr: high is missing"),
        ({"train.lr": {"low": 1e-2, "high": 1e-3}}, r"train.lr: low must be less than high, got 0.01 and 0.001"),
        ({"train.lr": {"low": "a", "high": 1}}, r"train.lr: low: expected a number, got 'a'"),
        ({"train.lr": {"low": True, "high": 2}}, r"train.lr: low: expected a number, got True"),
        ({"train.lr": {"low": 0.1, "high": float("inf")}}, r"train.lr: high: expected a number, got inf"),
        ({"train.lr": {"low": 0, "high": 1, "log": True}}, r"train.lr: log needs a low above 0"),
        ({"train.lr": {"low": 0.1, "high": 1, "log": 3}}, r"train.lr: log: expected true or false, got 3"),
        (
            {"train.lr": {"low": 0.1, "high": 1, "logarithmic": True}},
            r"unknown key 'logarithmic'; a range has low, high",
        ),
        ({"model.dropout": {"low": 0, "high": 0.5, "step": 2}}, r"model.dropout: step: expected a number above 0"),
        ({"model.dropout": {"low": 0.1, "high": 0.5, "step": 0.1, "log": True}}, r"step: .*without log"),
        ({"model.dropout": {"low": 0.0, "high": 1.5}}, r"model.dropout: got 1.5"),
        ({"model.num_layers": {"low": 2, "high": 8.5}}, r"model.num_layers: got 8.5: expected a whole number"),
        ({"model.norm": ["batch", "bath"]}, r"model.norm: got 'bath'"),
        ({"model.norm": ["batch"]}, r"model.norm: expected at least two different values.*key=value"),
        ({"train.batch_size": [8, 8]}, r"train.batch_size: expected at least two different values"),
        ({"model.norm": [["batch"], ["layer"]]}, r"model.norm: expected plain values"),
        ({"train.seed": [0, 1]}, r"train.seed is not tuned: a seed that does well by luck"),
        ({"train.metric": ["mae", "rmse"]}, r"train.metric is not tuned"),
        ({"train.epochs": [1, 2]}, r"train.epochs has a range, and a fixed value among the options"),
    ],
)
def test_mistakes_in_a_space_say_where_and_what(tree, message):
    with pytest.raises(GritError, match=f"the space: .*{message}|the space: .*\n.*{message}"):
        space_of("fast", "train.epochs=2", space=tree)


@pytest.mark.parametrize("text", ["", "3", "[1, 2]", "{}"])
def test_a_file_without_keys(tmp_path, text):
    (tmp_path / "space.yaml").write_text(text)
    with pytest.raises(GritError, match=r"space '.*space.yaml': expected keys of a recipe, such as train.lr"):
        read_space(tmp_path / "space.yaml")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(GritError, match=r"cannot read the space '.*gone.yaml'"):
        read_space(tmp_path / "gone.yaml")
    (tmp_path / "space.yaml").write_text("train.lr: {low: 1\n")
    with pytest.raises(GritError, match=r"space '.*space.yaml', line \d: not valid YAML"):
        read_space(tmp_path / "space.yaml")


@given(
    low=st.floats(1e-6, 1.0),
    factor=st.floats(1.001, 1e4),
    share=st.floats(0.0, 1.0),
    log=st.booleans(),
)
def test_a_drawn_number_stays_inside_and_short(low, factor, share, log):
    part = Range(low, low * factor, log)
    value = part.tidy(low * factor**share)
    assert part.has(value)
    assert value in part.ends() or value == float(f"{value:.2e}")
    assert json.loads(override("a", value).removeprefix("a=")) == value


@given(low=st.integers(1, 20), more=st.integers(1, 20), share=st.floats(0.0, 1.0))
def test_whole_numbers_stay_whole(low, more, share):
    part = Range(low, low + more)
    value = part.tidy(low + share * more)
    assert isinstance(value, int)
    assert part.has(value)
    assert not part.has(low + 0.5)
