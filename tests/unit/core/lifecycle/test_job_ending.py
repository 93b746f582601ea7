"""The end of a job: only when all has settled, with an answer to everybody who waits (FIN-3, FIN-4)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.commands import Commands
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.job_ending import JobEnding
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import JobClosed
from cutproof.reference_impl.core.vocabulary.effects import EndJob, Return
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.events import Commanded, CommandKind, CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.stages import (
    AwaitingRecords,
    Closing,
    Deciding,
    Ended,
    NothingCovered,
    Settling,
    Stage,
    Terminating,
    Working,
)
from unit.core.coordinator_rig import GRAPH, SINK, TASKS, complete_snapshot
from unit.core.neighbours import CLOSURE, Told, life_at, neighbour

ALL_FINISHED = Terminating(CheckpointId(2), JobEnd.FINISH, ())


def closing(step: Deciding | AwaitingRecords | Settling) -> Closing:
    return Closing(CLOSURE, AttemptId(2), step)


def pending(checkpoint: int, command: int | None = None) -> PendingCheckpoint:
    number = CheckpointId(checkpoint)
    return PendingCheckpoint(checkpoint=number, attempt=AttemptId(1), expected=TASKS, command=command)


class Job:
    """It has come to a stage with these complete snapshots."""

    def __init__(self, stage: Stage, *complete: CompletedCheckpoint) -> None:
        self.life, self.under_way = life_at(stage), UnderWay()
        self.commands = Commands(self.under_way)
        completed = CompletedCheckpointStore(GRAPH, Config(), Parts(), 1, self.under_way, named=None)
        completed.take_over(complete)
        self.ending = JobEnding(
            life=self.life,
            under_way=self.under_way,
            checkpoints=neighbour("checkpoints"),
            completed=completed,
            cleaner=neighbour("cleaner"),
            commands=self.commands,
        )


@pytest.mark.parametrize(
    ("ending", "status"),
    [(JobEnd.FINISH, Status.FINISHED), (JobEnd.STOP, Status.STOPPED), (JobEnd.DRAIN, Status.DRAINED)],
)
def test_a_job_ends_as_its_last_snapshot_says_once_every_task_has_finished(ending: JobEnd, status: Status) -> None:
    job = Job(Terminating(CheckpointId(2), ending, ()), complete_snapshot(1), complete_snapshot(2))
    assert job.ending.end_if_settled() == [
        Told("checkpoints.abort_with_attempt", (JobClosed(status),)),
        Told("cleaner.job_over"),
        EndJob(status, CheckpointId(2)),
    ]
    assert job.life.stage == Ended()
    assert job.ending.end_if_settled() == [], "a job ends once"


def test_a_closed_job_ends_with_its_cause_once_every_writer_is_settled() -> None:
    job = Job(closing(Settling(NothingCovered(), ())))
    assert job.ending.end_if_settled()[-1] == EndJob(Status.FAILED, None, CLOSURE.cause)


@pytest.mark.parametrize(
    "stage",
    [
        Working(),
        Terminating(CheckpointId(2), JobEnd.FINISH, (SINK,)),
        closing(Deciding()),
        closing(AwaitingRecords()),
        closing(Settling(NothingCovered(), (SINK,))),
    ],
)
def test_a_job_does_not_end_while_a_task_or_a_writer_is_waited_for(stage: Stage) -> None:
    job = Job(stage)
    assert job.ending.end_if_settled() == []
    assert job.life.stage == stage


@pytest.mark.parametrize("stage", [ALL_FINISHED, closing(Settling(NothingCovered(), ()))])
def test_a_job_does_not_end_while_a_record_is_being_stored(stage: Stage) -> None:
    job = Job(stage)
    job.under_way.storing = (BeingStored(pending(3), complete_snapshot(3)),)
    assert job.ending.end_if_settled() == []
    job.under_way.storing = ()
    assert isinstance(job.ending.end_if_settled()[-1], EndJob)


def test_every_command_without_an_answer_is_refused_before_the_end_those_that_waited_first() -> None:
    job = Job(ALL_FINISHED)
    for command in (7, 8):
        job.commands.wait(Commanded(command, CommandKind.SAVEPOINT))
    job.under_way.pending = {one.checkpoint: one for one in (pending(3, command=5), pending(4))}
    *_, first, second, third, last = job.ending.end_if_settled()
    over = JobClosed(Status.FINISHED)
    assert [first, second, third] == [Return(command, cause=over) for command in (7, 8, 5)]
    assert isinstance(last, EndJob)
    assert job.commands.take_waiting() == []
