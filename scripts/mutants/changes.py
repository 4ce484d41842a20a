"""Small deliberate mistakes in a module's source, each of which a test should notice.

A change is a piece of the text and what stands there instead, found with `ast`, so that the rest of the file stays as it is.
Left out is what no test should notice: texts, annotations, asserts, what only makes things faster, and what needs a GPU.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

Node = ast.expr | ast.stmt
Found = Iterator[tuple[str, int, int, str]]  # kind, first byte, byte after the last, text instead

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: (r"is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: (r"in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
ARITHMETIC = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: ("&", "|"),
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin", "argmin": "argmax"}
# Calls that speak to people: what they say is no behaviour.
TALK = {
    "say", "print", "_plain", "warn", "add_column", "add_task", "advance", "Option", "Argument", "Typer", "GritError",
    "Interrupted", "echo", "debug", "info", "status", "rule", "keep_freed_memory", "Published", "report", "progress",
}  # fmt: skip
TYPES = {"isinstance", "issubclass", "cast", "TypeVar"}
# Arguments that change speed or looks, or how much an error message shows.
LOOKS = {
    "num_workers", "pin_memory", "n_jobs", "processes", "num_processes", "chunksize", "timeout", "soft_wrap", "markup",
    "highlight", "indent", "stacklevel", "flush", "progress", "justify", "box", "help", "title", "style", "encoding",
    "strict", "verbose", "maxsize", "say", "copy", "buffering", "daemon", "context", "per_piece", "missing_ok",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        file: The module, relative to the package.
        function: Qualified name of what it is in, as Python's code objects have it; empty for the module itself.
        in_function: Whether it runs when that is called, and not on import.
        line: Where it begins, from 1.
        kind: What sort of mistake.
        original: The module as it is.
        start: First byte that is replaced.
        end: The byte after the last.
        text: What stands there instead.
    """

    file: str
    function: str
    in_function: bool
    line: int
    kind: str
    original: str
    start: int
    end: int
    text: str

    @property
    def source(self) -> str:
        """The module with the mistake."""
        data = self.original.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()

    def draw(self, seed: int) -> str:
        """A random number of its own, so that others may come and go and the choice stays nearly the same."""
        return sha256(
            f"{seed} {self.file} {self.function} {self.kind} {self.diff_line} {self.text}".encode()
        ).hexdigest()

    @property
    def diff_line(self) -> str:
        """The line as it is."""
        return self.original.splitlines()[self.line - 1]

    @property
    def key(self) -> str:
        """The same for the same mistake in the same module."""
        return sha256((self.file + self.source).encode()).hexdigest()[:12]

    @property
    def diff(self) -> str:
        """The lines before and after."""
        before, after = self.original.splitlines(), self.source.splitlines()
        while before and after and before[0] == after[0]:
            before, after = before[1:], after[1:]
        while before and after and before[-1] == after[-1]:
            before, after = before[:-1], after[:-1]
        return "\n".join([*(f"- {line.strip()}" for line in before), *(f"+ {line.strip()}" for line in after)])

    def is_one(self) -> bool:
        """Whether it parses, and as something else than the original."""
        try:
            return ast.dump(ast.parse(self.source)) != ast.dump(ast.parse(self.original))
        except SyntaxError:
            return False


