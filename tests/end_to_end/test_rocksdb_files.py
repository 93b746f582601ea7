"""Files of RocksDB in snapshots of a job on processes: torn ones, links that were not synced, deletes that fail,
and deaths between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutproof.faults.plan import AnyFault, AtPoint, FailWrite, KillCoordinator, KillTask, TearWrite, kind_of
from cutproof.harness.reference_engine.services import rocksdb
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.subject.run import Result
from cutproof.properties.model.history import AttemptStarted, FaultFired, SnapshotDeleted
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.vocabulary.formats import SST, Manifest, read
from end_to_end.command_line import cutproof_command
from unit.harness.reference_engine.snapshots.continuing import left
from unit.simulated.worlds import fired, job, journal

pytestmark = pytest.mark.skipif(not rocksdb.is_there(), reason=rocksdb.ADVICE)

TAKEN = AtPoint(point="snapshot-taken", occurrence=2, task="op0-0")
TORN = TearWrite(trigger=TAKEN, task="op0-0")
LOST = TearWrite(trigger=TAKEN, task="op0-0", how="lost-link")
CRASH = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=4, side="after"), task="op0-0")


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessesSubject]:
    subject = ProcessesSubject()
    yield subject
    subject.close()


def ran(subject: ProcessesSubject, folder: Path, *faults: AnyFault, **engine: object) -> Result:
    """A run in which nothing is violated; its store stays in a folder."""
    settings: dict[str, object] = {
        "state_backend": "lsm",
        "snapshot_format": "incremental",
        "full_every": 60,
        "memtable_entries": 2,
        "compaction_files": 3,
        "read_interval_us": 1_000,
        **engine,
    }
    scenario = job(60, Count(), faults=faults, **settings)  # type: ignore[arg-type]
    found = left(folder, ProcessesSubject(services=subject._services), scenario)
    assert found.judgement.violated == {}
    return found


def files_of_rocksdb(folder: Path) -> dict[str, list[str]]:
    """Those that each manifest in a store names."""
    store = folder / "snapshots"
    contents = {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}
    manifests = {name: read(data) for name, data in contents.items() if data.startswith(b"cutproof-snapshot/")}
    return {
        handle: [file.name for file in manifest.files if file.kind == SST]
        for handle, manifest in manifests.items()
        if isinstance(manifest, Manifest)
    }


@pytest.mark.parametrize("snapshot_format", ["native", "incremental"])
def test_the_files_of_a_snapshot_are_those_of_rocksdb(
    processes: ProcessesSubject, tmp_path: Path, snapshot_format: str
) -> None:
    """A new attempt restores them, increments share them, and the tool reads them without RocksDB."""
    kept = tmp_path / "kept"
    few_merges = {"compaction_files": 20, "retained_checkpoints": 4}
    found = ran(processes, kept, CRASH, snapshot_format=snapshot_format, **few_merges)
    files = files_of_rocksdb(kept)
    named = [name for names in files.values() for name in names]
    assert named
    assert (len(set(named)) < len(named)) == (snapshot_format == "incremental")
    assert all((kept / "snapshots" / name).is_file() for name in named)
    assert [one.restores for one in journal(AttemptStarted, found.history)][1]
    assert cutproof_command(kept, "snapshots", "verify", str(kept)).returncode == 0


def test_one_that_is_torn_is_named_by_its_checksum_and_never_restored(
    processes: ProcessesSubject, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    ran(processes, kept)
    name = next(name for names in files_of_rocksdb(kept).values() for name in names)
    file = kept / "snapshots" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    done = cutproof_command(kept, "snapshots", "verify", str(kept))
    assert done.returncode == 1
    assert f"{name}: its checksum does not fit its content" in done.stdout + done.stderr


@pytest.mark.parametrize("fault", [TORN, LOST], ids=["torn", "lost-link"])
def test_one_that_is_torn_or_whose_link_is_lost_fails_its_checkpoint_and_no_state(
    processes: ProcessesSubject, tmp_path: Path, fault: AnyFault
) -> None:
    found = ran(processes, tmp_path / "kept", fault, CRASH)
    (detail, _) = [one.detail for one in journal(FaultFired, found.history)]
    assert ".op0-0-1-" in detail or "names of" in detail
    assert 2 not in [one.checkpoint for one in found.history.completed]
    assert cutproof_command(tmp_path, "snapshots", "verify", str(tmp_path / "kept")).returncode == 0


BETWEEN = AtPoint(point="file-written", occurrence=2, task="op0-0", side="before")


@pytest.mark.parametrize(
    "fault",
    [KillTask(trigger=BETWEEN, task="op0-0"), KillCoordinator(trigger=BETWEEN, down_us=20_000)],
    ids=["task", "coordinator"],
)
def test_a_death_between_two_of_them_loses_the_snapshot_and_no_state(
    processes: ProcessesSubject, tmp_path: Path, fault: AnyFault
) -> None:
    found = ran(processes, tmp_path / "kept", fault)
    assert fired(found.history) == [kind_of(fault)]
    stored = [(one.checkpoint, one.task, one.attempt) for one in found.history.stored]
    assert ((1, "op0-0", 1) in stored) == isinstance(fault, KillCoordinator), "one that lives writes the others too"
    assert cutproof_command(tmp_path, "snapshots", "verify", str(tmp_path / "kept")).returncode == 0


def test_one_that_cannot_be_deleted_at_once_is_deleted_later(processes: ProcessesSubject, tmp_path: Path) -> None:
    """Whichever files are deleted, some of those aimed at are RocksDB's."""
    points = [AtPoint(point="file-deleted", occurrence=occurrence) for occurrence in range(3, 15)]
    faults = [FailWrite(trigger=point, task=None, what="delete-file") for point in points]
    found = ran(processes, tmp_path / "kept", *faults, retained_checkpoints=1)
    failed = [one.detail for one in journal(FaultFired, found.history)]
    struck = {detail.removesuffix(" is not deleted") for detail in failed if ".op0-0-1-" in detail}
    print(failed)
    assert struck
    assert struck <= {name for one in journal(SnapshotDeleted, found.history) for name in one.handles}
