"""What a fault struck, as far as some judgement or picture depends on it.

An engine may name it for each fault that fired.  Where it does, the sentence in `detail`
decides nothing.  Histories of older runs have the sentence alone: only there it is read.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Struck(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of what can be struck."""


class TornWrite(Struck, tag="torn-write"):
    """A write of which half is in the store: of the snapshot with this handle, or (none) of something else."""

    handle: str | None = None


class StruckDelete(Struck, tag="delete"):
    """A delete of the file of a snapshot with this handle: the file stays."""

    handle: str


class StruckCopy(Struck, tag="copy"):
    """A write of a user's copy of this checkpoint: the copy is not made."""

    checkpoint: int


class StruckCommit(Struck, tag="commit"):
    """The commit of these transactions; `how`: refused, unavailable, lost-response or expired."""

    transactions: tuple[str, ...]
    how: str


class StruckChannel(Struck, tag="channel"):
    """A channel, by its name: sender>receiver."""

    channel: str


AnyStruck = TornWrite | StruckDelete | StruckCopy | StruckCommit | StruckChannel


def torn(struck: AnyStruck | None, detail: str, handle: str) -> bool:
    """Whether half of the write of this snapshot is in the store."""
    if struck is not None:
        return isinstance(struck, TornWrite) and struck.handle == handle
    return handle in detail.split()


def expired(struck: AnyStruck | None, detail: str, transaction: str) -> bool:
    """Whether the store gave this transaction up just before its commit."""
    if struck is not None:
        return isinstance(struck, StruckCommit) and struck.how == "expired" and transaction in struck.transactions
    return detail.endswith(f" {transaction}: expired")


def channel_of(struck: AnyStruck | None, detail: str) -> str:
    """The channel on which a fault acted; "" if it was none."""
    if struck is not None:
        return struck.channel if isinstance(struck, StruckChannel) else ""
    return next((word.strip(",.;:") for word in detail.split() if ">" in word.strip("<>")), "")
