"""The tables of docs/your-engine.md that follow from the code; as a program it writes them into the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cutproof.faults.points import POINTS
from cutproof.harness.subject_kit.listing import PER_MINUTE, limit_of
from cutproof.properties.invariants.seen_from_outside import ENOUGH, NEEDED
from cutproof.properties.model import operators as ops
from cutproof.properties.model.verdict import INVARIANTS
from cutproof.properties.model.workload import Input, Node, Row, Workload
from cutproof.properties.quick_checker.expected import compute

PAGE = Path(__file__).parents[3] / "docs" / "your-engine.md"
README = PAGE.parents[1] / "README.md"

Example = tuple[str, ops.Operator | None, str]
"""(capabilities, an operator that needs them, what it emits)"""

OPERATORS: tuple[Example, ...] = (
    ("`map`", ops.Map(multiply=2, add=1), "(key, value × multiply + add, tag, 0); key modulo `rekey`, if it is given"),
    (
        "`filter`",
        ops.Filter(modulus=3, drop=0),
        "the row; none if value modulo `modulus` is `drop`, or the value is NULL",
    ),
    ("`flat-map`", ops.FlatMap(fan=2), "value modulo (`fan` + 1) copies of the row, the i-th with value + i"),
    ("`count`", ops.Count(), "(key, n, 0, 0) for each record, without a tag"),
    ("`count:tagged`", ops.Count(tagged=True), "(key, n, tag, 0): each row has the tag of its record"),
    (
        "`count:signed`",
        ops.Count(signed=True),
        "a changelog: the key's last row with its tag negated, then (key, n, sum of tags, 0)",
    ),
    ("`sum`", ops.Sum(), "(key, sum of values, sum of tags, 0) for each record; NULL until a value is not NULL"),
    ("`sum:signed`", ops.Sum(signed=True), "a changelog, as `count:signed`, of sums; NULL counts as 0"),
    ("`greater`", ops.Greater(), "the row, if its value is greater than the key's value before it"),
    ("`dedup`", ops.Dedup(), "(key, 0, 0, 0) for the first record of a key"),
    ("`dedup:rows`", ops.Dedup(keys_only=False), "the first row of a key"),
    ("`union`", ops.Union(), "all rows of all inputs"),
    ("`join`", ops.Join(), "(key, left value, left tag, right tag) for each pair; a NULL key has no pairs"),
    ("`join:signed`", ops.Join(signed=True), "the same; the left tag has the product of both signs"),
    (
        "`rules`",
        ops.Rules(),
        "(key, value + the rule's value, tag, the rule's tag) if the key has a rule, else the row",
    ),
    (
        "`model`",
        ops.Model(),
        "(key, level, tag, 0): each value moves the key's level, 0 at first, by floor((value − level) / 4)",
    ),
    ("`batch`", ops.Batch(size=2), "the rows unchanged, `size` at a time; the rest at the end of the data"),
    ("`tally`", ops.Tally(), "(key, n, 0, 0) for each record, as `count`; the counts are union state"),
    (
        "`tumbling`",
        ops.Tumbling(size=10),
        "(key, count or sum, sum of tags, start of the window) when the watermark reaches the window's end − 1",
    ),
    ("`tumbling:late`", ops.Tumbling(size=10, lateness=5), "the same, and again for each late record"),
    ("`sliding`", ops.Sliding(size=10, slide=5), "the same for each window that the record is in"),
    ("`sliding:late`", ops.Sliding(size=10, slide=5, lateness=5), "the same, and again for each late record"),
    ("`session`", ops.Session(gap=13), "the same for a key's records that are less than `gap` apart"),
    ("`session:late`", ops.Session(gap=13, lateness=5), "the same, and again for each late record"),
    ("`burst`", None, "the same for records that the operator took less than `gap_us` apart; the start is in µs"),
    ("`user`, `functions`", None, "(key of the record, value, tag, tag2), as the function computes them"),
    ("`user:ordered`, `functions:ordered`", None, "rows that depend on the order of a key's records"),
    ("`user:timed`, `functions:timed`", None, "rows of timers in event time too"),
    ("`user:clocked`, `functions:clocked`", None, "rows of timers in processing time too"),
)
RECORDS, TIMES, OTHER = ((7, 3, 1), (7, 5, 2), (8, None, 4)), (0, 12, 13), ((7, 10, 8),)


def emitted(operator: ops.AnyOperator) -> list[Row]:
    """The rows that an operator emits for the records of the page."""
    two = isinstance(operator, (ops.Join, ops.Rules, ops.Union))
    one = Input(name="a", splits=(RECORDS,), times=() if two else (TIMES,))
    inputs = (Input(name="b", splits=(OTHER,)), one) if two else (one,)
    node = Node(name="n", operator=operator, inputs=("a", "b") if two else ("a",))
    rows = compute(Workload(name="example", inputs=inputs, nodes=(node,)), ()).rows
    return [row for _, found in sorted(rows.items()) for row in found]


def _row(row: Row) -> str:
    return "(" + ", ".join("NULL" if one is None else str(one) for one in row) + ")"


def operators() -> str:
    lines = ["| Capability | Row | Rows of the example |", "|---|---|---|"]
    for names, operator, row in OPERATORS:
        example = ", ".join(map(_row, emitted(operator))) if operator is not None else "–"  # type: ignore[arg-type]
        lines.append(f"| {names} | {row} | {example or 'none'} |")
    return "\n".join(lines)


def witnesses() -> str:
    lines = ["| Invariant | From outside | In full |", "|---|---|---|"]
    lines += [f"| {name} | {_names(ENOUGH.get(name, ()))} | {_names(NEEDED[name])} |" for name in INVARIANTS]
    return "\n".join(lines)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "–"


def points() -> str:
    lines = ["| Point | When |", "|---|---|", *(f"| `{name}` | {when} |" for name, when in POINTS.items())]
    return "\n".join(lines)


def speed() -> str:
    lines = ["| Subject | Scenarios a minute | Limited by |", "|---|---|---|"]
    lines += [f"| `{name}` | {each:,} | {limit_of(name)} |" for name, each in PER_MINUTE.items()]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "witnesses": witnesses,
    "points": points,
    "operators": operators,
    "speed": speed,
}


def renewed(page: str) -> str:
    """The page with its tables as the code has them."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        page = re.sub(
            f"{begin}.*{end}", lambda _: f"{begin}\n{table()}\n{end}", page, flags=re.DOTALL  # noqa: B023
        )  # fmt: skip
    return page


if __name__ == "__main__":
    for one in (PAGE, README):
        one.write_text(renewed(one.read_text(encoding="utf-8")), encoding="utf-8")
