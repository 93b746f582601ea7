"""Journals: what is observed is on disk, whole, once it is flushed; nothing altered is believed."""

from __future__ import annotations

import os
import signal
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import status_changes as changes
from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.causes import (
    CheckpointsFailed,
    Declined,
    EngineRaised,
    FormerSentence,
    Killed,
    OtherBarrierFirst,
    RestartsUsedUp,
    SnapshotNotWritten,
    Submitted,
    TaskFailed,
    TimedOut,
)
from cutproof.reference_impl.core.vocabulary.ends import JobEnd, Status
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.disk.checked import CODEC, framed
from cutproof.reference_impl.processes.disk.journal import BATCH, CorruptJournal, Entry, Journal, read_journal
from cutproof.reference_impl.trace import Observer
from cutproof.reference_impl.wire import LIMIT, Reader, WireError
from unit.snapshots import snapshot

TASK, ATTEMPT, CHECKPOINT, HANDLE = TaskId("a-0"), AttemptId(2), CheckpointId(3), Handle("job-1/chk-3/a-0")
UNFINISHED = (("x", CHECKPOINT), ("y", None), ("z", t.NoCheckpoint.SEALED_FOR_NONE))
BY: dict[str, Any] = {"writer": TaskId("sink-0"), "attempt": ATTEMPT}
REQUESTS: tuple[t.AnyRequest, ...] = (
    t.Fence(**BY),
    t.Flush(**BY),
    t.BeginTransaction(**BY, name="x"),
    t.Write(**BY, name="x", rows=((1, None, 3, 4), (None, -(2**63), 0, 2**63 - 1))),
    t.PreCommit(**BY, name="x", checkpoint=CHECKPOINT),
    t.Commit(**BY, name="x"),
    t.Finalise(**BY, name="x"),
    t.Publish(**BY, checkpoint=CHECKPOINT, names=("x", "y")),
    t.AbortTransaction(**BY, name="x"),
    t.Append(**BY, row=(1, 2, 3, 4)),
    t.Upsert(**BY, identity=(1, None), row=(1, 2, 3, 4)),
)
STATUS_CHANGES: tuple[changes.AnyStatusChange, ...] = (
    changes.AttemptStarted(ATTEMPT, None, Submitted()),
    changes.AttemptStarted(ATTEMPT, CHECKPOINT, TaskFailed(TASK, Killed())),
    changes.RegionRestarted(ATTEMPT, CHECKPOINT, (TASK,), False),
    changes.RegionRestarted(ATTEMPT, CHECKPOINT, (TASK,), True),
    changes.AttemptRunning(ATTEMPT),
    changes.CheckpointTriggered(CHECKPOINT, ATTEMPT, False),
    changes.CheckpointTriggered(CHECKPOINT, ATTEMPT, True),
    changes.CheckpointAcknowledged(CHECKPOINT, ATTEMPT),
    changes.CheckpointAborted(CHECKPOINT, ATTEMPT, TimedOut()),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a-0.0"


@pytest.fixture
def journal(path: Path) -> Journal:
    return Journal(path, Clock(lambda: 0))


def fields(entry: Entry) -> tuple[Any, ...]:
    """A tuple of the event's fields."""
    return msgspec.structs.astuple(entry.event)


def start(journal: Observer) -> Any:
    return journal.task_started(TASK, "a", 0, ATTEMPT, 1, ["s-0>a-0"], ["a-0>b-0"])


def test_a_tick_keeps_the_name_that_it_has_in_saved_runs(journal: Journal, path: Path) -> None:
    journal.saw(o.Ticked(start(journal).run, 7))
    journal.flush()
    assert b"TimeTold" in path.read_bytes()
    assert [entry.event.time for entry in read_journal(path) if isinstance(entry.event, o.Ticked)] == [7]


def test_a_journal_of_a_former_version_is_read(path: Path) -> None:
    """It has the type first, then the stamp."""
    request = t.Commit(**BY, name="x")
    former = [
        ["TaskStarted", 3, 0, TASK, "a", 0, 2, 1, ["s-0>a-0"], []],
        ["TimeTold", 5, 0, 7],
        ["Transacted", 8, request, "done", "", [["y", 3]], 4],
    ]
    path.write_bytes(framed(former))

    read = read_journal(path)

    assert [entry.stamp for entry in read] == [3, 5, 8]
    assert [entry.event for entry in read] == [
        o.TaskStarted(0, TASK, "a", 0, ATTEMPT, 1, ("s-0>a-0",), ()),
        o.Ticked(0, 7),
        o.Transacted(request, o.Answer.DONE, None, (("y", CHECKPOINT),), 4),
    ]


def test_what_former_journals_leave_empty_is_none(path: Path) -> None:
    former = [
        ["CommandIssued", 0, "savepoint", False, {}, {}, None, "", None, None],
        ["CommandReturned", 0, 3, "", None],
        ["JobEnded", 1, "finished", 3, "", None],
        ["CoordinatorChanged", False, 4, ""],
        ["Transacted", t.Commit(**BY, name="x"), "done", "", [["y", None]], 4],
        ["Timed", "killed", TASK, 2, "", "", "", None, None, None],
        ["Timed", "killed", TASK, 2, "b-0", "it died", "a-0>b-0", None, None, None],
    ]
    path.write_bytes(framed([[stamp, event] for stamp, event in enumerate(former)]))

    assert [entry.event for entry in read_journal(path)] == [
        o.CommandIssued(0, CommandKind.SAVEPOINT, False),
        o.command_returned(0, CHECKPOINT, None),
        o.job_ended(1, Status.FINISHED, CHECKPOINT, None),
        o.CoordinatorChanged(False, 4),
        o.Transacted(t.Commit(**BY, name="x"), o.Answer.DONE, None, (("y", None),), 4),
        o.Timed("killed", TASK, 2),
        o.Timed("killed", TASK, 2, "b-0", "it died", "a-0>b-0"),
    ]


def test_a_former_snapshot_that_ends_nothing_is_read(path: Path) -> None:
    """Its ending is a text, and "" if the job went on."""
    goes_on, ends = ({**msgspec.to_builtins(snapshot(3)), "ending": ending} for ending in ("", "drain"))
    path.write_bytes(framed([[3, ["CheckpointCompleting", goes_on]], [4, ["CheckpointCompleted", ends]]]))

    assert [entry.event for entry in read_journal(path)] == [
        o.CheckpointCompleting(snapshot(3)),
        o.CheckpointCompleted(msgspec.structs.replace(snapshot(3), ending=JobEnd.DRAIN)),
    ]


def test_why_a_task_declined_a_checkpoint_is_read_as_former_versions_wrote_it(path: Path) -> None:
    """As a text, beside whether nothing had failed; here it is why a job failed, and why a command did."""
    written = {"type": "Declined", "task": TASK, "detail": "disk full", "subsumed": False}
    other = {"type": "Declined", "task": TASK, "detail": "a newer barrier came first", "subsumed": True}
    last = {"type": "CheckpointsFailed", "cause": written}
    failed = {"type": "RestartsUsedUp", "restarts": 8, "last": last}
    path.write_bytes(
        framed([[1, ["JobEnded", 1, "failed", None, "", failed]], [2, ["CommandReturned", 7, None, "", other]]])
    )

    ended, returned = (entry.event for entry in read_journal(path))

    assert isinstance(ended, o.JobEnded)
    assert ended.cause == RestartsUsedUp(8, CheckpointsFailed(Declined(TASK, SnapshotNotWritten("disk full"))))
    assert isinstance(returned, o.CommandReturned)
    assert returned.cause == Declined(TASK, OtherBarrierFirst())


def test_former_status_changes_are_read(path: Path) -> None:
    """Each is a word with fields that all of them have."""
    former: list[tuple[Any, ...]] = [
        ("attempt-started", None, 2, 1, "the job was submitted"),
        ("attempt-started", 3, 2, 1, "a-0: it was killed", []),
        ("tasks-restarted", 3, 2, 1, "", [TASK]),
        ("tasks-recovered", 3, 2, 1, "", [TASK]),
        ("attempt-running", None, 2, 1, "", []),
        ("checkpoint-triggered", 3, 2, 1, "", []),
        ("checkpoint-triggered", 3, 2, 1, "savepoint", []),
        ("checkpoint-acknowledged", 3, 2, 1, "", []),
        ("checkpoint-aborted", 3, 2, 1, "it timed out", []),
    ]
    path.write_bytes(framed([[stamp, ["Noted", *fields]] for stamp, fields in enumerate(former)]))

    assert [entry.event for entry in read_journal(path)] == [
        o.StatusChanged(1, in_a_sentence(change)) for change in STATUS_CHANGES
    ]


def in_a_sentence(change: changes.AnyStatusChange) -> changes.AnyStatusChange:
    """The same with what a former version wrote of its cause."""
    if not isinstance(change, changes.AttemptStarted | changes.CheckpointAborted):
        return change
    return msgspec.structs.replace(change, cause=FormerSentence(str(change.cause)))


def test_a_status_change_whose_cause_is_a_sentence_is_read(path: Path) -> None:
    """Former versions had types for changes before they had causes in them; the sentence is kept, whoever reads it."""
    written = [
        ["AttemptStarted", 2, 3, "a-0: it was killed"],
        ["CheckpointAborted", 3, 2, "subsumed by checkpoint 4", False],
        ["CheckpointAborted", 3, 2, "it timed out"],
    ]
    path.write_bytes(framed([[stamp, ["Noted", 1, change]] for stamp, change in enumerate(written)]))

    assert [entry.event for entry in read_journal(path)] == [
        o.StatusChanged(1, changes.AttemptStarted(ATTEMPT, CHECKPOINT, FormerSentence("a-0: it was killed"))),
        o.StatusChanged(
            1, changes.CheckpointAborted(CHECKPOINT, ATTEMPT, FormerSentence("subsumed by checkpoint 4"), False)
        ),
        o.StatusChanged(1, changes.CheckpointAborted(CHECKPOINT, ATTEMPT, FormerSentence("it timed out"))),
    ]
    assert str(FormerSentence("it timed out")) == "it timed out"


@pytest.mark.parametrize(
    "entry",
    [
        [],
        [1],
        [1, 2],
        [1, ["Noted"]],
        [1, ["Noted", "no such change", None, 2, 1, ""]],
        [1, ["Noted", [], None, 2, 1, ""]],
        [1, ["Noted", 1, ["AttemptStarted", 2, 3]]],
        [1, ["Noted", 1, ["CheckpointAborted", 3, 2, 7]]],
        [1, ["Noted", 1, "AttemptRunning"]],
        [1, ["CheckpointCompleted"]],
        [1, ["CheckpointCompleted", {}]],
        [1, ["CheckpointCompleted", 3]],
    ],
)
def test_what_no_version_has_written_is_not_believed(entry: list[Any], path: Path) -> None:
    path.write_bytes(framed([entry]))
    with pytest.raises(CorruptJournal):
        read_journal(path)


def test_a_batch_of_today_and_one_of_former_days_are_in_one_journal(path: Path) -> None:
    """As where one entry of a batch is of a former kind, and the others are as today."""
    running = changes.AttemptRunning(ATTEMPT)
    today = ["Noted", 1, msgspec.to_builtins(running)]
    path.write_bytes(framed([[1, today], [2, ["Noted", "attempt-running", None, 2, 1, ""]]]))

    assert [entry.event for entry in read_journal(path)] == [o.StatusChanged(1, running)] * 2


def everything(journal: Journal) -> None:
    """Call every method that writes."""
    log = start(journal)
    log.reads.append((0, 7))
    log.reads.pop()
    log.applies.append((1, 512))
    log.applies.pop()
    journal.saw(o.Marked(log.run, CHECKPOINT, (1,), (2,)))
    journal.saw(o.TimeAdvanced(log.run, -5))
    journal.saw(o.Ticked(log.run, 7))
    journal.saw(o.SplitsAssigned(log.run, {0: 0, 4: 2}))
    journal.saw(o.StateRestored(log.run, CHECKPOINT, "{}"))
    journal.saw(o.InputEnded(log.run))
    journal.saw(o.RunEnded(log.run, o.RunEnd.FINISHED))
    channel = journal.channel_opened("a-0>b-0", ATTEMPT)
    channel.sent.append(9)
    channel.barriers.append((3, 1))
    channel.watermarks.append((-5, 1))
    channel.continued(ATTEMPT, 3, 5)
    refilled = journal.channel_refilled("a-0>b-0", ATTEMPT)
    refilled.recovered.append(8)
    refilled.recovered_watermarks.append((None, 1))
    for change in STATUS_CHANGES:
        journal.saw(o.StatusChanged(1, change))
    journal.saw(o.task_failed(TASK, ATTEMPT, Killed(), 0))
    journal.saw(o.CoordinatorChanged(False, None))
    journal.saw(o.SnapshotStored(CHECKPOINT, TASK, ATTEMPT, HANDLE, "{}"))
    journal.saw(o.CheckpointCompleting(snapshot(3, attempt=2, handles={TASK: HANDLE})))
    journal.saw(o.CheckpointCompleted(snapshot(3, attempt=2, savepoint=True, handles={TASK: HANDLE})))
    journal.saw(o.SnapshotsDeleted(None, [HANDLE]))
    journal.saw(o.LogOpened("job-1/log/a-0-2/0", TASK, ATTEMPT))
    journal.saw(o.LogTrimmed("job-1/log/a-0-2/0", 4))
    journal.saw(o.LogsCleared(["job-1/log/a-0-2/0"]))
    journal.saw(o.CommandIssued(0, CommandKind.SAVEPOINT, False))
    journal.saw(o.CommandReturned(0, CHECKPOINT, None))
    journal.saw(o.job_ended(1, Status.FINISHED, CHECKPOINT, None))
    for request in REQUESTS:
        journal.saw(o.Transacting(request))
        journal.saw(o.Transacted.of(request, t.Done(), 5))
    journal.saw(o.CommitRequested("x"))
    journal.saw(o.Looked(1, 4))
    journal.saw(o.Seen(1, ["x", "y"], 2))
    journal.saw(o.FaultFired(0, "running", "killed", None))
    journal.saw(o.FaultHealed(0))
    journal.saw(o.Died("a-0", 0, "it was killed", 0))
    journal.saw(o.Stopped("a-0", 0, 1))
    journal.saw(o.Breaks(2, "*"))
    journal.saw(o.Outage(3, True))
    journal.saw_at(journal.order(), o.Expired(5, "job-1/sink-0/1-1"))
    journal.saw(o.Closing())
    journal.saw(o.Lagged(300_000))
    journal.saw(o.DefectReached())
    journal.saw(o.Timed("record-sent", "a-0", 2, peer="b-0", channel="a-0>b-0", position=4, origin=9))


def test_every_type_of_entry_is_written_and_comes_back(journal: Journal, path: Path) -> None:
    everything(journal)
    journal.close()

    read = read_journal(path)

    assert {type(entry.event) for entry in read} == set(o.AnyObserved.__args__)
    assert set(o.AnyObserved.__args__) == {
        kind for kind in o.Observed.__subclasses__() if kind.__module__ == o.__name__
    }, "a type that the union lacks would be written, and could not be read"
    assert [entry.stamp for entry in read] == sorted({entry.stamp for entry in read})


def test_what_a_task_did_comes_back_with_its_run(journal: Journal, path: Path) -> None:
    first, second = start(journal), start(journal)
    first.reads.append((0, 7))
    second.applies.append((1, 512))
    first.reads.pop()
    journal.saw(o.Marked(second.run, CHECKPOINT, (1,), ()))
    journal.close()

    recorded = [(type(entry.event).__name__, fields(entry)) for entry in read_journal(path)[2:]]

    assert recorded == [
        ("RecordRead", (0, 0, 7)),
        ("RecordApplied", (1, 1, 512)),
        ("ReadUndone", (0,)),
        ("Marked", (1, 3, (1,), ())),
    ]


def test_a_log_knows_how_much_is_in_it(journal: Journal) -> None:
    reads = start(journal).reads

    reads.append((0, 1))
    reads.append((0, 2))
    reads.pop()

    assert len(reads) == 1
    reads.pop()
    with pytest.raises(IndexError):
        reads.pop()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
@pytest.mark.parametrize(
    ("outcome", "answered_"),
    [
        (t.Done(unfinished=UNFINISHED), (o.Answer.DONE, None, UNFINISHED)),
        (t.Denied(reason="fenced"), (o.Answer.DENIED, "fenced", ())),
        (t.NoAnswer(reason="gone"), (o.Answer.NONE, "gone", ())),
    ],
)
def test_a_request_and_its_answer_come_back(
    journal: Journal, path: Path, request_: t.AnyRequest, outcome: t.Outcome, answered_: tuple[Any, ...]
) -> None:
    journal.saw(o.Transacting(request_))
    journal.saw(o.Transacted.of(request_, outcome, 5))
    journal.close()

    asked, answered = read_journal(path)

    assert fields(asked) == (request_,)
    assert fields(answered) == (request_, *answered_, 5)


def test_a_fault_of_another_process_keeps_that_process_s_stamp(journal: Journal, path: Path) -> None:
    journal.saw_at(77, o.FaultFired(0, "running", "not written", 2))
    journal.saw(o.FaultFired(0, "running", "not written", 2))
    journal.close()

    assert [entry.stamp for entry in read_journal(path)] == [77, 1]


def test_nothing_is_on_disk_before_it_is_flushed(journal: Journal, path: Path) -> None:
    journal.saw(o.Lagged(1))
    assert read_journal(path) == []

    journal.flush()
    journal.flush()

    assert len(read_journal(path)) == 1


def test_more_than_a_batch_does_not_wait(journal: Journal, path: Path) -> None:
    for _ in range(BATCH + 1):
        journal.saw(o.Lagged(1))

    assert len(read_journal(path)) == BATCH


def test_a_journal_that_is_there_is_continued(journal: Journal, path: Path) -> None:
    journal.saw(o.Lagged(1))
    journal.close()
    again = Journal(path, Clock(lambda: 0))
    again.saw(o.Lagged(2))
    again.close()

    assert [fields(entry) for entry in read_journal(path)] == [(1,), (2,)]


def test_what_was_flushed_survives_kill_9(path: Path) -> None:
    child = os.fork()
    if not child:
        journal = Journal(path, Clock(lambda: 0))
        journal.saw(o.Lagged(1))
        journal.flush()
        journal.saw(o.Lagged(2))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)

    assert [fields(entry) for entry in read_journal(path)] == [(1,)]


