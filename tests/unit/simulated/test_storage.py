"""The engine's stores: what is durable, what is torn, what is deleted, who is shut out.

What a store means is the same in memory and on disk: one body tests both.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.causes import NotStored, StopFailed
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.core.vocabulary.events import Closure, CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.formats import Edit, Filed, KeyedEdit, file_of, text
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.driver.ports import Files, Jobs
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from cutproof.reference_impl.simulated.storage import JobStore, SnapshotFiles
from unit import snapshots
from unit.stores import settle, sweep

STATE = TaskState(positions={0: 7})
LATER = TaskState(positions={0: 8})


@pytest.fixture(params=[lambda _: SnapshotFiles(), DiskFiles], ids=["memory", "disk"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    make: Callable[[Path], Files] = request.param
    return make(tmp_path)


@pytest.fixture(params=[lambda _: JobStore(), DiskJobs], ids=["memory", "disk"])
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Jobs:
    make: Callable[[Path], Jobs] = request.param
    return make(tmp_path)


def snapshot(checkpoint: int) -> CompletedCheckpoint:
    return snapshots.snapshot(checkpoint, handles={"a-0": f"job-1/{checkpoint}"})


def record(job: int, version: int) -> JobRecord:
    return JobRecord(
        job=job,
        attempt=3,
        next_checkpoint=5,
        version=version,
        closure=Closure(Status.FAILED, StopFailed(NotStored("no “slots”"))),
    )


def write(files: Files, handle: str, state: TaskState = STATE) -> str:
    return settle(files, files.begin(handle, state))


def test_what_is_begun_is_not_there_until_it_is_finished(files: Files) -> None:
    files.drop(files.begin("job-1/h", STATE))
    draft = files.begin("job-1/i", STATE)
    assert draft.handle == "job-1/i"
    assert files.handles() == []
    with pytest.raises(CorruptSnapshot, match="job-1/i is not in the store"):
        files.read("job-1/i")
    settle(files, draft)
    assert files.handles() == ["job-1/i"]


def test_what_is_written_is_read(files: Files) -> None:
    assert write(files, "job-1/h") == '{"positions":{"0":7}}'
    assert files.read("job-1/h").state == STATE


def test_what_is_written_again_is_what_was_finished_last(files: Files) -> None:
    early, late = files.begin("job-1/h", STATE), files.begin("job-1/h", LATER)
    assert settle(files, late) == '{"positions":{"0":8}}'
    assert files.read("job-1/h").state == LATER
    settle(files, early)
    assert files.read("job-1/h").state == STATE
    assert files.handles() == ["job-1/h"]


def test_a_pointer_to_nothing_is_named(files: Files) -> None:
    with pytest.raises(CorruptSnapshot, match="job-1/gone is not in the store"):
        files.read("job-1/gone")


def test_a_torn_file_is_named(files: Files) -> None:
    files.tear("job-1/torn", STATE)
    assert files.handles() == ["job-1/torn"]
    with pytest.raises(CorruptSnapshot, match="job-1/torn: its checksum"):
        files.read("job-1/torn")


def test_complete_checkpoints_are_listed_oldest_first(files: Files) -> None:
    for checkpoint in (10, 9, 2):
        files.store(snapshot(checkpoint))
    assert files.listed() == (snapshot(2), snapshot(9), snapshot(10))


def test_deleting_reports_what_was_there(files: Files) -> None:
    write(files, "job-1/a")
    write(files, "job-1/b")
    files.store(snapshot(2))
    assert files.discard(("job-1/a", "job-1/never", "job-1/a"), None) == ["job-1/a"]
    assert files.listed() == (snapshot(2),)
    assert files.discard((), 2) == []
    assert files.discard((), 2) == [], "a record that is not there is no fault"
    assert files.listed() == ()
    assert files.handles() == ["job-1/b"]


def test_a_sweep_keeps_what_is_named_and_nothing_else(files: Files) -> None:
    for handle in ("job-1/a", "job-1/b", "job-2/a"):
        write(files, handle)
    files.store(snapshot(2))
    assert sweep(files, "job-1/b", "job-1/gone") == ["job-1/a", "job-2/a"]
    assert files.handles() == ["job-1/b"]
    assert files.listed() == (snapshot(2),)


def test_what_is_on_its_way_survives_a_sweep(files: Files) -> None:
    draft = files.begin("job-1/h", STATE)
    assert sweep(files) == []
    settle(files, draft)
    assert files.read("job-1/h").state == STATE


def test_a_job_is_found_again_as_it_was_saved_last(jobs: Jobs) -> None:
    for saved in (record(1, 1), record(2, 1), record(1, 2)):
        jobs.save(saved)
    assert jobs.load(1) == record(1, 2)
    assert jobs.load(2) == record(2, 1)
    assert jobs.load(3) is None


def test_a_position_is_saved_unless_a_newer_attempt_reads_the_split(jobs: Jobs) -> None:
    assert jobs.save_position(0, 5, attempt=1)
    assert jobs.load_positions((0, 1), attempt=2) == {0: 5, 1: 0}
    assert not jobs.save_position(0, 6, attempt=1)
    assert jobs.save_position(0, 7, attempt=2)
    assert jobs.load_positions((0,), attempt=1) == {0: 7}
    assert not jobs.save_position(0, 8, attempt=1), "an older attempt that asks opens nothing again"
    assert jobs.save_position(0, 8, attempt=2), "an older attempt that asks shuts nobody out"
    assert not jobs.save_position(0, 9, attempt=1)
    assert jobs.save_position(2, 1, attempt=1), "a split that nobody has read"


# -- snapshots in several files --------------------------------------------------------------------------------------

WHOLE = TaskState(positions={0: 7}, entries=[(0, 1, 5, 0), (0, 2, 6, 0)])
FIRST, SECOND = Handle("job-1/chk-1/a-0-1"), Handle("job-1/chk-2/a-0-1")
FULL = file_of(Handle(f"{FIRST}.entries-0"), KeyedEdit(entries=Edit(added=[(0, 1, 5, 0)])))
MORE = file_of(Handle(f"{SECOND}.entries-1"), KeyedEdit(entries=Edit(added=[(0, 2, 6, 0)])))


def write_chain(files: Files) -> str:
    """Two incremental snapshots; what is read under the second one's handle."""
    first = Filed(format="incremental", files=(FULL.file,), new=(FULL,))
    settle(files, files.begin(FIRST, STATE, first))
    second = Filed(format="incremental", files=(FULL.file, MORE.file), new=(MORE,))
    return settle(files, files.begin(SECOND, STATE, second))


