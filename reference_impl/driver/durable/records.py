"""The coordinator's durable records: of its job, and of each complete checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ... import observed as o
from ...core.job.config import Config
from ...core.vocabulary.causes import AnyCause
from ...core.vocabulary.effects import CopyFiles, Discard, Effect, EndJob, MarkMoved, SaveJob, Store, StoreCopy, Sweep
from ...core.vocabulary.errors import CorruptSnapshot
from ...core.vocabulary.events import (
    CompletedCheckpoint,
    CopyFailed,
    DeleteFailed,
    Event,
    FilesCopied,
    JobSaved,
    RecordStored,
    SnapshotCopied,
    SnapshotsListed,
    StoreFailed,
    files_of,
)
from ...core.vocabulary.formats import rewritten, text
from ...core.vocabulary.ids import CheckpointId, Handle
from ..arms import Arms
from ..points import Mortal
from ..ports import Files, Jobs, NotDeleted, Site
from .stores import Resolving

DELETION_POINTS = frozenset({"snapshot-deleted", "file-deleted"})
"""Reached only while somebody waits for one of them: else all files of a snapshot are deleted at once."""
DELETE_TRIES = 5
"""how often the same delete may fail in a row"""


class RecordsWorld(Site, Protocol):
    """What the writer of durable records needs of its world."""

    config: Config

    @property
    def spills(self) -> Resolving: ...

    def fired(self, fault: int, detail: str, attempt: int | None, struck: o.AnyStruck | None = None) -> None:
        """A fault that waited here has changed something live."""

    def lose_coordinator(self, fault: int | None, down_us: int, cause: AnyCause | None = None) -> None:
        """The coordinator has died, by a fault or by itself."""

    def read_sink(self) -> None:
        """A read-committed reader looks at the sink."""

    def complete(self, snapshot: CompletedCheckpoint) -> None:
        """A checkpoint's record is durable, so the checkpoint is complete."""

    def job_ended(self, effect: EndJob) -> None:
        """The job has ended, and nothing is left to delete for it."""


class RecordWriter(Mortal, Protocol):
    """The coordinator for which records are written."""

    def feed(self, event: Event) -> None: ...

    def retry(self, failed: DeleteFailed) -> None:
        """Try a delete again; then go on with what had to wait for it."""

    def perform(self, effects: list[Effect]) -> None: ...

    def later(self, cost: int, action: Callable[[Any, Any], None], what: object) -> None:
        """Make a durable write when those before it are done."""


