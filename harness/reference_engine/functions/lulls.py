"""The records of a key before a pause, by timers in processing time; each record puts the timer of its key off.

The result depends on when a run took the records, so PySpark is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from ....properties.semantics.user_functions import ExpectedRow, KeyRecord
from ....reference_impl.core.operators.user_functions import Context, Function, Out, Taken, list_of, value_of
from .base import UserFunction

LULL_US = 1_500


class Lulls(Function):
    """Emits (number of records, sum of their tags, 0)."""

    clocked = True
    states: ClassVar = {"tags": list_of(int), "until": value_of(int)}

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        if context.get("until") is not None:
            context.drop_wake(context.get("until"))
        context.put("until", context.now + LULL_US)
        context.wake_at(context.now + LULL_US)
        context.put("tags", [*context.get("tags"), record.tag])
        yield from ()

    def on_clock(self, time: int, context: Context) -> Iterator[Out]:
        tags = context.get("tags")
        yield len(tags), sum(tags), 0
        context.clear("tags")
        context.clear("until")


def expected(records: Sequence[KeyRecord], now: int) -> Iterator[ExpectedRow]:
    came: list[KeyRecord] = []
    for record in records:
        if came and came[-1].time + LULL_US <= record.time:
            yield len(came), sum(one.tag for one in came), 0
            came = []
        came.append(record)
    if came and came[-1].time + LULL_US <= now:
        yield len(came), sum(one.tag for one in came), 0


LULLS = UserFunction(name="cutproof/lulls", function=Lulls, expected=expected)
