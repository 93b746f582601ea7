"""The decisions of barrier alignment (ABS-2, FIN-1); `protocol.barrier_alignment` asks them."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary.ids import CheckpointId, is_newer
from .part import Part


class AwaitedBarriers(Part):
    """Which barriers come too late, and which are awaited no more."""

    def is_obsolete(
        self, checkpoint: CheckpointId, begun: CheckpointId | None, cancelled: Sequence[CheckpointId]
    ) -> bool:
        """Whether late signals of a checkpoint change nothing: if it is no newer than the last that has `begun` at the
        task, or was cancelled there since."""
        return checkpoint in cancelled or not is_newer(checkpoint, begun)

    def ended_channel_completes(self, delivered: Sequence[int], inputs: int) -> bool:
        """Whether the end of a channel completes an alignment: if the other channels, `inputs` in number, have all
        delivered the barrier.  None is awaited from a channel that has ended."""
        return len(delivered) >= inputs
