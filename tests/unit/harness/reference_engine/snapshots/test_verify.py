"""What `verify` finds besides files that are not whole, and that no command accepts what it has found."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.harness.cli.entry import main
from cutproof.harness.reference_engine.snapshots.beginning import beginning
from cutproof.harness.reference_engine.snapshots.changes import NOTE, Unfinished
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reference_impl.core.vocabulary.events import JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.processes.disk.durable import sealed
from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit.harness.reference_engine.snapshots.continuing import begun, left, stopped, unstopped
from unit.harness.reference_engine.snapshots.stores import refused, tool, tree

OP, SOURCE = TaskId("op0-0"), TaskId("source-0")


def save_job(root: Path, *, had_snapshot: bool) -> None:
    record = JobRecord(job=1, attempt=AttemptId(1), next_checkpoint=CheckpointId(99), had_snapshot=had_snapshot)
    (root / "jobs/job-1").write_bytes(sealed(record))


# -- records ---------------------------------------------------------------------------------


def test_no_job_begins_from_a_record_that_names_other_files_than_its_snapshot(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    left(kept, SimulatedSubject(), stopped(snapshot_format="incremental"))
    files = DiskFiles(kept)
    newest = files.listed()[-1]
    assert any(newest.files.values())
    files.store(replace(newest, files={}))
    with pytest.raises(UsageError, match="names other files than the record"):
        begun(kept, SimulatedSubject(), stopped())


def test_a_record_that_names_the_file_of_another_task_is_accepted_by_no_command(root: Path, tmp_path: Path) -> None:
    files = DiskFiles(root)
    at, first = next((at, one) for at, one in enumerate(files.listed()) if OP in one.files)
    files.store(replace(first, handles={**first.handles, SOURCE: first.handles[OP]}))
    before = tree(root)
    code, found, _ = tool("verify", root)
    assert code == 1
    assert "names other files than the record" in found["snapshots"][at]["problems"][0]
    for words in (
        ["convert", root, first.checkpoint, "--to", "native"],
        ["move", root, first.checkpoint, tmp_path / "target"],
        ["fork", root, first.checkpoint, tmp_path / "target"],
    ):
        said = refused(*words)
        assert "names other files than the record" in said
        assert "nothing was changed" in said
    assert tree(root) == before
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"format": "foo"}, "unknown format 'foo'"),
        ({"job": -7}, "job is -7"),
        ({"attempt": -1}, "attempt is -1"),
        ({"increments": -3}, "increments is -3"),
        ({"handles": {}, "files": {}}, "names no state of any task"),
    ],
    ids=["format", "job", "attempt", "increments", "no handles"],
)
def test_a_record_of_what_cannot_be_is_refused(change: dict[str, Any], what: str, root: Path, tmp_path: Path) -> None:
    files = DiskFiles(root)
    first = files.listed()[0]
    files.store(replace(first, **change))
    before = tree(root)
    code, found, _ = tool("verify", root)
    assert code == 1
    (one,) = found["unreadable"]
    assert one["id"] == first.checkpoint
    assert what in one["problem"]
    number = first.checkpoint
    for words in (["convert", root, number, "--to", "native"], ["fork", root, number, tmp_path / "x"]):
        assert what in refused(*words)
    assert tree(root) == before


# -- permissions -----------------------------------------------------------------------------


def deny(monkeypatch: pytest.MonkeyPatch, which: str, path: Path) -> None:
    """This user may not read a file, or not enter the folder that has it.  A folder that he may not enter is not walked
    through either, so its files are only asked for by name."""
    lstat, access = os.lstat, os.access

    def seen(asked: Any, *words: Any, **more: Any) -> os.stat_result:
        if isinstance(asked, Path) and asked.is_relative_to(path.parent):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(asked))
        return lstat(asked, *words, **more)

    if which == "a folder":
        monkeypatch.setattr(os, "lstat", seen)
    else:
        monkeypatch.setattr(os, "access", lambda asked, *words, **more: asked != path and access(asked, *words, **more))


@pytest.mark.parametrize("which", ["a file", "a folder"])
def test_what_may_not_be_read_is_not_told_as_loss(
    which: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = DiskFiles(root).listed()[-1]
    path = root / "snapshots" / newest.handles[SOURCE]
    deny(monkeypatch, which, path)
    for command in ("list", "verify"):
        code, found, text = tool(command, root)
        assert code == (command == "verify")
        one = found["snapshots"][-1]
        assert one["no_permission"]
        assert f"{newest.handles[SOURCE]}: no permission to read it" in one["problems"]
        assert "NO PERMISSION" in text
        assert "DAMAGED" not in text
        assert "missing" not in text
    _, found, text = tool("show", root, "newest")
    file = next(file for part in found["shown"]["parts"] for file in part["files"] if part["task"] == SOURCE)
    assert file["no_permission"]
    assert "MISSING" not in text
    for words in (["convert", root, "newest", "--to", "canonical"], ["fork", root, "newest", tmp_path / "target"]):
        assert "no permission to read it" in refused(*words)
    other = next(file for task, file in newest.handles.items() if task != SOURCE)
    (root / "snapshots" / other).write_bytes(b"")
    if which == "a file":
        assert not tool("list", root)[1]["snapshots"][-1]["no_permission"], "another file of it is damaged"


def test_a_job_does_not_begin_from_what_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path / "kept", SimulatedSubject(), stopped())
    record = DiskFiles(tmp_path / "kept").listed()[-1]
    deny(monkeypatch, "a folder", tmp_path / "kept/snapshots" / record.handles[SOURCE])
    with pytest.raises(UsageError, match="no permission to read it; snapshot"):
        beginning(tmp_path / "kept", "newest", unstopped())


# -- texts that steer a terminal -------------------------------------------------------------


def test_what_steers_a_terminal_is_shown_as_its_escape(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = DiskFiles(root)
    first, second, *_ = files.listed()
    steering = "\x1b[2J"
    task, log = TaskId(f"{steering}task\n0"), f"{steering}log"
    files.store(
        replace(first, handles={**first.handles, task: Handle(f"{steering}file")}, finished=(task,), logs=(log,))
    )
    files.store(replace(second, format=steering))
    note = Unfinished(command=f"{steering}convert", snapshot=4)
    (root / NOTE).write_bytes(sealed(note))
    for words in (
        ["list", root],
        ["verify", root],
        ["show", root, first.checkpoint],
        ["show", root, second.checkpoint],
    ):
        main(["snapshots", *map(str, words)])
        shown = capsys.readouterr()
        assert all(letter.isprintable() for letter in (shown.out + shown.err).replace("\n", ""))
        assert r"\x1b[2J" in shown.out + shown.err
        if words[0] == "show" and words[-1] == first.checkpoint:
            assert r"\x1b[2Jtask\n0" in shown.out
            assert r"Finished tasks: \x1b[2Jtask\n0." in shown.out
            assert r"Logs of channels: \x1b[2Jlog." in shown.out


# -- snapshots without a record ----------------------------------------------------------------


@pytest.mark.parametrize("known", ["a job had a snapshot", "no record of a job"])
def test_files_without_any_record_are_no_directory_that_is_whole(known: str, root: Path) -> None:
    if known == "no record of a job":
        shutil.rmtree(root / "jobs")
    else:
        save_job(root, had_snapshot=True)
    numbers = {one.checkpoint for one in DiskFiles(root).listed()}
    for path in (root / "records").iterdir():
        path.unlink()
    code, found, text = tool("verify", root)
    assert code == 1
    assert "holds no record" in found["problems"][0]
    assert numbers <= set(found["without_record"])
    assert (found["unneeded_files"], found["unneeded_bytes"]) == (None, None)
    assert "There is no snapshot that could be restored." in text
    assert "was restored" not in text
    code, _, text = tool("list", root)
    assert code == 0
    assert "It is not known which files are needed, since no record is there." in text


def test_a_job_that_was_killed_in_its_first_checkpoint_has_lost_nothing(root: Path) -> None:
    save_job(root, had_snapshot=False)
    for path in (root / "records").iterdir():
        path.unlink()
    code, found, text = tool("verify", root)
    assert (code, found["problems"]) == (0, [])
    assert "There are files and no record of" in text
    assert "There is no snapshot that could be restored." in text


def test_an_empty_store_is_whole_and_says_that_nothing_can_be_restored(tmp_path: Path) -> None:
    for name in ("records", "snapshots"):
        (tmp_path / name).mkdir()
    code, _, text = tool("verify", tmp_path)
    assert code == 0
    assert "There is no snapshot that could be restored." in text


def test_a_snapshot_whose_record_alone_is_gone_is_named(root: Path) -> None:
    newest = DiskFiles(root).listed()[-1].checkpoint
    (root / f"records/chk-{newest}").unlink()
    for command in ("list", "verify"):
        code, found, text = tool(command, root)
        assert code == 0, "its checkpoint may have been aborted"
        assert found["without_record"] == [newest]
        assert f"There are files and no record of {newest}: " in text


def test_which_files_are_needed_is_not_known_if_a_record_cannot_be_read(root: Path) -> None:
    (root / f"records/chk-{DiskFiles(root).listed()[0].checkpoint}").write_bytes(b"garbage")
    code, found, text = tool("list", root)
    assert code == 0
    assert (found["unneeded_files"], found["unneeded_bytes"], found["without_record"]) == (None, None, [])
    assert "It is not known which files are needed, since a record cannot be read." in text
    assert "No snapshot needs" not in text


# -- what lies beside the snapshots ------------------------------------------------------------


@pytest.mark.parametrize("name", ["jobs/job-1", "positions/begins-0"])
@pytest.mark.parametrize("damage", [b"garbage", None], ids=["garbage", "of another job"])
def test_what_lies_beside_is_verified_and_neither_copied_nor_moved(
    damage: bytes | None, name: str, root: Path, tmp_path: Path
) -> None:
    first = DiskFiles(root).listed()[0].checkpoint
    other = tmp_path / "other"
    assert tool("fork", root, first, other)[0] == 0
    another = sealed(JobRecord(job=2, attempt=AttemptId(1), next_checkpoint=CheckpointId(1)))
    for damaged, whole in ((root, other), (other, root)):
        kept = (damaged / name).read_bytes()
        (damaged / name).write_bytes(damage or another)
        code, found, text = tool("verify", damaged)
        assert code == 1
        assert found["problems"][0].startswith(f"{damaged / name}: ")
        assert "but not all that lies beside them can be read" in text
        before = tree(damaged), tree(whole)
        for words in (["fork", damaged, first, tmp_path / "target"], ["move", root, first, other]):
            assert str(damaged / name) in refused(*words)
        assert (tree(damaged), tree(whole)) == before
        assert not (tmp_path / "target").exists()
        (damaged / name).write_bytes(kept)
    assert tool("move", root, first, other)[0] == 0


# -- the run that took the snapshots -------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "kept"
    left(folder, SimulatedSubject(), stopped(snapshot_format="native"))
    return folder


@pytest.fixture
def kept(stopped_job: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped_job, tmp_path / "kept"))


def test_a_history_that_is_cut_off_is_named(kept: Path, tmp_path: Path) -> None:
    assert tool("verify", kept)[0] == 0
    path = kept / "run/history.json"
    path.write_bytes(path.read_bytes()[:1_000])
    before = tree(kept)
    code, found, _ = tool("verify", kept)
    assert code == 1
    assert found["problems"][0].startswith(f"{path}: ")
    first = DiskFiles(kept).listed()[0].checkpoint
    assert str(path) in refused("fork", kept, "newest", tmp_path / "target")
    assert str(path) in refused("move", kept, first, tmp_path / "target")
    assert tree(kept) == before


def test_a_snapshot_stays_if_the_run_beside_its_copy_cannot_be_read(kept: Path, tmp_path: Path) -> None:
    first, other = DiskFiles(kept).listed()[0].checkpoint, tmp_path / "other"
    assert tool("fork", kept, first, other)[0] == 0
    path = other / "run/history.json"
    path.write_bytes(path.read_bytes()[:1_000])
    before = tree(kept)
    assert str(path) in refused("move", kept, first, other)
    assert tree(kept) == before


def test_a_state_of_another_snapshot_is_found_by_the_history_alone(kept: Path, tmp_path: Path) -> None:
    first, second, *_ = DiskFiles(kept).listed()
    shutil.copy(kept / "snapshots" / first.handles[SOURCE], kept / "snapshots" / second.handles[SOURCE])
    code, found, _ = tool("verify", kept)
    assert code == 1
    bad = [one for one in found["snapshots"] if one["problems"]]
    assert [one["id"] for one in bad] == [second.checkpoint]
    assert "holds another state of source-0 than its run has reported" in bad[0]["problems"][0]
    for words in (
        ["convert", kept, second.checkpoint, "--to", "canonical"],
        ["fork", kept, second.checkpoint, tmp_path / "target"],
    ):
        said = refused(*words)
        assert "holds another state of source-0" in said
        assert "nothing was changed" in said
    shutil.rmtree(kept / "run")
    assert tool("verify", kept)[0] == 0, "nobody knows which state it should be"
