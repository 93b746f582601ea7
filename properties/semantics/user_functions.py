"""What a user's functions have to yield (OPS-4): the counterparts that judge them, and the quick checker's reading.

The user writes two counterparts of a function.  `expected` is pure: it takes one key's
records in order and the watermark, and returns the rows that are expected by then.
`spark` computes the same on DataFrames (see `spark.user_functions`).  Both are
*growing*: more records, or a later time, never take a row away.  Only the user knows
what the state of a function means.  So the judge compares loaded state with stored
state, and computes no expected state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from ..model.workload import BEGINNING, COPY_BITS, PANE, Row, User, Workload, inputs_of
from .event_time import is_late_free
from .semantics import Entry, Machine
from .windows import Emitted, Timer


class KeyRecord(NamedTuple):
    """A record of a key."""

    value: int | None
    tag: int
    tag2: int
    time: int
    """its event time, 0 where there is none; for a function in processing time, when it was taken (µs)"""


ExpectedRow = tuple[int | None, int, int]
"""(value, tag, tag2) of a row; its key is that of the records"""
Expecting = Callable[[Sequence[KeyRecord], int], Iterable[ExpectedRow]]
"""takes a key's records and the watermark or, in processing time, the last received time; once all input has ended,
either is `END_OF_TIME`"""


_ROW_OF = ("value", "tag", "tag2")
MOST_EXPECTED = 100_000
"""rows of one key; a counterpart that returns more is in error, such as one whose timer always sets another"""


class Counterpart(msgspec.Struct, frozen=True, kw_only=True):
    """How a function called `name` is judged."""

    name: str
    expected: Expecting
    spark: Callable[[Any], Any]
    """from a DataFrame of records to one of rows"""
    by_key: bool = True
    """its rows come from the subtask that takes the records of their key; false if it buffers rows without a key"""


class CounterpartFailed(Exception):
    """A counterpart that is not registered, raises, or takes a row away again."""


_known: dict[str, Counterpart] = {}


def judge_by(counterpart: Counterpart) -> None:
    """Register, in this process, the counterpart of the function whose name it has."""
    _known[counterpart.name] = counterpart


@contextmanager
def judging_within() -> Iterator[None]:
    """Counterparts that are registered within the block are forgotten at its end."""
    before = dict(_known)
    try:
        yield
    finally:
        _known.clear()
        _known.update(before)


def counterpart(name: str) -> Counterpart:
    """The counterpart of a function; raises CounterpartFailed where none is registered."""
    if name not in _known:
        raise CounterpartFailed(f"the user function {name!r} has no counterparts by which it could be judged")
    return _known[name]


def is_by_key(function: str) -> bool:
    """Whether the rows of a function come from the subtask that takes the records of their key."""
    return function not in _known or _known[function].by_key


def user_nodes(workload: Workload) -> dict[str, str]:
    """The workload's nodes with a user function, and the names of the functions."""
    return {node.name: node.operator.function for node in workload.nodes if isinstance(node.operator, User)}


def has_user_timers(workload: Workload) -> bool:
    """Whether a user function of the workload uses event time or processing time."""
    return any(user.timed or user.clocked for user in _users(workload))


def _users(workload: Workload) -> list[User]:
    return [node.operator for node in workload.nodes if isinstance(node.operator, User)]


def user_problems(workload: Workload) -> Iterator[str]:
    """What is wrong with the user functions.  No record may be late: only the user knows what happens to late ones."""
    for node in workload.nodes:
        if isinstance(node.operator, User) and node.operator.timed and node.operator.clocked:
            yield f"{node.name} goes by event time and by processing time: it can do one of the two"
        elif isinstance(node.operator, User) and node.operator.timed:
            if not is_late_free(workload, node.name):
                yield f"{node.name} has timers, and records may come late for it: raise the delay of its inputs"
            if any(not source.times and any(source.splits) for source in inputs_of(workload, node.name)):
                yield f"{node.name} has timers, and an input of it has no event time"


class UserMachine(Machine):
    """One subtask of a user's function; `time` is its watermark."""

    def __init__(self, operator: User, *, strict: bool = False) -> None:
        """`strict`: each record comes once and none is late, so a row that is taken away is an error."""
        self.operator = operator
        self.strict = strict
        self.time = BEGINNING
        self.records: dict[int | None, list[KeyRecord]] = {}
        self.origins: dict[int | None, int] = {}
        self.given: dict[int | None, Counter[ExpectedRow]] = {}

    def take_at(self, row: Row, time: int, origin: int) -> list[Emitted]:
        key, value, tag, tag2 = row
        time = self.time if self.operator.clocked else time
        self.records.setdefault(key, []).append(KeyRecord(value, tag, tag2, time))
        self.origins[key] = max(self.origins.get(key, 0), origin >> COPY_BITS << COPY_BITS | PANE)
        return self._more(key, origin)

    def advance(self, time: int) -> list[Emitted]:
        self.time = max(self.time, time)
        if not self._goes_by_time:
            return []
        keys = sorted(self.records, key=lambda key: (key is not None, key or 0))
        return [one for key in keys for one in self._more(key, self.origins[key])]

    def entries(self) -> list[Entry]:
        return []

    def timers(self) -> list[Timer]:
        return []

    def keep(self) -> UserMachine:
        """A copy of the state."""
        copy = UserMachine(self.operator, strict=self.strict)
        copy.time = self.time
        copy.records = {key: list(records) for key, records in self.records.items()}
        copy.origins = dict(self.origins)
        copy.given = dict(self.given)
        return copy

    @property
    def _goes_by_time(self) -> bool:
        return self.operator.timed or self.operator.clocked

    def _more(self, key: int | None, origin: int) -> list[Emitted]:
        """The rows of a key that are expected now and were not expected before."""
        rows = self._expected_rows(key)
        before = self.given.get(key, Counter())
        self.given[key] = after = Counter(rows)
        if self.strict and before - after:
            missing = next(iter(before - after))
            raise CounterpartFailed(f"`expected` of {self.operator.function} takes the row {missing} of key {key} away")
        remaining, fresh = after - before, []
        for one in reversed(rows):  # of equal rows the last are the new ones
            if remaining[one]:
                remaining[one] -= 1
                fresh.append(one)
        return [(origin, (key, value, tag, tag2)) for value, tag, tag2 in reversed(fresh)]

    def _expected_rows(self, key: int | None) -> list[ExpectedRow]:
        function = self.operator.function
        expected = counterpart(function).expected
        try:
            found = expected(tuple(self.records[key]), self.time if self._goes_by_time else BEGINNING)
            rows = list(islice(found, MOST_EXPECTED + 1))
        except Exception as error:  # whatever a user's code raises
            raise CounterpartFailed(f"`expected` of {function} raised {type(error).__name__}: {error}") from error
        if len(rows) > MOST_EXPECTED:
            raise CounterpartFailed(f"`expected` of {function} gives more than {MOST_EXPECTED:,} rows of key {key}")
        for row in rows:
            if not isinstance(row, tuple | list) or len(row) != len(_ROW_OF):
                raise CounterpartFailed(f"`expected` of {function} gave {row!r}; a row is ({', '.join(_ROW_OF)})")
        return rows
