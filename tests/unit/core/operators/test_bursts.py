"""Timers in processing time: the operator by hand, the task that is told the time, and its place in a snapshot."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.extensions.rescaling.rescale import redistributed
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.routing import Output
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.job.topology import key_group, owner
from cutproof.reference_impl.core.operators.bursts import Burst
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Effect, Fail, Send, TimeEnded, WakeAt
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Arrived, Received, SnapshotLoaded, Ticked
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, EndOfData, Piece, Record
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.machines import operator, source, transactional

Row = tuple[int | None, int | None, int, int]


def task(operator: Burst | None = None, *, restores: bool = False) -> InputTask:
    spec = TaskSpec(
        task=TaskId("burst-0"),
        job=1,
        attempt=AttemptId(1),
        gates=(0,),
        outputs=(Output(partitioning="forward", channels=(0,)),),
    )
    made = TaskBuilder(Config(), Parts()).operator(spec, operator or Burst(10, "count"))
    if not restores:
        made.step(Received(Deploy(job=1, attempt=AttemptId(1))))
    return made


def record(key: int | None, tag: int = 1, value: int | None = 1) -> Arrived:
    return Arrived(0, Record(key, value, tag, 0, tag << 8))


def rows(effects: Iterable[Effect]) -> list[Row]:
    sent = [effect.element for effect in effects if isinstance(effect, Send)]
    return [(one.key, one.value, one.tag, one.tag2) for one in sent if isinstance(one, Record)]


def wakes(effects: Iterable[Effect]) -> list[int]:
    return [effect.time for effect in effects if isinstance(effect, WakeAt)]


def test_a_burst_is_over_when_nothing_came_for_the_gap() -> None:
    one = task()
    one.step(Ticked(100))
    assert wakes(one.step(record(1, tag=1))) == [110]
    assert rows(one.step(Ticked(109))) == []
    one.step(record(1, tag=2))
    idle = one.step(Ticked(110))
    assert (rows(idle), wakes(idle)) == ([], [119])
    assert rows(one.step(Ticked(119))) == [(1, 2, 3, 100)]
    assert not one.awaits_time


def test_a_time_that_ends_a_burst_ends_it_before_the_record_that_comes_then() -> None:
    one = task()
    one.step(Ticked(100))
    one.step(record(None, tag=1))
    assert rows(one.step(Ticked(110))) == [(None, 1, 1, 100)]
    one.step(record(None, tag=2))
    assert rows(one.step(Ticked(500))) == [(None, 1, 2, 110)]


def test_the_first_due_comes_first_and_a_null_key_before_others() -> None:
    one = task(Burst(10, "sum"))
    one.step(Ticked(1))
    one.step(record(7, tag=1, value=None))
    one.step(Ticked(2))
    for key in (3, None, -3):
        one.step(record(key, tag=2, value=5))
    assert rows(one.step(Ticked(40))) == [(7, None, 1, 1), (None, 5, 2, 2), (-3, 5, 2, 2), (3, 5, 2, 2)]


def test_at_the_end_of_all_input_what_is_pending_fires_before_the_end_goes_on() -> None:
    one = task()
    one.step(Ticked(100))
    one.step(record(1))
    effects = one.step(Arrived(0, EndOfData()))
    kinds = [type(effect.element) if isinstance(effect, Send) else type(effect) for effect in effects]
    assert kinds[:3] == [TimeEnded, Record, EndOfData]
    assert one.unkeyed_state().alarms == []


def test_a_restored_timer_is_asked_for_and_fires_at_its_own_time() -> None:
    before = task()
    before.step(Ticked(100))
    before.step(record(1, tag=5))
    state = before.current_snapshot().materialise()
    assert state.alarms == [(110, 1, 100)]
    after = task(restores=True)
    after.step(Received(Deploy(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(1), handle=Handle("h"))))
    assert wakes(after.step(SnapshotLoaded(state))) == [110]
    assert rows(after.step(Ticked(109))) == []
    assert rows(after.step(Ticked(300))) == [(1, 1, 5, 100)]
    assert rows(after.step(Ticked(301))) == []


@pytest.mark.parametrize("parallelism", [1, 3])
def test_rescaled_a_timer_goes_with_its_key(parallelism: int) -> None:
    state = TaskState(
        entries=[(100, key, 1, 1) for key in range(8)],
        panes=[(110, 1)] * 8,
        alarms=[(110, key, 100) for key in range(8)],
    )
    piece = Piece(handle=None, state=state, gates=(0,))
    found = []
    for subtask in range(parallelism):
        share = Share(subtask=subtask, parallelism=parallelism, key_groups=16, gates=(0,))
        mine = redistributed([(piece, state)], share, Redistribution())
        assert [key for _, key, _ in mine.alarms] == [key for _, key, _, _ in mine.entries]
        assert all(owner(key_group(key, 16), 16, parallelism) == subtask for _, key, _ in mine.alarms)
        found += mine.alarms
    assert sorted(found) == state.alarms


def test_an_operator_that_raises_at_a_timer_fails_its_task() -> None:
    class Raising(Burst):
        def on_clock(self, now: int, due: Iterable[tuple[int, int | None, int]]) -> Iterable[Record]:
            raise ValueError("no")

    (failed,) = task(Raising(10, "count")).step(Ticked(1))
    assert isinstance(failed, Fail)
    assert "ValueError: no" in str(failed.cause)


def test_who_does_not_go_by_the_clock_is_sent_no_tick() -> None:
    assert not operator().clocked
    assert not source(1).clocked
    with pytest.raises(ProtocolViolated, match="sink-0 takes no Ticked"):
        transactional().step(Ticked(1))
