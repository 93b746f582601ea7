"""Persistent channels: what a snapshot refers to and waits for, and what a log keeps (UNA-2)."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Complete
from ..vocabulary.state import Ref
from .part import Part


class Persisting(Part):
    """What a snapshot refers to and waits for, and what a log keeps."""

    def is_safe(self, serial: int, synced: int) -> bool:
        """Whether a snapshot may be written whose elements the sync `serial` makes durable; `synced` is the last that
        is done."""
        return serial <= synced

    def needed_from(self, complete: Complete) -> CheckpointId | None:
        """The oldest checkpoint whose in-flight data may still be needed."""
        return complete.logs_from

    def read_back(self, refs: Sequence[Ref]) -> tuple[Ref, ...]:
        """The parts of logs that a restored task puts back into its inputs: all to which its snapshot refers, since
        nobody sends these elements again."""
        return tuple(refs)