def mutants(file: str, source: str) -> list[Mutant]:
    """All mistakes of a module; some may not parse."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return [
        Mutant(
            file, ".".join(scope), bool(in_function), bisect_right(finder.starts, start), kind, source, start, end, text
        )
        for (*scope, in_function), kind, start, end, text in finder.found
    ]


class _Finder(ast.NodeVisitor):
    """Walks over a module and collects its mistakes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.scope: list[str] = []
        self.in_function = False
        self.found: list[tuple[tuple[str | bool, ...], str, int, int, str]] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.expr | ast.stmt):
            if isinstance(node, ast.stmt) and not _has_body(node) and re.search("cuda|nccl|GPU", self.text(node)):
                return  # nothing here has one
            for rule in RULES:
                for change in rule(self, node):
                    self.found.append(((*self.scope, self.in_function), *change))
        super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = self.scope, self.in_function
        self.scope = [*self.scope, *(["<locals>"] if self.in_function else []), node.name]
        self.in_function = True
        for each in [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]:
            self.visit(each)
        self.scope, self.in_function = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer = self.scope, self.in_function
        self.scope, self.in_function = [*self.scope, node.name], False
        for each in node.body:
            self.visit(each)
        self.scope, self.in_function = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if _name(node.func) in TALK:
            return
        self.visit(node.func)
        for argument in node.args if _name(node.func) not in TYPES else []:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in LOOKS:
                self.visit(keyword.value)

    def visit_If(self, node: ast.If) -> None:
        if _name(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def _skip(self, node: ast.AST) -> None:
        """Texts, asserts and errors."""

    visit_JoinedStr = visit_Assert = visit_Raise = visit_Import = visit_ImportFrom = _skip

    def span(self, node: Node) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Node) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def between(self, left: Node, right: Node, pattern: str, text: str) -> tuple[int, int, str] | None:
        """Replace what matches between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        match = re.search(pattern, self.data[start:end].decode())
        return None if match is None else (start + match.start(), start + match.end(), text)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _has_body(node: ast.stmt) -> bool:
    return "body" in node._fields


def _comparison(f: _Finder, node: Node) -> Found:
    if isinstance(node, ast.Compare):
        pattern, text = COMPARISONS[type(node.ops[0])]
        if change := f.between(node.left, node.comparators[0], pattern, text):
            yield "comparison", *change


def _arithmetic(f: _Finder, node: Node) -> Found:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        literals = ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp | ast.Dict
        sides = (node.left, node.right)
        if any(isinstance(s, literals) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides):
            return
        if isinstance(node.op, ast.Div) and re.search("path|folder|root|run|file|out|cache", f.text(node.left)):
            return  # paths: any test at all would fail
        pattern, text = ARITHMETIC[type(node.op)]
        if change := f.between(node.left, node.right, pattern, text):
            yield "arithmetic", *change
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        pattern, text = (r"\+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
        if change := f.between(node.target, node.value, pattern, text):
            yield "arithmetic", *change


def _constant(f: _Finder, node: Node) -> Found:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield "constant", *f.span(node), str(not node.value)
    elif isinstance(node.value, int) and node.value < 1000:  # one more of a large number is seldom more than one more
        yield "constant", *f.span(node), str(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", *f.span(node), repr(node.value * 2 if node.value else 1.0)


def _logic(f: _Finder, node: Node) -> Found:
    if isinstance(node, ast.BoolOp):
        pattern, text = (r"and", "or") if isinstance(node.op, ast.And) else (r"or", "and")
        if change := f.between(node.values[0], node.values[1], pattern, text):
            yield "logic", *change
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "logic", *f.span(node), f"({f.text(node.operand)})"
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield "logic", *f.span(node.test), f"(not ({f.text(node.test)}))"


def _call(f: _Finder, node: Node) -> Found:
    if not isinstance(node, ast.Call) or _name(node.func) in TALK | TYPES:
        return
    if _name(node.func) in OPPOSITES:
        end = f.span(node.func)[1]
        yield "opposite", end - len(_name(node.func)), end, OPPOSITES[_name(node.func)]
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in LOOKS and len(arguments) > 1:
            start, end = f.span(keyword.value)
            start -= len(re.search(rf"{keyword.arg}\s*=\s*\(*$", f.data[:start].decode())[0].encode())
            comma = re.match(rb"\)*\s*,?\s*", f.data[end:])
            yield "argument left out", start, end + len(comma[0]) if comma else end, ""
    if len(node.args) > 1 and all(isinstance(each, ast.Name | ast.Attribute) for each in node.args[:2]):
        first, second = node.args[:2]
        middle = f.data[f.span(first)[1] : f.span(second)[0]].decode()
        yield "arguments swapped", f.span(first)[0], f.span(second)[1], f.text(second) + middle + f.text(first)


def _slice(f: _Finder, node: Node) -> Found:
    if isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                yield "slice", *f.span(bound), f"{f.text(bound)} + 1"
            if bound is not None:
                yield "slice", *f.span(bound), ""


def _statement(f: _Finder, node: Node) -> Found:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value.func) not in TALK:
        yield "statement left out", *f.span(node), "pass"
    if isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
        yield "statement left out", *f.span(node), "pass"
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Call | ast.Name | ast.BinOp | ast.Subscript):
        yield "nothing returned", *f.span(node.value), "None"


RULES: tuple[Callable[[_Finder, Node], Found], ...] = (
    _comparison,
    _arithmetic,
    _constant,
    _logic,
    _call,
    _slice,
    _statement,
)
