"""A decision decides: it does not just return what it is given, or a constant."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutproof.reference_impl.core import decisions

GIVEN_BACK = {
    "SnapshotContents.stored": "ABS-5: all of a task's state is in its snapshot, and the state is one value",
    "SnapshotContents.restored": "ABS-6: a restored task takes over all of it",
    "FailoverStrategy.must_wait": "ABS-6: a record that is being stored may become the newest",
    "HeldOutput.needs_mail": "ABS-2: held rows leave even if no record comes after them",
    "Redistribution.read": "OPS-2: a new subtask reads the pieces of all old ones, whatever its own share",
}
"""What returns its argument, or whether there is any, and the rule that says so: a choice, since engines have left out
a part."""

CONSTANT = {
    "Triggering.steps": "ABS-3: the timeout before the tasks",
    "Ending.steps": "FIN-3: an order that may be lost is repeated",
    "Startup.steps": "ABS-6: the state before the input",
    "SourceCut.steps": "ABS-1: position and barrier at once, the position first",
    "HeldOutput.steps": "ABS-2: held rows before the barrier",
    "PreCommitting.steps": "ABS-11: flush and seal before the next transaction begins",
    "Cleanup.steps_of_move": "SNAP-3: copy before delete",
    "Storing.acknowledged_after": "ABS-4: the last step of a write",
}
"""What takes no argument: an order of steps, or one of several steps, and the rule that says so."""

COPIES = ("tuple", "list", "dict", "bool")


def answer_of(method: ast.FunctionDef) -> ast.expr | None:
    """The expression that a method returns, if it does nothing else."""
    body = [one for one in method.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def is_given_back(answer: ast.expr, given: set[str]) -> bool:
    """Whether it is a parameter, an attribute of one, or a plain copy of either."""
    match answer:
        case ast.Name(name):
            return name in given
        case ast.Attribute(inner) | ast.Starred(inner) | ast.Tuple([inner]) | ast.List([inner]):
            return is_given_back(inner, given)
        case ast.Dict([None], [inner]):
            return is_given_back(inner, given)
        case ast.Call(ast.Name(called), [inner], []):
            return called in COPIES and is_given_back(inner, given)
        case ast.Call(ast.Attribute(inner, "values" | "items" | "keys" | "copy"), [], []):
            return is_given_back(inner, given)
        case ast.ListComp(one, [loop]) | ast.GeneratorExp(one, [loop]) | ast.DictComp(one, _, [loop]) if not loop.ifs:
            copied = ast.unparse(loop.target).strip("()")
            made = f"{ast.unparse(one)}, {ast.unparse(answer.value)}" if isinstance(answer, ast.DictComp) else ""
            return copied == (made or ast.unparse(one)) and is_given_back(loop.iter, given)
    return False


def is_constant(answer: ast.expr) -> bool:
    """Whether it is a literal, a member of an enum, or some of them."""
    match answer:
        case ast.Constant():
            return True
        case ast.Attribute(ast.Name(name)):
            return name[:1].isupper()
        case ast.Tuple(several) | ast.List(several):
            return all(is_constant(one) for one in several)
    return False


def undecided(source: str) -> tuple[list[str], list[str]]:
    """The methods of decisions that return what they are given, and those that return a constant."""
    given_back, constant = [], []
    for part in ast.parse(source).body:
        if not isinstance(part, ast.ClassDef) or "Part" not in [ast.unparse(base) for base in part.bases]:
            continue
        for method in part.body:
            answer = answer_of(method) if isinstance(method, ast.FunctionDef) else None
            if answer is None or not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                continue
            name = f"{part.name}.{method.name}"
            given = {one.arg for one in (*method.args.args[1:], *method.args.kwonlyargs)}
            given_back += [name] if is_given_back(answer, given) else []
            constant += [name] if is_constant(answer) else []
    return given_back, constant


def test_no_decision_returns_what_it_is_given_or_a_constant_without_a_reason() -> None:
    found = [undecided(path.read_text()) for path in Path(decisions.__file__).parent.glob("**/*.py")]
    assert {name for given_back, _ in found for name in given_back} == set(GIVEN_BACK)
    assert {name for _, constant in found for name in constant} == set(CONSTANT)


@pytest.mark.parametrize(
    "answer",
    [
        "rows",
        "tuple(rows)",
        "bool(rows)",
        "dict(rows)",
        "[*rows]",
        "(*rows,)",
        "{**rows}",
        "rows.kept",
        "tuple(rows.values())",
        "[row for row in rows]",
        "{one: row for one, row in rows.items()}",
    ],
)
def test_an_identity_is_found(answer: str) -> None:
    assert undecided(f"class Keeping(Part):\n    def kept(self, rows):\n        return {answer}") == (
        ["Keeping.kept"],
        [],
    )


@pytest.mark.parametrize("answer", ["True", "None", "Step.LAST", "(Step.FIRST, Step.LAST)"])
def test_a_constant_is_found(answer: str) -> None:
    assert undecided(f"class Keeping(Part):\n    def kept(self):\n        return {answer}") == ([], ["Keeping.kept"])


@pytest.mark.parametrize(
    "answer",
    [
        "len(rows)",
        "max(rows)",
        "rows[before:]",
        "(*rows, *before)",
        "[row for row in rows if row]",
        "[row.name for row in rows]",
        "rows.kept if before else ()",
        "kept(rows)",
        "rows.kept(before)",
    ],
)
def test_an_answer_that_follows_from_what_is_given_is_none_of_them(answer: str) -> None:
    source = f"class Keeping(Part):\n    def kept(self, rows, before):\n        return {answer}"
    assert undecided(source) == ([], [])
