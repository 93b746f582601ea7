"""Key groups: the unit in which keys are distributed to subtasks."""

from __future__ import annotations

import zlib

import msgspec


def key_group(key: int | None, groups: int) -> int:
    """The key group of a key: CRC-32 of its decimal text, so that it is the same in
    every process (Python's own hash is not, by design)."""
    return zlib.crc32(b"%d" % key if key is not None else b"null") % groups


def owner(group: int, groups: int, parallelism: int) -> int:
    """The subtask that owns a key group: contiguous ranges, as Flink assigns them."""
    return group * parallelism // groups


class Place(msgspec.Struct, frozen=True):
    """Which subtask an operator is, of how many."""

    subtask: int = 0
    parallelism: int = 1
    key_groups: int = 16

    def owns(self, key: int | None) -> bool:
        """Whether rows of a key come to it by hash."""
        return owner(key_group(key, self.key_groups), self.key_groups, self.parallelism) == self.subtask
