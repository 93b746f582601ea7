"""Faults on the files of snapshots: torn ones, names that were not synced, deletes that fail."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from cutproof.faults.plan import (
    AnyFault,
    AtPoint,
    AtRest,
    AtTime,
    FailWrite,
    KillCoordinator,
    KillNode,
    KillTask,
    LoseUnsynced,
    TearWrite,
)
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Fork, Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import CoordinatorUp, FaultFired, History, JobEnded, SnapshotDeleted
from cutproof.properties.model.verdict import Unknown, Violated
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.test_disturbances import failures
from unit.simulated.worlds import fired, job, journal

FORMATS = ("canonical", "native", "incremental")


def at(occurrence: int, point: str = "snapshot-taken", task: str | None = "op0-0") -> AtPoint:
    return AtPoint(point=point, occurrence=occurrence, task=task)


TORN = TearWrite(trigger=at(2), task="op0-0")
LOST = TearWrite(trigger=at(2), task="op0-0", how="lost-link")
CRASH = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=3, side="after"), task="op0-0")


def run(*faults: AnyFault, defect: str | None = None, **engine: object) -> tuple[Scenario, History]:
    settings: dict[str, object] = {"retained_checkpoints": 1, **engine}
    scenario = job(60, Count(), commands=(Fork(trigger=AtRest()),), faults=faults, **settings)  # type: ignore[arg-type]
    return scenario, Run(scenario, parts_for(defect) if defect else Parts(), False).history()


def violated(scenario: Scenario, history: History) -> dict[str, str]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return {name: one.difference for name, one in verdicts.items() if isinstance(one, Violated)}


@pytest.mark.parametrize("snapshot_format", FORMATS)
@pytest.mark.parametrize("fault", [TORN, LOST], ids=["torn", "lost-link"])
def test_a_snapshot_that_is_not_durable_fails_its_checkpoint_and_no_state(
    fault: AnyFault, snapshot_format: str
) -> None:
    scenario, history = run(fault, CRASH, snapshot_format=snapshot_format)
    assert fired(history) == ["tear-write", "kill-task"]
    assert violated(scenario, history) == {}
    completed = [one.checkpoint for one in history.completed]
    assert 1 in completed
    assert 2 not in completed


def test_the_names_are_lost_with_the_power() -> None:
    _, history = run(LOST)
    assert failures(history) == [("its node lost power", 0)]


def test_who_acknowledges_before_that_restores_what_is_not_there() -> None:
    assert "restored-state" in violated(*run(LOST, defect="P32"))


@pytest.mark.parametrize("snapshot_format", FORMATS)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
@pytest.mark.parametrize("kind", ["kill-task", "kill-node", "kill-coordinator", "lose-unsynced"])
def test_a_death_between_two_files_of_a_snapshot_loses_that_snapshot_and_no_state(
    kind: str, occurrence: int, side: str, snapshot_format: str
) -> None:
    """If it is the writer's: one that outlives the coordinator writes the others too.  A canonical one has one file."""
    when = AtPoint(point="file-written", occurrence=occurrence, task="op0-0", side=side)  # type: ignore[arg-type]
    fault: AnyFault = {
        "kill-task": KillTask(trigger=when, task="op0-0"),
        "kill-node": KillNode(trigger=when, node=0),
        "kill-coordinator": KillCoordinator(trigger=when, down_us=500),
        "lose-unsynced": LoseUnsynced(trigger=when, node=0),
    }[kind]
    engine = {"state_backend": "lsm", "memtable_entries": 1, "compaction_files": 20, "nodes": 1}
    scenario, history = run(fault, snapshot_format=snapshot_format, **engine)
    assert fired(history) == [kind]
    assert violated(scenario, history) == {}
    stored = [(one.checkpoint, one.task, one.attempt) for one in history.stored]
    checkpoint = occurrence if snapshot_format == "canonical" else 1
    assert ((checkpoint, "op0-0", 1) in stored) == (kind == "kill-coordinator")


@pytest.mark.parametrize("occurrence", [1, 2, 3, 4])
def test_the_files_get_their_names_one_by_one_and_the_manifest_is_the_last(occurrence: int) -> None:
    """At the n-th time n - 1 of them are there, and the one under the handle is there only behind the last."""
    seen: list[list[str]] = []
    for side in ("before", "after"):
        when = AtPoint(point="file-written", occurrence=occurrence, task="op0-0", side=side)  # type: ignore[arg-type]
        engine = {"state_backend": "lsm", "memtable_entries": 1, "compaction_files": 20, "snapshot_format": "native"}
        scenario = job(60, Count(), faults=(KillTask(trigger=when, task="op0-0"),), **engine)  # type: ignore[arg-type]
        driven = Run(scenario, Parts(), False)
        kill = driven.world.kill

        def killed(runner: Any, *why: Any, then: Any = kill, store: Any = driven.world.files) -> None:
            seen.append([name for name in store.files if "/op0-0-1" in name])
            then(runner, *why)

        driven.world.kill = killed  # type: ignore[method-assign]
        driven.history()
    assert [len(names) for names in seen] == [occurrence - 1, occurrence]
    assert not any(name.endswith("/op0-0-1") for name in seen[0])


