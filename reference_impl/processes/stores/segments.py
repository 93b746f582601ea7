"""System V shared memory that a killed database leaves: only a restart of the same database, or this, removes it.

PostgreSQL makes one segment of a few bytes for as long as it runs, however its buffers are shared.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..launching import offspring

TABLE = Path("/proc/sysvipc/shm")
_IPC_RMID = 0
CLOCK_SLACK_S = 1.0
"""the table has whole seconds"""


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """Of a process, in seconds of wall-clock time."""

    began_s: float
    ended_s: float


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    creator: int
    """its pid, which may be another process's by now"""
    attached: int
    created_s: int


def segments() -> list[Segment]:
    """All segments of this machine; none where the kernel does not list them."""
    try:
        heads, *lines = TABLE.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []
    rows = [dict(zip(heads.split(), map(int, line.split()), strict=True)) for line in lines]
    return [
        Segment(id=row["shmid"], creator=row["cpid"], attached=row["nattch"], created_s=row["ctime"]) for row in rows
    ]


def remove_those_of(creators: Mapping[int, Lifetime]) -> None:
    """Remove what these processes created while they lived, where nobody uses it any more."""
    for each in segments() if creators and offspring.LINUX else []:
        lived = creators.get(each.creator)
        if (
            lived is not None
            and not each.attached
            and lived.began_s - CLOCK_SLACK_S <= each.created_s <= lived.ended_s + CLOCK_SLACK_S
        ):
            _remove(each.id)


def _remove(segment: int) -> None:
    if ctypes.CDLL(None, use_errno=True).shmctl(segment, _IPC_RMID, None) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"shared memory segment {segment} cannot be removed: {os.strerror(code)}")
