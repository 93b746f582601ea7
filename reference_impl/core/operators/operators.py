"""What operators compute: rows in, rows out, state by key (OPS-1).

An operator is a plain object of one subtask.  It keeps its state by key in a state backend (`backends`).  At a barrier
that gives a view which never changes (ABS-8), and at a restore it takes one back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from ..backends.keyed_state import KeyedState
from ..backends.layouts import PAIR, ROWS, SEEN, SINGLE, UNLISTED, Layout
from ..job.key_groups import Place
from ..vocabulary.messages import Record
from ..vocabulary.state import Item, TaskState, Timer
from ..vocabulary.upgrades import HUNDREDTHS, TOTAL
from .timers import Timers

IN_HUNDREDTHS = 100


class Operator:
    """Base: stateless until a subclass says otherwise.

    It is made without `state`: whoever made it gives it the empty one that it begins with.
    """

    state: KeyedState
    """its working state by key, laid out as `layout` says"""

    keyed = False
    layout: ClassVar[Layout] = UNLISTED
    holds_back = False
    """it emits one row at a time: the task holds the others back for its mailbox"""
    clocked = False
    """it uses processing time: its task gets a tick before each record, and when a timer is due"""
    function: str | None = None
    """the name of the user function, if it is one"""
    rolling = False
    """each row of a key replaces the one before it: a batch emits only the last one (FIN-6)"""

    def __init__(self) -> None:
        self.timers = Timers()
        self.alarms = Timers()
        """timers in processing time"""
        self.place = Place()
        """which subtask it is; its task sets it"""

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        """The rows that a record of input `gate` yields, in order."""
        return (record,)

    def on_watermark(self, time: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows that the task's watermark, now at `time`, yields; `due` are the timers that it has reached."""
        return ()

    def on_clock(self, now: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows that the clock, now at `now`, yields; `due` are the processing-time timers that it has reached."""
        return ()

    def waiting(self) -> tuple[Sequence[Record], Sequence[Record]]:
        """The rows that wait in its state, at the latest for the end of the data; they are sent before the end is.
        First those with which it was restored, then those that have arrived since."""
        return (), ()

    def release(self, count: int) -> None:
        """As many of the rows that wait, from the first on, are emitted: they leave its state."""

    def listed(self) -> list[Item]:
        """The items that it holds in lists."""
        return []

    def shared(self) -> list[Item]:
        """The items that this subtask adds to unions."""
        return []

    def broadcast(self) -> list[Item]:
        """The items of broadcast state: at a consistent cut the same in every subtask."""
        return []

    def keeps(self, item: Item) -> bool:
        """Whether this subtask keeps an item of a union."""
        return True

    def held(self) -> list[tuple[int | None, str, str]]:
        """Of a user function: (key, name, JSON) of the state by key that it keeps itself."""
        return []

    def declared(self) -> dict[str, str]:
        """The kind and type of each state that a user function declares; of a sum the type, if it is not whole."""
        return {}

    def resume(self, state: TaskState) -> None:
        """Take over a task's restored state."""
        self.state.restore(state)

    def migrate(self) -> None:
        """Convert a restored state to the type that this operator keeps."""


class Map(Operator):
    """One row for one; `function` gives the new key and value."""

    def __init__(self, function: Callable[[int | None, int | None], tuple[int | None, int | None]]) -> None:
        super().__init__()
        self._function = function

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        key, value = self._function(record.key, record.value)
        return (Record(key, value, record.tag, record.tag2, record.origin, record.ts),)


class Filter(Operator):
    """The rows whose value the predicate accepts."""

    def __init__(self, predicate: Callable[[int | None], bool]) -> None:
        super().__init__()
        self._predicate = predicate

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        return (record,) if self._predicate(record.value) else ()


class FlatMap(Operator):
    """Any number of rows for one: `function` gives their values."""

    holds_back = True

    def __init__(self, function: Callable[[int | None], Iterable[int]]) -> None:
        super().__init__()
        self._function = function

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        return tuple(
            Record(record.key, value, record.tag, record.tag2, record.origin + copy, record.ts)
            for copy, value in enumerate(self._function(record.value))
        )


class Union(Operator):
    """All rows of all inputs."""


class Count(Operator):
    """A running count by key; tagged rows keep the tags of the record that was counted."""

    keyed = True
    layout: ClassVar[Layout] = SINGLE

    def __init__(self, tagged: bool) -> None:
        super().__init__()
        self._tagged = tagged
        self.rolling = not tagged

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        count = self.state.get(record.key, 0) + 1
        self.state[record.key] = count
        if self._tagged:
            return (Record(record.key, count, record.tag, record.tag2, record.origin, record.ts),)
        return (Record(record.key, count, 0, 0, record.origin, record.ts),)


class Sum(Operator):
    """A running sum of values, and of tags, by key; NULL until the first value that is not NULL.

    It is kept, and emitted, in units of 1 / `scale`.
    """

    keyed = True
    layout = PAIR
    rolling = True

    def __init__(self, scale: int = 1) -> None:
        super().__init__()
        self._scale = scale

    def declared(self) -> dict[str, str]:
        return {TOTAL: HUNDREDTHS} if self._scale == IN_HUNDREDTHS else {}

    def migrate(self) -> None:
        for key, (total, tags) in list(self.state.items()):
            self.state[key] = (None if total is None else total * self._scale), tags

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        total, tags = self.state.get(record.key, (None, 0))
        if record.value is not None:
            total = record.value * self._scale + (total or 0)
        tags += record.tag
        self.state[record.key] = total, tags
        return (Record(record.key, total, tags, 0, record.origin, record.ts),)


class Greater(Operator):
    """The stateful example of the course on consistent snapshots: emit a value greater than the one before it."""

    keyed = True
    layout = SINGLE

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        before = self.state.get(record.key)
        self.state[record.key] = record.value
        if before is None or (record.value is not None and record.value > before):
            return (record,)
        return ()


class Dedup(Operator):
    """The first row of each key; all keys seen are recorded (the course on consistent snapshots)."""

    keyed = True
    layout = SEEN

    def __init__(self, keys_only: bool) -> None:
        super().__init__()
        self._keys_only = keys_only

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        if record.key in self.state:
            return ()
        self.state[record.key] = None
        return (Record(record.key, 0, 0, 0, record.origin, record.ts) if self._keys_only else record,)


class Join(Operator):
    """Every pair of a left and a right row with the same key, once; NULL matches nothing.

    Its state is a list of (value, tag) by (side, key).  On the heap the lists grow in place.
    """

    keyed = True
    layout = ROWS

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        if record.key is None:
            return ()
        mine = (gate, record.key)
        rows = self.state.get(mine, [])
        rows.append((record.value, record.tag))
        self.state[mine] = rows
        others = self.state.get((1 - gate, record.key), ())
        if gate == 0:
            return [Record(record.key, record.value, record.tag, tag, record.origin, record.ts) for _, tag in others]
        return [Record(record.key, value, tag, record.tag, record.origin, record.ts) for value, tag in others]
