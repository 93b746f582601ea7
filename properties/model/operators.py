"""The operators of a workload: what each of them means.

Every meaning is stated in a docstring, in SQL's terms where NULLs are concerned.  The
engine, the quick checker and PySpark each implement it with code of their own.

A row whose tag is below 0 is a *retraction* (OPS-6): it retracts the row that is equal
but for the sign of its tag.  For a `signed` operator a retraction has the sign -1, every
other row 1.  Any other operator treats a retraction like a normal row.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the frozen, keyword-only values of a scenario file."""


class Operator(Value, kw_only=True, tag_field="kind"):
    """Base of the operators; `kind` distinguishes them in a scenario file."""


class Map(Operator, kw_only=True, tag="map"):
    """value * multiply + add, and key modulo `rekey` where that is given (floor-mod); NULL stays NULL."""

    multiply: int = 1
    add: int = 0
    rekey: int | None = None


class Filter(Operator, kw_only=True, tag="filter"):
    """Keep a row where value floor-mod `modulus` is not `drop`; a NULL value is dropped."""

    modulus: int = 2
    drop: int = 0


class FlatMap(Operator, kw_only=True, tag="flat-map"):
    """value floor-mod (fan + 1) copies of the row, the i-th with value + i; none for a NULL value."""

    fan: int = 2


class Count(Operator, kw_only=True, tag="count"):
    """A running count by key: (key, n, tag, tag2) for every row; with `tagged` false, (key, n, 0, 0).

    NULL is a key like any other, as in GROUP BY.  With `signed`, n is the sum of
    the signs, and the rows are a changelog, as those of a signed `Sum`.
    """

    tagged: bool = False
    signed: bool = False


class Sum(Operator, kw_only=True, tag="sum"):
    """A running sum by key: (key, sum of values so far, sum of tags so far, 0).

    NULL values add nothing; the sum is NULL until the first value that is not NULL.

    With `signed`, a retraction subtracts its value, NULL counts as 0, and the rows are a
    changelog: each record first retracts the key's last row (key, sum, sum of tags, 0),
    with its tag negated, then yields the new one.  If sum and sum of tags are both 0, the
    key has no row, and no state is held for it.
    """

    signed: bool = False


class Greater(Operator, kw_only=True, tag="greater"):
    """Emit a row whose value is greater than the value before it of the same key.

    The first row of a key is emitted, so is a row after a NULL value; a NULL
    value after one that is not NULL compares as unknown and is not emitted.
    """


class Dedup(Operator, kw_only=True, tag="dedup"):
    """The first row of each key: the row itself, or with `keys_only` (key, 0, 0, 0)."""

    keys_only: bool = True


class Union(Operator, kw_only=True, tag="union"):
    """All rows of two or more inputs."""


class Join(Operator, kw_only=True, tag="join"):
    """Inner join on the key of two inputs, the first being left, each pair once.

    The pair is (key, left value, left tag, right tag); NULL keys match nothing
    and are not kept in state.  With `signed`, a pair's sign, in its left tag, is the
    product of the signs of both rows.  So a retraction retracts every pair of the row
    that it retracts, whichever of the two comes first; both are kept in state.
    """

    signed: bool = False


class Rules(Operator, kw_only=True, tag="rules"):
    """The rows of the first input, changed by rules: the rows of the second input (broadcast state).

    Every subtask takes all rules and keeps them in a map.  Of several rules for one key,
    the one with the greatest tag counts, among these the one with the greatest value
    (NULL is the least), whichever came first.  A row with a rule for its key becomes
    (key, value + the rule's value, tag, the rule's tag), NULL if either value is NULL.
    Any other row stays as it is.  NULL is a key like any other.
    """


class Model(Operator, kw_only=True, tag="model"):
    """A model learnt from a key's rows, a level in whole numbers (state as parameters): (key, level, tag, tag2)
    for every row, with the level after that row.

    The level begins at 0.  Each value that is not NULL moves it by floor((value - level) / 4);
    a NULL does not move it.  The state is the level and the number of values learnt.
    """


