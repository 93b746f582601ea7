"""How an attempt of all tasks starts: numbered, durable, deployed, running (ABS-6)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.sources.enumerator import SplitAssignment
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import JobGraph, OperatorSpec
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.deployment import Deployment, deployment
from cutproof.reference_impl.core.lifecycle.execution import Execution
from cutproof.reference_impl.core.lifecycle.job_records import DeployAll
from cutproof.reference_impl.core.lifecycle.task_ends import TaskEnds
from cutproof.reference_impl.core.protocol.checkpoints import UnderWay
from cutproof.reference_impl.core.vocabulary.causes import Killed, StateMissing, Submitted
from cutproof.reference_impl.core.vocabulary.effects import Effect, SetTimer
from cutproof.reference_impl.core.vocabulary.ends import JobEnd
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Running
from cutproof.reference_impl.core.vocabulary.stages import Deploying, Listing, Restarting, Saving, Stage, Working
from cutproof.reference_impl.core.vocabulary.status_changes import AttemptRunning, AttemptStarted
from cutproof.reference_impl.core.vocabulary.timeouts import DeployTimeout
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, attempts_up_to, complete_snapshot, handle
from unit.core.neighbours import Told, life_at, neighbour

CAUSE = Submitted()
TWO = complete_snapshot(2)


class Job:
    """It is about to start its fifth attempt, with these complete snapshots."""

    def __init__(
        self, *complete: CompletedCheckpoint, stage: Stage | None = None, graph: JobGraph = GRAPH, **settings: Any
    ) -> None:
        config, parts, under_way = Config(deploy_timeout_us=900, **settings), Parts(), UnderWay()
        self.life = life_at(stage or Restarting(Killed()))
        self.attempts, self.ends = attempts_up_to(4), TaskEnds(graph)
        completed = CompletedCheckpointStore(graph, config, parts, 1, under_way, named=None)
        completed.take_over(complete)
        self.splits = SplitAssignment(1, graph, config, parts)
        self.execution = Execution(
            1,
            graph,
            config,
            life=self.life,
            attempts=self.attempts,
            completed=completed,
            cleaner=neighbour("cleaner"),
            deployment=Deployment(1, graph, config, parts, ends=self.ends, splits=self.splits),
            records=neighbour("records"),
            finishing=neighbour("finishing"),
            closing=neighbour("closing"),
        )

    def running(self, task: TaskId) -> list[Effect]:
        return self.execution.on_running(Running(job=1, attempt=self.attempts.newest, task=task))


def deploying(restores: CompletedCheckpoint | None = None, *waiting: TaskId) -> Deploying:
    return Deploying(restores, waiting or TASKS)


def test_an_attempt_gets_the_next_number_which_is_made_durable_first() -> None:
    job = Job(complete_snapshot(1), TWO)
    assert job.execution.start(CAUSE) == [Told("records.save", (DeployAll(TWO, CAUSE),))]
    assert job.attempts.newest == 5
    assert job.life.stage == Saving(TWO)


@pytest.mark.parametrize("settings", [{}, {"guarantee": "at-most-once", "sink": "plain"}])
def test_it_starts_from_nothing_without_a_snapshot_and_if_it_does_not_rewind(settings: dict[str, str]) -> None:
    job = Job(*([TWO] if settings else []), **settings)
    job.execution.start(CAUSE)
    assert job.life.stage == Saving(None)


def test_what_is_known_of_the_tasks_begins_with_the_snapshot() -> None:
    finished = complete_snapshot(2, handles={OP: handle(2, OP), SINK: handle(2, SINK)}, finished=(SOURCE,))
    job = Job(finished)
    job.ends.end_input(OP)
    job.execution.start(CAUSE)
    assert job.ends.finished == (SOURCE,)
    assert job.ends.awaits_input(OP)


def test_a_snapshot_that_does_not_fit_the_job_fails_it() -> None:
    job = Job(complete_snapshot(2, handles={}))
    assert job.execution.start(CAUSE) == [Told("closing.fail", (StateMissing((), CheckpointId(2), TASKS),))]
    assert job.life.stage == Restarting(Killed()), "nothing is deployed"


@pytest.mark.parametrize(("restores", "checkpoint"), [(TWO, 2), (None, None)])
def test_all_tasks_are_deployed_once_the_number_is_durable(
    restores: CompletedCheckpoint | None, checkpoint: int | None
) -> None:
    job = Job(stage=Saving(restores))
    assert job.execution.deploy(DeployAll(restores, CAUSE)) == [
        AttemptStarted(AttemptId(4), checkpoint, CAUSE),
        Told("cleaner.clear_logs"),
        *deployment(TASKS, AttemptId(4), 1, restores),
        SetTimer(DeployTimeout(AttemptId(4)), 900),
    ]
    assert job.life.stage == deploying(restores)
    assert job.attempts.newest_full == 4


@pytest.mark.parametrize("stage", [Restarting(Killed()), Listing()])
def test_a_number_that_becomes_durable_late_deploys_nothing(stage: Stage) -> None:
    job = Job(stage=stage)
    assert job.execution.deploy(DeployAll(None, CAUSE)) == []
    assert job.life.stage == stage


def test_the_job_works_once_every_task_runs() -> None:
    job = Job(stage=deploying())
    for task, left in [(OP, (SOURCE, SINK)), (OP, (SOURCE, SINK)), (SOURCE, (SINK,))]:
        assert job.running(task) == []
        assert job.life.stage == deploying(None, *left)
    assert job.running(SINK) == [AttemptRunning(AttemptId(4))]
    assert job.life.stage == Working()
    assert job.running(SINK) == [], "a repeated report says nothing new"


def test_a_reader_hands_its_splits_back_when_it_has_restored_them() -> None:
    source = OperatorSpec(name="source", parallelism=1, splits=(0,), role="source", enumerated=True)
    graph = JobGraph((source, *GRAPH.operators[1:]), 16)
    job = Job(graph=graph, stage=deploying())
    job.execution.on_running(Running(job=1, attempt=AttemptId(4), task=SOURCE, returned={0: 12}))
    assert job.splits.states()["source"].unassigned == {0: 12}


def test_a_job_that_had_ended_with_the_snapshot_only_finishes() -> None:
    stopped = complete_snapshot(2, ending=JobEnd.STOP)
    job = Job(stage=deploying(stopped, SINK))
    assert job.running(SINK) == [
        AttemptRunning(AttemptId(4)),
        Told("finishing.terminate", (CheckpointId(2), JobEnd.STOP)),
    ]
    assert job.life.stage == Deploying(stopped, ()), "it never works: whoever finishes the tasks enters the next stage"


def test_a_job_that_resumes_one_which_had_ended_works() -> None:
    job = Job(stage=deploying(complete_snapshot(2, ending=JobEnd.STOP, job=9), SINK))
    assert job.running(SINK) == [AttemptRunning(AttemptId(4))]
    assert job.life.stage == Working()
