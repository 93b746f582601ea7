"""The map in core/protocol/__init__.py names code that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cutproof.reference_impl.core import protocol

HERE = Path(protocol.__file__).parent
NAME = r"[A-Z_a-z]\w*(?:\.\w+)?"
NOTE = r"(?:\([^)]*\))?"
FILE_AND_NAMES = re.compile(rf"(\S+\.py): ({NAME}(?:\s*{NOTE},?\s+(?!ABS-)(?:[A-Z]\w*\.\w+))*)")
"""Names go on over the ends of lines, and over notes in brackets."""
MAP = FILE_AND_NAMES.findall((protocol.__doc__ or "").partition("One checkpoint, from its trigger")[0])
NAMED = [(path, name) for path, names in MAP for name in re.findall(NAME, re.sub(r"\([^)]*\)", " ", names))]


def names_in(source: str) -> set[str]:
    """Functions and classes, methods as `Class.method`, and assigned names of a module."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
        if isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_what_the_map_names_exists(path: str, name: str) -> None:
    assert name in names_in((HERE / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", [*range(1, 9), 11])
def test_each_rule_has_a_place(rule: int) -> None:
    assert re.search(rf"^ABS-{rule} ", protocol.__doc__ or "", flags=re.M)


def test_the_map_is_read_whole() -> None:
    """Each method in it is checked."""
    text = (protocol.__doc__ or "").partition("One checkpoint, from its trigger")[0]
    without_notes = re.sub(r"\([^)]*\)", " ", text)
    methods = set(re.findall(r"\b[A-Z]\w*\.\w+", without_notes))
    assert len(methods) > 60
    assert methods - {name for _, name in NAMED} == set()