def test_what_one_frame_cannot_hold_is_written_as_several(path: Path) -> None:
    entries = [Entry(stamp, o.Lagged(stamp)) for stamp in range(100)]
    path.write_bytes(framed(entries, longest=64))

    assert len(Reader(CODEC).feed(path.read_bytes())) > 1
    assert all(len(frame.elements) <= 64 for frame in Reader(CODEC).feed(path.read_bytes()))
    assert read_journal(path) == entries


def test_an_entry_that_no_frame_can_hold_is_refused() -> None:
    short, long = Entry(1, o.Lagged(1)), Entry(2, o.StatusChanged(1, changes.AttemptStarted(ATTEMPT, None, "x" * 100)))
    with pytest.raises(WireError, match="bytes are to be written at once; a frame on disk has 64 at most"):
        framed([short, long, short], longest=64)


def test_an_entry_may_be_longer_than_a_peers_message(journal: Journal, path: Path) -> None:
    """One entry has a task's whole state."""
    entry = o.StatusChanged(1, changes.AttemptStarted(ATTEMPT, None, EngineRaised("x" * (LIMIT + 1))))
    journal.saw(entry)
    journal.flush()

    assert [one.event for one in read_journal(path)] == [entry]


# -- torn and altered files --------------------------------------------------------------------------------------