class Records:
    """The records are written one after the other, and deleted at once unless the store reports an error."""

    def __init__(self, world: RecordsWorld, files: Files, jobs: Jobs, arms: Arms) -> None:
        self.world = world
        self.files = files
        self.jobs = jobs
        self.arms = arms
        self._tries: dict[tuple[RecordWriter, CheckpointId | None, tuple[Handle, ...]], int] = {}
        """of deletes of a coordinator that failed: how often in a row"""
        self._is_stepping = False
        """files are deleted one by one, and some are still there"""
        self._pausing: list[RecordWriter] = []
        """for each delete that failed and is to be tried again: its coordinator"""
        self._held_up: RecordWriter | None = None
        """the coordinator that waits until a record is deleted"""
        self._ending: list[tuple[RecordWriter, EndJob]] = []
        """ends of jobs that wait for all deletes"""

    @property
    def is_deleting(self) -> bool:
        """Something is there that is to be deleted."""
        return self._is_stepping or any(one.alive for one in self._pausing)

    def save_job(self, runner: RecordWriter, effect: SaveJob) -> None:
        runner.later(self.world.settings.control_latency_us // 2, self._job_saved, effect)

    def _job_saved(self, runner: RecordWriter, effect: SaveJob) -> None:
        self.jobs.save(effect.record)
        runner.feed(JobSaved(effect.record.version))

    def store(self, runner: RecordWriter, effect: Store) -> None:
        settings = self.world.settings
        cost = 1 if settings.memory else settings.snapshot_write_us // 2
        runner.later(cost + self.world.perturbations.late("write coordinator"), self._stored, effect)

    def _stored(self, runner: RecordWriter, effect: Store) -> None:
        snapshot = effect.snapshot
        torn = self.arms.take("tear-write", None)
        if torn is not None:
            detail = f"the record of checkpoint {snapshot.checkpoint} is torn off before its rename"
            self.world.fired(torn, detail, None, o.TornWrite())
            self.world.lose_coordinator(torn, self.world.settings.takeover_us)
            return
        failing = self.arms.take("fail-write", None)
        if failing is not None:
            self.world.fired(failing, f"the record of checkpoint {snapshot.checkpoint} is not written", None)
            runner.feed(StoreFailed(snapshot.checkpoint, "the store reported an error"))
            return
        self.world.read_sink()  # transactions are sealed, the checkpoint is not complete: nothing new may be visible
        if not self.world.points.reach("checkpoint-completed", None, "before", runner):
            return
        if self.world.settings.memory:
            for task, handle in snapshot.handles.items():
                if task in snapshot.finished:
                    continue  # stored with an earlier checkpoint
                state = self.world.spills.resolved(text(snapshot.states[task]))
                self.world.observer.saw(
                    o.SnapshotStored(snapshot.checkpoint, task, effect.attempts[task], handle, state)
                )
        else:
            self.files.store(snapshot)
        self.world.complete(snapshot)
        if self.world.points.reach("checkpoint-completed", None, "after", runner):
            runner.feed(RecordStored(snapshot.checkpoint))

    def list_snapshots(self, runner: RecordWriter) -> None:
        runner.later(self.world.settings.snapshot_write_us // 2, self._listed, None)

    def _listed(self, runner: RecordWriter, _: None) -> None:
        listed, unreadable = self.files.survey()
        failing = self.arms.take("fail-read", None) if listed else None
        if failing is not None:
            newest = listed[-1].checkpoint
            self.world.fired(failing, f"the record of checkpoint {newest} is not read", None)
            listed, unreadable = listed[:-1], (*unreadable, newest)
        copied = tuple(one.checkpoint for one in self.files.copied())
        runner.feed(SnapshotsListed(listed, unreadable, copied))

    def copy(self, runner: RecordWriter, effect: CopyFiles) -> None:
        """Copy file by file; the coordinator may die before and after each."""
        try:
            for part in effect.parts:
                self.files.read(part)
        except CorruptSnapshot as error:
            runner.feed(FilesCopied(effect.checkpoint, str(error)))
            return
        changed = effect.parts if effect.resolves else ()
        for name in dict.fromkeys(effect.handles):
            there = name not in changed and self.files.has_copy(name)
            if not runner.alive or there or not self._reach("file-copied", "before", runner):
                continue
            if self._tear_copy(name):
                return
            failing = self.arms.take("copy-file", None)
            try:
                if failing is not None:
                    self.world.fired(failing, f"{name} is not copied", None, o.StruckCopy(effect.checkpoint))
                    raise OSError(f"{name}: the store reported an error")
                self.files.copy(name, self._with_rows if name in changed else None)
            except (OSError, CorruptSnapshot) as error:
                runner.feed(FilesCopied(effect.checkpoint, str(error)))
                return
            self._reach("file-copied", "after", runner)
        runner.feed(FilesCopied(effect.checkpoint))

    def _with_rows(self, data: bytes) -> bytes:
        """A task's part of a snapshot with the elements that it has in logs of channels."""
        return rewritten(data, self.world.spills.with_rows)

    def store_copy(self, runner: RecordWriter, effect: StoreCopy) -> None:
        checkpoint = effect.snapshot.checkpoint
        if not self._reach("snapshot-copied", "before", runner):
            return
        record = f"the record of the copy of checkpoint {checkpoint}"
        if (torn := self.arms.take("torn-copy", None)) is not None:
            self.world.fired(torn, f"{record} is torn off before its rename", None, o.TornWrite())
            self.world.lose_coordinator(torn, self.world.settings.takeover_us)
            return
        failing = self.arms.take("copy-record", None)
        try:
            if failing is not None:
                self.world.fired(failing, f"{record} is not written", None, o.StruckCopy(checkpoint))
                raise OSError(f"{record}: the store reported an error")
            self.files.store_copy(effect.snapshot)
        except OSError as error:
            runner.feed(CopyFailed(checkpoint, str(error)))
            return
        if self._reach("snapshot-copied", "after", runner):
            runner.feed(SnapshotCopied(checkpoint))

    def mark_moved(self, runner: RecordWriter, effect: MarkMoved) -> None:
        if runner.alive and self._reach("snapshot-marked", "before", runner):
            self.files.store(effect.snapshot)
            self._reach("snapshot-marked", "after", runner)

    def _tear_copy(self, name: Handle) -> bool:
        """Whether a fault leaves half of a file's copy; then the coordinator dies."""
        torn = self.arms.take("torn-copy", None)
        if torn is None:
            return False
        self.files.tear_copy(name)
        self.world.fired(torn, f"half of {name} is copied", None, o.TornWrite())
        self.world.lose_coordinator(torn, self.world.settings.takeover_us)
        return True

    def sweep_copies(self) -> None:
        self.files.keep_copies(files_of(self.files.copied()))

    def _reach(self, point: str, side: str, runner: RecordWriter) -> bool:
        return self.world.points.reach(point, None, side, runner)

    def discard(self, runner: RecordWriter, effect: Discard) -> None:
        names = effect.handles
        if effect.with_files:
            names = (*names, *(file for handle in names for file in self.files.written_for(handle)))
        if self.world.points.watched.isdisjoint(DELETION_POINTS):
            self._delete(runner, effect.checkpoint, names)
            return
        self._is_stepping = True
        if effect.checkpoint is not None:
            self._step_by_step(runner, "snapshot-deleted", effect.checkpoint, ())
            if self.holds_up(runner):
                runner.perform([Discard(names)])
                names = ()
        for name in dict.fromkeys(names):
            self._step_by_step(runner, "file-deleted", None, (name,))
        self._is_stepping = False

    def _step_by_step(
        self, runner: RecordWriter, point: str, checkpoint: CheckpointId | None, names: tuple[Handle, ...]
    ) -> None:
        """Delete one file, or a record, while somebody waits for that; the coordinator may die before and after it."""
        if runner.alive and self.world.points.reach(point, None, "before", runner):
            self._delete(runner, checkpoint, names)
            self.world.points.reach(point, None, "after", runner)

    def _delete(self, runner: RecordWriter, checkpoint: CheckpointId | None, names: tuple[Handle, ...]) -> None:
        failed, fault = self._struck(checkpoint, names)
        if failed is None or failed.checkpoint is None:
            stay = failed.files if failed is not None else ()
            try:
                deleted = self.files.discard(tuple(name for name in names if name not in stay), checkpoint)
            except NotDeleted as error:
                deleted, gone = error.deleted, checkpoint if error.checkpoint is None else None
                failed = DeleteFailed((*error.files, *stay), error.checkpoint, str(error))
            else:
                gone = checkpoint
            if deleted or gone is not None:
                self.world.observer.saw(o.SnapshotsDeleted(gone, tuple(deleted)))
        if failed is not None:
            self._not_deleted(runner, failed, fault)
        elif self._tries:
            self._tries.pop((runner, checkpoint, names), None)

    def _struck(
        self, checkpoint: CheckpointId | None, names: tuple[Handle, ...]
    ) -> tuple[DeleteFailed | None, int | None]:
        """What a fault keeps from being deleted, the record, and so all its files, or a file; and which fault."""
        if checkpoint is not None and (failing := self.arms.take("delete-record", None)) is not None:
            self.world.fired(failing, f"the record of checkpoint {checkpoint} is not deleted", None)
            return DeleteFailed(names, checkpoint, "the store reported an error"), failing
        name = next((name for name in names if self.files.has(name)), None) if self.arms.waits("delete-file") else None
        if name is None or (failing := self.arms.take("delete-file", None)) is None:
            return None, None
        self.world.fired(failing, f"{name} is not deleted", None, o.StruckDelete(name))
        return DeleteFailed((name,), None, "the store reported an error"), failing

    def _not_deleted(self, runner: RecordWriter, failed: DeleteFailed, fault: int | None) -> None:
        """Tell the coordinator after a pause, which is twice as long each time, so that it tries again.  If it fails
        again and again, files stay until a next coordinator sweeps the store; a record must not, as this coordinator
        takes it for deleted: it dies, and the next one finds the record.

        While a record is there that was to be deleted, the coordinator does nothing else (`holds_up`).
        """
        which = runner, failed.checkpoint, failed.files
        tries = self._tries[which] = self._tries.get(which, 0) + 1
        if tries < DELETE_TRIES:
            if failed.checkpoint is not None:
                self._held_up = runner
            self._pausing.append(runner)
            self.world.loop.after(self.world.config.retry_us << tries - 1, self._tell, runner, failed)
        elif failed.checkpoint is not None:
            self.world.lose_coordinator(fault, self.world.settings.takeover_us)

    def _tell(self, runner: RecordWriter, failed: DeleteFailed) -> None:
        """The pause after a failed delete is over."""
        self._pausing.remove(runner)
        if not runner.alive:
            return
        if failed.checkpoint is not None:
            self._held_up = None
        runner.retry(failed)
        self._end_if_all_is_deleted()

    def holds_up(self, runner: RecordWriter) -> bool:
        """Whether the coordinator waits for a record that it could not delete.

        It stands still meanwhile.  From the step that discards a record on, the core takes the snapshot for gone, and
        what the same step and later ones order rests on that: its files are deleted, and those that it shared; so are
        logs of channels; the sources are told the oldest checkpoint and let go what lies before it; and its user is
        answered.  A coordinator that takes over finds the record, and would restore from it what is gone.

        The other way would be a third state between retained and gone, with an answer to each `Discard` of a record.
        Then all these orders, and the notification that a checkpoint is complete, would have to wait for that answer,
        in each run, though a delete hardly ever fails.
        """
        return self._held_up is runner

    def end_job(self, runner: RecordWriter, effect: EndJob) -> None:
        """End the job once no delete is to be tried again, if its coordinator still lives then."""
        self._ending.append((runner, effect))
        self._end_if_all_is_deleted()

    def _end_if_all_is_deleted(self) -> None:
        if self._ending and not self.is_deleting:
            ending, self._ending = self._ending, []
            for runner, effect in ending:
                if runner.alive:
                    self.world.job_ended(effect)

    def sweep(self, runner: RecordWriter, effect: Sweep) -> None:
        kept = frozenset(effect.keep)
        unneeded = tuple(handle for handle in self.files.handles() if handle not in kept)
        if unneeded:
            self._delete(runner, None, unneeded)
        self.sweep_copies()
