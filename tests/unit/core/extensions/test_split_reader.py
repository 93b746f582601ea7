"""Readers: they ask for splits, read what they are given, and hand back what they restored (OPS-3)."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.protocol.source import SourceTask
from cutproof.reference_impl.core.vocabulary.effects import (
    Effect,
    Fail,
    Persist,
    PollAgain,
    Report,
    Rest,
    Restored,
    SetTimer,
)
from cutproof.reference_impl.core.vocabulary.events import Poll, TimerFired
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ask, Assign, Assigned, InputEnded, Running
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import RetryAsk
from unit.core.machines import ATTEMPT, ONE_OUT, build, deliver, deploy, only, sent, spec, trigger

NAME = TaskId("source-0")


def bare(*lengths: int, begins: int = 0, bounded: bool = True) -> SourceTask:
    """One that may be given any of these splits: offset n of split s has the tag 100 s + n."""
    logs = [
        SplitLog(split=split, records=[(n, n, 100 * split + n) for n in range(length)], begins=begins)
        for split, length in enumerate(lengths)
    ]
    return build().split_reader(spec("source-0", outputs=ONE_OUT), logs, bounded)


def reader(*lengths: int, begins: int = 0, bounded: bool = True) -> SourceTask:
    """The same, up and running."""
    task = bare(*lengths, begins=begins, bounded=bounded)
    deliver(task, deploy())
    return task


def assign(serial: int, splits: dict[int, int], answers: int = 1, more: bool = True) -> Assign:
    return Assign(job=1, attempt=ATTEMPT, serial=serial, splits=splits, answers=answers, more=more)


def question(number: int) -> list[Effect]:
    return [Report(Ask(job=1, attempt=ATTEMPT, task=NAME, number=number)), SetTimer(RetryAsk(), Config().retry_us)]


def taken(serial: int) -> Report:
    return Report(Assigned(job=1, attempt=ATTEMPT, task=NAME, serial=serial))


def read(task: SourceTask, times: int) -> list[tuple[int, int]]:
    records: list[Any] = [element for _ in range(times) for _, element in sent(task.step(Poll()))]
    return [divmod(record.tag, 100) for record in records]


def positions(task: SourceTask, checkpoint: int) -> dict[int, int]:
    return only(Persist, deliver(task, trigger(checkpoint))).snapshot.materialise().positions


def test_it_asks_when_it_has_nothing_to_read() -> None:
    assert reader(2).step(Poll()) == [*question(1), Rest()]


def test_it_asks_again_until_it_is_answered() -> None:
    task = reader(2)
    task.step(Poll())
    assert task.step(Poll()) == [Rest()], "one question at a time"
    assert task.step(TimerFired(RetryAsk())) == question(1)
    deliver(task, assign(0, {}, answers=1))
    assert task.step(TimerFired(RetryAsk())) == [], "it was told to wait"


def test_an_older_answer_is_no_answer() -> None:
    task = reader(1, 1)
    task.step(Poll())
    deliver(task, assign(1, {0: 0}))
    read(task, 1)
    task.step(Poll())
    assert deliver(task, assign(1, {0: 0}, answers=1)) == [taken(1)]
    assert task.step(TimerFired(RetryAsk())) == question(2)


def test_it_reads_what_it_is_given_in_order_and_asks_for_more() -> None:
    task = reader(2, 1, 1)
    assert deliver(task, assign(1, {0: 0, 2: 0})) == [taken(1), PollAgain()]
    assert read(task, 3) == [(0, 0), (2, 0), (0, 1)]
    assert task.step(Poll()) == [*question(1), Rest()]


def test_it_reads_from_the_position_that_it_is_given() -> None:
    task = reader(5)
    deliver(task, assign(1, {0: 3}))
    assert read(task, 2) == [(0, 3), (0, 4)]


def test_an_assignment_that_comes_again_changes_nothing() -> None:
    task = reader(3)
    deliver(task, assign(1, {0: 0}))
    read(task, 2)
    assert deliver(task, assign(1, {0: 0})) == [taken(1)], "its answer may be lost, the split it has"
    assert read(task, 1) == [(0, 2)]


def test_its_input_ends_when_no_more_will_come() -> None:
    task = reader(1)
    deliver(task, assign(1, {0: 0}))
    read(task, 1)
    assert not task.input_ended
    assert task.awaits_splits
    assert deliver(task, assign(2, {0: 0}, more=False)) == [taken(2), PollAgain()]
    reports = [effect.message for effect in task.step(Poll()) if isinstance(effect, Report)]
    assert reports == [InputEnded(job=1, attempt=ATTEMPT, task=NAME)]
    assert not task.awaits_splits


def test_one_that_had_finished_awaits_nothing() -> None:
    task = bare(1)
    deliver(task, deploy(finished=True))
    assert not task.awaits_splits


def test_the_last_word_counts_though_an_older_one_follows() -> None:
    task = reader(1)
    deliver(task, assign(2, {0: 0}, more=False))
    deliver(task, assign(1, {0: 0}))
    read(task, 1)
    task.step(Poll())
    assert task.input_ended


def test_an_input_without_end_rests() -> None:
    task = reader(1, bounded=False)
    deliver(task, assign(1, {0: 0}, more=False))
    read(task, 1)
    assert task.step(Poll()) == [Rest()]


def test_a_snapshot_holds_what_it_has_and_nothing_else() -> None:
    task = reader(2, 2)
    assert positions(task, 1) == {}
    deliver(task, assign(1, {1: 0}))
    read(task, 1)
    assert positions(task, 2) == {1: 1}


def test_what_it_restores_it_hands_back() -> None:
    task = bare(4, 4)
    effects = deliver(task, deploy(state=TaskState(positions={1: 3}), checkpoint=4))
    assert only(Restored, effects).state.positions == {1: 3}
    assert only(Report, effects).message == Running(job=1, attempt=ATTEMPT, task=NAME, returned={1: 3})
    assert task.positions == {}
    deliver(task, assign(1, {1: 3}))
    assert read(task, 1) == [(1, 3)]


def test_a_position_that_was_discarded_is_refused() -> None:
    failed = deliver(reader(5, begins=2), assign(1, {0: 1}))
    reason = "split 0 has been discarded up to record 2, and a new job needs record 1"
    assert str(only(Fail, failed).cause) == reason
