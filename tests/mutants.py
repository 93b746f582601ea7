"""Small wrong versions of a source file: a condition negated, a statement dropped, a constant or comparison changed.

A mutant is addressed by where it stands (file, function, kind, the n-th of its
kind there), never by a line number, and the draw orders them by a digest of
that address: an edit elsewhere neither renames a mutant nor reshuffles the draw.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`source` is the whole file with the one change."""

    path: str
    address: str
    source: str
    line: int

    def diff(self, original: str) -> str:
        lines = difflib.unified_diff(
            original.splitlines(), self.source.splitlines(), self.path, self.path, n=1, lineterm=""
        )
        return "\n".join(list(lines)[2:])


@dataclass(frozen=True, kw_only=True)
class _Change:
    """Replace the source between two offsets (in UTF-8 bytes, as ast counts columns)."""

    kind: str
    scope: str
    start: int
    end: int
    text: str
    line: int


def mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of one file, in source order."""
    raw = source.encode()
    seen: Counter[str] = Counter()
    found = []
    for change in _Finder(source).changes():
        place = f"{path}:{change.scope}:{change.kind}"
        seen[place] += 1
        mutated = (raw[: change.start] + change.text.encode() + raw[change.end :]).decode()
        found.append(Mutant(path=path, address=f"{place}:{seen[place]}", source=mutated, line=change.line))
    return found


def draw(candidates: Sequence[Mutant], *, seed: str, count: int) -> list[Mutant]:
    """`count` of them, by the digest of seed and address."""
    return sorted(candidates, key=lambda each: hashlib.sha256(f"{seed}|{each.address}".encode()).digest())[:count]


class _Finder:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def changes(self) -> Iterator[_Change]:
        yield from self._visit(self.tree, "module")

    def _visit(self, node: ast.AST, scope: str) -> Iterator[_Change]:
        if isinstance(node, (ast.JoinedStr, ast.Raise)):
            # The wording of messages is not behaviour; a raise is dropped, or not, as a whole.
            yield from self._dropped(node, scope)
            return
        yield from self._own(node, scope)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            scope = node.name if scope == "module" else f"{scope}.{node.name}"
        for child in self._children(node):
            yield from self._visit(child, scope)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        """What is run: no annotations, decorators or class options."""
        passed_over = {"annotation", "returns", "decorator_list", "type_params"}
        if isinstance(node, ast.ClassDef):
            passed_over |= {"keywords", "bases"}
        for name, value in ast.iter_fields(node):
            if name not in passed_over:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield child

    def _own(self, node: ast.AST, scope: str) -> Iterator[_Change]:
        yield from self._dropped(node, scope)
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield from self._negated(node.test, scope)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                yield from self._negated(condition, scope)
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, scope)
        elif isinstance(node, ast.Compare):
            yield from self._compared(node, scope)

    def _dropped(self, node: ast.AST, scope: str) -> Iterator[_Change]:
        if scope == "module" or not isinstance(node, ast.stmt):
            return
        acts = isinstance(node, (ast.AugAssign, ast.Raise, ast.Delete, ast.Break, ast.Continue))
        calls = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
        stores = isinstance(node, ast.Assign) and any(not isinstance(each, ast.Name) for each in node.targets)
        if acts or calls or stores:
            yield self._change("drop", scope, node, "pass")

    def _negated(self, test: ast.expr, scope: str) -> Iterator[_Change]:
        if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
            return
        yield self._change("negate", scope, test, f"not ({self._text(test)})")

    def _constant(self, node: ast.Constant, scope: str) -> Iterator[_Change]:
        if isinstance(node.value, bool):
            yield self._change("constant", scope, node, str(not node.value))
        elif isinstance(node.value, int):
            yield self._change("constant", scope, node, str(node.value + 1))

    def _compared(self, node: ast.Compare, scope: str) -> Iterator[_Change]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            start, end = self._span(left)[1], self._span(right)[0]
            between = self.source.encode()[start:end].decode()
            sign = " ".join(between.strip("() \n\\").split())
            if sign in between:
                text = between.replace(sign, COMPARISONS[type(operator)], 1)
                yield _Change(kind="compare", scope=scope, start=start, end=end, text=text, line=right.lineno)
            left = right

    def _change(self, kind: str, scope: str, node: ast.stmt | ast.expr, text: str) -> _Change:
        start, end = self._span(node)
        return _Change(kind=kind, scope=scope, start=start, end=end, text=text, line=node.lineno)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source.encode()[start:end].decode()

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset
