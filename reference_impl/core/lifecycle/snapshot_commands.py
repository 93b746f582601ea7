"""What users do with retained snapshots while the job runs: delete, copy and move them (SNAP-3).

A copy begins with its files.  Once all of them are there its record is written, which makes it complete, and only then
is the command answered.  A snapshot that is moved is deleted behind that.  So a command that is repeated, because its
coordinator died or its answer was lost, goes on where the first one stopped.
"""

from __future__ import annotations

from ..decisions.checkpointing import Cleanup, MoveStep, record_of_copy
from ..vocabulary.causes import NeededForRecovery, NotCopied, NotRetained
from ..vocabulary.effects import Effect, MarkMoved, Return, SweepCopies
from ..vocabulary.errors import expect
from ..vocabulary.events import (
    Commanded,
    CommandKind,
    CompletedCheckpoint,
    CopyFailed,
    FilesCopied,
    SnapshotCopied,
)
from ..vocabulary.ids import CheckpointId
from .checkpoints_cleaner import CheckpointsCleaner
from .completed_checkpoint_store import CompletedCheckpointStore


class SnapshotCommands:
    """The commands of one job that name a snapshot, from the moment at which all tasks run."""

    def __init__(self, decisions: Cleanup, *, completed: CompletedCheckpointStore, cleaner: CheckpointsCleaner) -> None:
        self._decisions = decisions
        self._completed = completed
        self._cleaner = cleaner
        self._copying: dict[CheckpointId, tuple[CompletedCheckpoint, list[Commanded]]] = {}
        """the snapshots that are being copied, and the commands that wait for that"""

    def on_command(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """The answer is the same if the snapshot is not there any more: a user repeats a command whose answer was
        lost."""
        if event.kind is CommandKind.DELETE:
            return self._delete(event, snapshot)
        if snapshot in self._completed.copied:
            return self._copied(event, snapshot)
        if snapshot in self._copying:
            self._copying[snapshot][1].append(event)
            return []
        found = self._completed.find(snapshot)
        if found is None:
            return [Return(event.command, cause=NotRetained(snapshot))]
        self._copying[snapshot] = found, [event]
        before, _ = self._around_copy(event)
        return [*(self._cleaner.delete(snapshot) if before else ()), *self._decisions.copy(found)]

    def _around_copy(self, event: Commanded) -> tuple[tuple[MoveStep, ...], tuple[MoveStep, ...]]:
        """The steps before the copy and those behind it, which wait until it is complete."""
        steps = self._decisions.steps_of_move() if event.kind is CommandKind.MOVE else (MoveStep.copy,)
        at = steps.index(MoveStep.copy)
        return steps[:at], steps[at + 1 :]

    def on_files(self, event: FilesCopied) -> list[Effect]:
        """The files of a copy are there, or one of them failed: write its record, or leave nothing of it."""
        if event.checkpoint not in self._copying:
            return []
        if not self._decisions.may_be_recorded(event):
            return self._not_copied(event.checkpoint, expect(event.failure, str))
        snapshot, _ = self._copying[event.checkpoint]
        return [record_of_copy(snapshot)]

    def on_copied(self, event: SnapshotCopied) -> list[Effect]:
        self._completed.copied[event.checkpoint] = None
        return [effect for one in self._waited(event.checkpoint) for effect in self._copied(one, event.checkpoint)]

    def on_failed(self, event: CopyFailed) -> list[Effect]:
        return self._not_copied(event.checkpoint, event.reason)

    def _not_copied(self, checkpoint: CheckpointId, reason: str) -> list[Effect]:
        cause = NotCopied(checkpoint, reason)
        return [SweepCopies(), *(Return(one.command, cause=cause) for one in self._waited(checkpoint))]

    def _waited(self, checkpoint: CheckpointId) -> list[Commanded]:
        """The commands that waited for a copy, which has an end now."""
        _, waiting = self._copying.pop(checkpoint, (None, []))
        return waiting

    def _copied(self, event: Commanded, snapshot: CheckpointId) -> list[Effect]:
        """There is a complete copy: go on with the move, if it is one."""
        _, behind = self._around_copy(event)
        return [*(self._moved(snapshot) if behind else ()), Return(event.command, snapshot)]

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
