"""Jobs' records and sources' positions on disk: torn, locked, fenced."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from unit.processes.disks import JOB, end, forked, halve, snapshot, watch_syncs


@pytest.fixture
def jobs(tmp_path: Path) -> DiskJobs:
    return DiskJobs(tmp_path)


def test_a_record_that_is_no_record_of_a_job_is_named(jobs: DiskJobs, tmp_path: Path) -> None:
    DiskFiles(tmp_path).store(snapshot(3))
    (tmp_path / "records" / "chk-3").rename(tmp_path / "jobs" / "job-1")
    with pytest.raises(CorruptSnapshot, match=r"the record of job 1: .*unknown field `checkpoint`"):
        jobs.load(1)


def test_a_torn_record_of_a_job_is_named(jobs: DiskJobs, tmp_path: Path) -> None:
    jobs.save(JOB)
    halve(tmp_path / "jobs" / "job-1")
    with pytest.raises(CorruptSnapshot, match=r"^the record of job 1: its checksum does not fit its content$"):
        jobs.load(1)


def test_a_position_is_synced_before_it_is_answered(jobs: DiskJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    jobs.save_position(4, 1, attempt=1)
    jobs.save_position(4, 2, attempt=1)
    jobs.load_positions((4,), attempt=2)
    assert synced == ["positions", "split-4", "split-4", "split-4"]


@pytest.mark.parametrize("content", [b"0", b"1 5 00000000\n", b"0" * 20 + b" " + b"0" * 20 + b" 00000000\n"])
def test_a_torn_position_is_named(jobs: DiskJobs, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "positions" / "split-2").write_bytes(content)
    with pytest.raises(CorruptSnapshot, match=r"^the position of split 2: its checksum does not fit its content$"):
        jobs.load_positions((2,), attempt=1)
    with pytest.raises(CorruptSnapshot, match="split 2"):
        jobs.save_position(2, 1, attempt=1)


def test_a_file_whose_maker_did_not_come_to_write_holds_no_position(jobs: DiskJobs, tmp_path: Path) -> None:
    (tmp_path / "positions" / "split-2").write_bytes(b"")
    assert jobs.load_positions((2,), attempt=1) == {2: 0}


def test_who_dies_with_the_lock_keeps_nobody_out(jobs: DiskJobs, tmp_path: Path) -> None:
    jobs.save_position(0, 5, attempt=1)
    ready, deliver = os.pipe()

    def hold() -> None:
        descriptor = os.open(tmp_path / "positions" / "split-0", os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(deliver, b"!")
        signal.pause()

    child = forked(hold)
    assert os.read(ready, 1) == b"!"
    with (tmp_path / "positions" / "split-0").open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.kill(child, signal.SIGKILL)
    assert end(child) == -signal.SIGKILL
    assert jobs.load_positions((0,), attempt=2) == {0: 5}
    os.close(ready)
    os.close(deliver)


def test_nothing_is_saved_behind_the_back_of_a_newer_attempt(jobs: DiskJobs) -> None:
    for attempt in range(1, 21):
        ready, deliver = os.pipe()

        def save(attempt: int = attempt, deliver: int = deliver) -> None:
            position = 0
            while jobs.save_position(0, position + 1, attempt=attempt):
                position += 1
                os.write(deliver, position.to_bytes(4, "big"))

        child = forked(save)
        os.close(deliver)
        with open(ready, "rb") as saved:
            first = saved.read(4)
            (found,) = jobs.load_positions((0,), attempt=attempt + 1).values()
            assert end(child) == 0
            written = first + saved.read()
        assert int.from_bytes(written[-4:], "big") == found, "the last one that was granted is the one that is found"


def test_a_log_begins_where_it_was_discarded_up_to(jobs: DiskJobs, tmp_path: Path) -> None:
    assert jobs.begins(3) == 0
    jobs.trim(3, 7)
    jobs.trim(3, 5)
    assert (jobs.begins(3), jobs.begins(4)) == (7, 0)
    assert DiskJobs(tmp_path).begins(3) == 7, "another process sees it"
    assert jobs.load_positions((3,), attempt=1) == {3: 0}, "it is no position"
