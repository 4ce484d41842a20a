"""Numbers as the text of a cell, and which text is a number.

Tables are text here, whatever the file held. A number becomes the shortest text that gives the same number again.
"""

import re

MAX_DIGITS = 15  # that a number of 64 bits keeps, whatever they are
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def number_text(value: float) -> str:
    """A number as text: ``2``, ``0.1``, ``1e-05``; nothing for NaN, which is a missing value."""
    return "" if value != value else repr(float(value)).removesuffix(".0")


def is_plain_number(text: str) -> bool:
    """Whether a text is a number that loses nothing as one of 64 bits: ``007``, ``+1`` and twenty digits are text."""
    if len(text) > 40 or not _PLAIN.fullmatch(text) or (text.startswith("-0") and not text.strip("-0.eE+")):
        return False
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return False
    digits = re.sub(r"[eE].*|[-.]", "", text).lstrip("0")
    return (value != 0 or not digits) and (len(digits) <= MAX_DIGITS or number_text(value) == text)


def is_whole_number(text: str) -> bool:
    """Whether a text is a whole number of up to fifteen digits."""
    return text.removeprefix("-").isdecimal() and is_plain_number(text)
