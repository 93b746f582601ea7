"""The restart of a region as a machine: what is lost, its new number, its deployment, and that it runs (FLIP-1)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.sources.enumerator import SplitAssignment
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.deployment import Deployment, deployment
from cutproof.reference_impl.core.lifecycle.job_records import DeployRegion
from cutproof.reference_impl.core.lifecycle.regions import RegionalFailover
from cutproof.reference_impl.core.lifecycle.task_ends import TaskEnds
from cutproof.reference_impl.core.protocol.checkpoints import UnderWay
from cutproof.reference_impl.core.vocabulary.causes import Killed, StateMissing
from cutproof.reference_impl.core.vocabulary.effects import Effect, SendToTask, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Deploy, Running
from cutproof.reference_impl.core.vocabulary.stages import (
    AwaitingRecord,
    Delayed,
    PartialFailover,
    Renumbered,
    Starting,
    Terminating,
    Working,
)
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptRunning, AttemptStarted, RegionRestarted
from cutproof.reference_impl.core.vocabulary.timeouts import DeployTimeout, RestartDelay
from unit.core.coordinator_rig import attempts_up_to
from unit.core.neighbours import Told, life_at, neighbour

CAUSE = Killed()
TWO_REGIONS = JobGraph(
    (
        OperatorSpec(name="source", parallelism=2, splits=(0, 1), role="source"),
        OperatorSpec(
            name="sink", parallelism=2, inputs=(EdgeSpec(sender="source", partitioning="forward"),), role="sink"
        ),
    ),
    16,
)
TASKS = tuple(task for task, _, _ in TWO_REGIONS.tasks())
A, B = (TaskId("source-0"), TaskId("sink-0")), (TaskId("source-1"), TaskId("sink-1"))
LAST = CheckpointId(8)


def snapshot(checkpoint: int, lacks: tuple[TaskId, ...] = ()) -> CompletedCheckpoint:
    return CompletedCheckpoint(
        checkpoint=CheckpointId(checkpoint),
        job=1,
        attempt=AttemptId(3),
        savepoint=False,
        ending=None,
        handles={task: Handle(f"{checkpoint} of {task}") for task in TASKS if task not in lacks},
        parallelism=TWO_REGIONS.parallelism,
        key_groups=TWO_REGIONS.key_groups,
    )


class Job:
    """It works in its third attempt, with these complete snapshots."""

    def __init__(self, *complete: CompletedCheckpoint, failover: str = "region") -> None:
        settings: dict[str, Any] = {"alignment": "unaligned", "spilling": "continuous"} if failover == "local" else {}
        config = Config(failover=failover, restart_delay_us=400, deploy_timeout_us=900, **settings)
        parts, under_way = Parts(), UnderWay()
        self.life, self.ends = life_at(Working()), TaskEnds(TWO_REGIONS)
        self.attempts = attempts_up_to(2, channels_stay=failover == "local")
        self.attempts.begin()
        self.attempts.all_deployed()
        completed = CompletedCheckpointStore(TWO_REGIONS, config, parts, 1, under_way, named=None)
        completed.take_over(complete)
        splits = SplitAssignment(1, TWO_REGIONS, config, parts)
        self.regional = RegionalFailover(
            TWO_REGIONS,
            config,
            parts,
            life=self.life,
            attempts=self.attempts,
            ends=self.ends,
            completed=completed,
            deployment=Deployment(1, TWO_REGIONS, config, parts, ends=self.ends, splits=splits),
            records=neighbour("records"),
            closing=neighbour("closing"),
        )

    def lost_with(self, task: TaskId, *, is_ending: bool = False) -> tuple[TaskId, ...]:
        return self.regional.lost_with(task, self.life.stage, is_ending=is_ending)

    def begun(self, *lost: TaskId) -> Job:
        """These are lost, and restart after the delay."""
        self.regional.begin(lost, CAUSE)
        return self

    def restarted(self, *lost: TaskId) -> Job:
        """These have a new number, which is not durable yet."""
        self.begun(*lost).regional.delay_over()
        self.regional.restart()
        return self

    def deployed(self, *lost: TaskId) -> Job:
        self.restarted(*lost).regional.deploy(DeployRegion(self.attempts.newest), LAST)
        return self

    def runs(self, task: TaskId) -> list[Effect]:
        return self.regional.on_running(Running(job=1, attempt=self.attempts.newest, task=task))


def stage(step: Delayed | AwaitingRecord | Renumbered | Starting, *tasks: TaskId) -> PartialFailover:
    return PartialFailover(tasks, CAUSE, step)


# -- what is lost --------------------------------------------------------------------------------------


def test_a_task_is_lost_with_its_region() -> None:
    assert Job().lost_with(A[1]) == A


@pytest.mark.parametrize(("failover", "lost"), [("full", TASKS), ("local", (A[1],))])
def test_it_is_lost_with_all_or_alone_as_the_job_is_set(failover: str, lost: tuple[TaskId, ...]) -> None:
    assert Job(failover=failover).lost_with(A[1]) == lost


def test_a_task_that_may_have_sent_its_end_does_not_recover_alone() -> None:
    job = Job(failover="local")
    job.ends.end_input(A[0])
    assert job.lost_with(A[0]) == (A[0],)
    job.ends.order_to_finish([A[0]], CheckpointId(1))
    assert job.lost_with(A[0]) == TASKS


def test_once_the_job_is_about_to_end_all_are_lost() -> None:
    assert Job().lost_with(A[0], is_ending=True) == TASKS


def test_before_a_restart_begins_its_tasks_are_not_lost_again_and_others_are_lost_with_them() -> None:
    job = Job().begun(*A)
    assert job.lost_with(A[1]) == ()
    assert job.lost_with(B[0]) == TASKS


def test_once_it_has_begun_its_tasks_are_lost_again() -> None:
    assert Job(snapshot(2)).restarted(*A).lost_with(A[1]) == A


def test_a_restart_is_widened_until_it_has_begun() -> None:
    job = Job(snapshot(2))
    assert not job.regional.widen(A), "none is under way"
    job.begun(*A)
    assert job.regional.widen(TASKS)
    assert job.life.stage == stage(Delayed(), *TASKS)
    job.regional.delay_over()
    job.regional.restart()
    assert not job.regional.widen(TASKS)


# -- its restart ---------------------------------------------------------------------------------------


def test_it_waits_for_the_delay_and_then_for_a_record() -> None:
    job = Job()
    assert not job.regional.delay_over(), "of another restart"
    assert job.regional.begin(A, CAUSE) == [SetTimer(RestartDelay(), 400)]
    assert job.life.stage == stage(Delayed(), *A)
    assert not job.regional.awaits_record
    assert job.regional.delay_over()
    assert job.regional.awaits_record
    assert job.life.stage == stage(AwaitingRecord(), *A)


def test_the_lost_get_a_new_number_which_is_made_durable_and_the_others_keep_theirs() -> None:
    job = Job(snapshot(1), snapshot(2)).begun(*A)
    for task in TASKS:
        job.ends.end_input(task)
    job.regional.delay_over()
    assert job.regional.restart() == [Told("records.save", (DeployRegion(AttemptId(4)),))]
    assert [job.attempts.number_of(task) for task in (*A, *B)] == [4, 4, 3, 3]
    assert job.life.stage == stage(Renumbered(snapshot(2)), *A)
    assert [job.ends.awaits_input(task) for task in (*A, *B)] == [True, True, False, False]
    assert not job.regional.delay_over(), "the number is given"


def test_a_snapshot_that_does_not_fit_the_job_fails_it() -> None:
    job = Job(snapshot(2, lacks=B)).begun(*A)
    job.regional.delay_over()
    assert job.regional.restart() == [Told("closing.fail", (StateMissing((), CheckpointId(2), (B[0], B[1])),))]
    assert job.attempts.newest == 3


@pytest.mark.parametrize("complete", [(snapshot(2),), ()])
def test_the_lost_are_deployed_once_their_number_is_durable(complete: tuple[CompletedCheckpoint, ...]) -> None:
    job = Job(*complete).restarted(*A)
    restores, checkpoint = (complete[0], CheckpointId(2)) if complete else (None, None)
    four = AttemptId(4)
    assert job.regional.deploy(DeployRegion(AttemptId(3)), LAST) == [], "an older number"
    assert job.regional.deploy(DeployRegion(four), LAST) == [
        AttemptStarted(four, checkpoint, CAUSE),
        RegionRestarted(four, checkpoint, A, False),
        *deployment(A, four, 1, restores, suspends=False),
        SetTimer(DeployTimeout(four), 900),
    ]
    assert job.life.stage == stage(Starting(restores, A), *A)
    assert job.regional.waiting == A
    assert job.regional.deploy(DeployRegion(four), LAST) == [], "they are deployed once"


def test_a_region_reads_on_even_if_the_snapshot_was_to_end_the_job() -> None:
    stopped = msgspec.structs.replace(snapshot(2), ending=JobEnd.STOP)
    job = Job(stopped).restarted(*A)
    orders = [one for one in job.regional.deploy(DeployRegion(AttemptId(4)), LAST) if isinstance(one, SendToTask)]
    assert [isinstance(one.message, Deploy) and one.message.suspended for one in orders] == [False, False]


def test_a_number_of_a_restart_that_became_one_of_all_deploys_nothing() -> None:
    job = Job()
    job.life.enter(Terminating(None, JobEnd.STOP, ()))
    assert job.regional.deploy(DeployRegion(AttemptId(3)), LAST) == []


def test_with_local_recovery_the_task_goes_on_in_the_channels_that_are_there() -> None:
    job = Job(snapshot(2), failover="local").restarted(A[1])
    _started, restarted, order, _timer = job.regional.deploy(DeployRegion(AttemptId(4)), LAST)
    assert restarted == RegionRestarted(AttemptId(4), CheckpointId(2), (A[1],), True)
    assert isinstance(order, SendToTask)
    assert isinstance(order.message, Deploy)
    assert (order.task, order.message.channels_of, order.message.aborted_up_to) == (A[1], 3, LAST)


def test_the_job_works_again_once_the_whole_region_runs() -> None:
    job = Job(snapshot(2)).deployed(*A)
    for _ in range(2):
        assert job.runs(A[1]) == []
        assert job.regional.waiting == A[:1]
    assert job.runs(A[0]) == [AttemptRunning(AttemptId(4))]
    assert job.life.stage == Working()
    assert job.regional.waiting == ()
    assert job.runs(A[0]) == []


def test_a_report_before_the_region_is_deployed_says_nothing() -> None:
    job = Job(snapshot(2)).restarted(*A)
    assert job.runs(A[0]) == []
    assert job.life.stage == stage(Renumbered(snapshot(2)), *A)


def test_a_restart_is_counted_until_its_tasks_have_been_ordered_to_start() -> None:
    job = Job(snapshot(2))
    counted = [job.regional.is_counted]
    job.begun(*A)
    counted.append(job.regional.is_counted)
    job.regional.delay_over()
    job.regional.restart()
    counted.append(job.regional.is_counted)
    job.regional.deploy(DeployRegion(AttemptId(4)), LAST)
    counted.append(job.regional.is_counted)
    assert counted == [False, True, True, False]
