"""How one task takes part in unaligned checkpoints: when barriers overtake, when its snapshot is written (UNA-1)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.in_flight import Capture
from cutproof.reference_impl.core.decisions.persisting import Persisting
from cutproof.reference_impl.core.extensions.in_flight_data.persistent import Ledger
from cutproof.reference_impl.core.extensions.in_flight_data.unaligned import Unaligned
from cutproof.reference_impl.core.protocol.barrier_alignment import (
    Aligning,
    BarrierCame,
    Flowing,
    OvertakingCame,
    Signal,
    WaitedEnough,
)
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import AppendToLog, Effect, Overtake, Send, SetTimer, Sync, TrimLog
from cutproof.reference_impl.core.vocabulary.events import (
    BarrierOvertook,
    Came,
    LogsFound,
    OutputsOvertaken,
    Synced,
    TimerFired,
)
from cutproof.reference_impl.core.vocabulary.formats import Format
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Barrier, Complete
from cutproof.reference_impl.core.vocabulary.state import Ref, Snapshot, TaskState, without_keyed_state
from cutproof.reference_impl.core.vocabulary.timeouts import AlignmentTimeout
from unit.core.machines import ATTEMPT, complete, row, trigger
from unit.core.neighbours import Told

ONE, TWO = CheckpointId(1), CheckpointId(2)
A, B, C = (row(number, 10 * number, origin=number) for number in (1, 2, 3))
NATIVE = Format("native")
FLOWING = Flowing(last=None)
ALIGNING = Aligning(ONE, (0,))


class Task(InputTask):
    """It stands in for a task: `then` is what its alignment becomes with the next signal."""

    def __init__(self) -> None:
        self.alignment: Any = FLOWING
        self.then: Any = None
        self.written: list[tuple[CheckpointId, TaskState]] = []

    def signal(self, signal: Signal) -> list[Effect]:
        if self.then is not None:
            self.alignment, self.then = self.then, None
        return [Told("signalled", (signal,))]

    def persist(self, checkpoint: CheckpointId, snapshot: Snapshot, synchronous: bool = False) -> list[Effect]:
        self.written.append((checkpoint, snapshot.unkeyed))
        return [Told("written", (checkpoint,))]


@pytest.fixture
def task() -> Task:
    return Task()


def way(ledger: Ledger | None = None, *, inputs: bool = True) -> Unaligned:
    """Of a task with two outputs; in front of the second one barriers may overtake."""
    return Unaligned(Capture(), ledger, overtaken_inputs=inputs, outputs=(0, 1), overtaken_outputs=(1,))


def at_once(checkpoint: CheckpointId = ONE) -> Barrier:
    return Barrier(checkpoint, 0)


def own_state() -> Snapshot:
    return without_keyed_state(TaskState())


# -- a barrier's way ---------------------------------------------------------------------------------


def test_the_barrier_that_begins_an_alignment_sets_its_timeout(task: Task) -> None:
    unaligned, task.then = way(), ALIGNING
    assert unaligned.on_barrier(Barrier(ONE, 300), 0, task) == [
        Told("signalled", (BarrierCame(ONE, 0),)),
        SetTimer(AlignmentTimeout(ONE), 300),
    ]
    assert unaligned.on_barrier(Barrier(ONE, 300), 1, task) == [Told("signalled", (BarrierCame(ONE, 1),))]


@pytest.mark.parametrize(
    ("timeout_us", "inputs", "begins"), [(None, True, True), (300, False, True), (300, True, False)]
)
def test_no_timeout_is_set_for_a_barrier_that_never_overtakes_nor_where_no_alignment_begins(
    task: Task, timeout_us: int | None, *, inputs: bool, begins: bool
) -> None:
    unaligned, task.then = way(inputs=inputs), ALIGNING if begins else None
    assert unaligned.on_barrier(Barrier(ONE, timeout_us), 0, task) == [Told("signalled", (BarrierCame(ONE, 0),))]


def test_the_tasks_own_barrier_waits_its_turn_until_the_timeout_is_over(task: Task) -> None:
    unaligned, task.then = way(), ALIGNING
    unaligned.on_barrier(Barrier(ONE, 300), 0, task)
    assert unaligned.barrier(ONE, None) == [Send(0, Barrier(ONE, 300)), Send(1, Barrier(ONE, 300))]


def test_when_the_timeout_is_over_amid_its_alignment_the_tasks_own_barrier_overtakes(task: Task) -> None:
    unaligned, task.then = way(), ALIGNING
    unaligned.on_barrier(Barrier(ONE, 300), 0, task)
    assert unaligned.step(TimerFired(AlignmentTimeout(ONE)), task) == [Told("signalled", (WaitedEnough(ONE),))]
    assert unaligned.barrier(ONE, None) == [Send(0, at_once()), Overtake(at_once(), (1,))]


def test_a_timeout_of_an_alignment_that_is_over_changes_nothing(task: Task) -> None:
    unaligned = way()
    for alignment in (FLOWING, Aligning(TWO, (0,))):
        unaligned.on_barrier(Barrier(ONE, 300), 0, task)
        task.alignment = alignment
        unaligned.step(TimerFired(AlignmentTimeout(ONE)), task)
        assert unaligned.barrier(ONE, None)[1] == Send(1, Barrier(ONE, 300))


def test_a_barrier_that_overtook_takes_the_tasks_own_with_it(task: Task) -> None:
    unaligned = way()
    assert unaligned.step(BarrierOvertook(0, Barrier(ONE, 300), (A,)), task) == [
        Told("signalled", (OvertakingCame(ONE, 0),))
    ]
    assert unaligned.barrier(ONE, None)[-1] == Overtake(at_once(), (1,))


def test_a_trigger_says_how_the_barriers_of_its_checkpoint_go(task: Task) -> None:
    unaligned = way()
    unaligned.triggered(trigger(1))
    assert unaligned.barrier(ONE, NATIVE) == [Send(channel, Barrier(ONE, None, NATIVE)) for channel in (0, 1)]


def test_a_trigger_may_say_that_they_overtake_at_once(task: Task) -> None:
    unaligned = way()
    unaligned.triggered(msgspec.structs.replace(trigger(1), alignment_timeout_us=0))
    assert unaligned.barrier(ONE, None) == [Send(0, at_once()), Overtake(at_once(), (1,))]


def test_how_a_barrier_goes_is_forgotten_with_those_before_it(task: Task) -> None:
    unaligned = way()
    for checkpoint in (ONE, TWO):
        unaligned.on_barrier(at_once(checkpoint), 0, task)
    assert unaligned.barrier(ONE, None)[-1] == Overtake(at_once(), (1,))
    assert unaligned.barrier(ONE, None)[-1] == Send(1, Barrier(ONE, None)), "it is sent once"
    assert unaligned.barrier(TWO, None)[-1] == Overtake(at_once(TWO), (1,)), "a newer one is not"


# -- snapshots ---------------------------------------------------------------------------------------


def test_an_aligned_snapshot_is_written_at_once(task: Task) -> None:
    unaligned = way()
    unaligned.on_barrier(Barrier(ONE, None), 0, task)
    unaligned.snapshot_taken(ONE, ())
    assert unaligned.persist_once_in_flight_known(ONE, own_state(), task) == [Told("written", (ONE,))]


def test_a_snapshot_waits_for_the_barriers_of_the_other_channels_and_holds_what_comes_before(task: Task) -> None:
    unaligned = way()
    unaligned.on_barrier(Barrier(ONE, None), 0, task)
    unaligned.snapshot_taken(ONE, (1,))
    assert unaligned.persist_once_in_flight_known(ONE, own_state(), task) == []
    unaligned.elements.took(1, A)
    assert unaligned.step(BarrierOvertook(1, at_once(), (B,)), task)[-1] == Told("written", (ONE,))
    assert [(number, state.queued) for number, state in task.written] == [
        (ONE, {1: [(1, 10, 0, 0, 1, 0), (2, 20, 0, 0, 2, 0)]})
    ]
    assert unaligned.write_complete(task) == [], "it is written once"


def test_a_barrier_that_comes_in_its_turn_completes_it_too(task: Task) -> None:
    unaligned = way()
    unaligned.snapshot_taken(ONE, (1,))
    unaligned.persist_once_in_flight_known(ONE, own_state(), task)
    assert unaligned.on_barrier(Barrier(ONE, None), 1, task)[-1] == Told("written", (ONE,))


def test_a_snapshot_whose_barriers_overtake_in_the_outputs_waits_for_what_they_overtook(task: Task) -> None:
    unaligned = way()
    unaligned.on_barrier(at_once(), 0, task)
    unaligned.snapshot_taken(ONE, ())
    assert unaligned.persist_once_in_flight_known(ONE, own_state(), task) == []
    assert unaligned.step(OutputsOvertaken(ONE, {1: (C,)}), task) == [Told("written", (ONE,))]
    ((_, state),) = task.written
    assert state.unsent == {1: [(3, 30, 0, 0, 3, 0)]}


def test_the_end_of_the_last_channel_completes_it_too_and_an_aborted_one_is_never_written(task: Task) -> None:
    unaligned = way()
    for checkpoint in (ONE, TWO):
        unaligned.snapshot_taken(checkpoint, (1,))
        unaligned.persist_once_in_flight_known(checkpoint, own_state(), task)
    unaligned.aborted(ONE)
    unaligned.ended(1)
    assert unaligned.write_complete(task) == [Told("written", (TWO,))]


# -- logs of persistent channels -----------------------------------------------------------------------


def test_without_persistent_channels_nothing_is_appended_or_trimmed(task: Task) -> None:
    unaligned = way()
    assert not unaligned.keeps_logs
    assert unaligned.step(Came(0, A), task) == unaligned.completed(complete(1)) == []


def test_a_snapshot_that_refers_to_a_log_waits_until_that_is_durable(task: Task) -> None:
    unaligned = way(Ledger(["log"], Persisting(), 0))
    assert unaligned.keeps_logs
    assert unaligned.step(Came(0, A), task) == [AppendToLog("log", 0, A)]
    unaligned.snapshot_taken(ONE, (0,))
    unaligned.persist_once_in_flight_known(ONE, own_state(), task)
    assert unaligned.step(BarrierOvertook(0, at_once(), (A,)), task)[1:] == [Sync(1)]
    assert unaligned.step(Synced(1), task) == [Told("written", (ONE,))]
    ((_, state),) = task.written
    assert (state.queued, state.spilled) == ({}, {0: [Ref("log", 0, 1)]})


def test_a_log_that_is_there_is_written_on_and_trimmed_up_to_what_a_checkpoint_needs(task: Task) -> None:
    unaligned = way(Ledger(["log"], Persisting(), 0))
    assert unaligned.step(LogsFound(((5, 6),), {ONE: (4,)}), task) == []
    assert unaligned.step(Came(0, A), task) == [], "it is in the log already"
    assert unaligned.step(Came(0, B), task) == [AppendToLog("log", 6, B)]
    needed = Complete(job=1, attempt=ATTEMPT, checkpoint=TWO, logs_from=ONE)
    assert unaligned.completed(needed) == [TrimLog("log", 4)]
