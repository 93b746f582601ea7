"""`cutproof snapshots` on directories that the engine wrote: what is shown, and what each command leaves."""

from __future__ import annotations

import io
import json
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime
from cutproof.harness.cli.entry import main
from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.harness.reference_engine.snapshots.inventory import FORMAT, Report
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.runtime import progress
from cutproof.harness.scenario.files import schema_of
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint
from cutproof.properties.model.history import AttemptStarted, JobEnded
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.backends.stored import Loaded
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, Handle, TaskId
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from cutproof.reference_impl.simulated.forking import Copied
from cutproof.reference_impl.simulated.world import World
from unit.harness.reference_engine.snapshots.continuing import assert_it_holds, begun, left, unstopped
from unit.harness.reference_engine.snapshots.stores import left_by_a_job, refused, states, stored, tool, tree
from unit.processes.disks import watch_syncs
from unit.simulated.worlds import counted, job, journal

SCHEMA = json.loads((Path(__file__).parents[5] / "docs" / "snapshots.schema.json").read_text(encoding="utf-8"))


def numbers(root: Path, kind: str = "") -> list[int]:
    """The snapshots of a kind, oldest first."""
    return [one["id"] for one in listed(root) if not kind or one["kind"] == kind]


def listed(root: Path) -> list[dict[str, Any]]:
    code, found, _ = tool("list", root)
    assert code == 0
    return found["snapshots"]  # type: ignore[no-any-return]


def formats(root: Path) -> dict[int, str]:
    return {one["id"]: one["snapshot_format"] for one in listed(root)}


# -- what is shown -------------------------------------------------------------------


def test_the_list_says_who_refers_to_whom(root: Path) -> None:
    first, *later = [one for one in listed(root) if one["kind"] == "checkpoint"]
    assert first["refers_to"] == []
    assert first["referred_to_by"] == [one["id"] for one in later]
    assert all(first["id"] in one["refers_to"] for one in later)
    assert first["shared_bytes"] > 0


def test_a_savepoint_between_them_shares_nothing(root: Path) -> None:
    (savepoint,) = [one for one in listed(root) if one["kind"] == "savepoint"]
    assert savepoint["snapshot_format"] == "canonical"
    assert (savepoint["shared_bytes"], savepoint["refers_to"], savepoint["referred_to_by"]) == (0, [], [])


def test_bytes_are_those_on_the_disk(root: Path) -> None:
    _, found, _ = tool("list", root)
    shared = {
        file["name"]: file["bytes"]
        for number in numbers(root)
        for part in tool("show", root, number)[1]["shown"]["parts"]
        for file in part["files"]
    }
    on_disk = sum(path.stat().st_size for path in (root / "snapshots").rglob("*") if path.is_file())
    assert sum(shared.values()) == on_disk - found["unneeded_bytes"]


def test_the_newest_is_what_a_recovery_would_choose(root: Path) -> None:
    assert tool("list", root)[1]["newest"] == max(int(one.checkpoint) for one in DiskFiles(root).listed())


def test_show_names_the_files_of_each_task(root: Path) -> None:
    newest = numbers(root)[-1]
    shown = tool("show", root, "newest")[1]["shown"]
    record = DiskFiles(root).listed()[-1]
    assert {part["task"]: part["files"][0]["name"] for part in shown["parts"]} == record.handles
    (counted,) = [part for part in shown["parts"] if part["task"] == "op0-0"]
    assert [file["kind"] for file in counted["files"]] == ["manifest"] + ["entries"] * (len(counted["files"]) - 1)
    assert tuple(file["name"] for file in counted["files"][1:]) == record.files[TaskId("op0-0")]
    assert all(newest not in file["shared_with"] for file in counted["files"])
    assert shown["increments"] == record.increments > 0


def test_people_get_a_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshots", "list", str(root)]) == 0
    printed = capsys.readouterr()
    header, *rows = printed.out.splitlines()
    assert header.split() == ["id", "kind", "job", "format", "own", "bytes", "shared", "bytes", "refers", "to",
                              "needed", "by"]  # fmt: skip
    assert [row.split()[:4] for row in rows[: len(numbers(root))]] == [
        [str(one["id"]), one["kind"], "1", one["snapshot_format"]] for one in listed(root)
    ]
    assert f"A recovery would choose {numbers(root)[-1]}." in rows
    assert printed.err == ""


