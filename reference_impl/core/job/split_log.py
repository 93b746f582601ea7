"""The splits that sources read, and the number that each of their records has in all the job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

OFFSET_BITS = 32
COPY_BITS = 8


def place_of(origin: int) -> tuple[int, int]:
    """The split and offset of the input record with this origin."""
    return origin >> (OFFSET_BITS + COPY_BITS), origin >> COPY_BITS & ((1 << OFFSET_BITS) - 1)


class SplitLog(msgspec.Struct, frozen=True, kw_only=True):
    """A log of (key, value, tag), and the event time of each record, if the input has any; records before offset
    `begins` have been discarded.  Reading takes a record out of a log that is not rewindable."""

    split: int
    records: Sequence[tuple[int | None, int | None, int]]
    times: Sequence[int] = ()
    begins: int = 0
    rewindable: bool = True
