"""What the barriers of a checkpoint say besides its id: when they overtake (FLIP-76), and how snapshots are written
(SNAP-2)."""

from __future__ import annotations

from ..job.config import Config
from ..protocol.checkpoints import PendingCheckpoint, UnderWay
from ..vocabulary.formats import CANONICAL, Format
from .snapshots.shared_files import SharedFiles


class BarrierOptions:
    """The options of one job's checkpoints."""

    def __init__(self, config: Config, under_way: UnderWay, files: SharedFiles) -> None:
        self._config = config
        self._under_way = under_way
        self._files = files

    def choose(self, pending: PendingCheckpoint, format_name: str | None) -> None:
        """Set the options of a new checkpoint.  `format_name`: None for the job's own."""
        pending.alignment_timeout_us = self._alignment_timeout_us(pending)
        name = format_name or self._config.snapshot_format
        if name != CANONICAL:
            pending.base = self._files.base_of(name)
            pending.format = Format(name, pending.base.checkpoint if pending.base is not None else None)

    def _alignment_timeout_us(self, pending: PendingCheckpoint) -> int | None:
        """The alignment timeout of a checkpoint's barriers.

        It is not less than that of any pending checkpoint.  Otherwise these barriers would overtake the older ones.
        """
        if pending.savepoint or pending.ending is not None:
            return None
        own = self._config.barrier_timeout_us(pending.checkpoint)
        all_of_them = [own, *(one.alignment_timeout_us for one in self._under_way.pending.values())]
        waiting = [alignment_timeout_us for alignment_timeout_us in all_of_them if alignment_timeout_us is not None]
        return max(waiting) if len(waiting) == len(all_of_them) else None