@pytest.mark.parametrize("command", ["list", "verify", "show"])
def test_looking_changes_nothing(command: str, root: Path) -> None:
    shutil.rmtree(root / "unsynced")
    before = tree(root)
    assert tool(command, root, *(["newest"] if command == "show" else []))[0] == 0
    assert tree(root) == before
    assert not (root / "unsynced").exists()


def test_a_saved_run_is_named_by_its_folder(root: Path, tmp_path: Path) -> None:
    assert tool("list", tmp_path)[1]["directory"] == str(root)


def test_verify_restores_every_state(root: Path) -> None:
    assert tool("verify", root)[0] == 0


# -- convert -------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["canonical", "native", "incremental"])
@pytest.mark.parametrize("backend", [{}, {"state_backend": "lsm", "memtable_entries": 1}], ids=["heap", "lsm"])
@pytest.mark.parametrize("taken", ["canonical", "native", "incremental"])
def test_a_converted_snapshot_holds_the_same_states(
    taken: str, backend: dict[str, Any], to: str, tmp_path: Path
) -> None:
    root = left_by_a_job(tmp_path / "store", snapshot_format=taken, **backend)
    before = states(root)
    for number in numbers(root):
        assert tool("convert", root, number, "--to", to)[0] == 0
    assert states(root) == before
    assert set(formats(root).values()) == {to}
    assert tool("verify", root)[0] == 0
    found = listed(root)
    if to != taken:
        assert all(one["shared_bytes"] == 0 for one in found)
    assert tool("list", root)[1]["unneeded_files"] == 0


def test_a_chain_becomes_self_contained(root: Path) -> None:
    """Its older snapshots can go then, and all their files with them."""
    *older, newest = numbers(root, "checkpoint")
    before = states(root)[newest]
    code, found, _ = tool("convert", root, newest, "--to", "incremental")
    assert code == 0
    assert found["change"]["kept"] != [], "the older ones still need them"
    record = DiskFiles(root).listed()[-1]
    assert (record.format, record.increments) == ("incremental", 0)
    for number in (*older, *numbers(root, "savepoint")):
        tool("delete", root, number)
    assert states(root) == {newest: before}
    assert all(name.startswith(f"job-1/chk-{newest}/incremental/") for name in DiskFiles(root).handles())


def test_what_the_next_increment_of_a_converted_chain_needs_stays(root: Path) -> None:
    first, *_, newest = numbers(root, "checkpoint")
    before = states(root)
    code, found, _ = tool("convert", root, first, "--to", "canonical")
    assert code == 0
    assert found["change"]["kept"]
    assert states(root) == before
    assert listed(root)[-1]["id"] == newest


def test_there_and_back_are_the_same_bytes(root: Path) -> None:
    newest = numbers(root)[-1]
    tool("convert", root, newest, "--to", "canonical")
    once = {name: data for name, data in tree(root).items() if "/canonical/" in name}
    tool("convert", root, newest, "--to", "native")
    assert not any("/canonical/" in name for name in tree(root))
    tool("convert", root, newest, "--to", "canonical")
    assert {name: data for name, data in tree(root).items() if "/canonical/" in name} == once


def test_what_has_the_format_already_is_left_alone(root: Path) -> None:
    (savepoint,) = numbers(root, "savepoint")
    before = tree(root)
    code, found, _ = tool("convert", root, savepoint, "--to", "canonical")
    assert code == 0
    assert found["change"]["was_done"]
    assert tree(root) == before


# -- delete --------------------------------------------------------------------------


def test_files_that_another_snapshot_needs_stay(root: Path) -> None:
    first, *others = numbers(root, "checkpoint")
    before = states(root)
    code, found, _ = tool("delete", root, f"chk-{first}")
    assert code == 0
    assert found["change"]["kept"]
    assert found["change"]["deleted"]
    after = states(root)
    assert first not in after
    assert after == {number: before[number] for number in before if number != first}
    assert {one["id"] for one in listed(root)} >= set(others)
    assert tool("list", root)[1]["unneeded_files"] == 0


def test_the_newest_is_not_deleted(root: Path) -> None:
    before = tree(root)
    newest = numbers(root)[-1]
    for named in (newest, "newest", f"chk-{newest}"):
        assert "which a recovery would choose" in refused("delete", root, named)
    assert tree(root) == before


