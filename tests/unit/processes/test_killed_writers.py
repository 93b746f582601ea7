"""A writer of a store on disk is killed in the middle: all of its file is there, or nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.events import JobRecord
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from unit.processes.disks import HANDLE, JOB, STATE, die, end, forked, snapshot, write


@pytest.fixture
def files(tmp_path: Path) -> DiskFiles:
    return DiskFiles(tmp_path)


@pytest.fixture
def jobs(tmp_path: Path) -> DiskJobs:
    return DiskJobs(tmp_path)


class Half:
    """A file that is killed with half of what it is to write."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def __enter__(self) -> Half:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def write(self, data: bytes) -> None:
        os.write(self.descriptor, data[: len(data) // 2])
        die()


def half(path: Path, mode: str) -> Half:
    return Half(path)


def replaced_then_dead(source: Path, target: Path) -> None:
    os.rename(source, target)
    die()


DEATHS: dict[str, tuple[object, str, object, bool, int]] = {
    "writing": (Path, "open", half, False, 1),
    "syncing": (os, "fsync", die, False, 1),
    "renaming": (os, "replace", die, False, 1),
    "renamed": (os, "replace", replaced_then_dead, True, 0),
}
"""Where a writer dies: what is to be done instead, whether the file is there then, how many temporaries are left."""


@pytest.mark.parametrize("death", DEATHS)
def test_a_writer_that_is_killed_leaves_all_or_nothing(death: str, files: DiskFiles) -> None:
    place, name, instead, there, left = DEATHS[death]

    def killed() -> None:
        setattr(place, name, instead)
        write(files, HANDLE)

    assert end(forked(killed)) == -signal.SIGKILL
    assert files.handles() == ([HANDLE] if there else [])
    if there:
        assert files.read(HANDLE).state == STATE
    assert len(files.unsynced("count-1")) == left
    assert files.lose_unsynced(["count-1"]) == left
    write(files, HANDLE)
    assert files.read(HANDLE).state == STATE


@pytest.mark.parametrize("death", DEATHS)
def test_a_coordinator_that_is_killed_leaves_the_record_as_it_was_or_as_it_is_to_be(
    death: str, files: DiskFiles, jobs: DiskJobs
) -> None:
    place, name, instead, there, left = DEATHS[death]
    after = JobRecord(job=1, attempt=4, next_checkpoint=6)
    jobs.save(JOB)
    files.store(snapshot(2))

    def killed(action: Callable[[], None]) -> None:
        setattr(place, name, instead)
        action()

    for action in (lambda: jobs.save(after), lambda: files.store(snapshot(3))):
        assert end(forked(lambda action=action: killed(action))) == -signal.SIGKILL  # type: ignore[misc]
    assert jobs.load(1) == (after if there else JOB)
    assert files.listed() == ((snapshot(2), snapshot(3)) if there else (snapshot(2),))
    assert files.lose_unsynced(["coordinator"]) == 2 * left
