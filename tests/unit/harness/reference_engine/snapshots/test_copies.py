"""The copies that a user has had made of a job's snapshots: a directory whose run lies in the one above it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cutproof.harness.reference_engine.orchestrator.evidence import EVIDENCE
from cutproof.harness.reference_engine.snapshots import beginning
from cutproof.harness.reference_engine.snapshots.directory import Directory, locked
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.properties.model.history import AttemptStarted
from cutproof.reference_impl.processes.disk.files import COPIES, DiskFiles, DiskJobs
from unit.harness.reference_engine.snapshots.continuing import assert_it_holds, begun, left, unstopped
from unit.harness.reference_engine.snapshots.stores import refused, states, tool, tree
from unit.simulated.worlds import journal


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has left a directory, with copies of two snapshots as the engine makes them; it has only the newer."""
    folder = tmp_path_factory.mktemp("made") / "kept"
    left(folder, SimulatedSubject(), unstopped(snapshot_format="incremental", trims_logs=True))
    older, newer, *_ = Directory(folder).records.values()
    disk = DiskFiles(folder)
    for record in (older, newer):
        for name in Directory(folder).needed(record):
            disk.copy(name)
        disk.store_copy(record)
    assert tool("delete", folder, older.checkpoint)[0] == 0
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "kept"))


def test_a_job_begins_from_a_copy(kept: Path) -> None:
    before = tree(kept)
    for number in states(kept / COPIES):
        result = begun(kept / COPIES, SimulatedSubject(), unstopped(), str(number))
        assert_it_holds(result)
        assert journal(AttemptStarted, result.history)[-1].restores == number
    assert tree(kept) == before


@pytest.mark.parametrize("command", ["fork", "move"])
def test_a_copy_is_forked_or_moved_with_the_run_that_took_it(command: str, kept: Path, tmp_path: Path) -> None:
    """The numbers of the jobs go along, and the beginnings of the sources' logs."""
    target = tmp_path / "target"
    for number, state in states(kept / COPIES).items():
        assert tool(command, kept / COPIES, number, target)[0] == 0
        assert states(target) == {number: state}
        assert (number in states(kept / COPIES)) == (command == "fork")
        there, here = DiskJobs(target), DiskJobs(kept)
        assert (there.load(1), there.begins(0)) == (here.load(1), here.begins(0))
        assert_it_holds(begun(target, SimulatedSubject(), unstopped()))
        shutil.rmtree(target)


def test_copies_may_be_named_by_a_link_or_from_within(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(kept / COPIES)
    assert_it_holds(begun(tmp_path / "link", SimulatedSubject(), unstopped()))
    monkeypatch.chdir(kept / COPIES)
    assert_it_holds(begun(Path(), SimulatedSubject(), unstopped()))


def test_copies_of_a_saved_run_have_the_run_of_its_folder(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = beginning.run_before(kept)
    (tmp_path / "saved").mkdir()
    shutil.move(kept, tmp_path / "saved" / "store")
    shutil.rmtree(tmp_path / "saved" / "store" / "run")
    (tmp_path / "saved" / EVIDENCE).touch()
    monkeypatch.setattr(beginning, "kept", lambda folder: run if folder.name == "saved" else None)
    assert_it_holds(begun(tmp_path / "saved" / "store" / COPIES, SimulatedSubject(), unstopped()))


def test_without_the_run_the_directory_that_lacks_it_is_named(kept: Path) -> None:
    shutil.rmtree(kept / "run")
    with pytest.raises(UsageError, match=rf"{kept} does not say which run took its snapshots"):
        begun(kept / COPIES, SimulatedSubject(), unstopped())


def test_each_copy_may_be_deleted_and_no_recovery_chooses_one(kept: Path) -> None:
    older, newer = states(kept / COPIES)
    before = states(kept)
    assert tool("list", kept / COPIES)[1]["recovery"] == []
    for number in (newer, older):
        assert tool("delete", kept / COPIES, number)[0] == 0
        code, found, _ = tool("delete", kept / COPIES, number)
        assert (code, found["change"]["was_done"]) == (0, True)
    assert states(kept / COPIES) == {}
    assert states(kept) == before
    assert "has no snapshot 99" in refused("delete", kept / COPIES, 99)


def test_a_first_copy_that_was_interrupted_is_no_loss(kept: Path) -> None:
    """Its record is written last."""
    for record in (kept / COPIES / "records").iterdir():
        record.unlink()
    code, found, _ = tool("verify", kept / COPIES)
    assert (code, found["problems"], bool(found["without_record"])) == (0, [], True)


def test_verify_of_copies_reads_what_lies_beside_the_snapshots(kept: Path) -> None:
    (kept / "jobs" / "job-1").write_bytes(b"garbage")
    code, found, _ = tool("verify", kept / COPIES)
    assert code == 1
    assert str(kept / "jobs" / "job-1") in found["problems"][0]


def test_a_move_of_the_newest_copy_may_be_repeated(kept: Path, tmp_path: Path) -> None:
    newer = max(states(kept / COPIES))
    assert tool("move", kept / COPIES, newer, tmp_path / "target")[1]["change"]["was_done"] is False
    assert tool("move", kept / COPIES, newer, tmp_path / "target")[1]["change"]["was_done"] is True


def test_a_copy_is_not_put_back_where_it_belongs_to(kept: Path) -> None:
    before = tree(kept)
    for command in ("move", "fork"):
        assert "to which these copies belong; name another one" in refused(command, kept / COPIES, "newest", kept)
    assert tree(kept) == before


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("verify",),
        ("show", "newest"),
        ("convert", "newest", "--to", "canonical"),
        ("delete", "newest"),
        ("move", "newest", "TARGET"),
        ("fork", "newest", "TARGET"),
    ],
    ids=lambda words: words[0],
)
def test_the_copies_of_a_job_that_runs_are_refused_as_its_directory_is(
    words: tuple[str, ...], kept: Path, tmp_path: Path
) -> None:
    action, *rest = [str(tmp_path / "target") if word == "TARGET" else word for word in words]
    before = tree(tmp_path)
    with locked(kept, alone=True):  # as whoever runs a job there has it
        assert f"a job runs in {kept}" in refused(action, kept / COPIES, *rest)
    assert tree(tmp_path) == before


def test_no_job_begins_from_copies_of_one_that_runs(kept: Path) -> None:
    with locked(kept, alone=True), pytest.raises(UsageError, match=f"a job runs in {kept}"):
        begun(kept / COPIES, SimulatedSubject(), unstopped())


def test_copies_and_their_directory_are_looked_at_together_and_changed_alone(kept: Path) -> None:
    with locked(kept / COPIES, alone=True):
        assert tool("list", kept)[0] == 0
        assert "works on it" in refused("delete", kept, min(states(kept)))
    with locked(kept, alone=False):
        assert tool("convert", kept / COPIES, "newest", "--to", "canonical")[0] == 0
