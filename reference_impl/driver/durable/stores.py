"""Tasks' snapshots as a driver writes and reads them: writes take time, and reads can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ... import observed as o
from ...core.vocabulary.causes import PowerLost, SnapshotTorn
from ...core.vocabulary.effects import Persist, SavePosition, Trim
from ...core.vocabulary.errors import CorruptSnapshot, EngineError
from ...core.vocabulary.events import LoadFailed, PersistFailed, PositionsLoaded, SnapshotLoaded
from ...core.vocabulary.formats import WriteStep, text
from ...core.vocabulary.ids import AttemptId, Handle
from ...core.vocabulary.state import TaskState
from ..arms import Arms
from ..asking import ask
from ..ports import Attempt, Draft, Faults, Files, Jobs, Site

FILE_WRITTEN = "file-written"
"""a point of each file; while nobody waits for it, all files of a snapshot get their names at once"""


class StoresWorld(Site, Faults, Protocol):
    """What writers and readers of snapshots need of their world."""

    @property
    def spills(self) -> Resolving: ...


class Resolving(Protocol):
    """The logs to which a state may refer."""

    def resolved(self, stored: str) -> str:
        """The text of a state with the rows to which it refers."""

    def with_rows(self, state: TaskState) -> TaskState:
        """A state with the elements to which it refers; raises CorruptSnapshot if some are missing."""


class SnapshotWriter(Attempt, Protocol):
    """Whose snapshots are written."""

    def written(self, snapshot: Persist, failed: PersistFailed | None) -> None:
        """The write is over: the snapshot is durable, or nothing of it is."""


class Write:
    """A snapshot write under way: first written, then synced; only then is it durable.

    When a process dies, its unwritten bytes are lost.  The operating system still syncs
    the written ones, but nobody acknowledges them.  When a node loses power, those are
    lost too.
    """

    __slots__ = ("draft", "effect", "is_linked", "runner", "torn_by")

    def __init__(self, runner: SnapshotWriter, effect: Persist) -> None:
        self.runner = runner
        self.effect = effect
        self.draft: Draft | None = None
        """its bytes, once they are written"""
        self.is_linked = False
        """its files have their names"""
        self.torn_by: int | None = None


def _written_bytes(state: TaskState, effect: Persist) -> int:
    """The bytes that a write writes: of an incremental snapshot those of its new files alone."""
    filed = effect.filed
    return len(text(state)) if filed is None else sum(len(new.data) for new in filed.new)


class Stores:
    """Snapshots of tasks and positions of sources: what is durable, and writes under way."""

    def __init__(self, world: StoresWorld, files: Files, jobs: Jobs, arms: Arms) -> None:
        self.world = world
        self.files = files
        self.jobs = jobs
        self.arms = arms
        self.writing: list[Write] = []

    def persist(self, runner: SnapshotWriter, effect: Persist) -> None:
        write = Write(runner, effect)
        world = self.world
        late = world.perturbations.late(f"write {runner.name}") if world.perturbations.any else 0
        self.writing.append(write)
        write.torn_by = self.arms.take("tear-write", runner.name)
        world.loop.after(world.settings.snapshot_write_us // 2 + late, self._written, write)

    def _written(self, write: Write, _: None) -> None:
        """The bytes have left the process, and are not yet synced."""
        runner, effect, duration = write.runner, write.effect, self.world.settings.snapshot_write_us
        if write not in self.writing:
            return
        if runner.paused:  # a stopped process does not go on writing either
            self.world.loop.after(duration, self._written, write)
            return
        state = ask(runner, effect.snapshot.materialise)
        if state is None:
            self.writing = [one for one in self.writing if one is not write]
            return
        if write.torn_by is not None:
            self.writing.remove(write)
            torn = self.files.tear(effect.handle, state, effect.filed)
            detail = f"half of {torn} is written"
            self.world.fired(write.torn_by, detail, runner.attempt, o.TornWrite(torn))
            if effect.until is WriteStep.WRITTEN:  # the acknowledgement leaves the process before that dies
                self._persisted(runner, effect)
                self.world.loop.after(duration, self._die_torn, runner, write.torn_by)
            else:
                self._die_torn(runner, write.torn_by)
            return
        try:
            write.draft = self.files.begin(effect.handle, state, effect.filed)
        except OSError as error:
            self.writing.remove(write)
            self._fail(write, str(error))
            return
        if effect.until is WriteStep.WRITTEN:
            self._persisted(runner, effect)
        byte_ns = self.world.settings.snapshot_byte_ns
        by_size_us = _written_bytes(state, effect) * byte_ns // 1_000 if byte_ns else 0
        self.world.loop.after(duration - duration // 2 + by_size_us, self._synced, write)

    def _die_torn(self, runner: SnapshotWriter, fault: int) -> None:
        if runner.alive:
            self.world.kill(runner, SnapshotTorn(), fault)

    def _synced(self, write: Write, _: None) -> None:
        runner, effect = write.runner, write.effect
        draft = write.draft
        if write not in self.writing or draft is None:
            return
        failing = self.arms.take("fail-write", runner.name) if runner.alive else None
        if failing is not None:
            self.writing.remove(write)
            self.files.drop(draft)
            self.world.fired(failing, f"{effect.handle} is not written", runner.attempt)
            self._fail(write, "the store reported an error")
            return
        if runner.alive and not self.world.points.reach("snapshot-persisted", runner.name, "before", runner):
            self.lose(lambda one: one is write)
            return
        if write not in self.writing:
            return
        try:
            if not self._link(write, draft):
                return
        except (OSError, EngineError) as error:
            self.writing.remove(write)
            self._fail(write, str(error))
            return
        write.is_linked = True
        if effect.until is WriteStep.LINKED:
            self._persisted(runner, effect)
            self.world.loop.after(self.world.settings.snapshot_write_us, self._sync_link, write)
        else:
            self._sync_link(write, None)

    def _link(self, write: Write, draft: Draft) -> bool:
        """Whether all files of a draft have their names.  While somebody waits for that they get them one by one, and
        the writer may die before and after each; then the others never get theirs."""
        runner, points = write.runner, self.world.points
        if FILE_WRITTEN not in points.watched or not runner.alive:
            self.files.link(draft)
            return True
        for name in self.files.names(draft):
            if points.reach(FILE_WRITTEN, runner.name, "before", runner) and write in self.writing:
                self.files.link(draft, name)
                if points.reach(FILE_WRITTEN, runner.name, "after", runner) and write in self.writing:
                    continue
            self.lose(lambda one: one is write)
            return False
        return True

    def _sync_link(self, write: Write, _: None) -> None:
        """The folders are synced, and the snapshot is durable.  Power that fails before takes the names."""
        runner, effect, draft = write.runner, write.effect, write.draft
        if write not in self.writing or draft is None:
            return
        self.writing.remove(write)
        losing = self.arms.take("lost-link", runner.name) if runner.alive else None
        if losing is not None:
            self.files.unlink(draft)
            detail = f"the names of {effect.handle} and of its files are lost: no folder was synced"
            self.world.fired(losing, detail, runner.attempt, o.TornWrite())
            self.world.kill(runner, PowerLost(), losing)
            return
        try:
            stored = self.files.finish(draft)
        except (OSError, EngineError) as error:  # as when a new coordinator has deleted what it refers to
            new = effect.filed.new if effect.filed is not None else ()
            self.files.discard((*(one.file.name for one in new), effect.handle), None)
            self._fail(write, str(error))
            return
        seen = self.world.spills.resolved(stored) if effect.snapshot.logs else stored
        needs = o.needed(effect.filed) if effect.filed is not None else ()
        self.world.observer.saw(
            o.SnapshotStored(effect.checkpoint, runner.name, runner.attempt, effect.handle, seen, needs)
        )
        if effect.until is WriteStep.LINK_SYNCED:
            self._persisted(runner, effect)

    def _persisted(self, runner: SnapshotWriter, effect: Persist) -> None:
        """Notify the writer, if it is alive, as soon as it does not stand still."""
        if not runner.alive:
            return
        if runner.paused:
            self.world.loop.after(self.world.settings.snapshot_write_us, self._persisted, runner, effect)
            return
        runner.written(effect, None)
        self.world.points.reach("snapshot-persisted", runner.name, "after", runner)

    @staticmethod
    def _fail(write: Write, reason: str) -> None:
        """Nothing is stored; notify the writer."""
        write.runner.written(write.effect, PersistFailed(write.effect.checkpoint, reason))

    def forget(self, runner: SnapshotWriter, orderly: bool) -> None:
        """A writer has ended, and its unwritten bytes are lost; one that was cancelled also deletes
        its unsynced files, unless they have their names."""
        self.lose(lambda one: one.runner is runner and not one.is_linked and (orderly or one.draft is None))

    def lose(self, lost: Callable[[Write], bool]) -> int:
        """Lose these writes under way; returns how many there were."""
        if not self.writing:
            return 0
        lost_writes = [write for write in self.writing if lost(write)]
        self.writing = [write for write in self.writing if write not in lost_writes]
        for write in lost_writes:
            if write.draft is not None:
                (self.files.unlink if write.is_linked else self.files.drop)(write.draft)
        return len(lost_writes)

    def load(self, runner: Attempt, handle: Handle) -> None:
        late = self.world.perturbations.late(f"read {runner.name}")
        self.world.loop.after(self.world.settings.snapshot_write_us // 2 + late, self._loaded, runner, handle)

    def _loaded(self, runner: Attempt, handle: Handle) -> None:
        failing = self.arms.take("fail-read", runner.name) if runner.alive else None
        if failing is not None:
            self.world.fired(failing, f"{handle} is not read", runner.attempt)
            runner.deliver(LoadFailed("the store reported an error"), failing)
            return
        try:
            loaded = self.files.read(handle)
            runner.deliver(SnapshotLoaded(loaded.state, loaded.files, loaded.keyed))
        except CorruptSnapshot as error:
            runner.deliver(LoadFailed(str(error)))

    def save_position(self, effect: SavePosition, attempt: AttemptId) -> bool:
        """Whether the position is saved: no newer attempt reads the split."""
        return self.jobs.save_position(effect.split, effect.position, attempt)

    def trim(self, effect: Trim) -> None:
        self.jobs.trim(effect.split, effect.offset)

    def load_positions(self, runner: Attempt, splits: tuple[int, ...]) -> None:
        answer: PositionsLoaded | LoadFailed
        try:
            answer = PositionsLoaded(self.jobs.load_positions(splits, runner.attempt))
        except CorruptSnapshot as error:
            answer = LoadFailed(str(error))
        self.world.loop.after(1, lambda *_: runner.deliver(answer))
