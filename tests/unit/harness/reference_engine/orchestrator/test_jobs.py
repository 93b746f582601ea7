"""The jobs of a run, one after the other: submitted, taken over, ended, resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtTime
from cutproof.harness.reference_engine.orchestrator.jobs import PAUSE_US
from cutproof.harness.scenario.model import Cancel, Resume
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.events import CommandKind, CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from cutproof.reference_impl.processes.network import frames as f
from unit import snapshots
from unit.harness.puppets import Run, Script, played_by_puppets
from unit.harness.scenarios import chain
from unit.harness.stage import planned

__all__ = ["played_by_puppets"]

RESUME = Resume(trigger=AtTime(at_us=700))


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def make(*commands: Any, **engine: Any) -> Run:
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(Run(folder, msgspec.structs.replace(planned(chain(), **engine), commands=commands)))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def snapshot(checkpoint: int) -> CompletedCheckpoint:
    return snapshots.snapshot(checkpoint, savepoint=True, handles={"map-0": f"job-1/chk-{checkpoint}/map-0-1"})


def resumed(run: Run) -> list[tuple[int | None, dict[str, str]]]:
    """The checkpoint of each resume, and the operators that it inserts, as they are in the journal."""
    issued = [entry for entry in run.entries(o.CommandIssued) if entry.kind is CommandKind.RESUME]
    returned = {entry.command: entry.checkpoint for entry in run.entries(o.CommandReturned)}
    return [(returned[entry.command], dict(entry.inserted)) for entry in issued]


def test_a_job_that_is_resumed_takes_its_snapshots_and_no_number_again(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        DiskJobs(run.config.store).save(JobRecord(job=1, attempt=AttemptId(6), next_checkpoint=CheckpointId(9)))
        for checkpoint in (3, 5):
            DiskFiles(run.config.store).store(snapshot(checkpoint))
        yield from run.ends("cancelled", 5)
        yield from run.passes(699)
        assert len(run.coordinator.received(f.Submit)) == 1
        yield from run.passes(1)
        order = run.coordinator.received(f.Submit)[1]
        assert (order.job, order.attempt, order.checkpoint, order.recall) == (2, 8, 17, False)
        assert [one.checkpoint for one in order.initial] == [3, 5]
        yield from run.finishes(job=2)

    run = begin(Cancel(trigger=AtTime(at_us=5)), RESUME)
    run.run(script)
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.unapplied, resumed(run)) == (True, ["command 0: cancel"], [(5, {})])
    assert [entry.command for entry in run.entries(o.CommandIssued)] == [1]


def test_the_coordinator_that_takes_over_is_told_that_the_snapshots_were_in_memory(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("stopped", 4)
        yield from run.passes(1)
        run.launcher.ends(run.coordinator, code=70)
        yield from run.until(lambda: run.coordinator.received(f.TakeOver))
        (order,) = run.coordinator.received(f.TakeOver)
        assert (order.job, order.recall, order.initial) == (2, True, ())
        yield from run.finishes(job=2)

    begin(Resume(trigger=AtTime(at_us=0)), snapshot_store="memory").run(script)


def test_without_a_snapshot_in_memory_nothing_is_recalled(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("cancelled")
        yield from run.passes(1)
        assert not run.coordinator.received(f.Submit)[1].recall
        yield from run.finishes(job=2)

    begin(Resume(trigger=AtTime(at_us=0)), snapshot_store="memory").run(script)


def test_with_snapshots_in_memory_the_coordinator_is_asked_to_recall_them(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("stopped", 4)
        yield from run.passes(1)
        order = run.coordinator.received(f.Submit)[1]
        assert (order.recall, order.initial) == (True, ())
        yield from run.finishes(job=2)

    run = begin(Resume(trigger=AtTime(at_us=0)), snapshot_store="memory")
    run.run(script)
    assert resumed(run) == [(4, {})]


@pytest.mark.parametrize("status", ["finished", "failed"])
def test_a_job_that_finished_is_not_resumed_nor_one_that_failed_without_a_snapshot(
    begin: Callable[..., Run], status: str
) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends(status)
        yield from run.passes(700 + PAUSE_US)

    run = begin(RESUME)
    run.run(script)
    assert len(run.coordinator.received(f.Submit)) == 1
    evidence = run.orchestrator.evidence()
    assert (evidence.quiet, evidence.unapplied) == (True, ["resume"])


@pytest.mark.parametrize("retained", [(), (4,)], ids=["without a snapshot", "with one"])
def test_a_job_with_other_operators_is_in_the_journal_and_without_a_snapshot_not_asked_for(
    begin: Callable[..., Run], retained: tuple[int, ...]
) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("cancelled", *retained)
        yield from run.passes(1)
        yield from run.finishes(job=2)

    run = begin(Resume(trigger=AtTime(at_us=0), inserted={"fresh": "map"}), snapshot_store="memory")
    run.run(script)
    assert resumed(run) == [(4, {"fresh": "map"})] * len(retained)
    assert run.orchestrator.evidence().unapplied == ([] if retained else ["resume"])


def test_the_end_of_a_job_is_taken_once_and_from_the_right_one(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("cancelled", job=2)
        yield from run.passes(800)
        assert len(run.coordinator.received(f.Submit)) == 1, "job 1 has not ended"
        for _ in range(2):
            yield from run.ends("cancelled")
        yield from run.passes(700)
        assert [order.job for order in run.coordinator.received(f.Submit)] == [1, 2]
        yield from run.finishes(job=2)

    run = begin(RESUME, RESUME)
    run.run(script)
    assert run.orchestrator.evidence().unapplied == ["resume"]


def test_a_coordinator_that_comes_when_the_job_has_ended_takes_nothing_over(begin: Callable[..., Run]) -> None:
    def script(run: Run) -> Script:
        yield from run.begins()
        yield from run.ends("finished", staying=[puppet.name for puppet in run.living])
        run.launcher.ends(run.coordinator, code=70)
        yield from run.until(lambda: len(run.named("coordinator")) == 2)
        yield from run.finishes()

    run = begin()
    run.run(script)
    assert run.coordinator.received(f.TakeOver) == []
    assert run.coordinator.received(f.Submit) == []
    assert run.orchestrator.evidence().quiet
