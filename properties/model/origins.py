"""The lineage of a row as one integer."""

from __future__ import annotations

COPY_BITS = 8
OFFSET_BITS = 32


def origin_of(split: int, offset: int, copy: int = 0) -> int:
    """The lineage of a row as one integer: split, offset and flat-map copy.

    A flat map sets the copy (0 … 255); every other operator hands its input's
    origin on, and a join hands on that of the record which completed the pair.
    """
    return (split << OFFSET_BITS | offset) << COPY_BITS | copy


PANE = 1 << 60
"""The mark of a window's row: its origin is else that of its pane's greatest record, the copy left out.  So
rows of one origin are of one key, which a replay asks for."""


def is_pane(origin: int) -> bool:
    """Whether it stands for what a window had gathered, not for a record."""
    return bool(origin & PANE)


def split_of(origin: int) -> int:
    return (origin & ~PANE) >> (OFFSET_BITS + COPY_BITS)


def offset_of(origin: int) -> int:
    return origin >> COPY_BITS & ((1 << OFFSET_BITS) - 1)


def copy_of(origin: int) -> int:
    return origin & ((1 << COPY_BITS) - 1)
