"""When the files of a snapshot are durable, and what follows from a delete that fails (ABS-4, SNAP-3)."""

from __future__ import annotations

from ...vocabulary.effects import Discard, Effect
from ...vocabulary.formats import WriteStep
from ...vocabulary.ids import CheckpointId, Handle
from ..part import Part


class Storing(Part):
    """What a task waits for before it acknowledges, and what a coordinator does with files that it cannot delete."""

    def acknowledged_after(self) -> WriteStep:
        """The step of a write after which its task acknowledges: the last one.  When the power fails, a file
        is lost if its directory was not synced, even if its content was."""
        return WriteStep.LINK_SYNCED

    def on_failed_delete(self, files: tuple[Handle, ...], checkpoint: CheckpointId | None) -> list[Effect]:
        """What follows when files, and with `checkpoint` its record, could not be deleted: the same once more.  None of
        the files may go before that record, which would refer to nothing."""
        return [Discard(files, checkpoint)]
