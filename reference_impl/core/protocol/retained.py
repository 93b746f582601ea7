"""The complete snapshots of a job: kept until newer ones subsume them, and restored from (ABS-5, ABS-6).

A record that is being stored is not complete yet.  But it may become so, and what it refers to must not be deleted:
so most methods are told of the records `being_stored`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..decisions.parts import Parts
from ..job.config import Config
from ..vocabulary.effects import ClearLogs, Effect
from ..vocabulary.events import CompletedSnapshot
from ..vocabulary.ids import CheckpointId, Handle, TaskId
from ..vocabulary.state import TaskState


class RetainedSnapshots:
    """Those that are complete, oldest first."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config = config
        self._parts = parts
        self.all: tuple[CompletedSnapshot, ...] = ()
        self._last_states: dict[Handle, None] = {}
        """handles of finished tasks: later snapshots refer to them, though the tasks took no part in those"""

    def take_over(self, listed: Sequence[CompletedSnapshot]) -> None:
        self.all = tuple(sorted(listed, key=lambda snapshot: snapshot.checkpoint))
        finished_tasks = [one.handles[task] for one in listed for task in one.finished if task in one.handles]
        self._last_states.update(dict.fromkeys(finished_tasks))

    def add(self, snapshot: CompletedSnapshot) -> list[CompletedSnapshot]:
        """A snapshot is complete.  Those that it subsumes are not retained any more, and returned."""
        retained = sorted((*self.all, snapshot), key=lambda one: one.checkpoint)
        subsumed = self._parts.cleanup.subsumed(retained, self._config.retained_checkpoints)
        for one in subsumed:
            retained.remove(one)
        self.all = tuple(retained)
        return subsumed

    def newest(self) -> CompletedSnapshot | None:
        """The snapshot that a new attempt restores."""
        return self._parts.restore_choice.choose(self.all)

    def last_states(self, tasks: Iterable[TaskId]) -> tuple[dict[TaskId, Handle], Mapping[TaskId, TaskState]]:
        """The last states of finished tasks, to which the next record refers: their handles, and the states that are
        in the coordinator's memory."""
        if not self.all:
            return {}, {}
        latest = self.all[-1]
        handles = {task: latest.handles[task] for task in tasks if task in latest.handles}
        self._last_states.update(dict.fromkeys(handles.values()))
        return handles, {task: latest.states[task] for task in tasks if task in latest.states}

    # -- what must not be deleted ----------------------------------------------------

    @property
    def handles(self) -> tuple[Handle, ...]:
        return tuple(handle for snapshot in self.all for handle in snapshot.handles.values())

    def holds(self, handle: Handle) -> bool:
        return any(handle in snapshot.handles.values() for snapshot in self.all)

    def unneeded(
        self, handles: Iterable[Handle], being_stored: Sequence[CompletedSnapshot]
    ) -> tuple[tuple[Handle, ...], tuple[Handle, ...]]:
        """These handles in two: those that may be discarded, and last states of finished tasks to which a record still
        refers.  The latter stay until none does, the snapshot in which the task itself took part included (it may be a
        savepoint)."""
        records = (*self.all, *being_stored)
        needed = {handle for record in records for handle in record.handles.values() if handle in self._last_states}
        asked = tuple(handles)
        return tuple(one for one in asked if one not in needed), tuple(one for one in asked if one in needed)

    def oldest(self, being_stored: Sequence[CompletedSnapshot]) -> CheckpointId | None:
        """The oldest checkpoint that may be restored."""
        return min((one.checkpoint for one in (*self.all, *being_stored)), default=None)

    # -- the logs of persistent channels (UNA-2) ---------------------------------------

    def logs_from(self, being_stored: Sequence[CompletedSnapshot]) -> CheckpointId | None:
        """The oldest checkpoint whose in-flight data may be needed.  A savepoint is aligned and has none.  But a
        locally recovered task goes on from the newest snapshot, savepoint or not, and takes its input since then
        again."""
        if not self._config.keeps_logs:
            return None
        own = [one.checkpoint for one in (*being_stored, *self.all) if not one.savepoint]
        newest = self.all[-1].checkpoint if self.all else None
        if self._config.recovers_from_logs and newest is not None:
            own.append(newest)
        return min(own, default=newest)

    def clear_logs(
        self, being_stored: Sequence[CompletedSnapshot], acknowledged: Iterable[str], living: Iterable[str]
    ) -> list[Effect]:
        """Delete the logs to which no snapshot refers, nor an acknowledged part of one, and that are not of a living
        attempt."""
        if not self._config.keeps_logs:
            return []
        kept = [log for record in (*self.all, *being_stored) for log in record.logs]
        return [ClearLogs(tuple(dict.fromkeys([*kept, *acknowledged])), tuple(living))]
