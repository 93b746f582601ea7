"""Incremental checkpoints (ABS-9): what a task writes and names, on what it builds, and when the coordinator deletes a
file that several snapshots need."""

from __future__ import annotations

from typing import Any

from cutproof.reference_impl.core.operators.operators import Count
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Discard, Effect, Persist, Report, Store, Sweep
from cutproof.reference_impl.core.vocabulary.events import (
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    JobRecord,
    SnapshotLoaded,
)
from cutproof.reference_impl.core.vocabulary.formats import (
    Filed,
    Format,
    Keyed,
    KeyedEdit,
    read_file,
)
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle
from cutproof.reference_impl.core.vocabulary.messages import Ack, Barrier, Trigger
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.views import Entry
from unit.core.coordinator_rig import CoordinatorRig, complete_snapshot, handle, handles, of, sent_to_tasks
from unit.core.machines import ATTEMPT, abort, complete, deliver, deploy, only, operator, row, sent, take, up

OP = "op-0"


def counting() -> InputTask:
    task: InputTask = up(operator(Count(tagged=False)))
    return task


def asked(checkpoint: int, base: int | None = None, name: str = "incremental") -> Barrier:
    return Barrier(CheckpointId(checkpoint), None, Format(name, CheckpointId(base) if base is not None else None))


def persisted(task: InputTask, barrier: Barrier) -> tuple[Filed, Ack]:
    """How the snapshot is written, and its acknowledgement."""
    persist = only(Persist, take(task, barrier))
    (report,) = persist.then
    assert isinstance(report, Report)
    assert isinstance(report.message, Ack)
    assert persist.filed is not None
    assert persist.snapshot.materialise().entries == [], "what is by key is in the files"
    return persist.filed, report.message


def name(checkpoint: int, number: int) -> str:
    return f"job-1/chk-{checkpoint}/op-0-{ATTEMPT}.entries-{number}"


def written(filed: Filed) -> list[KeyedEdit]:
    contents = [read_file(new.file, new.data) for new in filed.new]
    assert all(isinstance(content, KeyedEdit) for content in contents)
    return contents  # type: ignore[return-value]


# -- a task --------------------------------------------------------------------------


def test_a_canonical_barrier_writes_one_file_as_ever() -> None:
    persist = only(Persist, take(counting(), Barrier(CheckpointId(1))))
    assert persist.filed is None


def test_the_first_is_full_and_the_next_holds_what_has_changed() -> None:
    task = counting()
    for key in (1, 2, 3):
        take(task, row(key, 1))
    first, ack = persisted(task, asked(1))
    assert [one.name for one in first.files] == [name(1, 0)] == list(ack.files)
    assert written(first)[0].entries.added == [(0, 1, 1, 0), (0, 2, 1, 0), (0, 3, 1, 0)]
    take(task, row(2, 1))
    second, ack = persisted(task, asked(2, base=1))
    assert [one.name for one in second.files] == [name(1, 0), name(2, 1)] == list(ack.files)
    assert [new.file.name for new in second.new] == [name(2, 1)]
    (edit,) = written(second)
    assert (edit.entries.added, edit.entries.removed, edit.entries.placed) == ([(0, 2, 2, 0)], [1], [1])


def test_the_format_goes_on_downstream() -> None:
    task = counting()
    assert sent(take(task, asked(1))) == [(0, asked(1))]
    assert sent(take(task, asked(2, base=1))) == [(0, asked(2, base=1))]


def test_an_increment_of_nothing_writes_nothing_and_names_all() -> None:
    task = counting()
    take(task, row(1, 1))
    persisted(task, asked(1))
    second, ack = persisted(task, asked(2, base=1))
    assert second.new == ()
    assert list(ack.files) == [name(1, 0)]


def test_native_writes_all_each_time() -> None:
    task = counting()
    take(task, row(1, 1))
    persisted(task, asked(1, name="native"))
    second, _ = persisted(task, asked(2, name="native"))
    assert [one.name for one in second.files] == [name(2, 0)]


