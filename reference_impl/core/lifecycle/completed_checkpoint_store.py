"""The complete snapshots of a job: which are retained, and which of them is restored (ABS-6).

Carbone et al. (arXiv:1506.08603, section 4.4) restore the latest complete snapshot.  That several are retained, that
newer ones subsume them, and that a user's savepoints stay, is Flink's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..decisions.parts import Parts
from ..job.config import Config
from ..job.topology import JobGraph
from ..protocol.checkpoints import UnderWay
from ..vocabulary.events import Claims, CompletedCheckpoint, files_of
from ..vocabulary.ids import CheckpointId, Handle, TaskId
from ..vocabulary.state import LastStates


class CompletedCheckpointStore:
    """The complete snapshots of a job, oldest first: kept until newer ones subsume them, and restored from (ABS-6).

    A checkpoint that is being stored is not complete yet.  But it may become so, and what it refers to must not be
    deleted.
    """

    def __init__(
        self,
        graph: JobGraph,
        config: Config,
        parts: Parts,
        job: int,
        under_way: UnderWay,
        *,
        named: CheckpointId | None,
        claims: Claims | None = None,
    ) -> None:
        """`named`: the snapshot of a former job from which the user began this job; None: the newest one."""
        self._graph = graph
        self._config = config
        self._under_way = under_way
        self._parts = parts
        self._job = job
        self._named = named
        self._claims = claims or {}
        self.all: tuple[CompletedCheckpoint, ...] = ()
        self._recoverable: tuple[CompletedCheckpoint, ...] = ()
        """all but those to which this job does not go back: they stay"""
        self.knows_all = True
        """False if the record of a complete checkpoint could not be read"""
        self.copied: dict[CheckpointId, None] = {}
        """the snapshots of which the user has a copy, as far as this coordinator knows"""
        self._last_states: dict[Handle, None] = {}
        """handles of finished tasks: later snapshots refer to them, though the tasks took no part in those"""

    def take_over(self, listed: Sequence[CompletedCheckpoint], *, knows_all: bool = True) -> None:
        self.knows_all = knows_all
        self._retain(sorted(listed, key=lambda snapshot: snapshot.checkpoint))
        finished_tasks = [one.handles[task] for one in listed for task in one.finished if task in one.handles]
        self._last_states.update(dict.fromkeys(finished_tasks))

    def add(self, snapshot: CompletedCheckpoint) -> list[CompletedCheckpoint]:
        """A snapshot is complete.  Those that it subsumes are not retained any more, and returned, also `let_go`."""
        retained = sorted((*self.all, snapshot), key=lambda one: one.checkpoint)
        subsumed = self._parts.cleanup.subsumed(retained, self._config.retained_checkpoints, self._claims)
        for one in subsumed:
            retained.remove(one)
        self._retain(retained)
        return [*subsumed, *self.let_go()]

    def let_go(self) -> list[CompletedCheckpoint]:
        """The snapshots that were moved and that the job would not restore: they are not retained any more."""
        needed = self.to_restore()
        moved = [one for one in self.all if one.moved and one is not needed]
        if moved:
            self._retain([one for one in self.all if one not in moved])
        return moved

    def mark_moved(self, checkpoint: CheckpointId) -> CompletedCheckpoint | None:
        """The retained snapshot, which is marked as moved; None if it is not retained, or was marked before."""
        found = self.find(checkpoint)
        if found is None or found.moved:
            return None
        marked = msgspec.structs.replace(found, moved=True)
        self._retain([marked if one is found else one for one in self.all])
        return marked

    def remove(self, checkpoint: CheckpointId) -> CompletedCheckpoint | None:
        """A snapshot is not retained any more; None if it was not."""
        removed = self.find(checkpoint)
        if removed is not None:
            self._retain([one for one in self.all if one is not removed])
        return removed

    def _retain(self, snapshots: Sequence[CompletedCheckpoint]) -> None:
        self.all = tuple(snapshots)
        recoverable, savepoints = self._parts.restore_choice.recoverable, self._config.savepoints
        self._recoverable = recoverable(self.all, self._job, self._named, savepoints == "snapshots")

    def find(self, checkpoint: CheckpointId) -> CompletedCheckpoint | None:
        """A retained snapshot."""
        return next((one for one in self.all if one.checkpoint == checkpoint), None)

    @property
    def latest(self) -> CompletedCheckpoint | None:
        return self._recoverable[-1] if self._recoverable else None

    def to_restore(self) -> CompletedCheckpoint | None:
        """The snapshot that a new attempt restores."""
        return self._parts.restore_choice.choose(self._recoverable)

    def to_restore_in_region(self) -> CompletedCheckpoint | None:
        """The snapshot that the tasks of a region restore."""
        return self._parts.restore_choice.choose_for_region(self._recoverable)

    def last_states(self, finished: Sequence[TaskId]) -> LastStates:
        """The last states of finished tasks, to which the next record refers."""
        latest = self.latest
        if latest is None or not finished:
            return LastStates()
        tasks = self._parts.finishing.kept(self._graph, finished)
        handles = {task: latest.handles[task] for task in tasks if task in latest.handles}
        self._last_states.update(dict.fromkeys(handles.values()))
        return LastStates(
            handles,
            {task: latest.states[task] for task in handles if task in latest.states},
            {task: latest.files[task] for task in handles if task in latest.files},
        )

    # -- what must not be deleted ----------------------------------------------------

    @property
    def files(self) -> tuple[Handle, ...]:
        """All to which the snapshots refer: the handles of their parts, and the files that these need besides."""
        return files_of(self.all)

    def holds(self, handle: Handle) -> bool:
        return any(handle in snapshot.handles.values() for snapshot in self.all)

    @property
    def all_and_being_stored(self) -> tuple[CompletedCheckpoint, ...]:
        """Also those that are being stored."""
        return (*self.all, *self._under_way.records_being_stored)

    def unneeded(self, handles: Iterable[Handle]) -> tuple[tuple[Handle, ...], tuple[Handle, ...]]:
        """Which of these handles may be discarded, and which not yet.

        The last state of a finished task stays as long as any record refers to it.  That may be the record of the
        snapshot in which the task took part itself, for example a savepoint.
        """
        if not self._last_states:
            return tuple(handles), ()
        held = [handle for record in self.all_and_being_stored for handle in record.handles.values()]
        needed = {handle for handle in held if handle in self._last_states}
        asked = tuple(handles)
        return tuple(one for one in asked if one not in needed), tuple(one for one in asked if one in needed)

    @property
    def oldest(self) -> CheckpointId | None:
        """The oldest checkpoint whose input the sources' logs have to keep; a pending one may still complete."""
        restorable = [one.checkpoint for one in self.all_and_being_stored]
        return self._parts.cleanup.oldest_needed(restorable, tuple(self._under_way.pending))

    @property
    def logs_from(self) -> CheckpointId | None:
        """The oldest checkpoint whose in-flight data may be needed.  A savepoint is aligned and has none.  But a
        locally recovered task goes on from the newest snapshot, savepoint or not, and takes its input since then
        again."""
        if not self._config.keeps_logs:
            return None
        own = [one.checkpoint for one in self.all_and_being_stored if not one.savepoint]
        newest = self.latest.checkpoint if self.latest is not None else None
        if self._config.recovers_from_logs and newest is not None:
            own.append(newest)
        return min(own, default=newest)
