"""The files of snapshots at the coordinator (ABS-9): on what a checkpoint builds, and which files nobody needs.

Several snapshots may need one file.  Its references are counted over all who hold it: the complete snapshots that are
retained, the records that are being stored, the acknowledged snapshots of pending checkpoints, and the bases of pending
checkpoints, on which snapshots may build that are not acknowledged yet.  A file that one of them lets go is deleted
once its count is 0.  The counts are not kept but made anew each time, so that no failure can leave a wrong one behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ...decisions.snapshots.increments import Holder, Increments
from ...job.config import Config
from ...protocol.checkpoints import UnderWay
from ...vocabulary.events import Claims, CompletedCheckpoint, all_of, files_needed
from ...vocabulary.formats import CANONICAL, INCREMENTAL
from ...vocabulary.ids import CheckpointId, Handle


class Retained(Protocol):
    """The complete snapshots that are retained."""

    @property
    def all(self) -> tuple[CompletedCheckpoint, ...]: ...


class SharedFiles:
    """The files of one job's snapshots."""

    def __init__(
        self,
        job: int,
        config: Config,
        increments: Increments,
        under_way: UnderWay,
        complete: Retained,
        *,
        begun_from: CheckpointId | None = None,
        claims: Claims | None = None,
    ) -> None:
        """`begun_from`: the snapshot that the user named."""
        self._job = job
        self._full_every = config.full_every
        self._increments = increments
        self._under_way = under_way
        self._complete = complete
        self._begun_from = begun_from
        self._claims = claims or {}
        self.in_use = False
        """snapshots that have files were asked for"""
        self._let_go: dict[Handle, None] = {}
        """files that some holder has let go, and another one needed at the time"""

    def base_of(self, name: str) -> CompletedCheckpoint | None:
        """The checkpoint on which a new one of this format builds; None: it writes all its files.

        It is the newest one of this job, if it has files and its chain may become longer.  A savepoint is the user's,
        and no checkpoint of the job builds on it.  The first checkpoint of a job that was resumed writes all its files,
        unless the job claimed the snapshot from which it was begun.
        """
        self.in_use = True
        may_build_on = self._increments.may_build_on
        bases = [one for one in self._complete.all if may_build_on(one, self._job, self._begun_from, self._claims)]
        newest = max(bases, key=lambda one: one.checkpoint, default=None)
        if name != INCREMENTAL or newest is None or newest.format == CANONICAL:
            return None
        return newest if newest.increments + 1 < self._full_every else None

    def _holders(self) -> list[Holder]:
        """Everybody who needs files of snapshots."""
        records = (*self._complete.all, *self._under_way.records_being_stored)
        held = [Holder(one.checkpoint, one.job, files_needed(one)) for one in records if one.files]
        for pending in self._under_way.pending.values():
            base = files_needed(pending.base) if pending.base is not None else ()
            held.append(Holder(pending.checkpoint, self._job, (*all_of(pending.files), *base)))
        return held

    def let_go(self, files: Iterable[Handle]) -> None:
        """A holder of these files is gone."""
        self._let_go.update(dict.fromkeys(files))

    def unneeded(self) -> tuple[Handle, ...]:
        """The files that have been let go and that nobody needs any more."""
        if not self._let_go:
            return ()
        unneeded = self._increments.deletable(tuple(self._let_go), self._increments.counts(self._holders()))
        for file in unneeded:
            self._let_go.pop(file, None)
        return unneeded

    def freed_by_abort(self, files: Sequence[Handle]) -> tuple[Handle, ...]:
        """The files to delete with a checkpoint that is aborted and needed these: of its own, and of its base."""
        if not files:
            return self.unneeded()
        deleted = self._increments.freed(files, self._increments.counts(self._holders()))
        self.let_go(file for file in files if file not in deleted)
        return (*deleted, *self.unneeded())