@pytest.mark.parametrize("what", ["delete-file", "delete-record"])
@pytest.mark.parametrize("snapshot_format", FORMATS)
def test_a_delete_that_fails_is_tried_again(what: str, snapshot_format: str) -> None:
    fault = FailWrite(trigger=AtTime(at_us=1), task=None, what=what)
    scenario, history = run(fault, snapshot_format=snapshot_format)
    assert fired(history) == ["fail-write"]
    assert failures(history) == []
    assert violated(scenario, history) == {}
    assert [one.checkpoint for one in journal(SnapshotDeleted, history) if one.checkpoint == 1] == [1]
    assert not [name for name in history.residue.files if name.startswith("job-1/chk-1/op0-0")] or (
        snapshot_format == "incremental"
    )


def test_a_record_that_never_can_be_deleted_keeps_its_files_and_the_next_coordinator_goes_on() -> None:
    faults = tuple(FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-record") for _ in range(5))
    scenario, history = run(*faults)
    tried = [one.at_us for one in journal(FaultFired, history)]
    assert [after - before for before, after in pairwise(tried)] == [3_000, 6_000, 12_000, 24_000]
    assert violated(scenario, history) == {}
    (deleted,) = [one for one in journal(SnapshotDeleted, history) if one.checkpoint == 1]
    assert deleted.at_us > tried[-1]


@pytest.mark.parametrize("dies", [False, True], ids=["coordinator-lives", "coordinator-dies"])
@pytest.mark.parametrize("snapshot_format", FORMATS)
def test_nothing_that_a_record_needs_is_deleted_while_the_record_cannot_be(snapshot_format: str, dies: bool) -> None:
    """Neither its files, nor the records before it in the sources' logs, nor its data in flight."""
    fault = FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-record")
    death = KillCoordinator(trigger=AtPoint(point="record-read", occurrence=30), down_us=2_000)
    engine = {"snapshot_format": snapshot_format, "trims_logs": True, "alignment": "unaligned", "full_every": 4}
    scenario, history = run(fault, *([death] if dies else []), read_interval_us=300, **engine)
    assert bool(journal(CoordinatorUp, history)) == dies
    (failed, *_) = journal(FaultFired, history)
    deletions = [one for one in journal(SnapshotDeleted, history) if one.at_us >= failed.at_us]
    assert deletions[0].checkpoint == 1 or dies
    assert deletions[0].at_us >= failed.at_us + (2_000 if dies else 3_000)
    assert violated(scenario, history) == {}


def test_the_end_of_a_job_waits_for_its_deletes() -> None:
    fault = FailWrite(trigger=AtPoint(point="checkpoint-completed", occurrence=5), task=None, what="delete-file")
    scenario, history = run(fault)
    (failed,) = journal(FaultFired, history)
    (ended,) = journal(JobEnded, history)
    assert ended.at_us >= failed.at_us + 3_000
    assert violated(scenario, history) == {}


def test_a_file_that_cannot_be_deleted_stays_until_the_next_coordinator_sweeps() -> None:
    """Other files that are deleted during its pauses take some of the faults."""
    faults = tuple(FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-file") for _ in range(60))
    scenario, history = run(*faults, read_interval_us=3_000)
    verdict = judge(scenario.workload, scenario.topology, history).verdicts["no-leaks"]
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "assumption broken"
    assert "struck each try to delete the file job-1/chk-" in verdict.detail
    assert violated(scenario, history) == {}
    dies = KillCoordinator(trigger=AtPoint(point="checkpoint-completed", occurrence=40), down_us=2_000)
    assert violated(*run(*faults, dies, read_interval_us=3_000)) == {}


def test_who_takes_it_for_done_leaks() -> None:
    fault = FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-file")
    for faults in (1, 60):
        assert violated(*run(*[fault] * faults, defect="P33", read_interval_us=3_000)) == {"no-leaks": "file left"}


def test_who_deletes_the_files_of_a_record_that_stays_cannot_restore_it() -> None:
    fault = FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-record")
    assert violated(*run(fault, defect="P34")) != {}


def test_a_fault_that_finds_nothing_to_delete_has_not_fired() -> None:
    fault = FailWrite(trigger=AtTime(at_us=1), task=None, what="delete-file")
    _, history = run(fault, retained_checkpoints=1_000)
    assert fired(history) == []
