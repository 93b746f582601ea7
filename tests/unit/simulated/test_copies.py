"""Snapshots that a user has copied or moved while the job runs."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtRest, AtTime, FailWrite, KillCoordinator, KillTask, TearWrite
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import (
    AnyCommand,
    Cancel,
    CopySnapshot,
    DeleteSnapshot,
    Fork,
    MoveSnapshot,
    Resume,
    Savepoint,
)
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.deletions import moved_and_kept
from cutproof.properties.model.causes import NotCopied
from cutproof.properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    CoordinatorUp,
    FaultFired,
    History,
    SnapshotDeleted,
)
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count
from cutproof.properties.mutations.copies import COPY_MUTATIONS
from cutproof.properties.mutations.tampering import tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import job, journal

EARLY = Savepoint(trigger=AtTime(at_us=1_000), name="early")


def behind(occurrence: int) -> AtPoint:
    return AtPoint(point="checkpoint-completed", occurrence=occurrence, side="after")


COPY, MOVE = CopySnapshot(trigger=behind(3), snapshot="early"), MoveSnapshot(trigger=behind(3), snapshot="early")


def again(command: AnyCommand) -> AnyCommand:
    return replace(command, trigger=behind(4))


def ran(*commands: object, faults: tuple[object, ...] = (), defect: str | None = None, **engine: Any) -> History:
    """The history of a job in which nothing is violated, unless a defect is planted."""
    settings = {"retained_checkpoints": 8, "checkpoint_interval_us": 1_000, "snapshot_format": "incremental", **engine}
    scenario = job(60, Count(), commands=commands, faults=faults, **settings)  # type: ignore[arg-type]
    history = Run(scenario, parts_for(defect) if defect else Parts(), False).history()
    if defect is None:
        assert violated_in(scenario, history) == {}
    return history


def violated_in(scenario: Any, history: History) -> dict[str, str]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return {name: one.difference for name, one in verdicts.items() if isinstance(one, Violated)}


def answers(history: History) -> list[tuple[int | None, str]]:
    wished = [one.command for one in journal(CommandIssued, history) if one.kind in ("copy-snapshot", "move-snapshot")]
    return [(one.checkpoint, one.error) for one in journal(CommandReturned, history) if one.command in wished]


def early(history: History) -> int:
    taken = journal(CommandReturned, history)[0].checkpoint
    assert taken is not None
    return taken


def copied(history: History) -> tuple[list[int], set[str]]:
    copies, files = history.residue.copies, history.residue.copied
    return (copies, set(files)) if isinstance(copies, list) and isinstance(files, list) else ([], set())


def needed(history: History, checkpoint: int) -> set[str]:
    """All files without which a snapshot cannot be restored."""
    stored = {one.handle: [name for name, _, _ in one.files] for one in history.stored}
    handles = next(one for one in history.completed if one.checkpoint == checkpoint).handles.values()
    return {*handles, *(name for handle in handles for name in stored.get(handle, ()))}


def test_a_copy_has_all_files_also_those_of_older_checkpoints() -> None:
    history = ran(CopySnapshot(trigger=behind(3), snapshot="newest"))
    ((number, error),) = answers(history)
    assert (number, error) == (3, "")
    assert copied(history) == ([3], needed(history, 3))
    assert any("/chk-1/" in name for name in copied(history)[1])
    assert 3 in history.residue.retained


def test_what_is_moved_is_not_retained_any_more_and_later_snapshots_keep_what_they_share() -> None:
    history = ran(MoveSnapshot(trigger=behind(3)))
    ((number, error),) = answers(history)
    assert (number, error) == (1, "")
    assert copied(history) == ([1], needed(history, 1))
    assert 1 not in history.residue.retained
    assert needed(history, 1) & set(history.residue.files), "what later increments build on"


NEWEST = MoveSnapshot(trigger=behind(3), snapshot="newest")


def test_the_snapshot_that_the_job_would_restore_is_copied() -> None:
    assert answers(ran(CopySnapshot(trigger=behind(3)))) == [(3, "")]


@pytest.mark.parametrize("snapshot_format", ["canonical", "native", "incremental"])
def test_the_snapshot_that_the_job_would_restore_is_moved_once_there_is_a_newer_one(snapshot_format: str) -> None:
    history = ran(NEWEST, snapshot_format=snapshot_format)
    assert answers(history) == [(3, "")]
    assert copied(history) == ([3], needed(history, 3))
    assert 3 not in history.residue.retained
    (deleted,) = [one for one in journal(SnapshotDeleted, history) if one.checkpoint == 3]
    completions = {one.checkpoint: one.order for one in history.completed}
    assert completions[4] < deleted.order < completions[5]


def test_it_is_restored_as_long_as_there_is_none() -> None:
    kill = KillTask(trigger=AtPoint(point="checkpoint-triggered", occurrence=4), task="op0-0")
    history = ran(NEWEST, faults=(kill,))
    assert answers(history) == [(3, "")]
    assert {one.restores for one in journal(AttemptStarted, history)} == {None, 3}
    assert (copied(history)[0], 3 in history.residue.retained) == ([3], False)


DIED = "the coordinator died"


@pytest.mark.parametrize(
    ("point", "occurrence", "side", "answered", "retained", "has_copy"),
    [
        ("file-copied", 1, "before", False, True, False),
        ("file-copied", 1, "after", False, True, False),
        ("file-copied", 4, "before", False, True, False),
        ("file-copied", 4, "after", False, True, False),
        ("snapshot-copied", 1, "before", False, True, False),
        ("snapshot-copied", 1, "after", False, True, True),
        ("snapshot-marked", 1, "before", False, True, True),
        ("snapshot-marked", 1, "after", False, False, True),  # the record says it, but nobody has told the user
        ("snapshot-deleted", 1, "before", True, False, True),
        ("snapshot-deleted", 1, "after", True, False, True),
    ],
)
def test_a_coordinator_may_die_at_any_point_of_that_and_the_command_is_repeated(
    point: str, occurrence: int, side: Literal["before", "after"], answered: bool, retained: bool, has_copy: bool
) -> None:
    """It is here until its record says that it was moved, and there from when the record of the copy is written.  The
    user has an answer before it is deleted."""
    dies = KillCoordinator(trigger=AtPoint(point=point, occurrence=occurrence, side=side))
    once = ran(NEWEST, faults=(dies,))
    assert len(journal(CoordinatorUp, once)) == 1
    assert answers(once) == [(3, "") if answered else (None, DIED)]
    assert (3 in once.residue.retained, copied(once)) == (retained, ([3], needed(once, 3)) if has_copy else ([], set()))
    again_by_name = (EARLY, replace(MOVE, trigger=behind(2)), again(MOVE))
    twice = ran(*again_by_name, Fork(trigger=AtRest()), faults=(dies,), checkpoint_interval_us=3_000)
    assert answers(twice)[1:] == [(early(twice), "")]
    assert copied(twice) == ([early(twice)], needed(twice, early(twice)))
    assert early(twice) not in twice.residue.retained


def test_a_job_that_is_cancelled_before_there_is_a_newer_one_is_resumed_from_it() -> None:
    """And the next job deletes it."""
    cancel = Cancel(trigger=AtPoint(point="checkpoint-triggered", occurrence=4))
    cancelled = ran(NEWEST, cancel)
    assert (answers(cancelled), cancelled.residue.retained[-1], copied(cancelled)[0]) == ([(3, "")], 3, [3])
    resumed = ran(NEWEST, cancel, Resume(trigger=AtTime(at_us=1_000)))
    assert [one.restores for one in journal(AttemptStarted, resumed)] == [None, 3]
    assert 3 not in resumed.residue.retained


@pytest.mark.parametrize("wish", [COPY, MOVE])
def test_the_command_can_be_repeated(wish: AnyCommand) -> None:
    history = ran(EARLY, wish, again(wish))
    assert answers(history) == [(early(history), ""), (early(history), "")]
    assert copied(history) == ([early(history)], needed(history, early(history)))


def test_a_snapshot_that_was_deleted_before_is_not_there() -> None:
    delete = DeleteSnapshot(trigger=behind(3), snapshot="early")
    history = ran(EARLY, delete, again(MOVE))
    assert answers(history) == [(None, f"checkpoint {early(history)} is not retained")]
    assert copied(history) == ([], set())


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize(
    ("point", "occurrence"),
    [(name, at) for name, most in (("file-copied", 4), ("snapshot-copied", 1)) for at in range(1, most + 1)]
    + [("snapshot-deleted", 1), ("file-deleted", 1)],
)
def test_a_coordinator_that_dies_meanwhile_leaves_no_half_copy_and_the_command_is_repeated(
    point: str, occurrence: int, side: Literal["before", "after"]
) -> None:
    """The copy is complete with its record.  The original is gone as soon as its record is deleted, also if some of its
    files are still there."""
    dies = KillCoordinator(trigger=AtPoint(point=point, occurrence=occurrence, side=side))
    once = ran(EARLY, MOVE, faults=(dies,))
    has_copy = point.endswith("-deleted") or (point, side) == ("snapshot-copied", "after")
    retained = point.endswith("-copied") or (point, side) == ("snapshot-deleted", "before")
    assert len(journal(CoordinatorUp, once)) == 1
    assert answers(once) == [(None, DIED)]
    assert copied(once) == (([early(once)], needed(once, early(once))) if has_copy else ([], set()))
    assert (early(once) in once.residue.retained) is retained
    twice = ran(EARLY, MOVE, again(MOVE), Fork(trigger=AtRest()), faults=(dies,))
    assert answers(twice)[1:] == [(early(twice), "")]
    assert copied(twice) == ([early(twice)], needed(twice, early(twice)))
    assert early(twice) not in twice.residue.retained


EARLIER = AtPoint(point="checkpoint-completed", occurrence=3, side="before")
FAILING = {
    "file": FailWrite(trigger=EARLIER, task=None, what="copy-file"),
    "record": FailWrite(trigger=EARLIER, task=None, what="copy-record"),
}


@pytest.mark.parametrize("wish", [COPY, MOVE])
@pytest.mark.parametrize("what", FAILING)
def test_a_copy_whose_write_fails_is_refused_has_no_record_and_can_be_repeated(what: str, wish: AnyCommand) -> None:
    once = ran(EARLY, wish, faults=(FAILING[what],))
    ((number, error),) = answers(once)
    assert number is None
    assert error.startswith(f"checkpoint {early(once)} is not copied: ")
    assert error.endswith("the store reported an error")
    assert (f"/chk-{early(once)}/" in error) == (what == "file")
    assert copied(once) == ([], set())
    assert early(once) in once.residue.retained
    twice = ran(EARLY, wish, again(wish), faults=(FAILING[what],))
    assert len(answers(twice)) == 2
    assert answers(twice)[1] == (early(twice), "")
    assert copied(twice) == ([early(twice)], needed(twice, early(twice)))


@pytest.mark.parametrize("wish", [COPY, MOVE])
@pytest.mark.parametrize("file", [1, 2, 4, 5])
def test_half_a_copy_is_deleted_by_the_next_coordinator_and_the_command_can_be_repeated(
    file: int, wish: AnyCommand
) -> None:
    """Of each file, or of the record, in a job whose coordinator dies of it."""
    at = AtPoint(point="file-copied", occurrence=file - 1, side="after") if file > 1 else EARLIER
    torn = TearWrite(trigger=at, task=None, how="copy")
    once = ran(EARLY, wish, faults=(torn,))
    assert answers(once) == [(None, DIED)]
    assert copied(once) == ([], set())
    assert early(once) in once.residue.retained
    twice = ran(EARLY, wish, again(wish), Fork(trigger=AtRest()), faults=(torn,))
    assert answers(twice)[1:] == [(early(twice), "")]
    assert copied(twice) == ([early(twice)], needed(twice, early(twice)))


@pytest.mark.parametrize("file", [1, 3, 4])
def test_the_next_coordinator_finds_the_files_before_it_and_half_of_the_file_that_was_torn(
    file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = AtPoint(point="file-copied", occurrence=file - 1, side="after") if file > 1 else EARLIER
    torn = TearWrite(trigger=at, task=None, how="copy")
    settings = {"retained_checkpoints": 8, "checkpoint_interval_us": 1_000, "snapshot_format": "incremental"}
    one = Run(job(60, Count(), commands=(EARLY, COPY), faults=(torn,), **settings), Parts(), False)
    files, found = one.world.files, []

    def keeping(handles: object) -> None:
        found.append(dict(files.copies))

    monkeypatch.setattr(files, "keep_copies", keeping)
    history = one.history()
    (fired,) = journal(FaultFired, history)
    (half,) = [name for name, data in found[0].items() if data != files.files[name]]
    assert (len(found[0]), fired.detail) == (file, f"half of {half} is copied")
    assert found[0][half] == files.files[half][: len(files.files[half]) // 2]


@pytest.mark.parametrize("wish", [COPY, MOVE])
@pytest.mark.parametrize("altered", [False, True])
def test_a_copy_of_a_snapshot_whose_file_is_missing_or_altered_is_refused_by_its_name(
    wish: AnyCommand, altered: bool
) -> None:
    scenario = job(60, Count(), commands=(EARLY, wish), retained_checkpoints=8, checkpoint_interval_us=1_000)
    one = Run(scenario, Parts(), False)
    files = one.world.files.files
    damaged: list[str] = []

    def damage(*_: object) -> None:
        (savepoint,) = [record for record in one.world.retained_now() if record.savepoint]
        name = savepoint.handles[TaskId("op0-0")]
        damaged.append(name)
        data = files.pop(name)
        if altered:
            files[name] = data[:-1] + b"?"

    one.triggers.add(AtPoint(point="checkpoint-completed", occurrence=3, side="before"), damage)
    history = one.history()
    why = "its checksum does not fit its content" if altered else "is not in the store"
    ((number, error),) = answers(history)
    assert (number, damaged[0] in error, why in error) == (None, True, True)
    assert copied(history) == ([], set())


def test_who_leaves_out_what_fails_has_copies_that_cannot_be_restored() -> None:
    settings = {"retained_checkpoints": 8, "checkpoint_interval_us": 1_000}
    scenario = job(60, Count(), commands=(EARLY, COPY), faults=(FAILING["file"],), **settings)
    history = Run(scenario, parts_for("P49"), False).history()
    assert violated_in(scenario, history) == {"restored-state": "copy incomplete"}


OTHER_WRITE = FailWrite(trigger=behind(2), task="op0-0")


@pytest.mark.parametrize("faults", [(), (OTHER_WRITE,)], ids=["none", "the write of a snapshot"])
def test_a_copy_that_is_refused_because_of_a_file_needs_a_fault_that_struck_it(faults: tuple[FailWrite, ...]) -> None:
    settings = {"retained_checkpoints": 8, "checkpoint_interval_us": 1_000}
    scenario = job(60, Count(), commands=(EARLY, COPY), faults=faults, **settings)
    history = Run(scenario, Parts(), False).history()
    (at,) = [at for at, one in enumerate(history.journal) if isinstance(one, CommandReturned) and one.command == 1]
    cause = NotCopied(checkpoint=early(history))
    history.journal[at] = replace(history.journal[at], checkpoint=None, error="it is gone", cause=cause)
    assert len(journal(FaultFired, history)) == len(faults)
    assert violated_in(scenario, history)["progress"] == "command answered wrongly"


@pytest.mark.parametrize("snapshot_format", ["canonical", "native", "incremental"])
def test_a_job_is_forked_from_what_was_moved(snapshot_format: str) -> None:
    history = ran(MoveSnapshot(trigger=behind(3)), Fork(trigger=AtRest()), snapshot_format=snapshot_format)
    assert isinstance(history.forks, list)
    assert 1 in [one.checkpoint for one in history.forks]
    assert 1 not in history.residue.retained
    of_it = next(one.history for one in history.forks if one.checkpoint == 1)
    assert sorted(of_it.committed) == sorted(history.committed)


def test_sources_that_forget_owe_nothing_to_a_snapshot_that_was_moved() -> None:
    history = ran(MoveSnapshot(trigger=behind(3)), Fork(trigger=AtRest()), trims_logs=True, retained_checkpoints=2)
    assert isinstance(history.forks, list)
    assert [one.checkpoint for one in history.forks] == history.residue.retained


@pytest.mark.parametrize("snapshot_format", ["canonical", "native", "incremental"])
@pytest.mark.parametrize("wish", [CopySnapshot, MoveSnapshot])
def test_a_copy_has_the_in_flight_data_itself_that_its_snapshot_has_in_the_logs_of_channels(
    wish: type[AnyCommand], snapshot_format: str
) -> None:
    settings = {"alignment": "unaligned", "spilling": "continuous", "apply_cost_us": 300, "channel_capacity": 4}
    wished = wish(trigger=behind(2), snapshot="newest")  # type: ignore[call-arg]
    history = ran(wished, Fork(trigger=AtRest()), snapshot_format=snapshot_format, **settings)
    assert answers(history) == [(2, "")]
    assert copied(history) == ([2], needed(history, 2))
    assert isinstance(history.forks, list)
    (fork,) = [one for one in history.forks if one.from_copy]
    put_back = [one for one in fork.history.channels if one.recovered]
    assert put_back
    assert sorted(fork.history.committed) == sorted(history.committed)


def test_snapshots_in_memory_have_no_files_to_copy() -> None:
    scenario = job(60, Count(), commands=(CopySnapshot(trigger=behind(3)),), snapshot_store="memory")
    assert list(problems_of(scenario)) == ["command 0 (copy-snapshot): snapshots in memory have no files to copy"]


# -- what the judges find -------------------------------------------------------------------


@pytest.mark.parametrize("mutation", COPY_MUTATIONS)
def test_lies_about_copies_are_seen(mutation: str) -> None:
    kill = KillTask(trigger=behind(5), task="op0-0")
    scenario = job(
        60, Count(), faults=(kill,), commands=(EARLY, MOVE), retained_checkpoints=8, checkpoint_interval_us=1_000
    )
    case = Case(scenario.workload, scenario.topology, Run(scenario, Parts(), False).history())
    before = judge(scenario.workload, scenario.topology, case.history).verdicts
    (lie,) = [one for one in tamperings(case) if one.name == mutation]
    verdicts = judge(scenario.workload, scenario.topology, lie.apply(case.history)).verdicts
    assert all(isinstance(before[name], Holds) for name in lie.invariants)
    assert all(isinstance(verdicts[name], Violated) for name in lie.invariants)


def test_a_moved_snapshot_that_is_still_retained_is_found() -> None:
    scenario = job(60, Count(), commands=(EARLY, MOVE), retained_checkpoints=8, checkpoint_interval_us=1_000)
    history = Run(scenario, Parts(), False).history()
    history.residue.retained.insert(0, copied(history)[0][0])
    assert violated_in(scenario, history)["progress"] == "command not obeyed"


def test_an_older_snapshot_that_was_moved_does_not_wait_for_a_newer_one() -> None:
    """The job would not have restored it when it was moved."""
    oldest = MoveSnapshot(trigger=behind(3), snapshot="oldest")
    scenario = job(60, Count(), commands=(oldest,), retained_checkpoints=8)
    history = Run(scenario, Parts(), False).history()
    ((moved, _),) = answers(history)
    (answer,) = journal(CommandReturned, history)
    assert moved == 1
    history.completed = [one for one in history.completed if one.order < answer.order]
    history.residue.retained = [1, *(one.checkpoint for one in history.completed if one.checkpoint != 1)]
    found = moved_and_kept(Case(scenario.workload, scenario.topology, history))
    assert found is not None
    assert found.difference == "command not obeyed"


@pytest.mark.parametrize(("defect", "wish"), [("P35", MoveSnapshot(trigger=behind(3))), ("P37", COPY)])
def test_a_copy_without_its_files_is_not_restored(defect: str, wish: AnyCommand) -> None:
    scenario_commands = (EARLY, wish, Fork(trigger=AtRest()))
    scenario = job(
        60,
        Count(),
        commands=scenario_commands,
        retained_checkpoints=8,
        checkpoint_interval_us=1_000,
        snapshot_format="incremental",
    )
    history = Run(scenario, parts_for(defect), False).history()
    assert history.defect_reached
    found = violated_in(scenario, history)
    assert found["restored-state"] == "copy incomplete"
    assert defect == "P37" or found["restorable"] == "not restored"
