import pytest
from pydantic import ValidationError

from grit.graphs.schema import OGB_ATOM, Features, GraphSchema


def test_widths_and_words():
    assert (Features(kind="numeric", sizes=(3,)).width, str(Features(kind="numeric", sizes=(3,)))) == (3, "3 numbers")
    assert (Features(kind="category", sizes=(21,)).width, OGB_ATOM.width) == (1, 9)
    assert Features(kind="none").width == 0
    assert str(Features(kind="category", sizes=(21,))) == "one category of 21"
    assert str(OGB_ATOM).startswith("9 categories of 119, 5")
    assert OGB_ATOM.is_integer
    assert not Features(kind="none").is_integer


@pytest.mark.parametrize(
    ("kind", "sizes"), [("none", (1,)), ("numeric", ()), ("category", (1, 2)), ("columns", ()), ("category", (0,))]
)
def test_sizes_must_fit(kind, sizes):
    with pytest.raises(ValidationError, match="size"):
        Features(kind=kind, sizes=sizes)


def test_survives_json():
    schema = GraphSchema(node=OGB_ATOM, edge=Features(kind="none"), level="node", num_outputs=3)
    assert GraphSchema.model_validate_json(schema.model_dump_json()) == schema