class Batch(Operator, kw_only=True, tag="batch"):
    """All rows unchanged, `size` at a time: each subtask emits its buffered rows when it has that many.

    At the end of its data it emits the rest.  Buffered rows are in list state, which is
    redistributed item by item, so the engine chooses which subtask buffers which rows;
    no keyed operator may stand behind a batch.
    """

    size: int = 3


class Tally(Operator, kw_only=True, tag="tally"):
    """A running count by key, (key, n, 0, 0) for every row, as `Count`; its subtasks hold the counts as a union."""


class Window(Operator, kw_only=True):
    """Base of the windows in event time: one row for each window and key.

    The row is (key, aggregate, sum of tags, start of the window).  The aggregate
    is the number of records, or with `of` "sum" the sum of their values (NULL if all
    are NULL).  A window from `start` to before `end` ends when the watermark reaches
    end - 1.  Until the watermark is `lateness` further, each late record emits the row
    again, with the record in it (earlier windows first).  Later records are dropped.
    """

    of: str = "count"
    """count or sum"""
    lateness: int = 0


class Tumbling(Window, kw_only=True, tag="tumbling"):
    """Windows of `size`, each beginning at a multiple of it."""

    size: int


class Sliding(Window, kw_only=True, tag="sliding"):
    """Windows of `size`, one beginning at every multiple of `slide`."""

    size: int
    slide: int


class Session(Window, kw_only=True, tag="session"):
    """A key's records, as long as each is less than `gap` from some other; the end is the last plus `gap`.

    Records at a distance of exactly `gap` are in two sessions: otherwise the time at
    which a session is emitted would matter.
    """

    gap: int


class Burst(Window, kw_only=True, tag="burst"):
    """A key's records, as long as each is taken less than `gap_us` after the one before: sessions in processing time.

    The clock is that of the world in which the job runs.  So what a burst holds follows from
    when the run took the records; its start is the time (µs) at which it took the first.
    The burst ends, and its row is emitted, when the operator receives a time that is
    `gap_us` or more after the burst's last record.  The operator receives the time before
    each record and when a timer is due.  At the end of all input every burst ends.  No
    record is late.
    """

    gap_us: int


class User(Operator, kw_only=True, tag="user"):
    """A function that a user wrote, known by its name (OPS-4): its counterparts define what it means.

    Its rows have the key of the records from which they come.
    """

    function: str
    ordered: bool = False
    """its rows depend on the order of a key's records"""
    timed: bool = False
    """it has timers in event time, or acts at the end of all input"""
    clocked: bool = False
    """it has timers in processing time"""


AnyOperator = (
    Map
    | Filter
    | FlatMap
    | Count
    | Sum
    | Greater
    | Dedup
    | Union
    | Join
    | Rules
    | Model
    | Batch
    | Tally
    | Tumbling
    | Sliding
    | Session
    | Burst
    | User
)

KEYED: tuple[type[Operator], ...] = (Count, Sum, Greater, Dedup, Join, Model, Tally, Window, User)
"""Operators that hold state by key, so that each of their inputs is hashed."""

STATEFUL: tuple[type[Operator], ...] = (*KEYED, Rules)
"""Operators whose state follows from the records that they took."""

ORDERED: tuple[type[Operator], ...] = (Sum, Greater, Model)
"""Operators whose rows depend on the order of one key's input (judging: S); so do
`Count` tagged or signed and `Dedup(keys_only=False)`, see `is_ordered`."""


def is_clocked(operator: Operator) -> bool:
    """Whether it uses processing time."""
    return isinstance(operator, Burst) or (isinstance(operator, User) and operator.clocked)


def is_signed(operator: Operator) -> bool:
    """Whether it accepts retractions (OPS-6)."""
    return isinstance(operator, (Count, Sum, Join)) and operator.signed


def is_changelog(operator: Operator) -> bool:
    """Whether its rows retract each other."""
    return isinstance(operator, (Count, Sum)) and operator.signed


def is_ordered(operator: Operator) -> bool:
    if isinstance(operator, Count):
        return operator.tagged or operator.signed
    if isinstance(operator, Dedup):
        return not operator.keys_only
    return operator.ordered if isinstance(operator, User) else isinstance(operator, ORDERED)