@pytest.fixture
def three(journal: Journal, path: Path) -> list[int]:
    """Where each of three batches ends, of one entry each."""
    ends = []
    for number in range(3):
        journal.saw(o.Lagged(number))
        journal.flush()
        ends.append(path.stat().st_size)
    return ends


def test_a_torn_tail_counts_for_nothing(three: list[int], path: Path) -> None:
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])

        assert [fields(entry) for entry in read_journal(path)] == [(n,) for n in range(3) if three[n] <= size]


def altered(change: Callable[[bytearray], None], path: Path) -> str:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    with pytest.raises(CorruptJournal) as refusal:
        read_journal(path)
    message = str(refusal.value)
    assert message.startswith("the journal a-0.0 is altered: ")
    assert "\n" not in message
    return message


def test_an_altered_entry_is_found_by_its_checksum(three: list[int], path: Path) -> None:
    def change(data: bytearray) -> None:
        data[three[1] - 1] ^= 1

    assert "the checksum of its batch 1 is wrong" in altered(change, path)


def test_an_altered_header_is_found(three: list[int], path: Path) -> None:
    def change(data: bytearray) -> None:
        data[three[0]] = 9

    assert "speaks version 1" in altered(change, path)


def test_an_altered_length_is_found(three: list[int], path: Path) -> None:
    def change(data: bytearray) -> None:
        struct.pack_into(">I", data, three[0] + 1, 3)

    assert "is not understood" in altered(change, path)


def test_a_length_altered_to_reach_beyond_the_end_is_no_torn_tail(three: list[int], path: Path) -> None:
    def change(data: bytearray) -> None:
        struct.pack_into(">I", data, three[0] + 1, 1_000_000)

    assert "whole batches follow one that is not complete" in altered(change, path)


@pytest.fixture(scope="module")
def any_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any") / "a-0.0"


@given(st.binary(max_size=300), st.sampled_from(["bytes", "a frame", "a batch", "entries"]))
def test_any_file_is_a_journal_or_is_refused(any_path: Path, data: bytes, as_what: str) -> None:
    any_path.write_bytes(dressed(data, as_what))
    try:
        read = read_journal(any_path)
    except CorruptJournal:
        return
    assert all(isinstance(entry.event, o.AnyObserved) for entry in read)


def dressed(data: bytes, as_what: str) -> bytes:
    if as_what == "bytes":
        return data
    body = data
    if as_what == "entries":
        body = msgspec.msgpack.encode([[len(data), ["Lagged", data.hex()]]])
    if as_what != "a frame":
        body = msgspec.msgpack.encode([zlib.crc32(body), msgspec.Raw(body)])
    return struct.pack(">BI", 1, len(body)) + body
