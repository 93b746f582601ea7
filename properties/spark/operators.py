"""The operators' meaning in SQL, one entry a kind.

A *stateless* operator says what becomes of one `row` by itself, given its
parameters `step.p1`, `step.p2`, `step.p3`.  A *keyed* one says it by the rows
of its key in order, which the plan makes visible as columns: `n` (the row's
number within its key, from 1), `sum_value` and `sum_tag` (up to and with this
row), `before` (the value one row earlier), and, for a join, `pair` (one row of
the other side).  Where rows have signs there are `sign`, and up to and with this
row `net` (the sum of signs) and `net_value` (of values times sign, NULL being 0).
Up to and with this row there are too, of rules, the one that holds (`rule.value`
and `rule.tag`), and of a model its `level` and how many values it has `learnt`.

A *window* says it by event time; the queries around its texts are in `windows`.

These texts are the whole of PySpark's knowledge of an operator; nothing is
shared with the engine's or with the quick checker's.  NULLs follow from SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..model.workload import (
    AnyOperator,
    Batch,
    Burst,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Join,
    Map,
    Model,
    Rules,
    Session,
    Sliding,
    Sum,
    Tally,
    Tumbling,
    Union,
    User,
    is_signed,
)


class Stateless(msgspec.Struct, frozen=True, kw_only=True):
    """SQL for the row that comes out; by default the one that went in."""

    key: str = "row.key"
    value: str = "row.value"
    copies: str = "1"
    """how often it comes out; `copy` counts them from 0"""


class Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """SQL for the row that comes out, and for the entry (a, b) held for the key once a row is in."""

    emits: str = "true"
    key: str = "key"
    value: str = "value"
    tag: str = "tag"
    tag2: str = "tag2"
    a: str
    b: str = "0L"
    holds: str = "true"
    """whether there is such an entry"""
    takes_back: str = "false"
    """whether another row comes out first: (key, old_value, old_tag, 0)"""
    old_value: str = "value"
    old_tag: str = "tag"


class Windowed(msgspec.Struct, frozen=True, kw_only=True):
    """SQL for a window: which ones a row is in, when they end, and what is emitted, and held, of one.

    Of the rows that it has taken there are `sum_n`, `sum_total` (of values) and
    `sum_tags`; `sums` says which of the first two is asked for.
    """

    starts: str = ""
    """an array, by the row's `ts`"""
    near: str = ""
    """of a session: whether a row belongs to that of the row `before` it"""
    last: str = "start + p1 - 1"
    reach: str = "p1"
    """of a session: how far behind a record's time its session goes"""
    kept: str = "lateness"
    """for how long after its last moment a window takes late records"""
    value: str = "if(sums, sum_total, sum_n)"
    tag: str = "sum_tags"
    a: str = "if(sums, sum_total, sum_n)"
    b: str = "sum_tags"


Meaning = Stateless | Keyed | Windowed

MEANINGS: Mapping[str, Meaning] = {
    "map": Stateless(key="if(step.p3 is null, row.key, pmod(row.key, step.p3))", value="row.value * step.p1 + step.p2"),
    "filter": Stateless(copies="if(pmod(row.value, step.p1) <> step.p2, 1, 0)"),
    "flat-map": Stateless(copies="coalesce(pmod(row.value, step.p1 + 1), 0)", value="row.value + copy"),
    "union": Stateless(),
    "batch": Stateless(),
    "tally": Keyed(value="n", tag="0L", tag2="0L", a="n"),
    "count": Keyed(value="n", tag="0L", tag2="0L", a="n"),
    "count-tagged": Keyed(value="n", a="n"),
    "sum": Keyed(value="sum_value", tag="sum_tag", tag2="0L", a="sum_value", b="sum_tag"),
    "greater": Keyed(emits="before is null or value > before", a="value"),
    "dedup": Keyed(emits="n = 1", value="0L", tag="0L", tag2="0L", a="0L"),
    "dedup-row": Keyed(emits="n = 1", a="0L"),
    "join": Keyed(tag2="pair.tag", a="value", b="tag"),
    "count-signed": Keyed(
        emits="net <> 0 or sum_tag <> 0",
        value="net",
        tag="sum_tag",
        tag2="0L",
        a="net",
        b="sum_tag",
        holds="net <> 0 or sum_tag <> 0",
        takes_back="net <> sign or sum_tag <> tag",
        old_value="net - sign",
        old_tag="tag - sum_tag",
    ),
    "sum-signed": Keyed(
        emits="net_value <> 0 or sum_tag <> 0",
        value="net_value",
        tag="sum_tag",
        tag2="0L",
        a="net_value",
        b="sum_tag",
        holds="net_value <> 0 or sum_tag <> 0",
        takes_back="net_value <> sign * coalesce(value, 0L) or sum_tag <> tag",
        old_value="net_value - sign * coalesce(value, 0L)",
        old_tag="tag - sum_tag",
    ),
    "model": Keyed(value="level", a="level", b="learnt"),
    "rules": Keyed(
        emits="side = 0",
        value="if(rule is null, value, value + rule.value)",
        tag2="coalesce(rule.tag, tag2)",
        a="rule.value",
        b="rule.tag",
        holds="rule is not null",
    ),
    "join-signed": Keyed(
        tag="if((tag < 0) <> (pair.tag < 0), -abs(tag), abs(tag))", tag2="abs(pair.tag)", a="value", b="tag"
    ),
    "tumbling": Windowed(starts="array(ts - pmod(ts, p1))"),
    "sliding": Windowed(
        starts="filter(sequence(ts - pmod(ts, p2), ts - pmod(ts, p2) - p1, -p2), start -> start + p1 > ts)"
    ),
    "session": Windowed(near="ts - before < p1"),
}


def kind_of(operator: AnyOperator) -> str:
    """The name of an operator's meaning: a burst is a session of the moments at which its records were taken."""
    if isinstance(operator, Burst):
        return "session"
    if is_signed(operator):
        return f"{type(operator).__struct_config__.tag}-signed"
    if isinstance(operator, Count):
        return "count-tagged" if operator.tagged else "count"
    if isinstance(operator, Dedup):
        return "dedup" if operator.keys_only else "dedup-row"
    return str(type(operator).__struct_config__.tag)


def parameters_of(operator: AnyOperator) -> tuple[int | None, int | None, int | None]:
    """`p1`, `p2` and `p3` of a stateless operator."""
    match operator:
        case Map(multiply=multiply, add=add, rekey=rekey):
            return multiply, add, rekey
        case Filter(modulus=modulus, drop=drop):
            return modulus, drop, None
        case FlatMap(fan=fan):
            return fan, None, None
        case Tumbling(size=size):
            return size, size, None
        case Sliding(size=size, slide=slide):
            return size, slide, None
        case Session(gap=gap) | Burst(gap_us=gap):
            return gap, None, None
        case Count() | Sum() | Greater() | Dedup() | Union() | Join() | Batch() | Tally() | User() | Rules() | Model():
            return None, None, None
