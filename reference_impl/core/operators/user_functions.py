"""Operators that a user writes (OPS-4): with declared state by key, timers, or state of their own.

A `Function` is called with each record, with each of its timers that the watermark or the clock has reached, and at the
end of all input.  It yields rows of the key with which it was called.  Its state is either declared (`states`: name,
kind and type), and then the engine keeps it, key by key or for the subtask as a whole; or it is the function's own,
returned by `snapshot` and taken back by `restore`.  A snapshot holds each state with its declaration.  A function that
no longer declares a state, or declares it otherwise, is refused by name.

One object serves all keys of a subtask.  Nothing may be kept elsewhere: a field that `snapshot` does not return is lost
with the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from ..backends.layouts import DECLARED, ORIGIN
from ..job.key_groups import Place as Place
from ..vocabulary.errors import Refused
from ..vocabulary.messages import Record
from ..vocabulary.state import END_OF_TIME, TaskState, Timer
from ..vocabulary.state import Item as Item
from ..vocabulary.views import OWN
from .declared_state import Declared as Declared
from .declared_state import items_of as items_of
from .declared_state import list_of as list_of
from .declared_state import map_of as map_of
from .declared_state import union_of as union_of
from .declared_state import value_of as value_of
from .operators import Operator
from .timers import Timers
from .windows import PANE

Out = tuple[int | None, int, int]
"""(value, tag, tag2) of a row; its key is the one for which the function was called"""
_ROW, _WHOLE_ROW = "(value, tag, tag2)", "(key, value, tag, tag2)"
_EMPTY: dict[str, Any] = {"value": None, "list": [], "map": {}, "items": [], "union": []}
_INT64 = range(-(1 << 63), 1 << 63)
_COPY_MASK = (1 << 8) - 1


MOST_CHAINED_TIMERS = 1_000
"""how many timers, each set by the one before it, may fire at one watermark: at the end of all input every
time has come, and a function that always sets the next would go on for ever"""


class Taken(NamedTuple):
    """A record as a function receives it."""

    key: int | None
    value: int | None
    tag: int
    tag2: int
    time: int
    """its event time, 0 if the input has none; for a clocked function the time at which it was taken (µs)"""


class Context:
    """What a function may do for one key: its state, its timers, the watermark."""

    __slots__ = ("_operator", "key")

    def __init__(self, operator: UserOperator, key: int | None) -> None:
        self._operator = operator
        self.key = key

    @property
    def watermark(self) -> int:
        return self._operator.time

    @property
    def now(self) -> int:
        """The processing time that a clocked function received last, in µs."""
        return self._operator.now

    def get(self, name: str) -> Any:
        """A copy of the key's state of this name, or of the subtask's: None, or an empty list or map, until it is put.
        Raises Refused for a state that is not declared."""
        return self._operator.get(self.key, name)

    def put(self, name: str, value: Any) -> None:
        """Replace a state; raises Refused if it is not declared, or not of the declared kind and type."""
        self._operator.put(self.key, name, value)

    def clear(self, name: str) -> None:
        """Clear a state; raises Refused if it is not declared."""
        self._operator.clear(self.key, name)

    def set_timer(self, time: int) -> None:
        """Have `on_timer` called once the watermark has reached an event time; setting one twice is setting it once.

        At the end of all input every time has come, so a timer that always sets the next never ends: the
        function is Refused after MOST_CHAINED_TIMERS.
        """
        self._operator.set_timer(self.key, time)

    def drop_timer(self, time: int) -> None:
        self._operator.timers.drop((time, self.key, 0))

    def wake_at(self, time: int) -> None:
        """Have `on_clock` called once processing time has reached this time (µs); asking twice is asking once.
        Raises Refused."""
        self._operator.wake_at(self.key, time)

    def drop_wake(self, time: int) -> None:
        self._operator.alarms.drop((time, self.key, 0))


class Function:
    """Base of a user's operator; one is created, without arguments, for each subtask of each attempt."""

    states: ClassVar[Mapping[str, Declared]] = {}
    """the state that the engine keeps for it, by name"""
    timed: ClassVar[bool] = False
    """it sets timers, or acts at the end of its input: its inputs need event time"""
    clocked: ClassVar[bool] = False
    """it uses processing time instead of event time: it may call `wake_at`"""
    owns_state: ClassVar[bool] = False
    """it has state of its own, which `snapshot` and `restore` hand over"""

    def on_record(self, record: Taken, context: Context) -> Iterable[Out]:
        """The rows that a record yields."""
        return ()

    def on_timer(self, time: int, context: Context) -> Iterable[Out]:
        """The rows that a timer yields; the timer is removed before."""
        return ()

    def on_clock(self, time: int, context: Context) -> Iterable[Out]:
        """The rows that an alarm yields.  At the end of all input every pending alarm fires; none can be set then."""
        return ()

    def on_end(self, context: Context) -> Iterable[Out]:
        """The rows that the end of all input yields for each key that had a record, after the key's timers."""
        return ()

    def on_close(self, context: Context) -> Iterable[tuple[int | None, int | None, int, int]]:
        """The rows (key, value, tag, tag2) that the end of all input yields for no key in particular."""
        return ()

    def keeps(self, name: str, item: Any, place: Place) -> bool:
        """Whether an item of the union `name` is this subtask's.  If several subtasks keep an item, each adds it to
        its next snapshot; if none keeps it, it is lost.  A function with a union must override this, or it is
        Refused."""
        raise Refused(f"{type(self).__name__} has no rule by which it keeps items of the union {name!r} (`keeps`)")

    def snapshot(self) -> Mapping[int | None, Any]:
        """Its own state: by key, a value that JSON can represent."""
        return {}

    def restore(self, state: Mapping[int | None, Any]) -> None:
        """Take back what `snapshot` gave, for the keys that this subtask owns now."""


