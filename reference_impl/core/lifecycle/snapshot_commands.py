"""What users do with retained snapshots while the job runs: delete, copy and move them (SNAP-3).

A copy is complete once its record is written, and only then is the command answered.  A snapshot that is moved is
deleted behind that.  So a command that is repeated, because its coordinator died or its answer was lost, goes on where
the first one stopped.
"""

from __future__ import annotations

from ..decisions.checkpointing import Cleanup
from ..vocabulary.causes import NeededForRecovery, NotCopied, NotRetained
from ..vocabulary.effects import Effect, MarkMoved, Return
from ..vocabulary.events import Commanded, CommandKind, CopyFailed, SnapshotCopied
from ..vocabulary.ids import CheckpointId
from .checkpoints_cleaner import CheckpointsCleaner
from .completed_checkpoint_store import CompletedCheckpointStore


class SnapshotCommands:
    """The commands of one job that name a snapshot, from the moment at which all tasks run."""

    def __init__(self, decisions: Cleanup, *, completed: CompletedCheckpointStore, cleaner: CheckpointsCleaner) -> None:
        self._decisions = decisions
        self._completed = completed
        self._cleaner = cleaner
        self._copying: dict[CheckpointId, list[Commanded]] = {}
        """the commands that wait for a copy"""

    def on_command(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """The answer is the same if the snapshot is not there any more: a user repeats a command whose answer was
        lost."""
        if event.kind is CommandKind.DELETE:
            return self._delete(event, snapshot)
        is_copied = snapshot in self._completed.copied
        if self._completed.find(snapshot) is None and not is_copied:
            return [Return(event.command, cause=NotRetained(snapshot))]
        if is_copied:
            return self._copied(event, snapshot)
        copy = self._cleaner.copy(snapshot)
        moves = event.kind is CommandKind.MOVE and self._decisions.deletes_moved(copied=False)
        deleted = self._cleaner.delete(snapshot) if moves else []
        self._copying.setdefault(snapshot, []).append(event)
        return [*deleted, *copy]

    def on_copied(self, event: SnapshotCopied) -> list[Effect]:
        self._completed.copied[event.checkpoint] = None
        waiting = self._copying.pop(event.checkpoint, [])
        return [effect for one in waiting for effect in self._copied(one, event.checkpoint)]

    def on_failed(self, event: CopyFailed) -> list[Effect]:
        cause = NotCopied(event.checkpoint, event.reason)
        return [Return(one.command, cause=cause) for one in self._copying.pop(event.checkpoint, [])]

    def _copied(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """There is a complete copy: go on with the move, if it is one."""
        moves = event.kind is CommandKind.MOVE and self._decisions.deletes_moved(copied=True)
        return [*(self._moved(snapshot) if moves else ()), Return(event.command, snapshot)]

    def _moved(self, snapshot: CheckpointId) -> list[Effect]:
        """Delete a snapshot of which there is a copy.  If the job would restore it after a failure, its record says so
        instead, and it is deleted once the job would restore a newer one: the copy is its user's, who may take it away,
        and no recovery may depend on it."""
        if self._may_be_deleted(snapshot):
            return self._cleaner.delete(snapshot)
        marked = self._completed.mark_moved(snapshot)
        return [MarkMoved(marked)] if marked is not None else []

    def _delete(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """Delete a snapshot, unless the job would restore it after a failure (SNAP-3)."""
        if not self._may_be_deleted(snapshot):
            return [Return(event.command, cause=NeededForRecovery(snapshot))]
        return [*self._cleaner.delete(snapshot), Return(event.command, snapshot)]

    def _may_be_deleted(self, snapshot: CheckpointId) -> bool:
        restored = self._completed.to_restore()
        return self._decisions.may_be_deleted(snapshot, restored.checkpoint if restored is not None else None)
