"""Snapshots and checkpoints' records on disk: several processes at once, names, syncs, folders that go."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot, EngineError
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.driver.ports import NotDeleted
from cutproof.reference_impl.processes.disk.durable import DraftLost, sealed
from cutproof.reference_impl.processes.disk.files import COPIES, BadHandle, DiskFiles, DiskJobs
from unit.processes.disks import HANDLE, JOB, STATE, end, forked, halve, snapshot, watch_syncs, write
from unit.stores import settle, sweep


@pytest.fixture
def files(tmp_path: Path) -> DiskFiles:
    return DiskFiles(tmp_path)


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "handle",
    ["..", "../secret", "job-1/../../secret", "/etc/passwd", "", "a//b", "a/", "./a", "a/.", "a\0b", "a\nb", "a" * 256],
)
def test_a_handle_that_leads_out_of_the_store_is_refused(files: DiskFiles, handle: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"kept")
    tries: list[Callable[[], object]] = [
        lambda: files.begin(handle, STATE),
        lambda: files.tear(handle, STATE),
        lambda: files.read(handle),
        lambda: files.discard((handle,), None),
    ]
    for attempt in tries:
        with pytest.raises(BadHandle, match="is not a name within the store"):
            attempt()
    assert (tmp_path / "secret").read_bytes() == b"kept"
    assert files.unsynced() == []


def test_a_bad_handle_deletes_nothing_at_all(files: DiskFiles) -> None:
    write(files, HANDLE)
    files.store(snapshot(3))
    with pytest.raises(BadHandle):
        files.discard((HANDLE, "../out"), 3)
    assert files.handles() == [HANDLE]
    assert files.listed() == (snapshot(3),)


def test_a_folder_is_no_snapshot(files: DiskFiles) -> None:
    write(files, HANDLE)
    assert files.discard(("job-1", f"{HANDLE}/below"), None) == []
    with pytest.raises(CorruptSnapshot, match=r"^job-1 cannot be read: Is a directory$"):
        files.read("job-1")
    with pytest.raises(CorruptSnapshot, match="below is not in the store"):
        files.read(f"{HANDLE}/below")


# -- contents -------------------------------------------------------------------------------------


def test_an_altered_file_is_named(files: DiskFiles) -> None:
    write(files, HANDLE)
    path = files.path(HANDLE)
    path.write_bytes(path.read_bytes().replace(b"7", b"8"))
    with pytest.raises(CorruptSnapshot, match=f"^{HANDLE}: its checksum does not fit its content$"):
        files.read(HANDLE)


def test_a_torn_record_is_named_and_the_others_are_reported(files: DiskFiles, tmp_path: Path) -> None:
    for checkpoint in (2, 3, 10):
        files.store(snapshot(checkpoint))
    assert files.survey() == ((snapshot(2), snapshot(3), snapshot(10)), ())
    halve(tmp_path / "records" / "chk-3")
    with pytest.raises(CorruptSnapshot, match=r"^the record of checkpoint 3: its checksum does not fit its content$"):
        files.listed()
    assert files.survey() == ((snapshot(2), snapshot(10)), (3,))
    files.discard((), 3)
    assert files.survey() == (files.listed(), ()) == ((snapshot(2), snapshot(10)), ())


def test_a_record_under_another_ones_name_is_not_believed(files: DiskFiles, tmp_path: Path) -> None:
    files.store(snapshot(3))
    (tmp_path / "records" / "chk-3").rename(tmp_path / "records" / "chk-4")
    with pytest.raises(CorruptSnapshot, match="checkpoint 4: it is that of checkpoint 3"):
        files.listed()


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (lambda known: b"cutproof-record/2 " + known, "it has version 2 of the format of records, which is not known"),
        (lambda known: sealed({**msgspec.json.decode(known[9:]), "later": 1}), "Object contains unknown field `later`"),
    ],
    ids=["another form", "another field"],
)
def test_a_record_of_a_later_version_is_refused_by_what_is_new(
    files: DiskFiles, tmp_path: Path, later: Callable[[bytes], bytes], what: str
) -> None:
    """Nothing of it is ignored, neither of a checkpoint's record nor of a job's."""
    jobs = DiskJobs(tmp_path)
    files.store(snapshot(2))
    files.store(snapshot(3))
    jobs.save(JOB)
    for path in (tmp_path / "records" / "chk-3", tmp_path / "jobs" / f"job-{JOB.job}"):
        path.write_bytes(later(path.read_bytes()))
    with pytest.raises(CorruptSnapshot, match=f"^the record of checkpoint 3: {what}"):
        files.listed()
    assert files.survey() == ((snapshot(2),), (3,))
    with pytest.raises(CorruptSnapshot, match=f"^the record of job {JOB.job}: {what}"):
        jobs.load(JOB.job)


def test_what_is_no_record_is_not_listed(files: DiskFiles, tmp_path: Path) -> None:
    (tmp_path / "records" / "chk-3.orig").write_bytes(b"")
    assert files.survey() == ((), ())


# -- durability -----------------------------------------------------------------------------------


def test_bytes_then_name_then_folders_are_synced(files: DiskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    draft = files.begin(HANDLE, STATE)
    assert synced == []
    settle(files, draft)
    assert synced == ["count-1", "count-1 -> count-1-0", "chk-3", "job-1", "snapshots"]


def test_records_are_synced_too_and_deleted_for_good_before_what_they_point_to(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = DiskJobs(tmp_path)
    synced = watch_syncs(monkeypatch)
    files.store(snapshot(3))
    jobs.save(JOB)
    coordinator = ["coordinator", "coordinator -> {}", "{}"]
    assert synced == [
        *(part.format(name) for part, name in zip(coordinator, ("", "chk-3", "records"), strict=True)),
        *(part.format(name) for part, name in zip(coordinator, ("", "job-1", "jobs"), strict=True)),
    ]
    write(files, HANDLE)
    synced.clear()
    unlink = Path.unlink

    def noted(path: Path) -> None:
        synced.append(f"no {path.name}")
        unlink(path)

    monkeypatch.setattr(Path, "unlink", noted)
    files.discard((HANDLE,), 3)
    assert synced == ["no chk-3", "records", "no count-1-0"]


def test_a_write_that_fails_leaves_nothing(files: DiskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    path_open = Path.open

    def full(path: Path, mode: str) -> Any:
        path_open(path, mode).close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        files.begin(HANDLE, STATE)
    assert files.unsynced() == []


# -- temporaries ----------------------------------------------------------------------------------


def test_a_loss_of_power_takes_what_these_tasks_had_not_synced(files: DiskFiles, tmp_path: Path) -> None:
    write(files, "job-1/chk-2/count-1-0")
    drafts = {
        task: DiskFiles(tmp_path).begin(f"job-1/chk-3/{task}-0", STATE) for task in ("count-1", "count-10", "ü-1")
    }
    assert files.unsynced("count-1") == sorted([drafts["count-1"].temporary, drafts["count-10"].temporary])
    assert files.unsynced("ü") == [drafts["ü-1"].temporary]
    assert files.lose_unsynced(["count-1", "ü-1", "count-2"]) == 2
    assert files.lose_unsynced(["count-1", "ü-1", "count-2"]) == 0
    settle(files, drafts["count-10"])
    assert files.handles() == ["job-1/chk-2/count-1-0", "job-1/chk-3/count-10-0"]
    files.drop(drafts["ü-1"])
    with pytest.raises(DraftLost, match=r"^count-1-0: its temporary file is gone$"):
        settle(files, drafts["count-1"])


def test_a_draft_that_is_lost_between_sync_and_rename_is_reported(
    files: DiskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = files.begin(HANDLE, STATE)
    monkeypatch.setattr(os, "fsync", lambda _: draft.temporary.unlink())
    with pytest.raises(DraftLost):
        settle(files, draft)


# -- folders that come and go ---------------------------------------------------------------------


def test_empty_folders_go_and_full_ones_stay(files: DiskFiles, tmp_path: Path) -> None:
    for handle in (HANDLE, "job-1/chk-4/count-1-0"):
        write(files, handle)
    files.discard((HANDLE,), None)
    assert [path.name for path in (tmp_path / "snapshots" / "job-1").iterdir()] == ["chk-4"]
    sweep(files)
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_a_folder_that_somebody_else_removes_first_is_no_fault(
    files: DiskFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(files, HANDLE)
    unlink = Path.unlink

    def swept_by_another(path: Path) -> None:
        unlink(path)
        path.parent.rmdir()

    monkeypatch.setattr(Path, "unlink", swept_by_another)
    assert files.discard((HANDLE,), None) == [HANDLE]
    assert list((tmp_path / "snapshots").iterdir()) == [], "the one above it is empty too, and goes"


def test_a_folder_that_is_removed_before_the_rename_is_made_again(
    files: DiskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, removals = os.replace, [2]

    def late(source: Path, target: Path) -> None:
        if removals[0]:
            removals[0] -= 1
            target.parent.rmdir()
            target.parent.parent.rmdir()
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    write(files, HANDLE)
    assert removals == [0]
    assert files.read(HANDLE).state == STATE


def test_a_folder_that_never_stays_is_given_up(files: DiskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def late(source: Path, target: Path) -> None:
        target.parent.rmdir()
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    with pytest.raises(EngineError, match="does not stay"):
        write(files, HANDLE)


def test_a_file_and_its_folder_may_go_before_the_folder_is_synced(
    files: DiskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def deleted_at_once(source: Path, target: Path) -> None:
        replace(source, target)
        files.discard((HANDLE,), None)

    monkeypatch.setattr(os, "replace", deleted_at_once)
    assert write(files, HANDLE) == '{"positions":{"0":7}}'
    assert files.handles() == []


def test_what_an_earlier_process_has_deleted_is_made_durable_before_files_are_deleted(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(files, HANDLE)
    files.store(snapshot(3))
    (tmp_path / "records" / "chk-3").unlink()  # by a coordinator that died before it had synced the folder
    done = watch_syncs(monkeypatch)
    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: (done.append(f"delete {Path(path).name}"), unlink(path)))
    assert DiskFiles(tmp_path).discard((HANDLE,), None) == [HANDLE]
    assert done.index("records") < done.index(f"delete {Path(HANDLE).name}")


def test_a_deletion_that_could_not_be_made_durable_is_so_before_the_next_one(
    files: DiskFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(files, HANDLE)
    files.store(snapshot(3))
    files.discard((), None)

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk failed")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fails)
        with pytest.raises(NotDeleted):
            files.discard((HANDLE,), 3)
    assert files.handles() == [HANDLE]
    done = watch_syncs(monkeypatch)
    assert files.discard((HANDLE,), 3) == [HANDLE]
    assert "records" in done


def test_writers_and_sweepers_do_not_disturb_each_other(files: DiskFiles, tmp_path: Path) -> None:
    rounds = 60
    names = tmp_path / "names"

    def written() -> None:
        for number in range(rounds):
            write(files, f"job-1/chk-{number % 3}/count-1-{number}")

    def swept() -> None:
        deleted: list[str] = []
        while f"job-2/{rounds}" not in deleted:
            deleted += sweep(files)
        names.write_text("\n".join(deleted), encoding="utf-8")

    writer, sweeper = forked(written), forked(swept)
    ended = end(writer)
    write(files, f"job-2/{rounds}")
    assert (ended, end(sweeper)) == (0, 0)
    deleted = names.read_text(encoding="utf-8").splitlines() + list(sweep(files))
    wanted = [f"job-1/chk-{number % 3}/count-1-{number}" for number in range(rounds)]
    assert sorted(deleted) == sorted([*wanted, f"job-2/{rounds}"]), "each went once, and none was lost"
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_records_may_go_while_they_are_listed(files: DiskFiles) -> None:
    def come_and_go() -> None:
        for number in range(60):
            files.store(snapshot(number))
            files.discard((), number)
        files.store(snapshot(60))

    files.store(snapshot(100))
    child = forked(come_and_go)
    while len(listed := files.listed()) != 2 or listed[0].checkpoint != 60:
        assert listed[-1] == snapshot(100)
        assert files.survey()[1] == ()
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            assert files.listed() == (snapshot(60), snapshot(100))
    assert end(child) == 0


# -- copies in a directory of the user ------------------------------------------------------------


def test_a_copy_is_a_store_of_its_own(files: DiskFiles, tmp_path: Path) -> None:
    write(files, HANDLE)
    assert (files.has_copy(HANDLE), files.copied(), (tmp_path / COPIES).exists()) == (False, (), False)
    files.copy(HANDLE)
    files.store_copy(snapshot(3))
    files.discard((HANDLE,), 3)
    assert files.has_copy(HANDLE)
    assert files.copied() == (snapshot(3),)
    assert DiskFiles(tmp_path / COPIES).read(HANDLE).state == STATE
    assert files.handles() == []


def test_what_is_not_there_is_not_copied(files: DiskFiles) -> None:
    with pytest.raises(CorruptSnapshot, match=f"{HANDLE} is not in the store"):
        files.copy(HANDLE)
    assert not files.has_copy(HANDLE)


def test_no_copy_is_swept_while_the_record_of_one_cannot_be_read(files: DiskFiles, tmp_path: Path) -> None:
    write(files, HANDLE)
    files.copy(HANDLE)
    files.store_copy(snapshot(3))
    (record,) = (path for path in (tmp_path / COPIES).rglob("chk-3") if path.is_file())
    record.write_bytes(b"?")
    assert files.copied() == ()
    files.keep_copies(())
    assert files.has_copy(HANDLE)


def test_files_without_a_record_are_swept_and_others_stay(files: DiskFiles) -> None:
    other = Handle(f"{HANDLE}0")
    for handle in (HANDLE, other):
        write(files, handle)
        files.copy(handle)
    files.keep_copies((HANDLE,))
    assert (files.has_copy(HANDLE), files.has_copy(other)) == (True, False)
    assert sorted(files.handles()) == sorted((HANDLE, other))


def test_a_copy_is_synced_before_it_has_its_name(files: DiskFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    write(files, HANDLE)
    synced = watch_syncs(monkeypatch)
    files.copy(HANDLE)
    task, name = HANDLE.rpartition("/")[2].rpartition("-")[0], HANDLE.rpartition("/")[2]
    renamed = synced.index(f"{task} -> {name}")
    assert task in synced[:renamed]
    assert "snapshots" in synced[renamed:], "and the folders above it"
