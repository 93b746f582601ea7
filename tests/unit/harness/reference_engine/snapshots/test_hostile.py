"""Files that are missing, torn, altered, or made to do harm: one line names them, and nothing is changed."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.harness.reference_engine.snapshots.beginning import demand_new
from cutproof.harness.reference_engine.snapshots.changes import NOTE, Changing, Unfinished
from cutproof.harness.reference_engine.snapshots.directory import locked
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reference_impl.core.vocabulary.events import JobRecord
from cutproof.reference_impl.core.vocabulary.formats import SORTED, Manifest, StateFile
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.processes.disk.durable import sealed
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from unit.harness.reference_engine.snapshots.stores import left_by_a_job, refused, states, tool, tree
from unit.processes.disks import halve

OP = TaskId("op0-0")


@pytest.fixture
def newest(root: Path) -> int:
    return int(max(states(root)))


def entries_of(root: Path) -> Path:
    """The last file that the newest snapshot needs, besides those under its handles."""
    return root / "snapshots" / [name for files in DiskFiles(root).listed()[-1].files.values() for name in files][-1]


def handle_of(root: Path, number: int, task: str = "op0") -> Path:
    return next(
        path for path in (root / f"snapshots/job-1/chk-{number}").glob(f"{task}*") if ".entries" not in path.name
    )


def framed(kind: str, body: bytes) -> bytes:
    """A file whose checksum fits, whatever it holds."""
    front = b"cutproof-snapshot/2 %s " % kind.encode()
    return front + b"%08x\n" % zlib.crc32(body, zlib.crc32(front)) + body


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "torn": halve,
    "empty": lambda path: path.write_bytes(b""),
    "one byte altered": lambda path: path.write_bytes(path.read_bytes()[:-2] + b"?]"),
    "a folder": become_a_folder,
    "pickled": lambda path: path.write_bytes(pickle.dumps(Bomb())),
    "pickled, with a checksum": lambda path: path.write_bytes(framed("entries", pickle.dumps(Bomb()))),
    "of a newer version": lambda path: path.write_bytes(path.read_bytes().replace(b"snapshot/2", b"snapshot/9")),
    "of no known format": lambda path: path.write_bytes(framed("parquet", b"{}")),
    "deep": lambda path: path.write_bytes(framed("native", b'{"state":' + b"[" * 100_000)),
}


@pytest.mark.parametrize("which", ["entries", "handle"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_nothing_is_changed(
    damage: str, which: str, root: Path, newest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = entries_of(root) if which == "entries" else handle_of(root, newest)
    name = file.relative_to(root / "snapshots").as_posix()
    damaged = [
        int(one.checkpoint)
        for one in DiskFiles(root).listed()
        if name in (*one.handles.values(), *(needed for files in one.files.values() for needed in files))
    ]
    assert damaged[-1] == newest
    DAMAGES[damage](file)
    before = tree(root)
    code, found, err = tool("verify", root)
    assert code == 1
    bad = [one for one in found["snapshots"] if one["problems"]]
    assert [one["id"] for one in bad] == damaged
    assert all(any(name in problem for problem in one["problems"]) for one in bad)
    assert f"{len(bad)} of " in err
    for words in (["convert", root, newest, "--to", "canonical"], ["fork", root, newest, tmp_path / "target"]):
        said = refused(*words)
        assert name in said
        assert "nothing was changed" in said
    assert tool("list", root)[0] == tool("show", root, newest)[0] == 0
    assert tree(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


@pytest.mark.parametrize("damage", ["torn", "empty", "pickled", "a folder", "deep"])
def test_a_damaged_record_keeps_everything_as_it_is(
    damage: str, root: Path, newest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what its snapshot needs."""
    monkeypatch.chdir(tmp_path)
    first = min(states(root))
    record = root / f"records/chk-{newest}"
    DAMAGES[damage](record)
    before = tree(root)
    code, found, err = tool("verify", root)
    assert code == 1
    assert [(one["id"], one["file"]) for one in found["unreadable"]] == [(newest, str(record))]
    assert str(record) in err
    for words in (["delete", root, first], ["move", root, first, "target"], ["convert", root, first, "--to", "native"]):
        said = refused(*words)
        assert str(record) in said
        assert "nothing was changed" in said
    assert str(record) in refused("show", root, newest)
    assert found["newest"] is None
    assert f"{record} cannot be read" in refused("fork", root, "newest", tmp_path / "target")
    assert tree(root) == before
    assert not Path("executed").exists()


def test_the_record_of_another_snapshot_is_found(root: Path, newest: int) -> None:
    shutil.copy(root / f"records/chk-{newest}", root / "records/chk-77")
    (one,) = tool("list", root)[1]["unreadable"]
    assert f"it is the record of checkpoint {newest}" in one["problem"]


