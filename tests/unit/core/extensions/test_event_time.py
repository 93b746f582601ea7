"""Watermarks at sources and tasks, stepped by hand: who is waited for, what comes before what."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.decisions.event_time import Watermarks
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.topology import EventTime
from cutproof.reference_impl.core.operators.operators import FlatMap
from cutproof.reference_impl.core.operators.watermarks import SplitTimes
from cutproof.reference_impl.core.operators.windows import Tumbling
from cutproof.reference_impl.core.protocol.source import SourceTask
from cutproof.reference_impl.core.protocol.task import Task
from cutproof.reference_impl.core.vocabulary.effects import Advanced, Effect, Send, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import Poll, TimerFired
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Element, EndOfData, Idle, Record, Watermark
from cutproof.reference_impl.core.vocabulary.state import BEGINNING, END_OF_TIME, TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import IdleTimeout
from unit.core.machines import deliver, deploy, operator, output, spec, take, trigger, up, work


def source(*times: list[int], delay: int = 0, idle_after_us: int = 0, bounded: bool = True) -> SourceTask:
    logs = [
        SplitLog(split=split, records=[(0, 1, n) for n in range(len(of))], times=of) for split, of in enumerate(times)
    ]
    event_time = EventTime(delay=delay, idle_after_us=idle_after_us)
    described = spec("source-0", outputs=(output("hash", 0, 1),))
    return TaskBuilder(Config(), Parts()).source(described, logs, bounded, event_time)


def sent(effects: list[Effect], channel: int = 1) -> list[Element]:
    """What is no record, on a channel that gets none."""
    found = [effect.element for effect in effects if isinstance(effect, Send) and effect.channel == channel]
    return [element for element in found if not isinstance(element, Record)]


def watermarks(task: Task, polls: int) -> list[int]:
    """The watermarks that reading brings, each after its record."""
    found = []
    for _ in range(polls):
        effects = task.step(Poll())
        elements = [effect.element for effect in effects if isinstance(effect, Send)]
        times = [element.time for element in elements if isinstance(element, Watermark)]
        assert not times or isinstance(elements[0], Record | Watermark)
        found += times[:1]
    return found


def test_a_split_s_watermark_is_its_greatest_time_less_the_delay_less_one() -> None:
    assert watermarks(up(source([10, 30, 20, 50], delay=5)), 3) == [4, 24]


def test_of_several_splits_the_slowest_counts_until_it_is_read_to_its_end() -> None:
    task = up(source([100, 110, 120, 130], [10, 20]))
    assert watermarks(task, 2) == [9]
    assert watermarks(task, 2) == [109]
    assert watermarks(task, 1) == [119]
    assert watermarks(task, 1) == [END_OF_TIME]


def test_the_end_of_time_comes_before_the_end_of_data() -> None:
    task = up(source([10]))
    assert sent(task.step(Poll())) == [Watermark(END_OF_TIME)]
    assert sent(task.step(Poll())) == [EndOfData()]


def test_a_bounded_subtask_without_splits_ends_time_at_once() -> None:
    task = source()
    assert sent(deliver(task, deploy())) == [Watermark(END_OF_TIME)]


def test_an_unbounded_subtask_without_splits_is_idle_and_one_at_its_end_is_not() -> None:
    assert sent(deliver(source(bounded=False), deploy())) == [Idle()]
    assert watermarks(up(source([10], bounded=False)), 2) == [9]


def test_an_idle_split_is_not_waited_for_until_it_is_read_again() -> None:
    task = source([10, 20], [100, 110, 120], idle_after_us=50, bounded=False)
    effects = deliver(task, deploy())
    assert SetTimer(IdleTimeout(), 50) in effects
    assert watermarks(task, 2) == [9]
    assert sent(task.step(TimerFired(IdleTimeout()))) == []
    assert watermarks(task, 1) == [19]
    assert watermarks(task, 1) == []
    effects = task.step(TimerFired(IdleTimeout()))
    assert effects == [SetTimer(IdleTimeout(), 50)]
    task.step(Poll())
    assert sent(task.step(TimerFired(IdleTimeout()))) == [Watermark(119)]
    assert sent(task.step(TimerFired(IdleTimeout()))) == [Idle()]


def test_a_drain_ends_time_before_the_data_and_a_stop_does_not() -> None:
    drained, stopped = up(source([10, 20, 30])), up(source([10, 20, 30]))
    for task in (drained, stopped):
        task.step(Poll())
    assert sent(deliver(drained, trigger(7, JobEnd.DRAIN))) == [Watermark(END_OF_TIME), EndOfData(), Barrier(7)]
    assert sent(deliver(stopped, trigger(7, JobEnd.STOP))) == [Barrier(7)]


def test_what_a_source_stores_it_goes_on_from() -> None:
    task = up(source([10, 30, 20], [5], delay=2))
    watermarks(task, 2)
    state = task.unkeyed_state()
    assert (state.watermark, state.maxima) == (7, {0: 10, 1: 5})
    again = up(source([10, 30, 20], [5], delay=2), state=state, checkpoint=1)
    assert watermarks(again, 1) == [27]


def times(task: Any, *arrived: tuple[int, Element]) -> list[Element]:
    return [element for channel, one in arrived for element in sent(take(task, one, channel), 0)]


def test_a_task_waits_for_its_slowest_input() -> None:
    task = up(operator(inputs=2))
    assert times(task, (0, Watermark(10))) == []
    assert take(task, Watermark(5), 1) == [Advanced(5), Send(0, Watermark(5))]
    assert times(task, (1, Watermark(20)), (1, Watermark(15)), (0, Watermark(12))) == [Watermark(10), Watermark(12)]
    assert task.unkeyed_state().times == [12, 20]


def test_an_end_and_an_idle_channel_leave_nothing_to_wait_for_either() -> None:
    """The idle one was told first: those downstream hear of it once the other has ended."""
    task = up(operator(inputs=2))
    assert times(task, (1, Idle()), (0, Watermark(10))) == [Watermark(10)]
    assert times(task, (0, Watermark(END_OF_TIME))) == [Idle()]


def test_an_ended_input_is_not_waited_for_nor_does_it_stand_for_an_idle_one() -> None:
    task = up(operator(inputs=3))
    assert times(task, (0, Watermark(END_OF_TIME)), (1, Idle())) == []
    assert times(task, (2, Watermark(4))) == [Watermark(4)]
    assert times(task, (2, Idle())) == [Idle()]
    assert task.times.time == 4


def test_an_idle_input_counts_again_with_its_next_record_or_watermark() -> None:
    task = up(operator(inputs=2))
    times(task, (0, Watermark(10)), (1, Watermark(2)))
    assert times(task, (1, Idle())) == [Watermark(10)]
    take(task, Record(1, 1, 1, 0, 0, 3), 1)
    assert times(task, (0, Watermark(30))) == []
    assert times(task, (1, Watermark(20))) == [Watermark(20)]
    assert times(task, (0, Idle()), (1, Idle())) == [Idle()]
    assert times(task, (1, Watermark(25))) == [Watermark(20), Watermark(25)]


def test_what_is_buffered_and_what_is_finished_goes_out_before_the_watermark() -> None:
    copying = up(operator(FlatMap(lambda value: (1, 2))))
    take(copying, Record(1, 1, 1, 0, 0, 3))
    elements = [effect.element for effect in take(copying, Watermark(9)) if isinstance(effect, Send)]
    assert [type(element) for element in elements] == [Record, Watermark]
    window = up(operator(Tumbling(10, "count", 0)))
    take(window, Record(1, 1, 1, 0, 0, 3))
    elements = [effect.element for effect in take(window, Watermark(9)) if isinstance(effect, Send)]
    assert [type(element) for element in elements] == [Record, Watermark]


def test_event_time_is_in_the_snapshot_and_taken_up_again() -> None:
    task = up(operator(Tumbling(10, "count", 0), inputs=2))
    take(task, Record(1, 1, 1, 0, 0, 13), 0)
    times(task, (0, Watermark(12)), (1, Watermark(9)), (1, Idle()))
    state = task.current_snapshot().materialise()
    assert (state.watermark, state.times, state.idle) == (12, [12, 9], [1])
    assert (state.entries, state.timers) == ([(10, 1, 1, 1)], [(19, 1, 10)])
    again = up(operator(Tumbling(10, "count", 0), inputs=2), state=state, checkpoint=1)
    assert again.current_snapshot().materialise() == state
    elements = [effect.element for effect in take(again, Watermark(19), 0) if isinstance(effect, Send)]
    assert elements[-1] == Watermark(19)
    assert (work(again).operator.state, work(again).operator.timers.pending()) == ({}, [])


def test_without_event_time_a_state_reports_nothing_of_it() -> None:
    state = up(operator()).current_snapshot().materialise()
    assert (state.watermark, state.times, state.timers) == (BEGINNING, [], [])
    assert state == TaskState(rotations=[0])


def test_a_split_that_was_never_read_is_idle_after_one_time_out() -> None:
    times, decisions = SplitTimes(5), Watermarks()
    times.read(0, 20)
    times.rest(decisions.become_idle((0, 1), times.read_since))
    assert times.idle == (1,)
    times.rest(decisions.become_idle((0, 1), times.read_since))
    assert times.idle == (0, 1)
