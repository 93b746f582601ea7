"""The job's record: each version says what a successor needs, and has one thing that follows it (ABS-6, ABS-14)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.lifecycle.completed_checkpoint_store import CompletedCheckpointStore
from cutproof.reference_impl.core.lifecycle.job_records import Close, DeployAll, JobRecords, Perform, TriggerCheckpoint
from cutproof.reference_impl.core.protocol.checkpoints import BeingStored, PendingCheckpoint, UnderWay
from cutproof.reference_impl.core.vocabulary.causes import Killed
from cutproof.reference_impl.core.vocabulary.effects import SaveJob
from cutproof.reference_impl.core.vocabulary.events import JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from unit.core.coordinator_rig import GRAPH, TASKS, attempts_up_to, complete_snapshot
from unit.core.neighbours import CLOSURE, Told

COMPLETES = Told("a record is stored")


class Job:
    """In its second attempt; the next checkpoint is the fifth."""

    def __init__(self, **settings: Any) -> None:
        self.attempts, self.under_way = attempts_up_to(2), UnderWay()
        self.checkpoints: Any = SimpleNamespace(next_id=CheckpointId(5), take_over=self.count_from)
        config = Config(**settings)
        self.completed = CompletedCheckpointStore(GRAPH, config, Parts(), 1, self.under_way, named=None)
        self.records = JobRecords(
            1,
            config,
            attempts=self.attempts,
            checkpoints=self.checkpoints,
            under_way=self.under_way,
            completed=self.completed,
        )

    def count_from(self, checkpoint: CheckpointId) -> None:
        self.checkpoints.next_id = checkpoint

    def stores(self, checkpoint: int) -> None:
        number = CheckpointId(checkpoint)
        pending = PendingCheckpoint(checkpoint=number, attempt=AttemptId(2), expected=TASKS)
        self.under_way.storing = (BeingStored(pending, complete_snapshot(checkpoint)),)


def record(version: int, **more: Any) -> SaveJob:
    """Of a job that has not begun, unless it is said that it has."""
    fields = {"job": 1, "attempt": 2, "next_checkpoint": 5, "version": version, "has_begun": False, **more}
    return SaveJob(JobRecord(**fields))


DEPLOY = DeployAll(None, Killed())


def test_a_record_says_whether_the_job_has_begun() -> None:
    refused = Job()
    assert refused.records.save_closure(CLOSURE, None) == [record(1, closure=CLOSURE)]
    job = Job()
    assert job.records.save(DEPLOY) == [record(1, has_begun=True)]
    assert job.records.save_closure(CLOSURE, None) == [record(2, has_begun=True, closure=CLOSURE)]


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_successor_knows_whether_the_job_has_begun(has_begun: bool) -> None:
    job = Job()
    job.records.take_over(JobRecord(job=1, attempt=2, next_checkpoint=5, has_begun=has_begun, closure=CLOSURE))
    assert job.records.save_closure(CLOSURE, None) == [record(1, has_begun=has_begun, closure=CLOSURE)]


def test_a_record_says_how_far_was_counted_and_each_version_has_the_next_number() -> None:
    job = Job()
    assert job.records.save(Close(1)) == [record(1)]
    job.attempts.begin()
    job.checkpoints.next_id = CheckpointId(6)
    assert job.records.save_closure(CLOSURE, 2) == [record(2, attempt=3, next_checkpoint=6, closure=CLOSURE)]
    assert job.records.saved(2) == Close(2)


def test_what_waits_for_a_version_follows_once_and_in_any_order() -> None:
    job = Job()
    job.records.save(Close(1))
    job.records.save_then_trigger(CheckpointId(4))
    assert job.records.saved(2) == TriggerCheckpoint(CheckpointId(4))
    assert job.records.saved(1) == Close(1)
    assert job.records.saved(1) is None, "a repeated answer starts nothing twice"
    assert job.records.saved(3) is None


def test_a_record_says_whether_some_checkpoint_is_complete() -> None:
    job = Job()
    job.completed.take_over([complete_snapshot(3)])
    assert job.records.save(Close(None)) == [record(1, had_snapshot=True)]


def test_a_successor_counts_on_from_the_record_and_knows_what_it_says() -> None:
    job = Job()
    job.records.take_over(
        JobRecord(job=1, attempt=8, next_checkpoint=21, version=30, had_snapshot=True, closure=CLOSURE)
    )
    assert (job.attempts.newest, job.checkpoints.next_id) == (8, 21)
    assert (job.records.had_snapshot, job.records.closure) == (True, CLOSURE)
    assert job.records.save(Close(None)) == [
        record(31, attempt=8, next_checkpoint=21, had_snapshot=True, has_begun=True, closure=CLOSURE)
    ]


def test_that_the_job_is_closed_stays_in_each_later_version_of_the_record() -> None:
    """As where a checkpoint whose record is being stored completes while a job with snapshots in memory closes."""
    job = Job(snapshots_in_memory=True)
    job.records.save_closure(CLOSURE, None)
    job.stores(4)
    assert job.records.save_had_snapshot_before([COMPLETES]) == [record(2, had_snapshot=True, closure=CLOSURE)]


def test_the_first_completion_in_memory_waits_until_the_record_says_that_there_was_one() -> None:
    job = Job(snapshots_in_memory=True)
    job.stores(4)
    assert job.records.save_had_snapshot_before([COMPLETES]) == [record(1, had_snapshot=True)]
    assert job.records.saved(1) == Perform((COMPLETES,))
    assert job.records.save_had_snapshot_before([COMPLETES]) == [COMPLETES], "the record says so already"


def test_no_other_completion_waits() -> None:
    job = Job(snapshots_in_memory=True)
    assert job.records.save_had_snapshot_before([COMPLETES]) == [COMPLETES], "no record is being stored"
    job = Job()
    job.stores(4)
    assert job.records.save_had_snapshot_before([COMPLETES]) == [COMPLETES], "a successor can restore it"
    assert not job.records.had_snapshot
