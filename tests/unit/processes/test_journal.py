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

from cutproof.reference_impl.core.vocabulary import transactions as t
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.processes import entries as e
from cutproof.reference_impl.processes.clock import Clock
from cutproof.reference_impl.processes.journal import BATCH, CorruptJournal, Journal, read_journal
from cutproof.reference_impl.trace import Observer
from unit.snapshots import snapshot

TASK, ATTEMPT, CHECKPOINT, HANDLE = TaskId("a-0"), AttemptId(2), CheckpointId(3), Handle("job-1/chk-3/a-0")
BY: dict[str, Any] = {"writer": TaskId("sink-0"), "attempt": ATTEMPT}
REQUESTS: tuple[t.AnyRequest, ...] = (
    t.Fence(**BY),
    t.Flush(**BY),
    t.Begin(**BY, name="x"),
    t.Write(**BY, name="x", rows=((1, None, 3, 4), (None, -(2**63), 0, 2**63 - 1))),
    t.PreCommit(**BY, name="x", checkpoint=CHECKPOINT),
    t.Commit(**BY, name="x"),
    t.Finalise(**BY, name="x"),
    t.Publish(**BY, checkpoint=CHECKPOINT, names=("x", "y")),
    t.AbortTransaction(**BY, name="x"),
    t.Append(**BY, row=(1, 2, 3, 4)),
    t.Upsert(**BY, identity=(1, None), row=(1, 2, 3, 4)),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a-0.0"


@pytest.fixture
def journal(path: Path) -> Journal:
    return Journal(path, Clock(lambda: 0))


def fields(entry: e.Entry) -> tuple[Any, ...]:
    """A tuple of the entry's fields, the stamp excepted."""
    return msgspec.structs.astuple(entry)[1:]


def start(journal: Observer) -> Any:
    return journal.task_started(TASK, "a", 0, ATTEMPT, 1, ["s-0>a-0"], ["a-0>b-0"])


def test_a_tick_keeps_the_name_that_it_has_in_saved_runs(journal: Journal, path: Path) -> None:
    start(journal).ticked(7)
    journal.flush()
    assert b"TimeTold" in path.read_bytes()
    assert [entry.time for entry in read_journal(path) if isinstance(entry, e.Ticked)] == [7]


def everything(journal: Journal) -> None:
    """Call every method that writes."""
    log = start(journal)
    log.reads.append((0, 7))
    log.reads.pop()
    log.applies.append((1, 512))
    log.applies.pop()
    log.marked(CHECKPOINT, [1], [2])
    log.advanced(-5)
    log.ticked(7)
    log.assigned({0: 0, 4: 2})
    log.restored(CHECKPOINT, "{}")
    log.input_ended()
    log.ended("finished")
    channel = journal.channel_opened("a-0>b-0", ATTEMPT)
    channel.sent.append(9)
    channel.barriers.append((3, 1))
    channel.watermarks.append((-5, 1))
    channel.continued(ATTEMPT, 3, 5)
    refilled = journal.channel_refilled("a-0>b-0", ATTEMPT)
    refilled.recovered.append(8)
    refilled.recovered_watermarks.append((None, 1))
    journal.note("attempt-started", None, 2, 1, "first")
    journal.task_failed(TASK, ATTEMPT, "it was killed", 0)
    journal.coordinator(False, None)
    journal.snapshot_stored(CHECKPOINT, TASK, ATTEMPT, HANDLE, "{}")
    journal.checkpoint_completing(snapshot(3, attempt=2, handles={TASK: HANDLE}))
    journal.checkpoint_completed(snapshot(3, attempt=2, savepoint=True, handles={TASK: HANDLE}))
    journal.deleted(None, [HANDLE])
    journal.log_opened("job-1/log/a-0-2/0", TASK, ATTEMPT)
    journal.log_trimmed("job-1/log/a-0-2/0", 4)
    journal.logs_cleared(["job-1/log/a-0-2/0"])
    journal.command_issued(0, "savepoint", False)
    journal.command_returned(0, CHECKPOINT, "")
    journal.job_ended(1, "finished", CHECKPOINT, "")
    for request in REQUESTS:
        journal.transacting(request)
        journal.transacted(request, t.Done(), 5)
    journal.commit_requested("x")
    journal.looked(1, 4)
    journal.seen(1, ["x", "y"], 2)
    journal.fault_fired(0, "running", "killed", None)
    journal.fault_healed(0)
    journal.died("a-0", 0, "it was killed", 0)
    journal.stopped("a-0", 0, 1)
    journal.breaks(2, "*")
    journal.outage(3, True)
    journal.expired(5, "job-1/sink-0/1-1", journal.order())
    journal.closing()
    journal.lagged(300_000)
    journal.defect_reached()
    journal.timed("record-sent", "a-0", 2, peer="b-0", channel="a-0>b-0", position=4, origin=9)


def test_every_type_of_entry_is_written_and_comes_back(journal: Journal, path: Path) -> None:
    everything(journal)
    journal.close()

    read = read_journal(path)

    assert {type(entry) for entry in read} == set(e.AnyEntry.__args__)
    assert [entry.stamp for entry in read] == sorted({entry.stamp for entry in read})


def test_what_a_task_did_comes_back_with_its_run(journal: Journal, path: Path) -> None:
    first, second = start(journal), start(journal)
    first.reads.append((0, 7))
    second.applies.append((1, 512))
    first.reads.pop()
    second.marked(CHECKPOINT, [1], [])
    journal.close()

    recorded = [(type(entry).__name__, fields(entry)) for entry in read_journal(path)[2:]]

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
        (t.Done(unfinished=(("x", CHECKPOINT), ("y", None))), ("done", "", (("x", 3), ("y", None)))),
        (t.Denied(reason="fenced"), ("denied", "fenced", ())),
        (t.NoAnswer(reason="gone"), ("no answer", "gone", ())),
    ],
)
def test_a_request_and_its_answer_come_back(
    journal: Journal, path: Path, request_: t.AnyRequest, outcome: t.Outcome, answered_: tuple[Any, ...]
) -> None:
    journal.transacting(request_)
    journal.transacted(request_, outcome, 5)
    journal.close()

    asked, answered = read_journal(path)

    assert fields(asked) == (request_,)
    assert fields(answered) == (request_, *answered_, 5)


