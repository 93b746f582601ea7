"""Snapshots that a user of a job on processes has copied or moved, and what the tool says of the copies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AnyFault, AtPoint, FailWrite, KillCoordinator, TearWrite
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.scenario.model import AnyCommand, CopySnapshot, MoveSnapshot
from cutproof.properties.model.history import CommandIssued, CommandReturned, CoordinatorUp, History
from cutproof.properties.model.workload import Count
from end_to_end.command_line import cutproof_command, result
from unit.harness.reference_engine.snapshots.continuing import left
from unit.simulated.worlds import job, journal


def behind(occurrence: int) -> AtPoint:
    return AtPoint(point="checkpoint-completed", occurrence=occurrence, side="after")


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessesSubject]:
    subject = ProcessesSubject()
    yield subject
    subject.close()


def ran(subject: ProcessesSubject, folder: Path, *commands: AnyCommand, faults: tuple[object, ...] = ()) -> History:
    """A run in which nothing is violated; its store stays in a folder."""
    engine = {"read_interval_us": 1_000, "retained_checkpoints": 60, "snapshot_format": "incremental", "full_every": 8}
    scenario = job(60, Count(), faults=faults, commands=commands, **engine)  # type: ignore[arg-type]
    found = left(folder, ProcessesSubject(services=subject._services), scenario)
    assert found.judgement.violated == {}
    return found.history


def answers(history: History) -> list[tuple[int | None, str]]:
    return [(one.checkpoint, one.error) for one in journal(CommandReturned, history)]


def listed(folder: Path) -> list[int]:
    """The copies, as the tool lists them; each can be restored."""
    there = str(folder / "copies")
    assert cutproof_command(folder, "snapshots", "verify", there).returncode == 0
    done = cutproof_command(folder, "snapshots", "list", there, "--json")
    return [one["id"] for one in result(done)["snapshots"]]


def test_a_snapshot_is_copied_and_another_is_moved(processes: ProcessesSubject, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    copy, move = CopySnapshot(trigger=behind(2)), MoveSnapshot(trigger=behind(3))
    history = ran(processes, kept, copy, move)
    assert answers(history) == [(2, ""), (1, "")]
    assert (2 in history.residue.retained, 1 in history.residue.retained) == (True, False)
    assert listed(kept) == [1, 2]
    assert cutproof_command(kept, "snapshots", "verify", str(kept)).returncode == 0


@pytest.mark.parametrize("point", ["file-copied", "snapshot-copied"])
def test_a_move_amid_which_the_coordinator_dies_is_repeated(
    processes: ProcessesSubject, tmp_path: Path, point: str
) -> None:
    move = MoveSnapshot(trigger=behind(3))
    dies = KillCoordinator(trigger=AtPoint(point=point, occurrence=1, side="after"))
    history = ran(processes, tmp_path / "kept", move, replace(move, trigger=behind(5)), faults=(dies,))
    assert journal(CoordinatorUp, history)
    assert answers(history) == [(None, "the coordinator died"), (1, "")]
    assert [one.checkpoint for one in journal(CommandIssued, history)] == [1, 1]
    assert 1 not in history.residue.retained
    assert listed(tmp_path / "kept") == [1]


@pytest.mark.parametrize("side", ["before", "after"])
def test_the_newest_is_moved_and_deleted_once_there_is_a_newer_one(
    processes: ProcessesSubject, tmp_path: Path, side: str
) -> None:
    """Also by a coordinator that took over, before and after the record says that it was moved."""
    move = MoveSnapshot(trigger=behind(3), snapshot="newest")
    dies = KillCoordinator(trigger=AtPoint(point="snapshot-marked", side=side))  # type: ignore[arg-type]
    history = ran(processes, tmp_path / "kept", move, faults=(dies,))
    assert journal(CoordinatorUp, history)
    (moved,) = [one.checkpoint for one in journal(CommandIssued, history)]
    assert moved is not None
    assert answers(history) == [(None, "the coordinator died")]
    assert (moved in history.residue.retained) == (side == "before")
    assert listed(tmp_path / "kept") == [moved]


@pytest.mark.parametrize("what", ["copy-file", "copy-record", "torn"])
def test_a_copy_whose_write_fails_has_no_record_and_can_be_repeated(
    processes: ProcessesSubject, tmp_path: Path, what: str
) -> None:
    trigger = AtPoint(point="checkpoint-completed", occurrence=3, side="before")
    if what == "torn":
        fault: AnyFault = TearWrite(trigger=trigger, task=None, how="copy")
    else:
        fault = FailWrite(trigger=trigger, task=None, what=what)
    copy = CopySnapshot(trigger=behind(3), snapshot="oldest")
    once = ran(processes, tmp_path / "once", copy, faults=(fault,))
    ((number, error),) = answers(once)
    assert number is None
    assert "the coordinator died" in error or "checkpoint 1 is not copied: " in error
    assert not once.residue.copies
    assert not once.residue.copied
    twice = ran(processes, tmp_path / "twice", copy, replace(copy, trigger=behind(5)), faults=(fault,))
    assert answers(twice)[1] == (1, "")
    assert listed(tmp_path / "twice") == [1]