def test_it_does_not_build_on_a_checkpoint_that_was_aborted() -> None:
    """The barrier names the one before, which is complete; the one that was aborted is forgotten."""
    task = counting()
    take(task, row(1, 1))
    persisted(task, asked(1))
    take(task, row(1, 1))
    persisted(task, asked(2, base=1))
    deliver(task, abort(2))
    third, _ = persisted(task, asked(3, base=1))
    assert [one.name for one in third.files] == [name(1, 0), name(3, 1)]
    fourth, _ = persisted(task, asked(4, base=2))
    assert [one.name for one in fourth.files] == [name(4, 0)], "a base that it does not know: it writes all"


def test_two_at_a_time_build_on_the_same_one_and_share_no_new_file() -> None:
    task = counting()
    take(task, row(1, 1))
    persisted(task, asked(1))
    take(task, row(1, 1))
    second, _ = persisted(task, asked(2, base=1))
    third, _ = persisted(task, asked(3, base=1))
    assert [one.name for one in second.files] == [name(1, 0), name(2, 1)]
    assert [one.name for one in third.files] == [name(1, 0), name(3, 1)]


def test_completion_keeps_the_one_before_for_a_barrier_that_is_late() -> None:
    task = counting()
    for number in (1, 2, 3):
        take(task, row(1, 1))
        persisted(task, asked(number, base=number - 1 or None))
    deliver(task, complete(2))
    deliver(task, complete(3))
    assert len(persisted(task, asked(4, base=2))[0].files) == 3
    assert len(persisted(task, asked(5, base=1))[0].files) == 1, "the first is forgotten"


def test_a_restored_task_builds_on_what_it_restored() -> None:
    before = counting()
    take(before, row(1, 1))
    first, _ = persisted(before, asked(1))
    entries: list[Entry] = [(0, 1, 1, 0)]
    task: InputTask = operator(Count(tagged=False))
    deliver(task, deploy(checkpoint=1, handle=Handle(f"job-1/chk-1/op-0-{ATTEMPT}")))
    task.step(SnapshotLoaded(TaskState(entries=entries, rotations=[0]), first.files, Keyed(entries)))
    take(task, row(2, 1))
    second, _ = persisted(task, asked(2, base=1))
    assert [one.name for one in second.files] == [name(1, 0), name(2, 1)]
    assert written(second)[0].entries.added == [(0, 2, 1, 0)]


# -- the coordinator -----------------------------------------------------------------


def incremental(**settings: Any) -> CoordinatorRig:
    return CoordinatorRig(snapshot_format="incremental", **{"full_every": 3, **settings}).up()


def file(checkpoint: int, number: int) -> Handle:
    return Handle(f"{handle(checkpoint, OP)}.entries-{number}")


def acknowledged(job: CoordinatorRig, checkpoint: int, *files: Handle) -> list[Effect]:
    """By all tasks, the operator with these files."""
    effects = job.ack(checkpoint, "source-0", "sink-0")
    return effects + op_acks(job, checkpoint, *files)


def op_acks(job: CoordinatorRig, checkpoint: int, *files: Handle) -> list[Effect]:
    return job.report(Ack, OP, checkpoint=CheckpointId(checkpoint), handle=handle(checkpoint, OP), files=files)


def completed(job: CoordinatorRig, checkpoint: int, *files: Handle) -> list[Effect]:
    job.trigger()
    acknowledged(job, checkpoint, *files)
    return job.stored(checkpoint)


def asked_for(effects: list[Effect]) -> Format | None:
    ((_, message),) = sent_to_tasks(Trigger, effects)
    return message.format


def deleted(effects: list[Effect]) -> list[Handle]:
    return [one for discard in of(Discard, effects) for one in discard.handles if ".entries" in one]


F1, F2, F3, F4 = file(1, 0), file(2, 1), file(3, 2), file(4, 0)


