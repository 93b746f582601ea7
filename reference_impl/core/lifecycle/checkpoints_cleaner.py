"""What becomes of the states that no checkpoint needs: they are discarded, and never one that somebody needs (ABS-4).

The papers do not say when a snapshot may be deleted.  Here a snapshot of a task is discarded when its checkpoint is
subsumed, aborted, or deleted by its user, and when it is acknowledged for a checkpoint that nobody waits for.  One
that was not acknowledged may still be written.  So it is a *leftover*, and is discarded again after each checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..decisions.parts import Parts
from ..extensions.snapshots.shared_files import SharedFiles
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import PendingCheckpoint, UnderWay
from ..vocabulary.effects import ClearLogs, Discard, Effect, Sweep
from ..vocabulary.events import CompletedCheckpoint, all_of, files_needed
from ..vocabulary.ids import CheckpointId, Handle
from ..vocabulary.messages import Ack
from .completed_checkpoint_store import CompletedCheckpointStore


class CheckpointsCleaner:
    """What is to be discarded of one job's checkpoints."""

    def __init__(
        self,
        job: int,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        *,
        attempts: Attempts,
        under_way: UnderWay,
        completed: CompletedCheckpointStore,
        files: SharedFiles,
    ) -> None:
        self._job = job
        self._tasks = tuple(task for task, _, _ in graph.tasks())
        self._parts = parts
        self._attempts = attempts
        self._under_way = under_way
        self._completed = completed
        self._files = files
        self._leftovers: dict[Handle, None] = {}
        """what may have been written for checkpoints that were aborted"""
        self._still_needed: dict[Handle, None] = {}
        """the last states of finished tasks that are of no retained checkpoint, but needed by one"""
        self._keeps_logs = config.keeps_logs
        """the job has logs of persistent channels; a former job may have left it some"""
        self._took_over = False
        """another coordinator led the job before: nobody knows here what it left"""

    # -- of checkpoints under way ----------------------------------------------------

    def discard_if_written(self, handle: Handle) -> None:
        self._leftovers[handle] = None

    def acknowledged(self, ack: Ack, taker: PendingCheckpoint | None) -> list[Effect]:
        """Discard a state that no pending checkpoint wants, unless a complete one holds it."""
        if taker is None:
            if self._completed.holds(ack.handle):
                return []
            if any(ack.handle in one.pending.acknowledged.values() for one in self._under_way.storing):
                return []
            self._leftovers.pop(ack.handle, None)
        handles = tuple(self._parts.completion.unwanted(ack, taker))
        if handles and ack.files:
            handles = (*handles, *self._files.freed_by_abort(ack.files))
        return [Discard(handles)] if handles else []

    def aborted(self, pending: PendingCheckpoint, missing: Sequence[Handle]) -> list[Effect]:
        """Discard what is acknowledged, and remember what may still be written."""
        self._leftovers.update(dict.fromkeys(missing))
        left = self._parts.cleanup.left_behind(pending.acknowledged, self._completed.files)
        deletable = (*left, *self._files.freed_by_abort(all_of(pending.files)))
        return [Discard(deletable)] if deletable else []

    def discard_leftovers(self) -> list[Effect]:
        """Discard what may have been written for checkpoints that were aborted.

        The same handles are discarded again after each checkpoint: a task that was out of reach may write late.
        """
        still_needed, self._still_needed = self._still_needed, {}
        unneeded = (*self._unneeded(still_needed), *self._files.unneeded())
        effects: list[Effect] = [Discard(unneeded)] if unneeded else []
        if self._leftovers:
            effects.append(Discard(tuple(self._leftovers), with_files=self._files.in_use))
        return effects

    # -- of complete ones ------------------------------------------------------------

    def subsumed(self, snapshots: Sequence[CompletedCheckpoint]) -> list[Effect]:
        return [self._discard(snapshot) for snapshot in snapshots]

    def _discard(self, snapshot: CompletedCheckpoint) -> Effect:
        self._files.let_go(files_needed(snapshot))
        return Discard(self._unneeded(snapshot.handles.values()), snapshot.checkpoint)

    def delete(self, checkpoint: CheckpointId) -> list[Effect]:
        """Delete a snapshot, and the files that no other one needs; nothing if it is not there (any more)."""
        if (snapshot := self._completed.remove(checkpoint)) is None:
            return []
        self._files.let_go(files_needed(snapshot))
        handles = self._unneeded(snapshot.handles.values())
        deleted = self._parts.cleanup.deletion(snapshot, (*handles, *self._files.unneeded()))
        return [*deleted, *self.clear_logs()]

    def _unneeded(self, handles: Iterable[Handle]) -> tuple[Handle, ...]:
        """Those of these handles that may be discarded now; the others once no record refers to them."""
        unneeded, needed = self._completed.unneeded(handles)
        self._still_needed.update(dict.fromkeys(needed))
        return unneeded

    # -- of persistent channels --------------------------------------------------------

    def clear_logs(self) -> list[Effect]:
        """Delete logs of persistent channels that nobody needs (UNA-2).

        A log is needed while a snapshot refers to it, while an acknowledged state of a pending one does, and while its
        attempt lives.
        """
        logs, channels_of = self._parts.naming.logs, self._attempts.channels_of
        living = ((task, attempt) for task in self._tasks if (attempt := channels_of(task)) is not None)
        return self._clear_logs_but(logs(self._job, task, attempt) for task, attempt in living)

    def _clear_logs_but(self, living: Iterable[str]) -> list[Effect]:
        kept = [log for record in self._completed.all_and_being_stored for log in record.logs]
        self._keeps_logs = self._keeps_logs or bool(kept)
        if not self._keeps_logs:
            return []
        kept += [log for one in self._under_way.pending.values() for logs in one.logs.values() for log in logs]
        return [ClearLogs(tuple(dict.fromkeys(kept)), tuple(living))]

    # -- of former coordinators, of failed attempts, and of the job that has ended -------------

    def sweep(self) -> Effect:
        """Delete what no complete snapshot refers to."""
        return Sweep(self._completed.files)

    def take_over(self) -> list[Effect]:
        """Another coordinator led the job before, and what it has stored is not listed yet."""
        self._took_over = True
        return self._parts.cleanup.on_takeover(None)

    def all_listed(self) -> list[Effect]:
        """All that another coordinator has stored is known now."""
        return self._parts.cleanup.on_takeover(self._completed.files)

    def job_over(self) -> list[Effect]:
        """The job has ended, and no attempt lives.  Nothing is swept, nor any log deleted, if the record of a complete
        checkpoint could not be read: it may refer to that."""
        if not self._completed.knows_all:
            return self.discard_leftovers()
        sweep = [self.sweep()] if self._took_over else []
        return [*self.discard_leftovers(), *sweep, *self._clear_logs_but(())]
