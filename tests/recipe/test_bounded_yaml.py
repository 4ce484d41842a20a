import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grit
from grit.recipe.bounded_yaml import dump_yaml, parse_yaml

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 9)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LAUGHS + "dataset: *a8", "line 2: not valid YAML: aliases"),
        (LAUGHS + "base: *a8", "line 2: not valid YAML: aliases"),
        ("base: zinc\ntrain: &a\n  lr: *a\n", "line 3: not valid YAML: aliases"),
        ("x: &x {lr: 1.0}\nbase: zinc\ntrain:\n  <<: *x\n", "line 4: not valid YAML: aliases"),
        ("dataset: " + "[" * 5000, "line 1: not valid YAML: more than 20 levels"),
        ("dataset: " + "{a: " * 5000, "line 1: not valid YAML: more than 20 levels"),
        ("- " * 5000, "line 1: not valid YAML: more than 20 levels"),
        ("base: zinc\ntrain:\n  seed: " + "1" * 5000, "line 3: not valid YAML: a number of 5,000 digits"),
        ("base: zinc\ntrain: {seed: !!int x}", "line 2: not valid YAML: the tag"),
        ("base: zinc\ntrain: {lr: !!float abc}", "line 2: not valid YAML: the tag"),
        ("base: zinc\ntrain: {lr: !!timestamp x}", "line 2: not valid YAML: the tag"),
        ("base: zinc\ntrain: {lr: !!python/object/apply:os.system [ls]}", "line 2: not valid YAML: the tag"),
        ("base: zinc\ndataset: !!binary abc", "line 2: not valid YAML: the tag"),
        *(
            (f"base: zinc\ntrain: {tagged}", "line 2: not valid YAML: the tag")
            for tagged in ('!!int "5"', "!!str 5", "!!map {a: 1}", "!!seq [1]", "! 5", '!!null ""', "!!float 1")
        ),
        ('base: zinc\ndataset: "\\UFFFFFFFF"', "line 2: not valid YAML: a number that is no character"),
        ('base: zinc\ndataset: "\\U00110000"', "line 2: not valid YAML: a number that is no character"),
        (
            f"%YAML 1{'1' * 5000}.1\n---\nbase: zinc",
            "line 1: not valid YAML: a number that is no character or no version",
        ),
        ("base: 2001-13-45", "base: '2001-13-45' is not a recipe"),
        ("base: zinc\nbase: mnist", "line 2: not valid YAML: the key 'base' stands twice"),
        ("base: zinc\ntrain: {lr: 1.0, lr: 2.0}", "line 2: not valid YAML: the key 'lr' stands twice"),
        ("base: zinc\n? [a, b]\n: 1", "line 2: not valid YAML: a key must be a word"),
        ("base: zinc\n3: 4", "line 2: not valid YAML: the key 3 must be a word"),
        ("base: zinc\ntrain:\n\tlr: 1.0", "line 3: not valid YAML: found character"),
        ("base: zinc\0", "line 1: not valid YAML: the character"),
        ('base: zinc\ndataset: "a\\0b"', "line 2: not valid YAML: 'a.x00b' holds a character"),
        (b"base: zinc\ndataset: \xff", "line 2: 'utf-8' codec can't decode .* Save it as UTF-8"),
        ("base: zinc\n".encode("utf-16"), "Save it as UTF-8"),
        ("base: zinc\n---\nbase: mnist", "line 2: not valid YAML: but found another document"),
        ("", "is empty. Write at least `base: zinc`"),
        ("just words", "must be a mapping of keys to values, got 'just words'"),
        (b"base: zinc\n" + b" " * 100_000_000, "has more than 65,536 bytes"),
        ("base: zinc\n" + "".join(f"k{k}: 1\n" for k in range(3000)), r"k0: unknown key[^$]*and 2,990 more"),
    ],
)
def test_hostile_files(tmp_path, content, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(grit.GritError, match=message) as caught:
        grit.load_recipe(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_what_is_no_file(tmp_path):
    path = tmp_path / "mine.yaml"
    for make in (path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")):
        make()
        with pytest.raises(grit.GritError, match="it is not a file"):
            grit.load_recipe(path)
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3), ("1E+3", 1e3), ("+1.e-3", 1e-3), (".5", 0.5), ("5.", 5.0), ("-0", 0), ("1_000", 1000), ("010", 10),
        ("true", True), ("FALSE", False), ("null", None), ("~", None), ("-.inf", float("-inf")),
        *[(word, word) for word in ("no", "on", "off", "yes", "y", "1:30", "0x10", "2001-01-01", "=", "<<", "nan", "1e", ".")],
    ],
)  # fmt: skip
def test_plain_values_are_those_of_yaml_1_2(text, value):
    found = parse_yaml(text, "here")
    assert (found, type(found)) == (value, type(value))


@given(st.text() | st.sampled_from(["1e3", "no", "1:30", "010", "x: y", "a #b", "~", "true", "*a", "!x", "", "\udcff"]))
def test_every_text_survives_yaml(text):
    tree = {"a": text, "b": [text, 1, None, True, 1e-5]}
    if "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text.replace("\udcff", "")):
        assert parse_yaml(dump_yaml(tree), "here") == tree


def test_twenty_levels_are_read_and_one_more_is_not():
    value = parse_yaml("[" * 19 + "1" + "]" * 19, "here")
    for _ in range(19):
        (value,) = value
    assert value == 1
    with pytest.raises(grit.GritError, match="more than 20 levels"):
        parse_yaml("[" * 20 + "1" + "]" * 20, "here")