def test_each_builds_on_the_newest_complete_one_until_the_chain_is_full() -> None:
    job = incremental()
    assert asked_for(job.trigger()) == Format("incremental")
    acknowledged(job, 1, F1)
    job.stored(1)
    assert asked_for(job.trigger()) == Format("incremental", CheckpointId(1))
    (record,) = of(Store, acknowledged(job, 2, F1, F2))
    assert (record.snapshot.format, record.snapshot.files, record.snapshot.increments) == (
        "incremental",
        {OP: (F1, F2)},
        1,
    )
    job.stored(2)
    assert asked_for(job.trigger()) == Format("incremental", CheckpointId(2))
    acknowledged(job, 3, F1, F2, F3)
    job.stored(3)
    assert asked_for(job.trigger()) == Format("incremental"), "each third is full again"


def test_a_file_is_deleted_when_the_last_that_needs_it_is_gone() -> None:
    job = incremental()
    assert deleted(completed(job, 1, F1)) == []
    assert deleted(completed(job, 2, F1, F2)) == []
    assert deleted(completed(job, 3, F1, F2, F3)) == []
    assert deleted(completed(job, 4, F4)) == [F1, F2, F3]


def test_with_a_checkpoint_that_is_aborted_only_its_own_file_goes() -> None:
    job = incremental()
    completed(job, 1, F1)
    job.trigger()
    op_acks(job, 2, F1, F2)
    assert deleted(job.decline(2, "sink-0")) == [F2]


def test_the_base_of_a_pending_checkpoint_stays_though_it_is_subsumed() -> None:
    """Some task may still build on it.  Its files go once nobody can."""
    job = incremental(concurrent_checkpoints=2)
    completed(job, 1, F1)
    job.trigger()
    job.trigger()
    acknowledged(job, 2, file(2, 0))
    assert deleted(job.stored(2)) == [], "checkpoint 1 is subsumed, and 3 is pending on it"
    assert deleted(job.decline(3, "sink-0")) == [F1]


def test_what_was_written_for_an_unacknowledged_snapshot_goes_with_its_handle() -> None:
    job = incremental()
    completed(job, 1, F1)
    job.trigger()
    job.decline(2, "sink-0")
    leftovers = [one for one in of(Discard, completed(job, 3, F1, F3)) if one.with_files]
    assert [handle(2, OP) in one.handles for one in leftovers] == [True]


def test_an_acknowledgement_that_is_repeated_late_takes_no_file_from_a_newer_checkpoint() -> None:
    job = incremental()
    completed(job, 1, F1)
    completed(job, 2, F1, F2)
    assert deleted(op_acks(job, 1, F1)) == []


def test_another_coordinator_keeps_all_files_to_which_a_record_refers() -> None:
    job = CoordinatorRig(snapshot_format="incremental")
    record = JobRecord(job=1, attempt=AttemptId(1), next_checkpoint=CheckpointId(3), had_snapshot=True)
    job.start(record)
    (swept,) = of(Sweep, job.listed(with_files(2, F1, F2)))
    assert swept.keep == (*handles(2), F1, F2)


def with_files(checkpoint: int, *files: Handle) -> CompletedCheckpoint:
    return complete_snapshot(checkpoint, format="incremental", files={OP: files}, increments=1)


def test_a_savepoint_has_the_format_that_the_user_names_and_nobody_builds_on_it() -> None:
    job = incremental(full_every=9)
    completed(job, 1, F1)
    job.feed(Commanded(9, CommandKind.SAVEPOINT, format="native"))
    assert asked_for(job.saved()) == Format("native")
    acknowledged(job, 2, file(2, 0))
    job.stored(2)
    assert asked_for(job.trigger()) == Format("incremental", CheckpointId(1))
    job.decline(3)
    job.feed(Commanded(8, CommandKind.SAVEPOINT, format="canonical"))
    assert asked_for(job.saved()) is None


def test_the_first_checkpoint_of_a_job_that_resumes_another_is_full() -> None:
    job = CoordinatorRig(
        job=2, coordinator={"initial": (with_files(5, F1, F2),), "first_checkpoint": 9}, snapshot_format="incremental"
    ).up()
    assert asked_for(job.trigger()) == Format("incremental")
