"""The jobs of a run, one after the other: submitted, taken over, ended, resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.orchestrator.jobs import PAUSE_US, Jobs
from cutproof.harness.scenario.model import Cancel, Resume, Scenario
from cutproof.reference_impl.core.events import CompletedSnapshot, JobRecord
from cutproof.reference_impl.core.ids import AttemptId, CheckpointId
from cutproof.reference_impl.processes import entries as e
from cutproof.reference_impl.processes import frames as f
from cutproof.reference_impl.processes.files import DiskFiles, DiskJobs
from unit import snapshots
from unit.harness.scenarios import chain
from unit.harness.stage import Stage, planned


def jobs_of(stage: Stage) -> Jobs:
    return Jobs(stage.context, stage.scenario, lambda: stage.processes.current("coordinator"))  # type: ignore[arg-type, return-value]


def scenario(*commands: Any, **engine: Any) -> Scenario:
    return msgspec.structs.replace(planned(chain(), **engine), commands=commands)


RESUME = Resume(trigger=AtTime(at_us=700))


def ended(status: str, *retained: int, job: int = 1) -> f.Ended:
    return f.Ended(0, job, status, retained)


def test_the_first_job_begins_at_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage = Stage(monkeypatch, tmp_path, scenario())
    jobs = jobs_of(stage)
    assert not jobs.is_all_over, "none has begun"
    jobs.submit()
    (order,) = stage.coordinator.received(f.Submit)
    assert (order.job, order.attempt, order.checkpoint, order.initial, order.recall) == (1, 1, 1, (), False)
    jobs.ended(ended("finished"))
    assert jobs.is_all_over


def snapshot(checkpoint: int) -> CompletedSnapshot:
    return snapshots.snapshot(checkpoint, savepoint=True, handles={"map-0": f"job-1/chk-{checkpoint}/map-0-1"})


def test_a_job_that_is_resumed_takes_its_snapshots_and_no_number_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage = Stage(monkeypatch, tmp_path, scenario(Cancel(trigger=AtTime(at_us=5)), RESUME))
    jobs = jobs_of(stage)
    jobs.submit()
    DiskJobs(stage.config.store).save(JobRecord(job=1, attempt=AttemptId(6), next_checkpoint=CheckpointId(9)))
    for checkpoint in (3, 5):
        DiskFiles(stage.config.store).store(snapshot(checkpoint))
    jobs.ended(ended("cancelled", 5))
    assert not jobs.is_all_over
    stage.pass_virtual(699)
    assert len(stage.coordinator.received(f.Submit)) == 1
    stage.pass_virtual(1)
    order = stage.coordinator.received(f.Submit)[1]
    assert (order.job, order.attempt, order.checkpoint, order.recall) == (2, 8, 17, False)
    assert [one.checkpoint for one in order.initial] == [3, 5]
    (issued,), (returned,) = stage.entries(e.CommandIssued), stage.entries(e.CommandReturned)
    assert (issued.command, issued.kind) == (1, "resume")
    assert (returned.command, returned.checkpoint) == (1, 5)
    assert jobs.unapplied == []


def test_with_snapshots_in_memory_the_coordinator_is_asked_to_recall_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage = Stage(monkeypatch, tmp_path, scenario(Resume(trigger=AtTime(at_us=0)), snapshot_store="memory"))
    jobs = jobs_of(stage)
    jobs.submit()
    jobs.ended(ended("stopped", 4))
    stage.pass_us(1)
    order = stage.coordinator.received(f.Submit)[1]
    assert (order.recall, order.initial) == (True, ())
    assert stage.entries(e.CommandReturned)[0].checkpoint == 4


def test_a_job_that_finished_is_not_resumed_nor_one_that_failed_without_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for status in ("finished", "failed"):
        folder = tmp_path / status
        folder.mkdir()
        stage = Stage(monkeypatch, folder, scenario(RESUME))
        jobs = jobs_of(stage)
        jobs.submit()
        jobs.ended(ended(status))
        stage.pass_virtual(700 + PAUSE_US)
        assert len(stage.coordinator.received(f.Submit)) == 1
        assert jobs.is_all_over
        assert len(jobs.unapplied) == 1


def test_a_job_with_other_operators_is_in_the_journal_and_without_a_snapshot_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    incompatible = Resume(trigger=AtTime(at_us=0), inserted={"fresh": "map"})
    for retained in ((), (4,)):
        folder = tmp_path / str(len(retained))
        folder.mkdir()
        stage = Stage(monkeypatch, folder, scenario(incompatible, snapshot_store="memory"))
        jobs = jobs_of(stage)
        jobs.submit()
        jobs.ended(ended("cancelled", *retained))
        stage.pass_us(1)
        assert [entry.inserted for entry in stage.entries(e.CommandIssued)] == [{"fresh": "map"}] * len(retained)
        assert len(jobs.unapplied) == 1 - len(retained)


def test_the_end_of_a_job_is_taken_once_and_from_the_right_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage = Stage(monkeypatch, tmp_path, scenario(RESUME, RESUME))
    jobs = jobs_of(stage)
    jobs.submit()
    jobs.ended(ended("cancelled", job=2))
    assert not jobs.is_over
    for _ in range(2):
        jobs.ended(ended("cancelled"))
    stage.pass_virtual(700)
    assert [order.job for order in stage.coordinator.received(f.Submit)] == [1, 2]
    assert len(jobs.unapplied) == 1


def test_a_new_coordinator_goes_on_with_the_job_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage = Stage(monkeypatch, tmp_path, scenario())
    jobs = jobs_of(stage)
    jobs.take_over(stage.coordinator)  # type: ignore[arg-type]
    assert stage.coordinator.frames == []
    jobs.submit()
    newer = stage.processes.replace("coordinator")
    jobs.take_over(newer)  # type: ignore[arg-type]
    (order,) = newer.received(f.TakeOver)
    assert (order.job, order.attempt, order.checkpoint) == (1, 1, 1)
    jobs.ended(ended("finished"))
    newest = stage.processes.replace("coordinator")
    jobs.take_over(newest)  # type: ignore[arg-type]
    assert newest.frames == []
