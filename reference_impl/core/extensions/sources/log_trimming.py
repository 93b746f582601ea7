"""How a source lets its log discard records that no snapshot needs (ABS-15)."""

from __future__ import annotations

from collections.abc import Mapping

from ...vocabulary.effects import Effect, Trim
from ...vocabulary.ids import CheckpointId


class LogTrimming:
    """The positions of one source in the checkpoints that may still be restored."""

    def __init__(self) -> None:
        self._cuts: dict[CheckpointId, dict[int, int]] = {}

    def cut(self, checkpoint: CheckpointId, positions: Mapping[int, int]) -> None:
        self._cuts[checkpoint] = dict(positions)

    def complete(self, oldest: CheckpointId | None) -> list[Effect]:
        """Discard what lies before the positions of the oldest checkpoint that may be restored.  If this source does
        not know those positions, nothing is discarded."""
        if oldest is None or oldest not in self._cuts:
            return []
        self._cuts = {checkpoint: cut for checkpoint, cut in self._cuts.items() if checkpoint >= oldest}
        return [Trim(split, offset) for split, offset in self._cuts[oldest].items()]
