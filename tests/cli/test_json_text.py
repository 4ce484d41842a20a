import json

import pytest

from grit.cli.json_text import json_text


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def test_numbers_that_json_does_not_have():
    value = {"auroc": float("nan"), "all": [1.5, float("-inf"), {"n": 3}], "is": True, "text": "NaN", "none": None}
    wanted = {"auroc": None, "all": [1.5, None, {"n": 3}], "is": True, "text": "NaN", "none": None}
    assert json.loads(json_text(value), parse_constant=refuse) == wanted


@pytest.mark.parametrize("text", ["a\nb", "é"])
def test_one_line(text):
    assert "\n" not in json_text({"x": text})