def test_what_a_recovery_would_choose_is_not_deleted_though_another_is_newer(tmp_path: Path) -> None:
    """The second job was begun from the older snapshot, and never goes back to the newer one."""
    root, at = tmp_path / "kept", "checkpoint-completed"
    commands = (
        Cancel(trigger=AtPoint(point=at, occurrence=2)),
        Resume(trigger=AtTime(at_us=100), snapshot="oldest"),
        Cancel(trigger=AtPoint(point="state-loaded", occurrence=1)),
    )
    history = left(root, SimulatedSubject(), msgspec.structs.replace(unstopped(), commands=commands)).history
    assert journal(JobEnded, history)[-1].checkpoint == 1
    assert (numbers(root), tool("list", root)[1]["recovery"], tool("list", root)[1]["newest"]) == ([1, 2], [1], 2)
    before = tree(root)
    assert "which a recovery would choose: it stays" in refused("delete", root, 1)
    assert "which a recovery would choose: it stays" in refused("move", root, 1, tmp_path / "target")
    assert "with which a new job begins: it stays" in refused("delete", root, 2)
    assert tree(root) == before
    shutil.rmtree(root / "run")
    assert tool("list", root)[1]["recovery"] == [1, 2]
    assert "which a recovery may choose (no run there says how its last job began)" in refused("delete", root, 1)


@pytest.mark.parametrize("savepoints", ["snapshots", "never-restored", "without-side-effects"])
def test_a_savepoint_is_what_a_recovery_would_choose_if_it_is_ever_restored(tmp_path: Path, savepoints: str) -> None:
    root, at = tmp_path / "kept", "checkpoint-completed"
    saved = Savepoint(trigger=AtPoint(point=at, occurrence=1))
    commands = (saved, Cancel(trigger=AtPoint(point=at, occurrence=2)))
    scenario = msgspec.structs.replace(unstopped(savepoints=savepoints), commands=commands)
    history = left(root, SimulatedSubject(), scenario).history
    chosen = journal(JobEnded, history)[-1].checkpoint
    assert chosen == (2 if savepoints == "snapshots" else 1)
    assert tool("list", root)[1]["recovery"] == [chosen]
    assert f"snapshot {chosen} is" in refused("delete", root, chosen)
    assert (tool("delete", root, 1)[0] == 0) == (savepoints == "snapshots")


