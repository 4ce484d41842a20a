"""Results as JSON that every program can read."""

import json
from math import isfinite
from typing import Any


def json_text(value: Any) -> str:
    """``value`` as JSON, with null for numbers that JSON does not have: the AUROC of a single class, for example."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
