"""What lies beside the snapshots of a directory, and a job needs that begins there: the records of jobs, where the logs
of the sources begin, and the run that took the snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ....reference_impl.core.vocabulary.errors import CorruptSnapshot
from ....reference_impl.core.vocabulary.events import JobRecord
from ....reference_impl.processes.disk.durable import unsealed
from ....reference_impl.processes.disk.files import position_in
from ...runtime.exit_codes import UsageError
from ...scenario.reading import bytes_of
from .beginning import run_before
from .directory import JOBS, LIMIT_BYTES, POSITIONS, said

_JOB = re.compile(r"job-([0-9]{1,9})")
_BEGINS = re.compile(r"begins-([0-9]{1,9})")


def checked(path: Path) -> bytes:
    """The bytes of a file in the folder of jobs or of positions; raises UsageError if it is not whole."""
    data = bytes_of(path, LIMIT_BYTES)
    try:
        if path.parent.name == JOBS and (match := _JOB.fullmatch(path.name)):
            _demand_of(_job(data), int(match[1]))
        elif path.parent.name == POSITIONS and (match := _BEGINS.fullmatch(path.name)):
            position_in(data, int(match[1]))
    except CorruptSnapshot as error:
        raise UsageError(f"{path}: {said(error)}; restore this file from a copy") from None
    return data


def demand_whole_beside(root: Path) -> None:
    """Raise UsageError, which names the file, if the record of a job, where a log begins, or the run cannot be read."""
    for problem in damages(root):
        raise UsageError(problem)
    run_before(root)


def damages(root: Path) -> Iterator[str]:
    """What is wrong with the records of jobs, and with where the logs of the sources begin."""
    for path in _files(root):
        try:
            checked(path)
        except UsageError as error:
            yield str(error)


def had_snapshot(root: Path) -> bool | None:
    """Whether some job there has had a snapshot, as the records of jobs say; None if there are none, or one cannot be
    read."""
    try:
        found = [_job(checked(path)) for path in _files(root) if path.parent.name == JOBS]
    except (UsageError, CorruptSnapshot):
        return None
    return any(one.had_snapshot for one in found) if found else None


def _files(root: Path) -> Iterator[Path]:
    for folder, name in ((JOBS, _JOB), (POSITIONS, _BEGINS)):
        if (root / folder).is_dir():
            yield from (path for path in sorted((root / folder).iterdir()) if name.fullmatch(path.name))


def _job(data: bytes) -> JobRecord:
    what = "the record of a job"
    try:
        return unsealed(data, JobRecord, what)
    except RecursionError:
        raise CorruptSnapshot(f"{what}: nested too deeply") from None


def _demand_of(record: JobRecord, job: int) -> None:
    if record.job != job:
        raise CorruptSnapshot(f"it is the record of job {record.job}")
