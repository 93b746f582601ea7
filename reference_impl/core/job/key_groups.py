"""Key groups: the unit in which keys are distributed to subtasks."""

from __future__ import annotations

import zlib


def key_group(key: int | None, groups: int) -> int:
    """The key group of a key: CRC-32 of its decimal text, so that it is the same in
    every process (Python's own hash is not, by design)."""
    return zlib.crc32(b"%d" % key if key is not None else b"null") % groups


def owner(group: int, groups: int, parallelism: int) -> int:
    """The subtask that owns a key group: contiguous ranges, as Flink assigns them."""
    return group * parallelism // groups
