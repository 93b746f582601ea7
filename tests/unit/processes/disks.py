"""What the tests of the stores on disk share: values, children that may be killed, what was synced."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit import snapshots
from unit.stores import settle

STATE = TaskState(positions={0: 7})
HANDLE = "job-1/chk-3/count-1-0"
JOB = JobRecord(job=1, attempt=3, next_checkpoint=5)


def snapshot(checkpoint: int) -> CompletedCheckpoint:
    return snapshots.snapshot(checkpoint, handles={"count-1": HANDLE})


def write(files: DiskFiles, handle: str) -> str:
    return settle(files, files.begin(handle, STATE))


def forked(action: Callable[[], None]) -> int:
    """A child that does this and nothing else; it ends with 1 when that raises."""
    child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def end(child: int) -> int:
    """How a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def halve(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is synced and renamed, in order."""
    seen: list[str] = []
    replace = os.replace

    def sync(descriptor: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.partition("@")[0])

    def rename(source: Path, target: Path) -> None:
        seen.append(f"{source.name.partition('@')[0]} -> {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "replace", rename)
    return seen
