"""The engine's stores as the simulator drives them: writes take time, reads can fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..core.effects import Discard, Persist, SaveJob, Ship, Store, Sweep
from ..core.errors import CorruptSnapshot
from ..core.events import (
    Event,
    JobSaved,
    LoadFailed,
    PersistFailed,
    PositionsLoaded,
    SnapshotLoaded,
    SnapshotsListed,
    SnapshotStored,
    StoreFailed,
)
from ..core.ids import Handle
from ..core.source import SourceTask
from ..core.state import TaskState, text
from .arms import Arms
from .storage import JobStore, SnapshotFiles

if TYPE_CHECKING:
    from .coordination import CoordinatorRunner
    from .runner import TaskRunner
    from .world import World


class Write:
    """A snapshot write under way: first written, then synced; only then is it durable.

    A process that dies takes along what it had not written.  What it had written the
    operating system still syncs, without anybody to acknowledge it; a node that loses
    power takes that along too.
    """

    __slots__ = ("effect", "is_written", "runner", "torn_by")

    def __init__(self, runner: TaskRunner, effect: Persist) -> None:
        self.runner = runner
        self.effect = effect
        self.is_written = False
        self.torn_by: int | None = None


class Stores:
    """Snapshots, records of checkpoints, the job's record: durable state and writes under way."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files = SnapshotFiles()
        self.jobs = JobStore()
        self.arms = Arms()
        self.writing: list[Write] = []

    # -- tasks' snapshots ------------------------------------------------------------

    def persist(self, runner: TaskRunner, effect: Persist) -> None:
        write = Write(runner, effect)
        late = self.world.decisions.late(f"write {runner.name}")
        self.writing.append(write)
        write.torn_by = self.arms.take("tear-write", runner.name)
        self.world.loop.after(self.world.settings.snapshot_write_us // 2 + late, self._written, write)

    def _written(self, write: Write, _: None) -> None:
        """Half the way: the bytes are out of the process, and not yet synced."""
        runner, effect, duration = write.runner, write.effect, self.world.settings.snapshot_write_us
        if write not in self.writing:
            return
        if runner.paused:  # a process that stands still does not go on writing either
            self.world.loop.after(duration, self._written, write)
            return
        if write.torn_by is not None:
            self.writing.remove(write)
            self.files.tear(effect.handle, effect.snapshot.materialise())
            self.world.fired(write.torn_by, f"half of {effect.handle} is written", runner.attempt)
            self.world.kill(runner, "it died while it wrote a snapshot", write.torn_by)
            return
        write.is_written = True
        self.world.loop.after(duration - duration // 2, self._synced, write, effect.snapshot.materialise())

    def _synced(self, write: Write, state: TaskState) -> None:
        runner, effect = write.runner, write.effect
        if write not in self.writing:
            return
        self.writing.remove(write)
        failing = self.arms.take("fail-write", runner.name) if runner.alive else None
        if failing is not None:
            self.world.fired(failing, f"{effect.handle} is not written", runner.attempt)
            self._answer(runner, effect.synchronous, PersistFailed(effect.checkpoint, "the store reported an error"))
            return
        if runner.alive and not self.world.point("snapshot-persisted", runner.name, "before", runner):
            return
        stored = self.files.write(effect.handle, state)
        self.world.observer.snapshot_stored(effect.checkpoint, runner.name, runner.attempt, effect.handle, stored)
        self._persisted(runner, effect)

    def _persisted(self, runner: TaskRunner, effect: Persist) -> None:
        """The writer hears of it, if it lives, and when it does not stand still."""
        if not runner.alive:
            return
        if runner.paused:
            self.world.loop.after(self.world.settings.snapshot_write_us, self._persisted, runner, effect)
            return
        if effect.synchronous:
            runner.thaw()
        runner.perform(effect.then)
        self.world.point("snapshot-persisted", runner.name, "after", runner)

    @staticmethod
    def _answer(runner: TaskRunner, synchronous: bool, event: Event) -> None:
        if synchronous:
            runner.thaw()
        runner.deliver(event)

    def ship(self, runner: TaskRunner, effect: Ship) -> None:
        """With snapshots in the coordinator's memory only their encoding takes time here."""
        self.world.loop.after(self.world.settings.snapshot_write_us // 4, self._shipped, runner, effect)

    def _shipped(self, runner: TaskRunner, effect: Ship) -> None:
        if not runner.alive:
            return
        if effect.synchronous:
            runner.thaw()
        if self.world.point("ack-sent", runner.name, "before", runner):
            ack = msgspec.structs.replace(effect.ack, state=effect.snapshot.materialise())
            self.world.control.to_coordinator(runner.name, ack)
            self.world.point("ack-sent", runner.name, "after", runner)

    def forget(self, runner: TaskRunner, orderly: bool) -> None:
        """A writer is gone, and with it what was not written; one that is told to go takes
        back what it had written."""
        self.writing = [one for one in self.writing if one.runner is not runner or (one.is_written and not orderly)]

    def lose_power(self, node: int) -> int:
        """What a node had not synced is gone, of dead writers too; how many writes that were."""
        before = len(self.writing)
        self.writing = [write for write in self.writing if self.world.node_of(write.runner) != node]
        return before - len(self.writing)

    def load(self, runner: TaskRunner, handle: Handle) -> None:
        late = self.world.decisions.late(f"read {runner.name}")
        self.world.loop.after(self.world.settings.snapshot_write_us // 2 + late, self._loaded, runner, handle)

    def _loaded(self, runner: TaskRunner, handle: Handle) -> None:
        failing = self.arms.take("fail-read", runner.name) if runner.alive else None
        if failing is not None:
            self.world.fired(failing, f"{handle} is not read", runner.attempt)
            runner.blame = failing
            runner.deliver(LoadFailed("the store reported an error"))
            return
        try:
            runner.deliver(SnapshotLoaded(self.files.read(handle)))
        except CorruptSnapshot as error:
            runner.deliver(LoadFailed(str(error)))

    def load_positions(self, runner: TaskRunner) -> None:
        assert isinstance(runner.task, SourceTask)
        positions = self.jobs.load_positions(tuple(runner.task.positions), runner.attempt)
        self.world.loop.after(1, lambda *_: runner.deliver(PositionsLoaded(positions)))

    # -- the coordinator's -------------------------------------------------------------

    def save_job(self, runner: CoordinatorRunner, effect: SaveJob) -> None:
        runner.later(self.world.settings.control_latency_us // 2, self._job_saved, effect)

    def _job_saved(self, runner: CoordinatorRunner, effect: SaveJob) -> None:
        self.jobs.records[effect.record.job] = effect.record
        runner.feed(JobSaved(effect.record.version))

    def store(self, runner: CoordinatorRunner, effect: Store) -> None:
        settings = self.world.settings
        cost = 1 if settings.memory else settings.snapshot_write_us // 2
        runner.later(cost + self.world.decisions.late("write coordinator"), self._stored, effect)

    def _stored(self, runner: CoordinatorRunner, effect: Store) -> None:
        snapshot = effect.snapshot
        torn = self.arms.take("tear-write", None)
        if torn is not None:
            self.world.fired(
                torn, f"the record of checkpoint {snapshot.checkpoint} is torn off before its rename", None
            )
            self.world.lose_coordinator(torn, self.world.settings.takeover_us)
            return
        failing = self.arms.take("fail-write", None)
        if failing is not None:
            self.world.fired(failing, f"the record of checkpoint {snapshot.checkpoint} is not written", None)
            runner.feed(StoreFailed(snapshot.checkpoint, "the store reported an error"))
            return
        self.world.look()  # sealed, not complete: a reader must not see it yet
        if not self.world.point("checkpoint-completed", None, "before", runner):
            return
        if self.world.settings.memory:
            for task, handle in snapshot.handles.items():
                state = text(snapshot.states[task])
                self.world.observer.snapshot_stored(snapshot.checkpoint, task, snapshot.attempt, handle, state)
        else:
            self.files.store(snapshot)
        self.world.complete(snapshot)
        if self.world.point("checkpoint-completed", None, "after", runner):
            runner.feed(SnapshotStored(snapshot.checkpoint))

    def list_snapshots(self, runner: CoordinatorRunner) -> None:
        runner.later(self.world.settings.snapshot_write_us // 2, self._listed, None)

    def _listed(self, runner: CoordinatorRunner, _: None) -> None:
        listed = self.files.listed()
        failing = self.arms.take("fail-read", None) if listed else None
        if failing is not None:
            newest = listed[-1].checkpoint
            self.world.fired(failing, f"the record of checkpoint {newest} is not read", None)
            runner.feed(SnapshotsListed(listed[:-1], (newest,)))
        else:
            runner.feed(SnapshotsListed(listed))

    def discard(self, effect: Discard) -> None:
        gone = self.files.discard(effect.handles, effect.checkpoint)
        if gone or effect.checkpoint is not None:
            self.world.observer.deleted(effect.checkpoint, gone)

    def sweep(self, effect: Sweep) -> None:
        gone = self.files.sweep(effect.keep)
        if gone:
            self.world.observer.deleted(None, gone)
