"""Checkpoints of a pipeline, one at a time, and the record of its crashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..loop import Loop
from .parts import Barrier, Checkpoint, Recovery
from .plan import Pipeline


class PipelineCoordinator:
    """Begins a checkpoint after each interval, or as soon as the one before is complete.  It is complete when every
    part has acknowledged."""

    def __init__(
        self,
        loop: Loop,
        pipeline: Pipeline,
        names: Sequence[str],
        trigger: Callable[[Barrier], None],
        completed: Callable[[Checkpoint], None],
    ) -> None:
        self._loop = loop
        self._pipeline = pipeline
        self._names = names
        self._send_barrier = trigger
        self._completed = completed
        self.checkpoints: list[Checkpoint] = []
        self.pending: Checkpoint | None = None
        self.retained: Checkpoint | None = None
        self._awaited: dict[str, None] = {}
        self._due = False
        self._done = 0
        self._life = 0

    def begin(self) -> None:
        """All tasks are up."""
        interval_us = self._pipeline.interval_us
        if interval_us is not None:
            first_us = self._pipeline.first_us
            self._loop.after(interval_us if first_us is None else first_us, self._tick, interval_us, self._life)

    def fail(self) -> Checkpoint | None:
        """Every task has failed: abort the pending checkpoint.  Returns the checkpoint to restore."""
        self._life += 1
        self.pending, self._due = None, False
        return self.retained

    def acknowledge(self, checkpoint: int, who: str) -> None:
        """One part of a checkpoint, a task's or a channel's, is safe."""
        pending = self.pending
        if pending is None or pending.number != checkpoint:
            return
        self._awaited.pop(who, None)
        if self._awaited:
            return
        pending.complete_us = self._loop.now
        self.retained, self.pending = pending, None
        self._done += 1
        self._completed(pending)
        if self._done == self._pipeline.most_checkpoints:
            self._loop.stopped = True
        self._trigger()

    def _tick(self, interval_us: int, life: int) -> None:
        if life == self._life:
            self._loop.after(interval_us, self._tick, interval_us, life)
            self._due = True
            self._trigger()

    def _trigger(self) -> None:
        if not self._due or self.pending is not None:
            return
        self._due = False
        begun = Checkpoint(number=len(self.checkpoints) + 1, begun_us=self._loop.now)
        self.checkpoints.append(begun)
        self.pending = begun
        self._awaited = dict.fromkeys(self._names)
        self._send_barrier(Barrier(begun.number, begun.begun_us))


class Recoveries:
    """The crashes of a run, and when the work that each undid was done again."""

    def __init__(self) -> None:
        self.recoveries: list[Recovery] = []
        self._furthest = 0

    def crashed(self, retained: Checkpoint | None, at_us: int, processed: int, lost_bytes: int) -> Recovery:
        """`processed`: buffers that the sink had processed by then."""
        restores = retained.number if retained else None
        recovery = Recovery(crashed_us=at_us, restores=restores, lost_bytes=lost_bytes)
        self.recoveries.append(recovery)
        self._furthest = max(self._furthest, processed)
        return recovery

    def processed(self, buffers: int, at_us: int) -> None:
        """The sink has processed this many buffers; all tasks are up."""
        if not self.recoveries or self.recoveries[-1].caught_up_us is not None or buffers < self._furthest:
            return
        for one in self.recoveries:
            if one.caught_up_us is None:
                one.caught_up_us = at_us
