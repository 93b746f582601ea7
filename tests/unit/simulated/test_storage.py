"""The engine's stores: what is durable, what is torn, what is deleted, who is shut out."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.errors import CorruptSnapshot
from cutproof.reference_impl.core.events import CompletedSnapshot
from cutproof.reference_impl.core.state import TaskState
from cutproof.reference_impl.simulated.storage import JobStore, SnapshotFiles

STATE = TaskState(positions={0: 7})


def snapshot(checkpoint: int) -> CompletedSnapshot:
    return CompletedSnapshot(
        checkpoint=checkpoint, job=1, attempt=1, savepoint=False, ending="", handles={"a-0": f"job-1/{checkpoint}"}
    )


def write(files: SnapshotFiles, handle: str) -> str:
    return files.finish(files.begin(handle, STATE))


def test_what_is_begun_is_not_there_until_it_is_finished() -> None:
    files = SnapshotFiles()
    files.drop(files.begin("job-1/h", STATE))
    draft = files.begin("job-1/i", STATE)
    assert files.handles() == []
    files.finish(draft)
    assert files.handles() == ["job-1/i"]


def test_what_is_written_is_read() -> None:
    files = SnapshotFiles()
    assert write(files, "job-1/h") == '{"positions":{"0":7}}'
    assert files.read("job-1/h") == STATE


def test_a_pointer_to_nothing_is_named() -> None:
    with pytest.raises(CorruptSnapshot, match="job-1/gone is not in the store"):
        SnapshotFiles().read("job-1/gone")


def test_a_torn_file_is_named() -> None:
    files = SnapshotFiles()
    files.tear("job-1/torn", STATE)
    assert files.files["job-1/torn"]
    with pytest.raises(CorruptSnapshot, match="job-1/torn: its checksum"):
        files.read("job-1/torn")


def test_complete_checkpoints_are_listed_oldest_first() -> None:
    files = SnapshotFiles()
    for checkpoint in (10, 9, 2):
        files.store(snapshot(checkpoint))
    assert files.listed() == (snapshot(2), snapshot(9), snapshot(10))


def test_deleting_tells_what_was_there() -> None:
    files = SnapshotFiles()
    write(files, "job-1/a")
    write(files, "job-1/b")
    files.store(snapshot(2))
    assert files.discard(("job-1/a", "job-1/never"), None) == ["job-1/a"]
    assert files.listed() == (snapshot(2),)
    assert files.discard((), 2) == []
    assert files.listed() == ()
    assert list(files.files) == ["job-1/b"]


def test_a_sweep_keeps_what_is_named_and_nothing_else() -> None:
    files = SnapshotFiles()
    for handle in ("job-1/a", "job-1/b", "job-2/a"):
        write(files, handle)
    assert files.sweep(("job-1/b", "job-1/gone")) == ["job-1/a", "job-2/a"]
    assert list(files.files) == ["job-1/b"]


def test_a_position_is_saved_unless_a_newer_attempt_reads_the_split() -> None:
    jobs = JobStore()
    assert jobs.save_position(0, 5, attempt=1)
    assert jobs.load_positions((0, 1), attempt=2) == {0: 5, 1: 0}
    assert not jobs.save_position(0, 6, attempt=1)
    assert jobs.save_position(0, 7, attempt=2)
    assert jobs.load_positions((0,), attempt=1) == {0: 7}
    assert jobs.save_position(0, 8, attempt=2), "an older attempt that asks shuts nobody out"
    assert not jobs.save_position(0, 9, attempt=1)
    assert jobs.save_position(2, 1, attempt=1), "a split that nobody has read"