def test_a_fault_of_another_process_keeps_that_process_s_stamp(journal: Journal, path: Path) -> None:
    journal.fault_fired(0, "running", "not written", 2, stamp=77)
    journal.fault_fired(0, "running", "not written", 2)
    journal.close()

    assert [entry.stamp for entry in read_journal(path)] == [77, 1]


def test_nothing_is_on_disk_before_it_is_flushed(journal: Journal, path: Path) -> None:
    journal.lagged(1)
    assert read_journal(path) == []

    journal.flush()
    journal.flush()

    assert len(read_journal(path)) == 1


def test_more_than_a_batch_does_not_wait(journal: Journal, path: Path) -> None:
    for _ in range(BATCH + 1):
        journal.lagged(1)

    assert len(read_journal(path)) == BATCH


def test_a_journal_that_is_there_is_continued(journal: Journal, path: Path) -> None:
    journal.lagged(1)
    journal.close()
    again = Journal(path, Clock(lambda: 0))
    again.lagged(2)
    again.close()

    assert [fields(entry) for entry in read_journal(path)] == [(1,), (2,)]


def test_what_was_flushed_survives_kill_9(path: Path) -> None:
    child = os.fork()
    if not child:
        journal = Journal(path, Clock(lambda: 0))
        journal.lagged(1)
        journal.flush()
        journal.lagged(2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)

    assert [fields(entry) for entry in read_journal(path)] == [(1,)]


# -- torn and altered files --------------------------------------------------------------------------------------


@pytest.fixture
def three(journal: Journal, path: Path) -> list[int]:
    """Where each of three batches ends, of one entry each."""
    ends = []
    for number in range(3):
        journal.lagged(number)
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
    assert all(isinstance(entry, e.AnyEntry) for entry in read)


def dressed(data: bytes, as_what: str) -> bytes:
    if as_what == "bytes":
        return data
    body = data
    if as_what == "entries":
        body = msgspec.msgpack.encode([["Lagged", len(data), data.hex()]])
    if as_what != "a frame":
        body = msgspec.msgpack.encode([zlib.crc32(body), msgspec.Raw(body)])
    return struct.pack(">BI", 1, len(body)) + body