class UserOperator(Operator):
    """One subtask of the user function called `name`."""

    keyed = True
    layout = DECLARED

    def __init__(self, name: str, make: Callable[[], Function]) -> None:
        super().__init__()
        self.function = self._name = name
        self._make = make
        self._begin(self._made(), TaskState())
        lawless = type(self._function).keeps is Function.keeps
        if lawless and any(one.kind == "union" for one in self._function.states.values()):
            raise Refused(f"{name} declares a union, and no rule by which it keeps items of it (`keeps`)")

    def _made(self) -> Function:
        """A new function; raises Refused if its constructor raises."""
        try:
            return self._make()
        except Exception as error:  # whatever a user's code raises
            raise Refused(f"{self._name} cannot be made: it raised {type(error).__name__}: {error}") from error

    def _begin(self, function: Function, state: TaskState) -> None:
        self._function = function
        self.clocked = function.clocked
        self.now = 0
        self.time = state.watermark
        self.timers = Timers(state.timers)
        self.alarms = Timers(state.alarms)
        self._items: dict[str, list[str]] = {}
        """by name, the items that belong to no key"""

    # -- what it does ----------------------------------------------------------------

    def apply(self, record: Record, gate: int) -> Iterable[Record]:
        key = record.key
        known = (key, ORIGIN)
        self.state[known] = max(self.state.get(known, 0), record.origin & ~_COPY_MASK | PANE)
        taken = Taken(key, record.value, record.tag, record.tag2, self.now if self.clocked else record.ts)
        rows = self._checked(self._function.on_record(taken, Context(self, key)), _ROW)
        return [Record(key, value, tag, tag2, record.origin, record.ts) for value, tag, tag2 in rows]

    def on_watermark(self, time: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows of the timers, and of the timers that these set; at the end of time also the rows of the end."""
        was, self.time = self.time, time
        rows = self._fired(due)
        if self._function.timed and was < END_OF_TIME <= time:
            for key in sorted((key for key, name in self.state if name == ORIGIN), key=_order):
                rows.extend(self._of_key(key, self._function.on_end(Context(self, key))))
            rows.extend(self._fired(()))
            last = self._checked(self._function.on_close(Context(self, None)), _WHOLE_ROW)
            rows.extend(Record(key, value, tag, tag2, PANE, self.time) for key, value, tag, tag2 in last)
        return rows

    def on_clock(self, now: int, due: Iterable[Timer]) -> Iterable[Record]:
        """The rows of the alarms that are due; an alarm that one of them sets is due at a later tick, even if its
        time has come."""
        self.now = now
        rows: list[Record] = []
        for at, key, _ in due:
            rows.extend(self._of_key(key, self._function.on_clock(at, Context(self, key))))
        if now >= END_OF_TIME:
            self.alarms = Timers()
        return rows

    def _fired(self, due: Iterable[Timer]) -> list[Record]:
        rows: list[Record] = []
        waiting = list(due) or self.timers.take(self.time)
        for _ in range(MOST_CHAINED_TIMERS):
            if not waiting:
                return rows
            for at, key, _ in waiting:
                rows.extend(self._of_key(key, self._function.on_timer(at, Context(self, key))))
            waiting = self.timers.take(self.time)
        raise Refused(self._endless(waiting[0]))

    def _endless(self, timer: Timer) -> str:
        at, key, _ = timer
        when = "at the end of all input" if self.time >= END_OF_TIME else f"at the watermark {self.time}"
        return (
            f"{self._name} has set a timer from a timer {MOST_CHAINED_TIMERS:,} times {when}, the last one of key"
            f" {key} for {at}: all of them are due, so it must stop by itself"
        )

    def _of_key(self, key: int | None, rows: Iterable[Out]) -> list[Record]:
        origin = self.state.get((key, ORIGIN), PANE)
        return [Record(key, value, tag, tag2, origin, self.time) for value, tag, tag2 in self._checked(rows, _ROW)]

    def _checked(self, rows: Iterable[Any], form: str) -> Iterator[Any]:
        """The rows that a function yields; raises Refused for a value that is no row."""
        if not isinstance(rows, Iterable):
            raise Refused(f"{self._name} gave {rows!r}, which is no iterable of rows")
        for row in rows:
            if not _is_row(row, form):
                raise Refused(f"{self._name} gave {row!r}; a row is {form}: whole numbers of 64 bits, or None as value")
            yield row

    def set_timer(self, key: int | None, time: int) -> None:
        if not self._function.timed:
            raise Refused(f"{self._name} sets a timer, and is not declared as `timed`")
        self.timers.set((time, key, 0))

    def wake_at(self, key: int | None, time: int) -> None:
        if not self.clocked:
            raise Refused(f"{self._name} calls `wake_at`, and is not declared as `clocked`")
        self.alarms.set((time, key, 0))

    # -- declared state --------------------------------------------------------------

    def get(self, key: int | None, name: str) -> Any:
        declared = self._declaration(name)
        if declared.is_of_subtask:
            return [msgspec.json.decode(text) for text in self._items.get(name, ())]
        held = self.state.get((key, name))
        return msgspec.json.decode(held or msgspec.json.encode(_EMPTY[declared.kind]))

    def put(self, key: int | None, name: str, value: Any) -> None:
        declared = self._declaration(name)
        if not declared.fits(value):
            raise Refused(f"{self._name} declares {name!r} as {declared.in_words}, and puts {value!r} into it")
        if declared.is_of_subtask:
            self._items[name] = [msgspec.json.encode(item).decode() for item in value]
        else:
            self.state[key, name] = msgspec.json.encode(value).decode()

    def clear(self, key: int | None, name: str) -> None:
        self._declaration(name)
        self.state.pop((key, name), None)
        self._items.pop(name, None)

    def _declaration(self, name: str) -> Declared:
        if name not in self._function.states:
            known = ", ".join(self._function.states) or "none"
            raise Refused(f"{self._name} has no state {name!r}; it declares {known}")
        return self._function.states[name]

    # -- snapshots ---------------------------------------------------------------------

    def declared(self) -> dict[str, str]:
        """The kind and type of each state, by name, as a snapshot holds them."""
        declared_states = {name: one.in_words for name, one in self._function.states.items()}
        return {**declared_states, OWN: "its own"} if self._function.owns_state else declared_states

    def held(self) -> list[tuple[int | None, str, str]]:
        """What the function hands over of its own."""
        return self._handed_over() if self._function.owns_state else []

    def _handed_over(self) -> list[tuple[int | None, str, str]]:
        """The function's own state; raises Refused if `snapshot` raises, or returns something else than a mapping of
        values that JSON can represent."""
        try:
            own = self._function.snapshot().items()
            return [(key, OWN, msgspec.json.encode(value).decode()) for key, value in own]
        except Exception as error:  # whatever a user's code raises
            raise Refused(f"`snapshot` of {self._name} raised {type(error).__name__}: {error}") from error

    def listed(self) -> list[Item]:
        return self._of_kind("items")

    def shared(self) -> list[Item]:
        return self._of_kind("union")

    def _of_kind(self, kind: str) -> list[Item]:
        states = self._function.states
        return [(name, text) for name, texts in self._items.items() if states[name].kind == kind for text in texts]

    def keeps(self, item: Item) -> bool:
        """What the user's `keeps` returns; raises Refused if it raises.  True for a state declared differently now,
        which `resume` refuses."""
        name, text = item
        declared = self._function.states.get(name)
        if declared is None or declared.kind != "union":
            return True
        try:
            return self._function.keeps(name, msgspec.json.decode(text), self.place)
        except Exception as error:
            raise Refused(f"`keeps` of {self._name} raised {type(error).__name__}: {error}") from error

    def resume(self, state: TaskState) -> None:
        """Take over a snapshot; raises Refused for state that the function declares differently, or not at all."""
        self._begin(self._made(), state)
        self.state.restore(state)
        self._check(state.declared)
        for name, text in (*state.listed, *state.shared):
            self._items.setdefault(name, []).append(text)
        if self._function.owns_state:
            self._take_back({key: msgspec.json.decode(text) for key, name, text in state.held if name == OWN})

    def _take_back(self, own: Mapping[int | None, Any]) -> None:
        try:
            self._function.restore(own)
        except Exception as error:  # whatever a user's code raises
            raise Refused(f"`restore` of {self._name} raised {type(error).__name__}: {error}") from error

    def _check(self, stored: Mapping[str, str]) -> None:
        declared = self.declared()
        for name, was in stored.items():
            now = declared.get(name)
            what = "state of its own" if name == OWN else f"the state {name!r}, {was}"
            if now is None:
                raise Refused(f"the snapshot of {self._name} holds {what}, which it does not declare")
            if now != was:
                raise Refused(f"the snapshot of {self._name} holds {what}; it declares {now} now")


def _is_row(row: object, form: str) -> bool:
    """Whether it is a row of this form: whole numbers, and None where a value (or a key) may be NULL."""
    if not isinstance(row, tuple | list) or len(row) != form.count(",") + 1:
        return False
    nullable = len(row) - 2
    return all(
        (part is None and at < nullable) or (type(part) is int and part in _INT64) for at, part in enumerate(row)
    )


def _order(key: int | None) -> tuple[bool, int]:
    return key is not None, key or 0
