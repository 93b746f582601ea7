"""Local recovery in the core: determinants, who recovers locally, and the order that it gets (UNA-4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.local_recovery import End, LocalRecovery, Resumption
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.extensions.local_recovery import (
    ENDS,
    DeterminantLog,
    LogPlace,
    element_of,
    is_numbered,
    unsupported,
)
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, EventTime, JobGraph
from cutproof.reference_impl.core.operators.bursts import Burst
from cutproof.reference_impl.core.operators.operators import Map
from cutproof.reference_impl.core.vocabulary.causes import Killed, TaskFailed
from cutproof.reference_impl.core.vocabulary.effects import AppendToLog, Block
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.events import Came, LogsFound
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import (
    Barrier,
    Cancel,
    CancelBarrier,
    Deploy,
    EndOfData,
    EndOfPartition,
    Watermark,
)
from cutproof.reference_impl.core.vocabulary.status_changes import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    RegionRestarted,
    StatusChange,
)
from cutproof.reference_impl.core.vocabulary.timeouts import RestartDelay
from unit.core.coordinator_rig import (
    GRAPH,
    OP,
    SINK,
    SOURCE,
    TASKS,
    CoordinatorRig,
    addressed,
    changes,
    deployed,
    handle,
    of,
)
from unit.core.machines import ATTEMPT, deliver, operator, sent, source, take, trigger

LOCAL = Config(failover="local")


def place(determinants: int) -> LogPlace:
    return LogPlace(determinants=determinants, taken=(determinants,), sent=(0,))


# -- determinants ------------------------------------------------------------------------------------------------


def taken_down(*determinants: tuple[int, int], durable: int) -> DeterminantLog:
    order = DeterminantLog()
    for determinant in determinants:
        order.take_down(determinant)
    order.flushed(durable)
    return order


def test_what_is_not_durable_dies_with_the_task() -> None:
    order = taken_down((0, 0), (1, 0), (0, 1), durable=2)
    order.lose()
    assert order.determinants == ((0, 0), (1, 0))
    assert order.end == order.durable == 2


def test_so_does_a_snapshots_place_behind_it() -> None:
    order = taken_down((0, 0), (1, 0), durable=1)
    order.mark(CheckpointId(1), place(1))
    order.mark(CheckpointId(2), place(2))
    order.lose()
    assert order.place(CheckpointId(1)) == place(1)
    assert order.place(CheckpointId(2)) is None


def test_what_is_before_the_oldest_checkpoint_is_forgotten_and_the_rest_keeps_its_place() -> None:
    order = taken_down((0, 0), (1, 0), (0, 1), (1, 1), durable=4)
    order.mark(None, place(0))
    order.mark(CheckpointId(1), place(1))
    order.mark(CheckpointId(2), place(3))
    assert order.trim(CheckpointId(2)) == place(3)
    assert order.determinants == ((1, 1),)
    assert order.before(place(3)) == 0
    assert order.before(place(4)) == 1
    assert order.end == 4
    assert order.place(CheckpointId(1)) is None
    assert order.place(None) is None


def test_a_checkpoint_that_is_not_known_trims_nothing() -> None:
    order = taken_down((0, 0), durable=1)
    assert order.trim(CheckpointId(7)) is None
    assert order.determinants == ((0, 0),)


def test_a_replay_is_in_the_order_of_old_and_begins_where_the_snapshot_was_taken() -> None:
    decided = LocalRecovery()
    determinants = ((1, 4), (0, 2), (1, 5))
    assert decided.replayed(determinants, 0) == determinants
    assert decided.replayed(determinants, 1) == ((0, 2), (1, 5))
    assert decided.goes_on(4) == Resumption(takes=4, appends=4)
    assert [decided.may_leave(3, durable) for durable in (2, 3, 4)] == [False, True, True]
    assert [decided.is_repeat(number, 3) for number in (2, 3, 4)] == [True, False, False]


def test_a_sender_lets_go_of_what_is_durable_and_of_nothing_else() -> None:
    decided = LocalRecovery()
    assert [decided.may_forget(number, durable=2, received=4) for number in (1, 2, 3)] == [True, False, False]


def test_of_snapshots_behind_the_one_that_is_restored_nothing_is_known() -> None:
    order = taken_down((0, 0), (0, 1), durable=2)
    order.mark(CheckpointId(1), place(1))
    order.mark(CheckpointId(2), place(2))
    assert order.taken_at(CheckpointId(1)) == {1: (1,)}


def test_barriers_and_ends_have_no_number() -> None:
    unnumbered = [Barrier(CheckpointId(1)), CancelBarrier(CheckpointId(1)), EndOfData(), EndOfPartition()]
    assert [is_numbered(element) for element in unnumbered] == [False] * 4
    assert is_numbered(Watermark(3))
    assert [element_of(ENDS[type(end)]) for end in (EndOfData(), EndOfPartition())] == [EndOfData(), EndOfPartition()]
    assert sorted(ENDS.values(), key=str) == sorted(End, key=str)


# -- what is refused ---------------------------------------------------------------------------------------------


def graph(**changed: Any) -> JobGraph:
    """Source, operator and sink, the operator changed."""
    first, op, sink = GRAPH.operators
    return JobGraph((first, msgspec.structs.replace(op, **changed), sink), 16)


def from_source(**changed: Any) -> JobGraph:
    first, op, sink = GRAPH.operators
    return JobGraph((msgspec.structs.replace(first, **changed), op, sink), 16)


def test_edges_by_key_and_straight_on_are_supported() -> None:
    assert unsupported(GRAPH, LOCAL) is None
    assert unsupported(graph(inputs=(EdgeSpec(sender="source", partitioning="forward"),)), LOCAL) is None


@pytest.mark.parametrize(
    ("job", "settings", "words"),
    [
        (GRAPH, {"guarantee": "at-least-once", "sink": "plain"}, "it works only with exactly-once"),
        (GRAPH, {"sink": "idempotent"}, "transactional sink that commits itself"),
        (GRAPH, {"committing": "committer"}, "transactional sink that commits itself"),
        (GRAPH, {"alignment": "unaligned", "spilling": "buffer-timeout"}, "is in no log"),
        (graph(role="two-phase"), {}, "op commits the rows that it passes on"),
        (graph(build=lambda: Burst(5, "count")), {}, "op uses processing time"),
        (graph(inputs=(EdgeSpec(sender="source", partitioning="broadcast"),)), {}, "source to op is a broadcast edge"),
        (graph(inputs=(EdgeSpec(sender="source", partitioning="rebalance"),)), {}, "source to op is a rebalance edge"),
        (from_source(enumerated=True), {}, "which splits source was assigned"),
        (from_source(event_time=EventTime(idle_after_us=5)), {}, "when a split of source is idle"),
    ],
)
def test_what_a_replay_would_do_otherwise_is_refused_in_one_line(job: JobGraph, settings: Any, words: str) -> None:
    reason = unsupported(job, Config(failover="local", **settings))
    assert reason.startswith("failover local: ")
    assert words in reason
    with pytest.raises(Refused, match=r"^failover local: "):
        CoordinatorRig(graph=job, failover="local", **settings)


# -- the coordinator ---------------------------------------------------------------------------------------------


def rig(**settings: Any) -> CoordinatorRig:
    return CoordinatorRig(failover="local", **settings)


def test_a_lost_task_recovers_locally_in_the_channels_of_the_others() -> None:
    job = rig().up()
    job.checkpoint(1)
    assert addressed(Cancel, job.lose(OP)) == [OP]
    job.timer(RestartDelay())
    effects = job.saved()
    assert of(StatusChange, effects) == [
        AttemptStarted(2, 1, TaskFailed(OP, Killed())),
        RegionRestarted(2, 1, (OP,), True),
    ]
    order = Deploy(job=1, attempt=2, checkpoint=1, handle=handle(1, OP), channels_of=1, aborted_up_to=1)
    assert deployed(effects) == {OP: order}
    assert job.machine.attempt_of(SOURCE) == job.machine.attempt_of(SINK) == 1
    assert changes(job.running(OP)) == [(AttemptRunning, None)]


def test_it_is_notified_of_what_was_aborted_when_it_was_lost() -> None:
    job = rig().up()
    job.trigger()
    aborted = job.lose(OP)
    assert (CheckpointAborted, 1) in changes(aborted)
    job.timer(RestartDelay())
    assert deployed(job.saved()) == {OP: Deploy(job=1, attempt=2, channels_of=1, aborted_up_to=1)}


def test_two_that_are_lost_together_come_up_together_and_all_of_them_are_everything() -> None:
    job = rig().up()
    job.lose(SOURCE)
    job.lose(OP)
    job.timer(RestartDelay())
    assert list(deployed(job.saved())) == [SOURCE, OP]
    whole = rig().up()
    for task in TASKS:
        whole.lose(task)
    whole.timer(RestartDelay())
    orders = deployed(whole.saved())
    assert orders == {task: Deploy(job=1, attempt=2) for task in TASKS}, "in channels of their own"


def test_the_channels_are_those_of_the_newest_attempt_of_all() -> None:
    job = rig().up()
    for task in TASKS:
        job.lose(task)
    job.again()
    job.running(*TASKS)
    job.lose(OP, 2)
    job.timer(RestartDelay())
    assert deployed(job.saved())[OP].channels_of == 2


def test_a_task_that_may_have_sent_its_end_of_data_restarts_all() -> None:
    job = rig().up()
    job.ended(SOURCE)
    job.trigger()
    job.ack(1, SOURCE, ended=True)
    job.ack(1, OP, SINK)
    job.stored(1)
    assert addressed(Cancel, job.lose(SOURCE)) == list(TASKS)


# -- the task ----------------------------------------------------------------------------------------------------

IN_PLACE = Deploy(job=1, attempt=ATTEMPT, channels_of=1, aborted_up_to=3)


@pytest.mark.parametrize(("restored", "called_off"), [(1, (2, 3)), (3, ()), (None, (1, 2, 3))])
def test_those_downstream_wait_for_no_barrier_that_was_aborted(
    restored: int | None, called_off: tuple[int, ...]
) -> None:
    deployment = Deploy(job=1, attempt=ATTEMPT, checkpoint=restored, channels_of=1, aborted_up_to=3)
    cancels = [(0, CancelBarrier(CheckpointId(number))) for number in called_off]
    assert sent(deliver(operator(inputs=2), deployment)) == cancels


def test_a_task_that_recovers_locally_takes_no_part_in_what_was_aborted() -> None:
    task = operator(inputs=2)
    cancels = [(0, CancelBarrier(CheckpointId(number))) for number in (1, 2, 3)]
    assert sent(deliver(task, IN_PLACE)) == cancels
    assert take(task, Barrier(CheckpointId(3))) == [], "it sets nothing aside for it"
    assert take(task, Barrier(CheckpointId(4))) == [Block(0)]
    assert deliver(task, IN_PLACE) == [], "once is enough"


def test_a_task_that_recovers_locally_goes_on_in_the_logs_of_the_one_before() -> None:
    described = msgspec.structs.replace(operator(inputs=2).spec, channels_of=AttemptId(7))
    logged = Config(failover="local", spilling="continuous")
    task = TaskBuilder(logged, Parts()).operator(described, Map(lambda key, value: (key, value)))
    deliver(task, Deploy(job=1, attempt=ATTEMPT, channels_of=AttemptId(7), aborted_up_to=CheckpointId(3)))
    task.step(LogsFound(((5, 6), (0, 0)), {CheckpointId(1): (3, 0)}))
    folder = f"job-{task.spec.job}/log/op-0-7"
    assert task.step(Came(0, Watermark(1))) == [], "it is durable"
    assert task.step(Came(0, Watermark(2))) == [AppendToLog(f"{folder}/0", 6, Watermark(2))]
    assert task.step(Came(1, Watermark(2))) == [AppendToLog(f"{folder}/1", 0, Watermark(2))]


def test_a_source_that_recovers_locally_begins_none_that_was_aborted() -> None:
    task = source(3)
    deliver(task, IN_PLACE)
    assert deliver(task, trigger(3)) == []
    assert (0, Barrier(CheckpointId(4))) in sent(deliver(task, trigger(4)))