def test_a_record_that_does_not_name_what_its_manifests_need_is_found(root: Path, newest: int) -> None:
    files = DiskFiles(root)
    record = files.listed()[-1]
    files.store(msgspec.structs.replace(record, files={}))
    code, found, _ = tool("verify", root)
    assert code == 1
    assert "names other files than the record" in found["snapshots"][-1]["problems"][0]
    first = min(states(root))
    assert tool("delete", root, first)[0] == 0
    assert newest in states(root), "what its manifest names was kept"


def test_a_sorted_file_that_says_it_is_longer_than_it_is(root: Path, newest: int) -> None:
    handle = handle_of(root, newest)
    body = b"CPSORT1\n" + (1 << 31).to_bytes(4, "big")
    data = framed(SORTED, body + zlib.crc32(body).to_bytes(4, "big"))
    file = StateFile(Handle("job-1/long"), SORTED, len(data), int(data.partition(b"\n")[0][-8:], 16))
    (root / "snapshots/job-1/long").write_bytes(data)
    manifest = Manifest(state=TaskState(), files=(file,), layout="single")
    handle.write_bytes(framed("native", msgspec.json.encode(manifest)))
    code, found, _ = tool("verify", root)
    assert code == 1
    assert found["snapshots"][-1]["problems"]


@pytest.mark.parametrize("which", ["a file of the snapshot", "where a log begins"])
def test_a_move_of_what_is_damaged_writes_nothing_into_the_target(which: str, root: Path, tmp_path: Path) -> None:
    """Not even the numbers that its jobs have used."""
    first, second, *_ = DiskFiles(root).listed()
    other = tmp_path / "other"
    assert tool("fork", root, first.checkpoint, other)[0] == 0
    DiskJobs(root).save(JobRecord(job=1, attempt=AttemptId(1), next_checkpoint=CheckpointId(120)))
    path = root / "positions/begins-0" if which == "where a log begins" else root / "snapshots" / second.handles[OP]
    halve(path)
    before = tree(root), tree(other)
    assert path.name in refused("move", root, second.checkpoint, other)
    assert (tree(root), tree(other)) == before


# -- names and links that lead out of the directory ------------------------------------------------


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "..", "a\nb", ""])
def test_a_record_whose_handles_lead_out_reads_and_deletes_nothing_there(name: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"kept")
    files = DiskFiles(root)
    first = files.listed()[0]
    files.store(msgspec.structs.replace(first, handles={"op0-0": name}, files={"op0-0": (name,)}, logs=(name,)))
    assert tool("verify", root)[0] == 1
    assert "not a name within the store" in refused("fork", root, first.checkpoint, tmp_path / "target")
    assert tool("delete", root, first.checkpoint)[0] == 0
    assert (tmp_path / "secret").read_bytes() == b"kept"
    assert not (root / NOTE).exists()


@pytest.mark.parametrize("task", ["../../../../out", "a/../b", "x" * 300])
def test_a_task_whose_name_is_no_name_is_not_converted(task: str, root: Path, newest: int, tmp_path: Path) -> None:
    files = DiskFiles(root)
    record = files.listed()[-1]
    (handle, *_) = record.handles.values()
    files.store(msgspec.structs.replace(record, handles={task: handle}, files={}))
    before = tree(root)
    assert "is not a name within the store" in refused("convert", root, newest, "--to", "canonical")
    assert tree(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


@pytest.mark.parametrize("where", ["snapshots/job-1/link", "records/chk-5000", "logs", "unsynced/x"])
@pytest.mark.parametrize("command", ["list", "delete"])
def test_a_link_in_the_directory_is_refused(command: str, where: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "chk-1").write_bytes(b"kept")
    words = [command, root] if command == "list" else [command, root, min(states(root))]
    (root / where).symlink_to(tmp_path / "elsewhere")
    assert f"{root / where} is a link" in refused(*words)
    assert (tmp_path / "elsewhere" / "chk-1").read_bytes() == b"kept"


def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "records/chk-5000")
    assert "neither a file nor a folder" in refused("list", root)


@pytest.mark.parametrize("kind", ["altered", "a link", "leads out"])
def test_a_note_that_nobody_of_us_wrote(kind: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"kept")
    first = min(states(root))
    if kind == "altered":
        (root / NOTE).write_bytes(b"00000000 {}")
        assert f"{root / NOTE}" in refused("delete", root, first)
        assert first in states(root)
    elif kind == "a link":
        (root / NOTE).symlink_to(tmp_path / "secret")
        assert str(root / NOTE) in refused("delete", root, first)
    else:
        handle = next(iter(DiskFiles(root).listed()[-1].handles.values()))
        noted = Unfinished(
            command="delete", snapshot=1, names=(Handle("../../secret"), handle), logs=("../..", "../snapshots")
        )
        (root / NOTE).write_bytes(sealed(noted))
        before = states(root)
        assert tool("delete", root, first)[0] == 0
        assert states(root) == {number: one for number, one in before.items() if number != first}
    assert (tmp_path / "secret").read_bytes() == b"kept"


