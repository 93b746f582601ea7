"""Snapshots that a user has deleted while the job runs."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime, FailWrite, KillCoordinator, KillTask
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Cancel, DeleteSnapshot, Fork, Resume, Savepoint, Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.causes import NeededForRecovery
from cutproof.properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    CoordinatorUp,
    History,
    SnapshotDeleted,
)
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count
from cutproof.properties.mutations.deletions import DELETION_MUTATIONS, LISTING_MUTATIONS
from cutproof.properties.mutations.tampering import tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import counted, job, journal

EARLY = Savepoint(trigger=AtTime(at_us=1_000), name="early")


def behind(occurrence: int) -> AtPoint:
    return AtPoint(point="checkpoint-completed", occurrence=occurrence, side="after")


WISH = DeleteSnapshot(trigger=behind(3), snapshot="early")
AGAIN = DeleteSnapshot(trigger=behind(4), snapshot="early")


def deleted(*commands: object, faults: tuple[object, ...] = (), defect: str | None = None, **engine: object) -> History:
    """The history of a job in which nothing is violated, unless a defect is planted."""
    scenario, history = _run(*commands, faults=faults, defect=defect, **engine)
    assert defect is not None or violated(scenario, history) == []
    return history


def _run(
    *commands: object, faults: tuple[object, ...] = (), defect: str | None = None, **engine: object
) -> tuple[Scenario, History]:
    settings = {"retained_checkpoints": 8, "trims_logs": True, **engine}
    scenario = job(60, Count(), commands=commands, faults=faults, **settings)  # type: ignore[arg-type]
    return scenario, Run(scenario, parts_for(defect) if defect else Parts(), False).history()


def violated(scenario: Scenario, history: History) -> list[tuple[str, str]]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return [(name, one.difference) for name, one in verdicts.items() if isinstance(one, Violated)]


def answers(history: History) -> list[tuple[int | None, str]]:
    """Those to the commands to delete a snapshot."""
    wished = [one.command for one in journal(CommandIssued, history) if one.kind == "delete-snapshot"]
    return [(one.checkpoint, one.error) for one in journal(CommandReturned, history) if one.command in wished]


def test_a_savepoint_is_deleted_with_its_files() -> None:
    history = deleted(EARLY, WISH)
    early = journal(CommandReturned, history)[0].checkpoint
    assert answers(history) == [(early, "")]
    assert early not in history.residue.retained
    assert not [name for name in history.residue.files if name.startswith(f"job-1/chk-{early}/")]


def test_the_record_is_deleted_before_the_files() -> None:
    watched = KillTask(trigger=AtPoint(point="file-deleted", occurrence=1, side="before"), task="op0-0")
    history = deleted(EARLY, WISH, faults=(watched,))
    early = journal(CommandReturned, history)[0].checkpoint
    first, *others = journal(SnapshotDeleted, history)[:3]
    assert (first.checkpoint, first.handles) == (early, [])
    assert all(one.checkpoint == 0 and len(one.handles) == 1 for one in others)


def test_a_checkpoint_can_be_deleted_too() -> None:
    history = deleted(DeleteSnapshot(trigger=behind(3), snapshot="oldest"))
    assert answers(history) == [(1, "")]
    assert 1 not in history.residue.retained
    assert 2 in history.residue.retained


def test_the_snapshot_that_the_job_would_restore_is_refused() -> None:
    history = deleted(DeleteSnapshot(trigger=behind(3), snapshot="newest"))
    assert answers(history) == [(None, "after a failure the job would restore checkpoint 3")]
    assert journal(CommandReturned, history)[-1].cause == NeededForRecovery(checkpoint=3)
    assert 3 in history.residue.retained


def test_the_command_can_be_repeated() -> None:
    history = deleted(EARLY, WISH, AGAIN)
    early = journal(CommandReturned, history)[0].checkpoint
    assert answers(history) == [(early, ""), (early, "")]


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    ("point", "occurrence"), [("snapshot-deleted", 1), ("file-deleted", 1), ("file-deleted", 2), ("file-deleted", 3)]
)
def test_a_coordinator_that_dies_amid_a_deletion_leaves_nothing_behind(point: str, occurrence: int, side: str) -> None:
    dies = KillCoordinator(trigger=AtPoint(point=point, occurrence=occurrence, side=side))  # type: ignore[arg-type]
    history = deleted(EARLY, WISH, AGAIN, Fork(trigger=AtRest()), faults=(dies,), checkpoint_interval_us=1_000)
    early = journal(CommandReturned, history)[0].checkpoint
    assert journal(CoordinatorUp, history)
    assert answers(history)[0] == (None, "the coordinator died")
    assert answers(history)[1:] == [(early, "")], "repeated, the command is answered well"
    assert early not in history.residue.retained


def test_a_file_that_a_later_snapshot_needs_stays() -> None:
    wish = DeleteSnapshot(trigger=behind(4), snapshot="oldest")
    history = deleted(wish, Fork(trigger=AtRest()), snapshot_format="incremental", full_every=8)
    (checkpoint, _), *_ = answers(history)
    assert checkpoint == 1
    assert any(name.startswith("job-1/chk-1/") for name in history.residue.files)
    assert not any(name in history.residue.files for name in history.completed[0].handles.values())


def test_the_listing_says_who_refers_to_what() -> None:
    history = deleted(snapshot_format="incremental", full_every=8)
    listing, sizes = history.residue.listing, history.residue.sizes
    assert isinstance(listing, list)
    assert isinstance(sizes, dict)
    assert [one.checkpoint for one in listing] == history.residue.retained
    first, second = listing[:2]
    assert first.shared_bytes > 0
    assert set(first.files) & set(second.files)
    assert all(one.own_bytes + one.shared_bytes == sum(sizes[name] for name in one.files) for one in listing)
    assert {name for one in listing for name in one.files} == set(history.residue.files)


def test_sources_let_go_what_only_a_deleted_snapshot_needed() -> None:
    kept = deleted(EARLY, retained_checkpoints=1)
    dropped = deleted(EARLY, WISH, retained_checkpoints=1)
    assert len(dropped.residue.retained) < len(kept.residue.retained)


def test_a_snapshot_in_memory_is_deleted() -> None:
    history = deleted(DeleteSnapshot(trigger=behind(3), snapshot="oldest"), snapshot_store="memory")
    assert answers(history) == [(1, "")]
    assert 1 not in history.residue.retained


def test_a_job_is_not_resumed_from_what_was_deleted() -> None:
    stop = Cancel(trigger=behind(5))
    again = Resume(trigger=AtTime(at_us=700), snapshot="oldest")
    history = deleted(DeleteSnapshot(trigger=behind(3), snapshot="oldest"), stop, again)
    assert journal(AttemptStarted, history)[-1].restores == 2


def test_a_job_passes_over_a_newer_snapshot_and_its_user_deletes_that() -> None:
    """Then the newest one is the one with which the job began."""
    stop = Cancel(trigger=behind(3))
    wish = DeleteSnapshot(trigger=AtPoint(point="task-running", occurrence=6, side="after"), snapshot="newest")
    history = deleted(stop, Resume(trigger=AtTime(at_us=700), snapshot="oldest"), wish)
    assert answers(history) == [(3, "")]
    assert journal(AttemptStarted, history)[-1].restores == 1


def test_a_savepoint_that_was_not_taken_cannot_be_deleted() -> None:
    history = deleted(Savepoint(trigger=AtTime(at_us=900_000), name="early"), WISH)
    assert "command 1: delete-snapshot" in history.unapplied


def test_at_most_once_has_nothing_to_delete() -> None:
    wish = DeleteSnapshot(trigger=AtTime(at_us=3_000), snapshot="oldest")
    history = deleted(wish, guarantee="at-most-once", sink="plain")
    assert "command 0: delete-snapshot" in history.unapplied


def test_the_output_is_that_of_a_job_without_deletions() -> None:
    scenario, history = _run(EARLY, WISH, AGAIN)
    assert Counter(history.committed) == counted(scenario)


# -- defects -----------------------------------------------------------------------------------------------------

DIES = KillCoordinator(trigger=AtPoint(point="snapshot-deleted", side="before"))


def test_files_that_are_deleted_first_are_missed() -> None:
    scenario, history = _run(EARLY, WISH, faults=(DIES,), defect="P21")
    assert ("restored-state", "file missing") in violated(scenario, history)


def test_a_shared_file_that_is_deleted_is_missed() -> None:
    wish = DeleteSnapshot(trigger=behind(4), snapshot="oldest")
    scenario, history = _run(wish, defect="P22", snapshot_format="incremental", full_every=8)
    assert ("restored-state", "file missing") in violated(scenario, history)


def test_the_deletion_of_what_would_be_restored_is_seen_without_any_failure() -> None:
    scenario, history = _run(DeleteSnapshot(trigger=behind(3), snapshot="newest"), defect="P23")
    assert ("restored-state", "restorable snapshot deleted") in violated(scenario, history)


def test_a_deleted_snapshot_that_comes_back_is_seen() -> None:
    dies = KillCoordinator(trigger=behind(4))
    scenario, history = _run(EARLY, WISH, faults=(dies,), defect="P24")
    assert set(violated(scenario, history)) >= {("restored-state", "file missing"), ("progress", "command not obeyed")}


# -- lies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mutation", DELETION_MUTATIONS | LISTING_MUTATIONS)
def test_lies_about_a_deletion_are_seen(mutation: str) -> None:
    wish = DeleteSnapshot(trigger=behind(3), snapshot="newest")
    scenario, history = _run(EARLY, WISH, wish)
    case = Case(scenario.workload, scenario.topology, history)
    (tampered,) = [one for one in tamperings(case) if one.name == mutation]
    verdicts = judge(scenario.workload, scenario.topology, tampered.apply(history)).verdicts
    assert all(isinstance(verdicts[name], Violated) for name in tampered.invariants)


def test_a_deletion_is_exercised() -> None:
    scenario, history = _run(EARLY, WISH)
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    assert isinstance(verdicts["no-leaks"], Holds)


FAILING = FailWrite(trigger=AtTime(at_us=0), task=None, what="delete-file")


@pytest.mark.parametrize("faults", [(), (FAILING,)], ids=["at once", "one delete fails and is tried again"])
def test_while_files_are_deleted_one_by_one_the_store_says_so(faults: tuple[object, ...]) -> None:
    """A job on processes is not at rest before: some of its files are still there."""
    kill = KillCoordinator(trigger=AtPoint(point="file-deleted", occurrence=10_000))
    scenario = job(60, Count(), faults=(kill, *faults), retained_checkpoints=1)
    one = Run(scenario, Parts(), False)
    seen: list[bool] = []
    reach = one.world.points.reach

    def watched(point: str, *words: object) -> bool:
        seen.extend([one.world.records.is_deleting] if point == "file-deleted" else [])
        return reach(point, *words)

    one.world.points.reach = watched
    one.history()
    assert set(seen) == {True}
    assert not one.world.records.is_deleting
