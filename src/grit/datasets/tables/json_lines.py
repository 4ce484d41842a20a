"""JSON lines: an object in each line, its keys being the columns."""

import json
from collections.abc import Iterator
from typing import Any

from grit.datasets.tables.source import TableSource
from grit.datasets.tables.table import Record, Table
from grit.datasets.tables.text_lines import MAX_CHARACTERS, encoding_of, read_lines
from grit.errors import GritError, shown

MAX_COLUMNS = 20_000


class JsonLinesTable(Table):
    """JSON lines. The columns are the keys of all objects, in the order in which they come; a missing key is a blank.

    The file is gone through at once for its keys. Numbers keep the text that they have in the file; ``null`` is a blank.
    A line that is not an object, or has a key twice, is listed; so is a row that needs a cell which holds a list or an object.
    """

    def _open(self, source: TableSource) -> list[str]:
        self._encoding = encoding_of(source, self.options.encoding)
        if self._encoding.note:
            self.notes.append(self._encoding.note)
        names: dict[str, int] = {}
        first_reason = None
        for number, line in enumerate(read_lines(source, self._encoding), 1):
            found = _parsed(line)
            if isinstance(found, str):
                first_reason = first_reason or (f"line {number}: {found}" if line.strip() else None)
                continue
            for name in found:
                names.setdefault(name, len(names))
            if len(names) > MAX_COLUMNS:
                raise source.unreadable(f"its objects have more than {MAX_COLUMNS:,} different keys")
        if not names:
            raise GritError(
                f"{str(self.path)!r} holds no JSON objects ({first_reason or 'it is empty'}). Expected one in each line, such as "
                '{"smiles": "CCO", "y": 1.5}; pandas writes them with to_json(..., orient="records", lines=True).'
            )
        self._names = names
        return list(names)

    def expected_rows(self) -> int | None:
        """As many as there are lines."""
        return self._source.lines

    def _records(self) -> Iterator[Record]:
        for number, line in enumerate(read_lines(self._source, self._encoding), 1):
            found = _parsed(line) if line.strip() else {}
            if isinstance(found, str):
                yield Record(number, [], found)
                continue
            fields = [""] * len(self._names)
            unusable = []
            for name, value in found.items():
                place = self._names[name]
                fields[place], reason = _cell(value)
                if reason:
                    unusable.append((place, reason))
            yield Record(number, fields, None, tuple(unusable))


def _parsed(line: str) -> dict[str, Any] | str:
    """The object of a line, numbers being their text; or why there is none."""
    if len(line) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS:,} characters"
    try:
        found = json.loads(line.strip(), object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.colno}"
    except RecursionError:
        return "not JSON that can be read: brackets within brackets without end"
    except _Twice as error:
        return str(error)
    return found if isinstance(found, dict) else f"not an object in braces but {shown(found)}"


class _Twice(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {_sound(name): value for name, value in pairs}
    if len(found) < len(pairs):
        names = [_sound(name) for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Twice(f"the key {shown(twice)} is there twice")
    return found


def _cell(value: Any) -> tuple[str, str | None]:
    """A value as text, and why it is no cell."""
    if isinstance(value, str):
        return _sound(value), None
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value], None
    return _sound(json.dumps(value)), f"a {'list' if isinstance(value, list) else 'JSON object'}, not text or a number"


def _sound(text: str) -> str:
    r"""Text without halves of characters, which JSON can write (``\\ud800``) and no file of text can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