# -- bad usage -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["list", "none"], "there is no directory none"),
        (["list", "empty"], "empty holds no snapshots"),
        (["list", "file"], "there is no directory file"),
        (["list", "x" * 5_000], "there is no directory"),
        (["show", "store"], "name the snapshot: cutproof snapshots show store SNAPSHOT"),
        (["show", "store", "4711"], "store has no snapshot 4711; it has "),
        (["show", "store", "first"], "'first' names no snapshot; write its number"),
        (["show", "store", "٣"], "names no snapshot"),
        (["convert", "store", "newest"], "name the format: cutproof snapshots convert store newest --to canonical|"),
        (["convert", "store", "newest", "--to", "parquet"], "invalid choice: 'parquet'"),
        (["delete", "store", "newest", "--to", "native"], "delete takes no --to"),
        (["list", "store", "3"], "list takes no '3'"),
        (["delete", "store", "3", "elsewhere"], "delete takes no 'elsewhere'"),
        (["fork", "store", "newest"], "name the other directory: cutproof snapshots fork store newest TARGET"),
        (["fork", "store", "newest", "file"], "file is there already, and is no directory of snapshots"),
        (["fork", "store", "newest", "empty"], "empty is there already, and is no directory of snapshots"),
        (["fork", "store", "newest", "none/target"], "there is no directory"),
        (["fork", "store", "newest", "store/target"], "store/target lies in "),
        (["fork", "store", "newest", "store/snapshots/in"], "a directory of snapshots; name a place outside of it"),
        (["fork", "store", "newest", "store"], "store is the directory itself"),
        (["frobnicate", "store"], "invalid choice: 'frobnicate'"),
    ],
)
def test_bad_usage_is_one_line(
    words: list[str], reason: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").write_text("")
    before = tree(root)
    assert reason in refused(*words)
    assert tree(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "store"]


@pytest.mark.parametrize("place", ["snapshots/in", "copies", "in/new", "link"])
@pytest.mark.parametrize("command", ["move", "fork"])
def test_no_directory_is_made_within_another(command: str, place: str, root: Path, tmp_path: Path) -> None:
    """The other would count the files as needed by no snapshot of its own."""
    other = left_by_a_job(tmp_path / "other", retained_checkpoints=1)
    (other / "in").mkdir()
    (tmp_path / "link").symlink_to(other / "in")
    target = tmp_path / "link" / "new" if place == "link" else other / place
    before = tree(tmp_path)
    assert f"lies in {other}, a directory of snapshots" in refused(command, root, min(states(root)), target)
    assert tree(tmp_path) == before


def test_no_run_leaves_its_snapshots_within_those_of_another(root: Path) -> None:
    with pytest.raises(UsageError, match=f"lies in {root}, a directory of snapshots"):
        demand_new(root / "snapshots" / "in")


def test_a_directory_with_another_one_in_it_is_no_target(root: Path, tmp_path: Path) -> None:
    first, *_ = DiskFiles(root).listed()
    other = tmp_path / "other"
    assert tool("fork", root, "newest", other)[0] == 0
    shutil.copytree(root, other / "in")
    before = tree(tmp_path)
    assert f"another directory of snapshots lies in {other}" in refused("move", root, first.checkpoint, other)
    assert tree(tmp_path) == before
    shutil.move(other / "in", other / "copies")
    assert tool("move", root, first.checkpoint, other)[0] == 0


# -- the last one that is whole --------------------------------------------------------------------


def test_the_newest_that_is_whole_stays_if_the_one_for_a_recovery_is_damaged(root: Path, tmp_path: Path) -> None:
    *older, whole, newest = DiskFiles(root).listed()
    halve(root / "snapshots" / newest.handles[OP])
    said = (
        f"snapshot {whole.checkpoint} is the newest of {root} that can be restored, as {newest.checkpoint} is damaged"
    )
    for words in (["delete", root, whole.checkpoint], ["move", root, whole.checkpoint, tmp_path / "target"]):
        before = tree(tmp_path)
        line = refused(*words)
        assert said in line
        assert f"{newest.handles[OP]}: " in line
        assert tree(tmp_path) == before
    for one in older:
        assert tool("delete", root, one.checkpoint)[0] == 0
    assert said in refused("delete", root, whole.checkpoint)


def test_what_is_damaged_too_may_go(root: Path) -> None:
    first, *others = DiskFiles(root).listed()
    for one in others:
        halve(root / "snapshots" / one.handles[OP])
    *damaged, newest = others
    assert f"as {newest.checkpoint} is damaged" in refused("delete", root, first.checkpoint)
    for one in damaged:
        assert tool("delete", root, one.checkpoint)[0] == 0
    assert "can be restored" in refused("delete", root, first.checkpoint)


def test_if_none_can_be_restored_the_older_may_go(root: Path) -> None:
    first, *_ = records = DiskFiles(root).listed()
    for one in records:
        halve(root / "snapshots" / one.handles[OP])
    assert tool("delete", root, first.checkpoint)[0] == 0


# -- what is in the way ----------------------------------------------------------------------------


def test_what_is_in_the_way_of_a_new_directory_is_not_removed(root: Path, tmp_path: Path) -> None:
    (tmp_path / ".target.unfinished").mkdir()
    (tmp_path / ".target.unfinished" / "thesis.txt").write_text("mine")
    assert ".target.unfinished is in the way" in refused("fork", root, "newest", tmp_path / "target")
    assert (tmp_path / ".target.unfinished" / "thesis.txt").read_text() == "mine"


def test_two_do_not_change_one_directory(root: Path) -> None:
    before = tree(root)
    with locked(root, alone=False):
        assert tool("list", root)[0] == 0
        assert "or another `cutproof snapshots` works on" in refused("delete", root, min(states(root)))
    with locked(root, alone=True):
        assert "or another `cutproof snapshots` works on" in refused("list", root)
    assert tree(root) == before


def test_a_change_that_took_effect_is_not_refused_behind_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another command that waits for the directory has it as soon as this one lets it go."""
    close, waiting = os.close, os.open(root, os.O_RDONLY)

    def closed(descriptor: int) -> None:
        is_lock = os.path.realpath(f"/proc/self/fd/{descriptor}") == str(root)
        close(descriptor)
        if is_lock:
            with suppress(BlockingIOError):
                fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)

    first = min(states(root))
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed)
        code, found, _ = tool("delete", root, first)
    assert (code, found["change"]["snapshot"]) == (0, first)
    assert "works on it" in refused("list", root), "it has it"
    os.close(waiting)


# -- two commands that make one directory --------------------------------------------------


def test_a_directory_that_another_command_makes_is_left_to_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, store = tmp_path / "target", Changing.store
    said: list[str] = []

    def meanwhile(made: Changing, record: Any) -> None:
        if made.root != root and not said:
            said.append(refused("fork", root, "newest", target))
        store(made, record)

    monkeypatch.setattr(Changing, "store", meanwhile)
    assert tool("fork", root, "newest", target)[0] == 0
    assert f"another command makes {target}, or has just made it" in said[0]
    assert tool("fork", root, "newest", target)[1]["change"]["was_done"]


@pytest.mark.parametrize("when", ["before the lock", "behind the lock"])
def test_a_directory_that_another_command_has_just_made_is_left_as_it_is(
    when: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there yet when this one looked."""
    target, aside = tmp_path / "target", tmp_path / ".target.unfinished"
    lock = fcntl.flock

    def meanwhile(descriptor: int, how: int) -> None:
        if os.path.realpath(f"/proc/self/fd/{descriptor}") == str(aside):
            if when == "before the lock":
                os.rename(aside, target)
            else:
                shutil.copytree(root, target)
        lock(descriptor, how)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", meanwhile)
        assert f"another command makes {target}, or has just made it" in refused("fork", root, "newest", target)
    assert target.exists()
    assert not aside.exists()


def test_a_target_that_somebody_makes_meanwhile_is_left_as_it_is(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, rename = tmp_path / "target", os.rename

    def meanwhile(source: Any, aim: Any) -> None:
        if Path(aim) == target:
            target.mkdir()
            (target / "thesis.txt").write_text("mine")
        rename(source, aim)

    monkeypatch.setattr(os, "rename", meanwhile)
    before = tree(root)
    assert f"{target} was made meanwhile" in refused("move", root, min(states(root)), target)
    assert tree(root) == before
    assert tree(target) == {"thesis.txt": b"mine"}
    assert not (tmp_path / ".target.unfinished").exists()


@pytest.mark.parametrize("command", ["fork", "move"])
def test_a_target_with_a_name_that_no_file_can_have_is_bad_input(command: str, root: Path, tmp_path: Path) -> None:
    before = tree(root)
    assert "is too long; name a shorter one" in refused(command, root, min(states(root)), tmp_path / ("x" * 250))
    assert tree(root) == before


def test_a_full_disk_leaves_the_source_as_it_was(
    root: Path, newest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(root)
    left = 2

    def full(source: Any, target: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(28, "No space left on device", str(target))
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", full)
    code, found, _ = tool("convert", root, newest, "--to", "canonical")
    assert code == 4
    assert "the disk is full: " in found["error"]
    assert found["error"].endswith("; make room, and repeat the command")
    left = 2
    assert tool("fork", root, newest, tmp_path / "target")[0] == 4
    assert tree(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
