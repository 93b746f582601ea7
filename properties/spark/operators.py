"""The operators' meaning in SQL, one entry for each kind.

The entry of a *stateless* operator has expressions over one `row` and the operator's
parameters `step.p1`, `step.p2` and `step.p3`.  The entry of a *keyed* operator has
expressions over the rows of one key, in order.  The plan provides these columns:

- `n`: the row's number within its key, from 1; `before`: the value of the previous row;
- `sum_value` and `sum_tag`: the sums up to and including this row; `scale`: in how many parts of a whole a sum emits
  them (its state is scaled cut by cut, in `oracle`);
- `sign`, for signed operators, and up to and including this row `net` (the sum of signs)
  and `net_value` (the sum of values times sign, where NULL is 0);
- `pair`, for a join: one row of the other side;
- `rule.value` and `rule.tag`: the rule that applies at this row;
- `level` and `learnt`: a model's level and number of learnt values, at this row.

The entry of a *window* has expressions over event time; `windows` has the queries.

These texts are all that PySpark knows of an operator.  They share nothing with the
engine and the quick checker.  NULLs are treated as in SQL.
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
    """SQL for the emitted row; by default it is the row taken."""

    key: str = "row.key"
    value: str = "row.value"
    copies: str = "1"
    """how many rows are emitted; `copy` numbers them from 0"""


class Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """SQL for the emitted row, and for the entry (a, b) that the state holds for the key after a row."""

    emits: str = "true"
    key: str = "key"
    value: str = "value"
    tag: str = "tag"
    tag2: str = "tag2"
    a: str
    b: str = "0L"
    holds: str = "true"
    """whether the state holds an entry"""
    takes_back: str = "false"
    """whether a retraction is emitted first: (key, old_value, old_tag, 0)"""
    old_value: str = "value"
    old_tag: str = "tag"


class Windowed(msgspec.Struct, frozen=True, kw_only=True):
    """SQL for windows: the windows of a row, the end of a window, its emitted row and its state.

    The columns `sum_n`, `sum_total` (of values) and `sum_tags` aggregate the rows that a
    window has taken; `sums` says whether its value is `sum_total`, or else `sum_n`.
    """

    starts: str = ""
    """an array: the starts of the windows of a row with event time `ts`"""
    near: str = ""
    """for a session: whether a row belongs to the session of the previous row, whose time is `before`"""
    last: str = "start + p1 - 1"
    reach: str = "p1"
    """for a session: how long it lasts after a record's time"""
    kept: str = "lateness"
    """how long after its last event time a window takes late records"""
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
    "sum": Keyed(value="sum_value * scale", tag="sum_tag", tag2="0L", a="sum_value", b="sum_tag"),
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
    """The name of an operator's meaning.  A burst is a session over the times at which its records were taken."""
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
    """An operator's parameters `p1`, `p2` and `p3`."""
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
