"""Data in flight: which of it belongs to a checkpoint, and how a restored task uses it (FLIP-76)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..job.topology import OVERTAKEN_EDGES
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Element
from ..vocabulary.state import Passing, Snapshot
from .part import Part

T = TypeVar("T")


class Recording(msgspec.Struct, kw_only=True):
    """One checkpoint's in-flight data, until the task has all of it."""

    missing: list[int]
    """input channels that have neither delivered the barrier nor ended"""
    queued: dict[int, list[Passing]] = {}
    replays: dict[int, list[int]] = {}
    """how often each of the first elements in `queued` was put back"""
    spilled: dict[int, list[Any]] = {}
    """the counterpart of `queued` for persistent channels: the ledger's entries (`LedgerEntry`)"""
    awaits: int | None = None
    """the sync that makes the entries of `spilled` durable, once it is requested"""
    unsent: dict[int, list[Passing]] | None = None
    """None until the driver has reported what the barrier overtook"""
    snapshot: Snapshot | None = None
    """None until the task's own state may be written"""

    @property
    def is_captured(self) -> bool:
        """All that was in flight is known."""
        return not self.missing and self.unsent is not None

    @property
    def is_whole(self) -> bool:
        return self.is_captured and self.snapshot is not None


class Capture(Part):
    """Which data in flight belongs to a checkpoint, and how a restored task uses it."""

    def may_overtake(self, partitioning: str) -> bool:
        """Whether barriers may overtake on such an edge: its records can be redistributed at any parallelism, and no
        two subtasks must have taken the same records."""
        return partitioning in OVERTAKEN_EDGES

    def may_time_out(self, overtaken: bool) -> bool:
        """Whether an alignment becomes unaligned when its timeout is over: only where the records in the task's inputs
        may be `overtaken`."""
        return overtaken

    def begun(self, recording: Recording, others: Mapping[CheckpointId, Recording]) -> Recording:
        """What a checkpoint records into: an empty recording of its own, whatever `others` there are."""
        return recording

    def taken(self, elements: Sequence[Element], replayed: int) -> Sequence[Element]:
        """Which of the elements that a task takes from a channel before its barrier are kept: all.  The first
        `replayed` of them are elements with which it was restored; they belong to the next checkpoint as well."""
        return elements

    def overtaken(self, checkpoint: CheckpointId, passed: Sequence[Element], replayed: int) -> Sequence[Element]:
        """Which of the elements that a barrier overtook in an input queue are kept: all.  The first `replayed` of them
        are restored elements that the task has not taken yet."""
        return passed

    def awaited_outputs(self, overtaken: tuple[int, ...]) -> tuple[int, ...]:
        """The outputs for which the snapshot waits, to hold what the barrier overtook in them: all."""
        return overtaken

    def awaited(self, snapshot: Snapshot, recording: Recording) -> Recording | None:
        """The in-flight data for which a snapshot waits: what its checkpoint records, even if the task's input has
        ended."""
        return recording

    def restored(self, queued: Mapping[int, Sequence[Passing]]) -> dict[int, tuple[Passing, ...]]:
        """What a restored task puts back into its inputs."""
        return {channel: tuple(passing) for channel, passing in queued.items()}

    def handed_over(self, restored: Sequence[T], live: Sequence[T]) -> Sequence[T]:
        """What a channel holds when restored elements are put back: these first, then those in it by then (`live`)."""
        return (*restored, *live)

    def kept(self, recorded: Sequence[CheckpointId], aborted: CheckpointId) -> list[CheckpointId]:
        """The checkpoints that are recorded further when one of them was aborted: all others."""
        return [checkpoint for checkpoint in recorded if checkpoint != aborted]
