"""The semantics of each operator, in plain Python: the quick checker's own implementation
of the operators that `workload` describes.

A machine takes one row at a time and returns the rows that it emits.  `entries` is
its state in the engine-neutral layout of `history.StoredState`; `load` restores the
state from such entries.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.workload import (
    AnyOperator,
    Batch,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Join,
    Map,
    Model,
    Row,
    Rules,
    Sum,
    Tally,
    Union,
)

Entry = tuple[int, int | None, int | None, int]
"""(side, key, a, b)"""


class Machine:
    """Base: a stateless operator."""

    def take(self, row: Row, side: int) -> Iterable[Row]:
        """The rows emitted for one row from input `side` (its number among the node's inputs)."""
        return (row,)

    def entries(self) -> list[Entry]:
        return []

    def load(self, entries: Iterable[Entry]) -> None:
        """Restore a state; a stateless operator has none."""


class _Map(Machine):
    def __init__(self, operator: Map) -> None:
        self.multiply, self.add, self.rekey = operator.multiply, operator.add, operator.rekey

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, tag2 = row
        if value is not None:
            value = value * self.multiply + self.add
        if key is not None and self.rekey is not None:
            key %= self.rekey
        return ((key, value, tag, tag2),)


class _Filter(Machine):
    def __init__(self, operator: Filter) -> None:
        self.modulus, self.drop = operator.modulus, operator.drop

    def take(self, row: Row, side: int) -> Iterable[Row]:
        value = row[1]
        return () if value is None or value % self.modulus == self.drop else (row,)


class _FlatMap(Machine):
    def __init__(self, operator: FlatMap) -> None:
        self.modulus = operator.fan + 1

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, tag2 = row
        if value is None:
            return ()
        return [(key, value + copy, tag, tag2) for copy in range(value % self.modulus)]


class _Count(Machine):
    def __init__(self, operator: Count) -> None:
        self.tagged = operator.tagged
        self.counts: dict[int | None, int] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, _, tag, tag2 = row
        count = self.counts[key] = self.counts.get(key, 0) + 1
        return ((key, count, tag, tag2),) if self.tagged else ((key, count, 0, 0),)

    def entries(self) -> list[Entry]:
        return [(0, key, count, 0) for key, count in self.counts.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.counts = {key: count or 0 for _, key, count, _ in entries}


class _Sum(Machine):
    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        self.sums: dict[int | None, tuple[int | None, int]] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, _ = row
        total, tags = self.sums.get(key, (None, 0))
        if value is not None:
            total = value * self.scale if total is None else total + value * self.scale
        tags += tag
        self.sums[key] = (total, tags)
        return ((key, total, tags, 0),)

    def entries(self) -> list[Entry]:
        return [(0, key, total, tags) for key, (total, tags) in self.sums.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.sums = {key: (total, tags) for _, key, total, tags in entries}


class _Greater(Machine):
    def __init__(self) -> None:
        self.last: dict[int | None, int | None] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value = row[0], row[1]
        before = self.last.get(key)
        self.last[key] = value
        # get() returns None for the first row of a key: the same as for a NULL before it.
        return (row,) if before is None or (value is not None and value > before) else ()

    def entries(self) -> list[Entry]:
        return [(0, key, value, 0) for key, value in self.last.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.last = {key: value for _, key, value, _ in entries}


class _Dedup(Machine):
    def __init__(self, operator: Dedup) -> None:
        self.keys_only = operator.keys_only
        self.seen: dict[int | None, None] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key = row[0]
        if key in self.seen:
            return ()
        self.seen[key] = None
        return ((key, 0, 0, 0),) if self.keys_only else (row,)

    def entries(self) -> list[Entry]:
        return [(0, key, 0, 0) for key in self.seen]

    def load(self, entries: Iterable[Entry]) -> None:
        self.seen = {key: None for _, key, _, _ in entries}


class _Join(Machine):
    def __init__(self) -> None:
        self.sides: tuple[dict[int, list[tuple[int | None, int]]], ...] = ({}, {})

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, _ = row
        if key is None:
            return ()
        self.sides[side].setdefault(key, []).append((value, tag))
        others = self.sides[1 - side].get(key, ())
        if side == 0:
            return [(key, value, tag, right) for _, right in others]
        return [(key, left_value, left, tag) for left_value, left in others]

    def entries(self) -> list[Entry]:
        return [
            (side, key, value, tag)
            for side, table in enumerate(self.sides)
            for key, held in table.items()
            for value, tag in held
        ]

    def load(self, entries: Iterable[Entry]) -> None:
        self.sides = ({}, {})
        for side, key, value, tag in entries:
            if key is not None:
                self.sides[side].setdefault(key, []).append((value, tag))


class _Rules(Machine):
    """The rules of one subtask: by key, value and tag of the rule that applies."""

    def __init__(self) -> None:
        self.rules: dict[int | None, tuple[int | None, int]] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, _ = row
        there = self.rules.get(key)
        if side == 1:
            if there is None or _outranks((value, tag), there):
                self.rules[key] = (value, tag)
            return ()
        if there is None:
            return (row,)
        added = None if value is None or there[0] is None else value + there[0]
        return ((key, added, tag, there[1]),)

    def entries(self) -> list[Entry]:
        return [(0, key, value, tag) for key, (value, tag) in self.rules.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.rules = {key: (value, tag) for _, key, value, tag in entries}


def _outranks(one: tuple[int | None, int], other: tuple[int | None, int]) -> bool:
    """Whether the rule `one` (value, tag) applies if the key has both rules."""
    if one[1] != other[1]:
        return one[1] > other[1]
    return one[0] is not None and (other[0] is None or one[0] > other[0])


class _Model(Machine):
    def __init__(self) -> None:
        self.learnt: dict[int | None, tuple[int, int]] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, tag2 = row
        level, count = self.learnt.get(key, (0, 0))
        if value is not None:
            level += (value - level) // 4
            count += 1
        self.learnt[key] = (level, count)
        return ((key, level, tag, tag2),)

    def entries(self) -> list[Entry]:
        return [(0, key, level, count) for key, (level, count) in self.learnt.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.learnt = {key: (level or 0, count) for _, key, level, count in entries}


class _Changelog(Machine):
    """A signed count or sum: each key's (number or sum of values, sum of tags), where not both are 0."""

    def __init__(self, *, counts: bool) -> None:
        self.counts = counts
        self.rows: dict[int | None, tuple[int, int]] = {}

    def take(self, row: Row, side: int) -> Iterable[Row]:
        key, value, tag, _ = row
        amount = 1 if self.counts else value or 0
        before = self.rows.pop(key, None)
        total, tags = before or (0, 0)
        after = (total - amount if tag < 0 else total + amount, tags + tag)
        out: list[Row] = [(key, before[0], -before[1], 0)] if before else []
        if after != (0, 0):
            self.rows[key] = after
            out.append((key, *after, 0))
        return out

    def entries(self) -> list[Entry]:
        return [(0, key, total, tags) for key, (total, tags) in self.rows.items()]

    def load(self, entries: Iterable[Entry]) -> None:
        self.rows = {key: (total or 0, tags) for _, key, total, tags in entries}


class _SignedJoin(_Join):
    """A join whose pairs have the product of both rows' signs."""

    def take(self, row: Row, side: int) -> Iterable[Row]:
        return [
            (key, value, abs(left) * (-1 if (left < 0) != (right < 0) else 1), abs(right))
            for key, value, left, right in super().take(row, side)
        ]


def scaled(entries: list[Entry], scale: int, before: int) -> list[Entry]:
    """Entries of sums in parts of a whole, as another job keeps them."""
    if scale == before:
        return entries
    return [(side, key, None if a is None else a * scale // before, b) for side, key, a, b in entries]


def machine(operator: AnyOperator, scale: int = 1) -> Machine:
    """A fresh machine, with empty state, for an operator; `timed` has the machines of windows.

    `scale`: in how many parts of a whole a sum keeps and emits its sums.
    """
    match operator:
        case Map():
            return _Map(operator)
        case Filter():
            return _Filter(operator)
        case FlatMap():
            return _FlatMap(operator)
        case Count(signed=True) | Sum(signed=True):
            return _Changelog(counts=isinstance(operator, Count))
        case Join(signed=True):
            return _SignedJoin()
        case Count():
            return _Count(operator)
        case Sum():
            return _Sum(scale)
        case Greater():
            return _Greater()
        case Dedup():
            return _Dedup(operator)
        case Join():
            return _Join()
        case Rules():
            return _Rules()
        case Model():
            return _Model()
        case Tally():
            return _Count(Count())
        case Batch() | Union():  # buffered rows are subtracted afterwards (`buffered_rows`)
            return Machine()
    raise TypeError(f"a {type(operator).__name__} needs the time of its rows: `timed_machine` makes it")
