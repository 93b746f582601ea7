"""Logs of persistent channels, to which the snapshots of a directory refer."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.harness.reference_engine.snapshots.changes import Changing
from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reference_impl.core.vocabulary.state import Ref
from cutproof.reference_impl.processes.disk.files import DiskFiles
from cutproof.reference_impl.processes.disk.logs import DiskLogs
from unit.harness.reference_engine.snapshots.continuing import assert_it_holds, begun, left, stopped, unstopped
from unit.harness.reference_engine.snapshots.stores import refused, tool, tree

SLOW = {
    "alignment": "unaligned",
    "spilling": "continuous",
    "spill_store": "files",
    "apply_cost_us": 260,
    "read_interval_us": 100,
    "channel_capacity": 6,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "kept"
    left(folder, SimulatedSubject(), stopped(**SLOW))
    for _, ref in referred(folder):
        in_single_files(folder, ref.log)
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "kept"))


def referred(kept: Path) -> list[tuple[int, Ref]]:
    """What the snapshots refer to: the number of each, and the elements in a log."""
    directory = Directory(kept)
    states = (
        (n, directory.load(one).state) for n, record in directory.records.items() for one in record.handles.values()
    )
    return [(number, ref) for number, state in states for refs in state.spilled.values() for ref in refs]


def in_single_files(kept: Path, log: str) -> None:
    """Write a log again, each element in a file of its own, as quick flushes do."""
    elements = DiskLogs(kept, whole_files=True).read(Ref(log, 0, 1 << 40))
    shutil.rmtree(kept / "logs" / log)
    logs = DiskLogs(kept, whole_files=True)
    for number, element in elements:
        logs.append(log, number, element)
        logs.finish(log, logs.begin(log))
    logs.lose(log)


@pytest.mark.parametrize("stays", [0, 1, -1])
def test_a_log_that_lacks_some_elements_is_no_whole_snapshot(kept: Path, stays: int) -> None:
    """The engine restores all that a snapshot refers to, or nothing."""
    assert tool("verify", kept)[0] == 0
    number, ref = referred(kept)[-1]
    assert ref.end - ref.first >= 3
    names = sorted((kept / "logs" / ref.log).iterdir())
    for path in names:
        if path != names[stays]:
            path.unlink()
    code, found, _ = tool("verify", kept)
    assert code == 1
    (listed,) = [one for one in found["snapshots"] if one["id"] == number]
    assert any(f"of the elements {ref.first} to {ref.end - 1}" in one for one in listed["problems"])
    assert f"of the elements {ref.first} to {ref.end - 1}" in refused("fork", kept, number, kept.parent / "fork")
    assert not (kept.parent / "fork").exists()
    with pytest.raises(UsageError, match=f"of the elements {ref.first} to {ref.end - 1}"):
        begun(kept, SimulatedSubject(), unstopped(**SLOW), str(number))


def test_a_log_that_may_not_be_read_is_not_told_as_loss(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number, ref = referred(kept)[-1]
    read = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path.is_relative_to(kept / "logs" / ref.log):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    code, found, text = tool("verify", kept)
    assert code == 1
    (listed,) = [one for one in found["snapshots"] if one["id"] == number]
    assert listed["problems"] == [f"the log {ref.log}: no permission to read it"]
    assert listed["no_permission"]
    assert "NO PERMISSION" in text
    assert "no permission to read it" in refused("fork", kept, number, kept.parent / "fork")


def test_a_fork_takes_the_logs_along(kept: Path, tmp_path: Path) -> None:
    number, _ = referred(kept)[-1]
    assert tool("fork", kept, number, tmp_path / "fork")[0] == 0
    assert_it_holds(begun(tmp_path / "fork", SimulatedSubject(), unstopped(**SLOW), str(number)))


def forked(kept: Path) -> tuple[Path, int, Ref]:
    """A directory with the newest snapshot alone, and an older one that refers to a log which is not in it."""
    other = kept.parent / "other"
    assert tool("fork", kept, "newest", other)[0] == 0
    directory = Directory(kept)
    newest = directory.records[max(directory.records)]
    number, ref = next(one for one in referred(kept) if one[1].log not in newest.logs)
    assert number != newest.checkpoint
    return other, number, ref


def test_a_move_that_is_refused_deletes_nothing_that_was_there(kept: Path) -> None:
    """A log, and a file of the snapshot, that no record in the target refers to."""
    other, number, ref = forked(kept)
    handle = next(iter(Directory(kept).records[number].handles.values()))
    for stray in (other / "logs" / ref.log / "00000001", other / "snapshots" / handle):
        stray.parent.mkdir(parents=True, exist_ok=True)
        stray.write_bytes(b"of somebody else")
    before = tree(kept), tree(other)
    assert "00000001 is there already; name another directory" in refused("move", kept, number, other)
    assert (tree(kept), tree(other)) == before


def test_a_move_that_fails_deletes_nothing_that_was_there(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, number, ref = forked(kept)
    handle = next(iter(Directory(kept).records[number].handles.values()))
    shutil.copytree(kept / "logs" / ref.log, other / "logs" / ref.log)
    (other / "snapshots" / handle).parent.mkdir(parents=True)
    shutil.copy(kept / "snapshots" / handle, other / "snapshots" / handle)
    before = tree(kept), tree(other)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(other))

    monkeypatch.setattr(Changing, "store", full)
    assert tool("move", kept, number, other)[0] == 4
    assert (tree(kept), tree(other)) == before
    monkeypatch.undo()
    assert tool("move", kept, number, other)[0] == 0
    assert tool("verify", other)[0] == 0


def test_a_copy_without_its_log_is_no_copy(kept: Path) -> None:
    """The original stays."""
    other, number, ref = forked(kept)
    copy = kept.parent / "copy"
    shutil.copytree(kept, copy)
    shutil.rmtree(copy / "logs" / ref.log)
    before = tree(kept)
    assert f"the log {ref.log}" in refused("move", kept, number, copy)
    assert tree(kept) == before
    assert tool("move", kept, number, other)[0] == 0


@pytest.mark.parametrize("named", ["job-1", "below a log"])
def test_a_log_of_a_record_that_names_the_folder_of_others_is_not_deleted(kept: Path, named: str) -> None:
    number, ref = referred(kept)[-1]
    other = next(one for one in DiskFiles(kept).listed()[:-1] if one.checkpoint != number)
    log = named if named == "job-1" else f"{ref.log}/more"
    (kept / "logs" / log).mkdir(exist_ok=True)
    (kept / "logs" / log / "thesis.txt").write_text("mine")
    needed = tree(kept / "logs" / ref.log)
    DiskFiles(kept).store(msgspec.structs.replace(other, logs=(*other.logs, log)))
    assert tool("delete", kept, other.checkpoint)[0] == 0
    assert tree(kept / "logs" / ref.log) == needed
    assert (kept / "logs" / log / "thesis.txt").exists()


def deletable(kept: Path) -> tuple[int, str]:
    """A snapshot that may be deleted, and a log that goes with it."""
    records = Directory(kept).records
    number, ref = next(one for one in referred(kept) if one[0] != max(records))
    for other in records:
        if other != number and ref.log in records[other].logs and other != max(records):
            assert tool("delete", kept, other)[0] == 0
    assert all(ref.log not in one.logs for at, one in Directory(kept).records.items() if at != number)
    return number, ref.log


@pytest.mark.parametrize("what", ["a log", "a file"])
def test_a_delete_that_the_disk_fails_says_so_and_is_repeated(
    kept: Path, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number, log = deletable(kept)
    unlink = os.unlink

    def fails(path: Any, *more: Any, **how: Any) -> None:
        name = os.path.join(os.readlink(f"/proc/self/fd/{how['dir_fd']}"), path) if how.get("dir_fd") else str(path)
        if log in name if what == "a log" else f"chk-{number}/" in name:
            raise OSError(errno.EIO, "Input/output error", str(path))
        unlink(path, *more, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fails)
        code, found, _ = tool("delete", kept, number)
    assert code == 4
    assert f"{kept}: a file that no snapshot needs cannot be deleted" in found["error"]
    assert found["error"].endswith("repeat the command")
    listed = tool("list", kept)[1]
    assert listed["unfinished"] == f"delete {number}"
    assert number not in [one["id"] for one in listed["snapshots"]]
    assert listed["unneeded_files"] > 0
    assert tool("delete", kept, number)[1]["change"]["was_done"] is True
    assert tool("list", kept)[1]["unneeded_files"] == 0
    assert not (kept / "logs" / log).exists()


def test_the_files_of_a_log_that_no_snapshot_needs_are_counted(kept: Path) -> None:
    assert tool("list", kept)[1]["unneeded_files"] == 0
    stray = kept / "logs/job-1/log/op9-0-1/0/00000001"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"12345")
    found = tool("list", kept)[1]
    assert (found["unneeded_files"], found["unneeded_bytes"]) == (1, 5)
