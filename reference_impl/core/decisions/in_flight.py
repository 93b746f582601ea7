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

    def alignment_timeout(self, timeout_us: int | None, may_overtake: bool) -> int | None:
        """After which time an alignment goes on unaligned; None: never.  Also None where the barriers of the
        task's inputs may not overtake, since some edges are never unaligned (UNA-1)."""
        return timeout_us if may_overtake else None

    def begun(self, checkpoint: CheckpointId, recorded: Mapping[CheckpointId, Recorded]) -> Recorded:
        """What a checkpoint has recorded when it begins, of what is `recorded` for each checkpoint: its own, and
        nothing of others."""
        return recorded[checkpoint]

    def before_barrier(self, restored: Sequence[Element], live: Sequence[Element]) -> Sequence[Element]:
        """Which elements of a channel are kept, of those that a task takes before the channel's barrier or that the
        barrier overtakes in the queue: all.  Elements with which the task was `restored`, and which it has not taken
        yet, belong to the next checkpoint as well."""
        return (*restored, *live)

    def waits(self, missing: Sequence[int], overtaken: Sequence[int], *, ended: bool) -> bool:
        """Whether a task's snapshot waits before it is written: while an input channel has neither delivered the
        barrier nor ended (`missing`), or it is not known what the barrier has `overtaken` in an output.  So it does if
        the task's input has `ended`, since its last output may still be in flight."""
        return bool(missing or overtaken)

    def handed_over(self, restored: Sequence[T], live: Sequence[T]) -> Sequence[T]:
        """What a channel holds when restored elements are put back: these first, then those in it by then (`live`)."""
        return (*restored, *live)

    def kept(self, recorded: Sequence[CheckpointId], aborted: CheckpointId) -> list[CheckpointId]:
        """The checkpoints that are recorded further when one of them was aborted: all others."""
        return [checkpoint for checkpoint in recorded if checkpoint != aborted]
