"""YAML as configuration needs it: mappings, lists, text, numbers, true, false and null, of bounded size.

What costs more to read than it shows (aliases, deep nesting, large files) is refused, and so is what has no meaning here
(tags, several documents) or two meanings (a key that stands twice). Plain values are those of YAML 1.2: ``1e-3`` is a
number; ``no``, ``on``, ``1:30`` and ``2001-01-01`` are text; ``010`` is ten.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from grit.errors import GritError, shown
from grit.files.ordinary_file import check_ordinary

MAX_BYTES = 1 << 16
MAX_DEPTH = 20
MAX_DIGITS = 100

_NULL, _BOOL, _INT, _FLOAT, _STR = (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str"))
_PLAIN = {
    _NULL: (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    _BOOL: (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    _INT: (r"[-+]?\d+(?:_\d+)*", list("-+0123456789")),
    _FLOAT: (
        r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}


class _Composer(yaml.SafeLoader):
    """From text to nodes, within bounds."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (PyYAML's way of saying what a plain value is)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent):
            raise yaml.MarkedYAMLError(
                problem="aliases (*name) are not read here; write the value out", problem_mark=mark
            )
        if event.tag is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the tag {shown(event.tag)} is not read here; write plain values", problem_mark=mark
            )
        if self.depth == MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"more than {MAX_DEPTH} levels, one inside the other", problem_mark=mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Puts quotes around what would be read as something else."""

    yaml_implicit_resolvers = _Composer.yaml_implicit_resolvers


for _tag, (_pattern, _first) in _PLAIN.items():
    _Composer.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$", re.ASCII), _first)


def read_yaml(path: Path, what: str) -> Any:
    """The content of a file.

    Args:
        path: An ordinary file of at most `MAX_BYTES`, in UTF-8.
        what: What it is, for errors.
    """
    try:
        with check_ordinary(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise GritError(f"cannot read the {what} {str(path)!r}, line {line}: {error}. Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise GritError(f"cannot read the {what} {str(path)!r}: {reason}.") from None
    if len(content) > MAX_BYTES:
        raise GritError(
            f"the {what} {str(path)!r} has more than {MAX_BYTES:,} bytes; a configuration has a few hundred."
        )
    return parse_yaml(text, f"{what} {str(path)!r}")


def parse_yaml(text: str, where: str) -> Any:
    """The value that a text stands for; errors name ``where`` and the line."""
    if len(text) > MAX_BYTES:
        raise GritError(f"{where}: more than {MAX_BYTES:,} characters.")
    try:
        composer = _Composer(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise GritError(f"{where}, line {line}: not valid YAML: the character {chr(error.character)!r}.") from None
    try:
        node = composer.get_single_node()
        return None if node is None else _value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise GritError(f"{where}, line {line}: not valid YAML: {error.problem or error.context}.") from None
    except (ValueError, OverflowError):  # PyYAML converts "\\UFFFFFFFF" and the version of %YAML without a look at them
        line = composer.line + 1
        raise GritError(f"{where}, line {line}: not valid YAML: a number that is no character or no version.") from None


def dump_yaml(tree: Any) -> str:
    """Plain values as YAML that `parse_yaml` reads back to the same."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False)


def _value(node: yaml.Node) -> Any:
    match node:
        case yaml.MappingNode():
            found: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = _value(key_node) if isinstance(key_node, yaml.ScalarNode) else None
                if not isinstance(key, str):
                    raise _problem(
                        key_node, "a key must be a word" if key is None else f"the key {shown(key)} must be a word"
                    )
                if key in found:
                    raise _problem(key_node, f"the key {shown(key)} stands twice; keep one of them")
                found[key] = _value(value_node)
            return found
        case yaml.SequenceNode():
            return [_value(each) for each in node.value]
        case _:
            return _scalar(node, node.value)


def _scalar(node: yaml.Node, text: str) -> Any:
    if node.tag == _STR:
        if re.search("[\0\ud800-\udc7f\udd00-\udfff]", text):  # the others stand for bytes in names of files
            raise _problem(node, f"{shown(text)} holds a character that is not text")
        return text
    if len(text) > MAX_DIGITS:
        raise _problem(node, f"a number of {len(text):,} digits; at most {MAX_DIGITS} are read")
    if node.tag == _NULL:
        return None
    if node.tag == _BOOL:
        return text.lower() == "true"
    return int(text) if node.tag == _INT else float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _problem(node: yaml.Node, text: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)
