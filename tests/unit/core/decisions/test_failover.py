"""How an attempt fails, and when the next one starts: after a delay, and after what is being stored (ABS-6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.failover import Failover
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import (
    AnyCause,
    AttemptFailed,
    Killed,
    NotUpInTime,
    RegionRestarts,
    RestartsUsedUp,
    TaskFailed,
)
from cutproof.reference_impl.core.vocabulary.effects import Effect, SetTimer
from cutproof.reference_impl.core.vocabulary.events import TaskLost
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.stages import Deploying, Listing, Restarting, Saving, Stage, Working
from cutproof.reference_impl.core.vocabulary.timeouts import DeployTimeout, RestartDelay
from unit.core.coordinator_rig import GRAPH, OP, SINK, TASKS, attempts_up_to, complete_snapshot
from unit.core.neighbours import Told, life_at, neighbour

CAUSE = Killed()
LOST = TaskFailed(OP, CAUSE)
ALL = Told("cancellation.end_attempt", (AttemptFailed(LOST),))
DELAY = SetTimer(RestartDelay(), 400)


class Region:
    """It stands in for the restart of regions, and says what a test has it say."""

    def __init__(self) -> None:
        self.lost: Sequence[TaskId] = TASKS
        self.waiting: tuple[TaskId, ...] = ()
        self.is_counted = self.widens = self.waits_for_its_delay = self.awaits_record = False

    def lost_with(self, task: TaskId, stage: Stage, *, is_ending: bool) -> Sequence[TaskId]:
        return self.lost

    def widen(self, lost: Sequence[TaskId]) -> bool:
        return self.widens

    def begin(self, lost: tuple[TaskId, ...], cause: AnyCause) -> list[Effect]:
        self.is_counted = True
        return [Told("regional.begin", (lost, cause))]

    def delay_over(self) -> bool:
        return self.waits_for_its_delay

    def restart(self) -> list[Effect]:
        return [Told("regional.restart")]


class Job:
    """It is in its third attempt, and may restart once."""

    def __init__(self, stage: Stage | None = None) -> None:
        self.life, self.under_way = life_at(stage or Working()), UnderWay()
        self.attempts = attempts_up_to(3)
        self.region = Region()
        regional: Any = self.region
        self.failover = Failover(
            GRAPH,
            Config(restart_attempts=1, restart_delay_us=400),
            Parts(),
            life=self.life,
            attempts=self.attempts,
            under_way=self.under_way,
            cancellation=neighbour("cancellation"),
            regional=regional,
            execution=neighbour("execution"),
            closing=neighbour("closing"),
        )

    def lose(self, task: TaskId = OP, attempt: int = 3) -> list[Effect]:
        return self.failover.on_lost(TaskLost(task, AttemptId(attempt), CAUSE))

    def delay_over(self) -> list[Effect]:
        return self.failover.restart_delay_over(RestartDelay())

    def stores(self, checkpoint: int) -> None:
        pending = PendingCheckpoint(checkpoint=CheckpointId(checkpoint), attempt=AttemptId(3), expected=TASKS)
        self.under_way.storing = (BeingStored(pending, complete_snapshot(checkpoint)),)

    def again(self) -> None:
        """Another attempt works."""
        for stage in (Saving(None), Deploying(None, TASKS), Working()):
            self.life.enter(stage)


# -- all tasks -------------------------------------------------------------------------------------


def test_a_lost_task_ends_the_attempt_and_another_follows_after_the_delay() -> None:
    job = Job()
    assert job.lose() == [ALL, DELAY]
    assert job.life.stage == Restarting(LOST)
    assert job.delay_over() == [Told("execution.start", (LOST,))]


def test_a_task_of_an_older_attempt_is_lost_to_nobody() -> None:
    job = Job()
    job.attempts.begin(survivors=[SINK])
    assert job.lose(OP, 3) == []
    assert job.lose(SINK, 3) != []


@pytest.mark.parametrize("stage", [Listing(), Saving(None), Restarting(CAUSE)])
def test_a_loss_restarts_nothing_while_no_attempt_runs(stage: Stage) -> None:
    job = Job(stage)
    assert job.lose() == []
    assert job.life.stage == stage


def test_after_as_many_restarts_as_are_allowed_the_job_fails_with_the_last_cause() -> None:
    job = Job()
    job.lose()
    job.again()
    assert job.lose() == [ALL, Told("closing.fail", (RestartsUsedUp(1, LOST),))]
    assert job.life.stage == Working(), "whoever closes the job enters the next stage"


def test_a_delay_that_is_over_late_starts_nothing() -> None:
    assert Job().delay_over() == []


# -- a record that is being stored --------------------------------------------------------------------


def test_a_restart_waits_for_a_record_that_is_being_stored() -> None:
    job = Job()
    job.lose()
    job.stores(4)
    assert job.delay_over() == []
    assert job.life.stage == Restarting(LOST, delayed=False)
    assert job.failover.resume() == [], "the record is still being stored"
    job.under_way.storing = ()
    assert job.failover.resume() == [Told("execution.start", (LOST,))]


def test_a_record_that_is_stored_before_the_delay_is_over_does_not_shorten_it() -> None:
    job = Job()
    job.lose()
    assert job.failover.resume() == []


def test_a_region_waits_for_the_record_too() -> None:
    job = Job()
    job.region.waits_for_its_delay = True
    job.stores(4)
    assert job.delay_over() == []
    job.region.awaits_record = True
    assert job.failover.resume() == []
    job.under_way.storing = ()
    assert job.failover.resume() == [Told("regional.restart")]


# -- tasks that do not come up ------------------------------------------------------------------------


def test_an_attempt_that_is_not_up_in_time_has_failed() -> None:
    job = Job(Deploying(None, (OP, SINK)))
    cause = NotUpInTime((OP, SINK))
    assert job.failover.not_up_in_time(DeployTimeout(AttemptId(2))) == [], "of an older attempt"
    assert job.failover.not_up_in_time(DeployTimeout(AttemptId(3))) == [
        Told("cancellation.end_attempt", (AttemptFailed(cause),)),
        DELAY,
    ]
    assert job.failover.not_up_in_time(DeployTimeout(AttemptId(3))) == []


def test_a_region_that_is_not_up_in_time_takes_all_with_it() -> None:
    job = Job()
    assert job.failover.not_up_in_time(DeployTimeout(AttemptId(3))) == [], "all run"
    job.region.waiting = (OP,)
    job.failover.not_up_in_time(DeployTimeout(AttemptId(3)))
    assert job.life.stage == Restarting(NotUpInTime((OP,)))


# -- a region ----------------------------------------------------------------------------------------


def of_region(*lost: TaskId) -> Told:
    return Told("cancellation.end_region", (lost, RegionRestarts(lost, LOST)))


def test_a_lost_region_restarts_alone() -> None:
    job = Job()
    job.region.lost = (OP, SINK)
    assert job.lose() == [of_region(OP, SINK), Told("regional.begin", ((OP, SINK), LOST))]
    assert job.life.stage == Working(), "whoever restarts it enters the next stage"
    job.region.waits_for_its_delay = True
    assert job.delay_over() == [Told("regional.restart")]


def test_a_loss_that_restarts_anyhow_is_no_other_one() -> None:
    job = Job()
    job.region.lost = ()
    assert job.lose() == []


def test_more_tasks_that_are_lost_before_a_region_restarts_do_so_with_it_and_are_not_counted() -> None:
    job = Job()
    job.region.lost = (OP,)
    job.lose()
    job.region.widens = True
    assert job.lose() == [of_region(OP)]
    job.region.widens = False
    assert job.lose()[1:] == [Told("regional.begin", ((OP,), LOST))], "its tasks have a number, and have not started"
    job.region.is_counted = False
    assert job.lose()[1:] == [Told("closing.fail", (RestartsUsedUp(1, LOST),))]


def test_a_region_that_becomes_a_restart_of_all_is_one_restart() -> None:
    job = Job()
    job.region.lost = (OP,)
    job.lose()
    job.region.lost = TASKS
    assert job.lose() == [ALL, DELAY]