def test_people_read_which_is_chosen_and_which_is_newest(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows whether this savepoint would be restored: the run is not there."""
    *_, last = DiskFiles(root).listed()
    older = [number for number in numbers(root, "checkpoint") if number != last.checkpoint][-1]
    DiskFiles(root).store(msgspec.structs.replace(last, savepoint=True, ending=None))
    assert main(["snapshots", "list", str(root)]) == 0
    said = capsys.readouterr().out
    assert f"A recovery would choose {older} or {last.checkpoint}: no run here says how the last job began." in said
    assert f"A new job begins with the newest, {last.checkpoint}." in said


def test_a_repeated_delete_says_that_nothing_is_left_to_do(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the engine answers it; a snapshot that was subsumed is not told from one that was deleted."""
    first, *_, newest = numbers(root)
    assert tool("delete", root, first)[0] == 0
    before = tree(root)
    code, found, err = tool("delete", root, first)
    assert (code, found["change"]["was_done"]) == (0, True)
    assert f"Snapshot {first} is not there (any more); nothing was left to do." in err
    for never in (0, newest + 1):
        assert f"has no snapshot {never}" in refused("delete", root, never)
    assert tree(root) == before


# -- move and fork -------------------------------------------------------------------


@pytest.mark.parametrize("target", ["new", "other"])
def test_a_snapshot_is_moved_with_all_that_it_needs(target: str, root: Path, tmp_path: Path) -> None:
    aim = tmp_path / "target"
    if target == "other":
        left_by_a_job(aim, snapshot_format="canonical")
        for number in numbers(aim)[:-1]:
            tool("delete", aim, number)
    _, moved, *_ = numbers(root, "checkpoint")
    before, there = states(root), states(aim) if target == "other" else {}
    assert tool("move", root, moved, aim)[0] == 0
    assert states(aim) == {**there, moved: before[moved]}
    assert states(root) == {number: one for number, one in before.items() if number != moved}
    for one in (root, aim):
        assert tool("verify", one)[0] == 0
        assert tool("list", one)[1]["unneeded_files"] == 0


@pytest.mark.parametrize("target", ["new", "other"])
def test_a_repeated_move_says_so_if_the_snapshot_is_there(target: str, root: Path, tmp_path: Path) -> None:
    aim = tmp_path / "target"
    if target == "other":
        assert tool("fork", root, "newest", aim)[0] == 0
    _, moved, *_ = numbers(root, "checkpoint")
    assert tool("move", root, moved, aim)[0] == 0
    before = tree(tmp_path)
    code, found, err = tool("move", root, moved, aim)
    assert (code, found["change"]["was_done"]) == (0, True)
    assert f"Snapshot {moved} was moved to {aim} before; nothing was left to do." in err
    assert f"has no snapshot {moved}" in refused("move", root, moved, tmp_path / "elsewhere")
    assert tree(tmp_path) == before
    next((aim / f"snapshots/job-1/chk-{moved}").iterdir()).unlink()
    assert "is not in the store; nothing was changed" in refused("move", root, moved, aim)


def test_a_snapshot_of_the_same_number_that_another_run_took_is_not_taken_for_the_moved_one(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    left(one, SimulatedSubject(), unstopped(retained_checkpoints=60))
    left(other, SimulatedSubject(), unstopped(read_interval_us=70))
    deleted = numbers(other)[0]
    assert tool("delete", one, deleted)[0] == 0
    before = tree(tmp_path)
    said = refused("move", one, deleted, other)
    assert f"snapshot {deleted} " in said
    assert "of another job was put there" in said
    assert tree(tmp_path) == before
    shutil.rmtree(one / "run")
    assert "nobody knows whether snapshot" in refused("move", one, deleted, other)


def test_a_target_that_has_the_number_is_refused(root: Path, tmp_path: Path) -> None:
    other = left_by_a_job(tmp_path / "other", snapshot_format="canonical")
    moved = numbers(root, "checkpoint")[0]
    before, there = tree(root), tree(other)
    assert f"has another snapshot {moved} already; name another directory" in refused("move", root, moved, other)
    assert (tree(root), tree(other)) == (before, there)


def test_a_file_that_a_snapshot_of_the_target_needs_is_not_replaced(root: Path, tmp_path: Path) -> None:
    first, second, *_ = numbers(root, "checkpoint")
    other = tmp_path / "other"
    tool("fork", root, first, other)
    record = DiskFiles(other).listed()[0]
    shared = next(path for path in (other / "snapshots").rglob("*.entries-*"))
    name = shared.relative_to(other / "snapshots").as_posix()
    assert any(name in files for files in record.files.values())
    shared.write_bytes(b"something else")
    assert f"{shared} is there already" in refused("move", root, second, other)
    assert shared.read_bytes() == b"something else"
    assert second in states(root)


def test_what_goes_on_where_a_snapshot_was_moved_to_uses_no_number_twice(root: Path, tmp_path: Path) -> None:
    """The greater numbers count, and the later beginnings of the sources' logs."""
    _, moved, *_ = numbers(root, "checkpoint")
    for aim, (ours, theirs) in {"older": ((99, 40), (3, 0)), "newer": ((7, 1), (120, 50))}.items():
        source, other = tmp_path / f"{aim}-source", tmp_path / aim
        shutil.copytree(root, source)
        assert tool("fork", root, numbers(root)[0], other)[0] == 0
        for folder, (number, begins) in ((source, ours), (other, theirs)):
            jobs = DiskJobs(folder)
            known = jobs.load(1)
            assert known is not None
            jobs.save(msgspec.structs.replace(known, next_checkpoint=CheckpointId(number)))
            (folder / "positions/begins-0").unlink()
            jobs.trim(0, begins)
        assert tool("move", source, moved, other)[0] == 0
        jobs = DiskJobs(other)
        known = jobs.load(1)
        assert known is not None
        assert (known.next_checkpoint, jobs.begins(0)) == (max(ours[0], theirs[0]), max(ours[1], theirs[1]))


def test_a_snapshot_of_another_run_is_not_moved_there(root: Path, tmp_path: Path) -> None:
    """Also if nobody knows of which run the others are: a job that begins there could not go on from it."""
    one, other, bare = tmp_path / "one", tmp_path / "other", left_by_a_job(tmp_path / "bare", retained_checkpoints=1)
    left(one, SimulatedSubject(), unstopped())
    left(other, SimulatedSubject(), unstopped(read_interval_us=70))
    first = min(numbers(one))
    for target in (other, bare):
        for number in numbers(target)[:-1]:
            assert tool("delete", target, number)[0] == 0
        before = tree(one), tree(target)
        assert "is not known to be of the run that took" in refused("move", one, first, target)
        assert (tree(one), tree(target)) == before
    assert tool("fork", one, "newest", tmp_path / "same")[0] == 0
    assert tool("move", one, first, tmp_path / "same")[0] == 0
    assert_it_holds(begun(tmp_path / "same", SimulatedSubject(), unstopped(), str(first)))


def test_a_snapshot_of_an_ancestor_is_moved_into_a_directory_of_the_run_that_began_behind_it(tmp_path: Path) -> None:
    """And a job begins from it there; one that the ancestor took behind that is refused."""
    one, other = tmp_path / "one", tmp_path / "other"
    left(one, SimulatedSubject(), unstopped(retained_checkpoints=60))
    first, second, third, *_ = numbers(one)
    subject = SimulatedSubject()
    subject.leave_in(other)
    assert_it_holds(begun(one, subject, unstopped(retained_checkpoints=1), str(second)))
    before = tree(other)
    assert "nor of one that began behind it" in refused("move", one, third, other)
    assert tree(other) == before
    assert first not in states(other)
    assert tool("move", one, first, other)[0] == 0
    assert (first in states(one), first in states(other)) == (False, True)
    assert_it_holds(begun(other, SimulatedSubject(), unstopped(), str(first)))


def test_a_snapshot_of_an_ancestor_is_refused_whose_input_the_run_has_discarded(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    left(one, SimulatedSubject(), unstopped(retained_checkpoints=60))
    first, second, *_ = numbers(one)
    subject = SimulatedSubject()
    subject.leave_in(other)
    begun(one, subject, unstopped(retained_checkpoints=1, trims_logs=True), str(second))
    before = tree(other)
    assert "has discarded what lies before" in refused("move", one, first, other)
    assert tree(other) == before


def test_the_newest_is_not_moved(root: Path, tmp_path: Path) -> None:
    assert "fork copies it" in refused("move", root, "newest", tmp_path / "target")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("to", [[], ["--to", "canonical"], ["--to", "native"]], ids=" ".join)
def test_a_fork_is_a_directory_to_begin_a_job_from(to: list[str], root: Path, tmp_path: Path) -> None:
    newest = numbers(root)[-1]
    before = tree(root)
    fork = tmp_path / "fork"
    assert tool("fork", root, newest, fork, *to)[0] == 0
    assert tree(root) == before
    assert states(fork) == {newest: states(root)[newest]}
    assert DiskFiles(fork).survey()[1] == ()
    jobs = DiskJobs(fork)
    assert (jobs.load(1), jobs.begins(0)) == (DiskJobs(root).load(1), 5), "numbers that a new job must not use again"
    assert tool("list", fork)[1]["unneeded_files"] == 0


def test_a_fork_that_is_there_already_is_not_made_again(root: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    tool("fork", root, "newest", fork)
    before = tree(fork)
    code, found, _ = tool("fork", root, "newest", fork)
    assert (code, found["change"]["was_done"]) == (0, True)
    assert "is there already" in refused("fork", root, numbers(root)[0], fork)
    assert "is there already" in refused("fork", root, "newest", fork, "--to", "canonical")
    assert tree(fork) == before


def test_logs_of_channels_go_with_the_snapshot(root: Path, tmp_path: Path) -> None:
    first, *_ = DiskFiles(root).listed()
    for log in ("job-1/log/op0-0-1/0", "job-1/log/op0-0-1/1"):
        (root / "logs" / log).mkdir(parents=True)
        (root / "logs" / log / "00000001").write_bytes(log.encode())
    DiskFiles(root).store(msgspec.structs.replace(first, logs=("job-1/log/op0-0-1/0",)))
    other = left_by_a_job(tmp_path / "other", snapshot_format="native", retained_checkpoints=1)
    (other / "logs/job-1/log/op0-0-1/0").mkdir(parents=True)
    newer = DiskFiles(other).listed()[-1]
    DiskFiles(other).store(msgspec.structs.replace(newer, logs=("job-1/log/op0-0-1/0",)))
    (other / "logs/job-1/log/op0-0-1/0/00000001").write_bytes(b"of another job")
    if first.checkpoint in states(other):
        tool("delete", other, first.checkpoint)
    assert "00000001 is there already" in refused("move", root, first.checkpoint, other)
    assert (other / "logs/job-1/log/op0-0-1/0/00000001").read_bytes() == b"of another job"
    assert (root / "logs/job-1/log/op0-0-1/0/00000001").exists()
    assert tool("move", root, first.checkpoint, tmp_path / "target")[0] == 0
    assert [path.name for path in (tmp_path / "target/logs").rglob("0*") if path.is_file()] == ["00000001"]
    assert not (root / "logs/job-1/log/op0-0-1/0").exists()
    assert (root / "logs/job-1/log/op0-0-1/1/00000001").exists()


# -- what a terminal and a disk see --------------------------------------------------


def test_the_record_is_replaced_when_all_its_files_are_durable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = numbers(root)[-1]
    seen = watch_syncs(monkeypatch)
    assert tool("convert", root, newest, "--to", "native")[0] == 0
    monkeypatch.undo()
    at = seen.index(f"snapshots-tool -> chk-{newest}")
    assert [what for what in seen if "->" in what] == [what for what in seen[: at + 1] if "->" in what], (
        "the record is the last file that is written"
    )
    written = [place for place, what in enumerate(seen[:at]) if "->" in what]
    assert len(written) == 1 + len(DiskFiles(root).listed()[-1].handles) + 1, "the note, handles, a file of entries"
    for place in written:
        assert seen[place - 1] == "snapshots-tool", "its bytes are synced before it has its name"
        folder = {"unfinished": "store"}.get(seen[place].partition(" -> ")[2], "native")
        assert seen[place + 1] == folder, "and its name after that"
    assert seen[at + 1] == "records"


def test_progress_is_shown_on_a_terminal_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes long; a pipe gets nothing."""
    monkeypatch.setattr(progress, "APPEARS_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "TICK_S", 0.01)
    restore = Directory.load

    def slow(self: Directory, handle: Handle) -> Loaded:
        time.sleep(0.02)
        return restore(self, handle)

    monkeypatch.setattr(Directory, "load", slow)
    for is_terminal in (True, False):
        out, err = Stream(is_terminal), Stream(is_terminal)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main(["snapshots", "verify", str(root)]) == 0
        assert ("restoring every snapshot" in err.getvalue()) == is_terminal
        assert err.getvalue() or not is_terminal
        assert "restoring" not in out.getvalue()


class Stream(io.StringIO):
    """A terminal, or a pipe."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_the_json_has_the_documented_schema(root: Path, tmp_path: Path) -> None:
    """Read back as strictly as the schema says; the schema's file is what the type yields."""
    commands = (
        ["list", root],
        ["show", root, "newest"],
        ["verify", root],
        ["fork", root, "newest", tmp_path / "target"],
        ["convert", root, "newest", "--to", "native"],
        ["delete", root, numbers(root)[0]],
        ["move", root, numbers(root)[1], tmp_path / "moved"],
    )
    for command in commands:
        code, found, _ = tool(*command)
        assert code == 0
        assert (found["format"], found["command"]) == ("cutproof-snapshots/1", command[0])
        assert msgspec.to_builtins(msgspec.convert(found, Report)) == found
        assert set(found) == set(SCHEMA["$defs"]["Report"]["properties"])
    assert schema_of(Report, FORMAT) == SCHEMA


# -- the engine restores what the tool has written -----------------------------------


@pytest.mark.parametrize("to", ["canonical", "native", "incremental"])
@pytest.mark.parametrize("backend", ["heap", "lsm"])
def test_a_job_begins_from_a_converted_snapshot_and_yields_what_is_owed(
    backend: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fork of a run begins from a directory of this tool instead of from the run's own files."""
    fork, begun = World.fork, []

    def from_the_tool(world: World, stores: Copied) -> None:
        newest = stores.snapshot.checkpoint
        source = stored(tmp_path / f"{newest}" / "store", stores.files, list(stores.retained))
        assert tool("fork", source, newest, tmp_path / f"{newest}" / "fork", "--to", to)[0] == 0
        disk = DiskFiles(tmp_path / f"{newest}" / "fork")
        files = {name: disk.path(name).read_bytes() for name in disk.handles()}
        begun.append(newest)
        fork(world, msgspec.structs.replace(stores, files=files, retained=disk.listed()))

    monkeypatch.setattr(World, "fork", from_the_tool)
    scenario = job(60, Count(), commands=(Fork(trigger=AtRest()),), retained_checkpoints=3, state_backend=backend,
                   snapshot_format="incremental", memtable_entries=1)  # fmt: skip
    history = Run(scenario, Parts(), False).history()
    assert isinstance(history.forks, list)
    assert [one.checkpoint for one in history.forks] == begun == history.residue.retained[-3:]
    assert len(begun) == 3
    for one in history.forks:
        assert journal(AttemptStarted, one.history)[-1].restores == one.checkpoint
        assert journal(JobEnded, one.history)[-1].status == "finished"
        assert Counter(one.history.committed) == counted(scenario)
