"""Data in flight: which of it belongs to a checkpoint, and how a restored task uses it (FLIP-76)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from ..job.topology import OVERTAKEN_EDGES
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Element
from ..vocabulary.state import Passing
from .part import Part

T = TypeVar("T")


class Recorded(msgspec.Struct, frozen=True):
    """What a checkpoint has recorded of the data in flight in a task's inputs."""

    missing: tuple[int, ...]
    """input channels that have neither delivered the barrier nor ended"""
    queued: Mapping[int, tuple[Passing, ...]] = {}
    """by channel: the elements that were in flight in it"""


class Capture(Part):
    """Which data in flight belongs to a checkpoint, and how a restored task uses it."""

    def may_overtake(self, partitioning: str) -> bool:
        """Whether barriers may overtake on such an edge: its records can be redistributed at any parallelism, and no
        two subtasks must have taken the same records."""
        return partitioning in OVERTAKEN_EDGES

    def becomes_unaligned(self, may_overtake: bool) -> bool:
        """Whether an alignment whose timeout is over goes on unaligned: only if the barriers of the task's inputs may
        overtake, since some edges are never unaligned (UNA-1)."""
        return may_overtake

    def begun(self, own: Recorded, others: Mapping[CheckpointId, Recorded]) -> Recorded:
        """What a checkpoint has recorded when it begins: nothing, and it waits for every channel that has not
        delivered its barrier; whatever `others` have recorded."""
        return own

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

    def waits(self, *, records: bool, ended: bool) -> bool:
        """Whether a task's snapshot waits for data in flight before it is written: whenever its checkpoint records
        any (`records`), even if the task's input has `ended`."""
        return records

    def restored(self, queued: Mapping[int, Sequence[Passing]]) -> dict[int, tuple[Passing, ...]]:
        """What a restored task puts back into its inputs."""
        return {channel: tuple(passing) for channel, passing in queued.items()}

    def handed_over(self, restored: Sequence[T], live: Sequence[T]) -> Sequence[T]:
        """What a channel holds when restored elements are put back: these first, then those in it by then (`live`)."""
        return (*restored, *live)

    def kept(self, recorded: Sequence[CheckpointId], aborted: CheckpointId) -> list[CheckpointId]:
        """The checkpoints that are recorded further when one of them was aborted: all others."""
        return [checkpoint for checkpoint in recorded if checkpoint != aborted]
