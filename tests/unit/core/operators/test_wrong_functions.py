"""A user's function that is wrong fails its task, in one line that names it and says what it gave (OPS-4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cutproof.reference_impl.core.operators import user_functions
from cutproof.reference_impl.core.operators.user_functions import Context, Function, Out, Taken, UserOperator
from cutproof.reference_impl.core.vocabulary.effects import Fail
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import Arrived
from cutproof.reference_impl.core.vocabulary.messages import Record, Watermark
from unit.core import machines

END = 1 << 62


class Ticks(Function):
    """A row each ten after a key's first record, for ever or `times` times."""

    timed = True
    times: int | None = None

    def __init__(self) -> None:
        self.calls = 0

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        context.set_timer(record.time + 10)
        yield from ()

    def on_timer(self, time: int, context: Context) -> Iterator[Out]:
        self.calls += 1
        yield time, 0, 0
        if self.calls != self.times:
            context.set_timer(time + 10)


def failure_of(function: type[Function], element: Any) -> str:
    """The reason for which the task of a function that had a record fails."""
    task = machines.up(machines.operator(UserOperator("ticks", function)))
    taken = machines.take(task, Record(1, 1, 7, 0, 0, 5))
    effects = taken if any(isinstance(one, Fail) for one in taken) else task.step(Arrived(0, element))
    (failed,) = [one for one in effects if isinstance(one, Fail)]
    return str(failed.cause)


def fired(function: type[Function], until: int) -> list[int | None]:
    worker = machines.opened(UserOperator("ticks", function))
    list(worker.apply(Record(1, 1, 7, 0, 0, 5), 0))
    return [row.value for row in worker.on_watermark(until, worker.timers.take(until))]


def test_timers_that_set_the_next_fire_up_to_each_watermark() -> None:
    assert fired(Ticks, 38) == [15, 25, 35]


def test_a_chain_that_ends_by_itself_fires_at_the_end_of_all_input() -> None:
    class Some(Ticks):
        times = 500

    assert fired(Some, END) == [15 + 10 * number for number in range(500)]


def test_a_chain_that_never_ends_fails_its_task_at_the_end_of_all_input() -> None:
    assert failure_of(Ticks, Watermark(END)) == (
        "the user function of op-0 is refused: ticks has set a timer from a timer 1,000 times at the end of all"
        " input, the last one of key 1 for 10015: all of them are due, so it must stop by itself"
    )


def test_a_chain_of_timers_for_the_same_time_never_ends_either(monkeypatch: pytest.MonkeyPatch) -> None:
    class Now(Ticks):
        def on_timer(self, time: int, context: Context) -> Iterator[Out]:
            context.set_timer(time)
            yield from ()

    monkeypatch.setattr(user_functions, "MOST_CHAINED_TIMERS", 20)
    with pytest.raises(Refused, match="ticks has set a timer from a timer 20 times at the watermark 40, the last"):
        fired(Now, 40)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("text", 7, 0)], "('text', 7, 0); a row is (value, tag, tag2): whole numbers of 64 bits, or None as value"),
        ([(1, 7)], "gave (1, 7); a row is (value, tag, tag2)"),
        ([(1, None, 0)], "gave (1, None, 0); a row is"),
        ([(1, 7, 1 << 63)], "gave (1, 7, 9223372036854775808); a row is"),
        ([(True, 7, 0)], "gave (True, 7, 0); a row is"),
        (["abc"], "gave 'abc'; a row is"),
        (None, "gave None, which is no iterable of rows"),
        (5, "gave 5, which is no iterable of rows"),
    ],
)
def test_what_is_no_row_is_reported_with_the_functions_name(given: Any, words: str) -> None:
    class Wrong(Function):
        def on_record(self, record: Taken, context: Context) -> Any:
            return given

    reason_text = failure_of(Wrong, Watermark(4))
    assert reason_text.startswith("the user function of op-0 is refused: ticks gave ")
    assert words in reason_text


def test_what_the_end_gives_names_its_key() -> None:
    class Closes(Function):
        timed = True

        def on_close(self, context: Context) -> Any:
            yield 1, 2, 3

    reason_text = failure_of(Closes, Watermark(END))
    assert "ticks gave (1, 2, 3); a row is (key, value, tag, tag2): whole numbers" in reason_text


def test_null_is_a_value_and_a_key_at_the_end() -> None:
    class Nulls(Function):
        timed = True

        def on_record(self, record: Taken, context: Context) -> Any:
            yield [None, 7, 0]

        def on_close(self, context: Context) -> Any:
            yield None, None, 2, 3

    worker = machines.opened(UserOperator("ticks", Nulls))
    assert [row.value for row in worker.apply(Record(1, 1, 7, 0, 0, 5), 0)] == [None]
    assert [(row.key, row.value, row.tag, row.tag2) for row in worker.on_watermark(END, ())] == [(None, None, 2, 3)]


class Own(Function):
    owns_state = True

    def snapshot(self) -> Mapping[int | None, Any]:
        raise OSError("no disk")

    def restore(self, state: Mapping[int | None, Any]) -> None:
        raise OSError("no memory")


def test_a_function_that_cannot_be_made_or_hand_over_its_state_is_named() -> None:
    class Unmade(Function):
        def __init__(self) -> None:
            raise OSError("no room")

    with pytest.raises(Refused, match="ticks cannot be made: it raised OSError: no room"):
        UserOperator("ticks", Unmade)
    reason_text = failure_of(Own, machines.barrier(1))
    assert reason_text == "the user function of op-0 is refused: `snapshot` of ticks raised OSError: no disk"