def test_a_snapshot_in_several_files_is_read_as_a_whole(files: Files) -> None:
    assert write_chain(files) == text(WHOLE)
    loaded = files.read(SECOND)
    assert (loaded.state, loaded.files) == (WHOLE, (FULL.file, MORE.file))
    assert sorted(files.handles()) == sorted([FIRST, FULL.file.name, SECOND, MORE.file.name])


def test_what_was_written_for_a_handle_is_found_by_its_name(files: Files) -> None:
    write_chain(files)
    write(files, "job-1/chk-2/a-0-12")
    assert files.written_for(SECOND) == [MORE.file.name]
    assert files.written_for(Handle("job-1/chk-9/a-0-1")) == []


def test_a_file_to_which_a_snapshot_refers_is_named_if_it_is_missing(files: Files) -> None:
    write_chain(files)
    files.discard((FULL.file.name,), None)
    with pytest.raises(CorruptSnapshot, match=f"{FULL.file.name}, to which {SECOND} refers, is not in the store"):
        files.read(SECOND)


def test_the_first_file_of_a_snapshot_is_the_one_that_is_torn(files: Files) -> None:
    """Its manifest, which comes last, is then not there."""
    filed = Filed(format="native", files=(FULL.file,), new=(FULL,))
    assert files.tear(FIRST, STATE, filed) == FULL.file.name
    assert files.handles() == [FULL.file.name]
    assert files.tear(SECOND, STATE, Filed(format="native")) == SECOND


def test_nothing_remains_of_a_draft_in_several_files_that_is_dropped(files: Files) -> None:
    filed = Filed(format="native", files=(FULL.file,), new=(FULL,))
    files.drop(files.begin(FIRST, STATE, filed))
    assert files.handles() == []
    if isinstance(files, DiskFiles):
        assert files.unsynced() == []


def test_what_one_store_has_written_the_other_reads(tmp_path: Path) -> None:
    """Bytes and names are the same, so a snapshot of the simulator is one of processes."""
    memory, disk = SnapshotFiles(), DiskFiles(tmp_path)
    for store in (memory, disk):
        write(store, "job-1/c", WHOLE)
        write_chain(store)
    on_disk = {Handle(handle): disk.path(handle).read_bytes() for handle in disk.handles()}
    assert on_disk == memory.files
    memory.files = on_disk
    assert memory.read(SECOND).state == memory.read(Handle("job-1/c")).state == WHOLE
