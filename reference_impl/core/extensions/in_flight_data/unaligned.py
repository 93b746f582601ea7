"""Unaligned checkpoints at a task: barriers that overtake, and snapshots that wait for their in-flight data (FLIP-76).

A barrier has an alignment timeout.  Until it is over the barrier waits its turn, and the checkpoint is aligned as in
`barrier_alignment`.  Then the barrier overtakes the elements before it in the input queue, and the task's own barriers
overtake at once what waits in its outputs.  An alignment under way goes on unaligned when its timeout is over.

What is in flight meanwhile is recorded in `in_flight`; of persistent channels, in the ledger of their logs
(`persistent`).
"""

from __future__ import annotations

from typing import ClassVar

from ...decisions.in_flight import Capture
from ...protocol.barrier_alignment import Aligning, BarrierCame, OvertakingCame, State, WaitedEnough
from ...protocol.input_task import InputTask
from ...protocol.task import Task
from ...vocabulary.effects import Effect, Overtake, Send, SetTimer
from ...vocabulary.errors import Handlers, expect
from ...vocabulary.events import BarrierOvertook, Came, Event, LogsFound, OutputsOvertaken, Synced, TimerFired
from ...vocabulary.formats import Format
from ...vocabulary.ids import CheckpointId
from ...vocabulary.messages import AT_ONCE, Barrier, Complete, Trigger
from ...vocabulary.state import Snapshot, TaskState
from ...vocabulary.timeouts import AlignmentTimeout
from .in_flight import Channels, InFlight
from .persistent import Ledger


class Unaligned:
    """How one task takes part in checkpoints whose barriers may overtake."""

    def __init__(
        self,
        capture: Capture,
        ledger: Ledger | None,
        *,
        overtaken_inputs: bool,
        outputs: Channels,
        overtaken_outputs: Channels,
    ) -> None:
        """`overtaken_inputs` and `overtaken_outputs`: where barriers may overtake.  `ledger`: of persistent
        channels."""
        self._capture = capture
        self._ledger = ledger
        self.keeps_logs = ledger is not None
        self.elements = InFlight(capture, ledger)
        self._overtaken_inputs = overtaken_inputs
        self._outputs = outputs
        self._overtaken_outputs = overtaken_outputs
        self._timeouts_us: dict[CheckpointId, int | None] = {}
        """by checkpoint in which the task is to take part: the alignment timeout of its barriers"""

    def step(self, event: Event, task: Task) -> list[Effect]:
        effects: list[Effect] = self._handlers[type(event)](self, event, task)
        return effects

    # -- a barrier's way -------------------------------------------------------------

    def triggered(self, message: Trigger) -> None:
        self._timeouts_us[message.checkpoint] = message.alignment_timeout_us

    def on_barrier(self, barrier: Barrier, channel: int, task: InputTask) -> list[Effect]:
        self._timeouts_us.setdefault(barrier.checkpoint, barrier.alignment_timeout_us)
        before = task.alignment
        effects = task.signal(BarrierCame(barrier.checkpoint, channel))
        self.elements.delivered(barrier.checkpoint, channel)
        if _begins(before, task.alignment):
            effects += self._alignment_timer(barrier)
        return [*effects, *self.write_complete(task)]

    def _alignment_timer(self, barrier: Barrier) -> list[Effect]:
        """The alignment timeout of an alignment that this barrier begins."""
        timeout_us = self._capture.alignment_timeout(barrier.alignment_timeout_us, self._overtaken_inputs)
        if timeout_us is None:
            return []
        return [SetTimer(AlignmentTimeout(barrier.checkpoint), timeout_us)]

    def _on_timer(self, event: TimerFired, task: Task) -> list[Effect]:
        timeout = event.timeout
        if not isinstance(timeout, AlignmentTimeout):  # the buffer timeout
            return self._ledger.timer() if self._ledger is not None else []
        aligning = expect(task, InputTask)
        if isinstance(aligning.alignment, Aligning) and aligning.alignment.checkpoint == timeout.checkpoint:
            self._overtakes(timeout.checkpoint)
        return aligning.signal(WaitedEnough(timeout.checkpoint))

    def _on_barrier_overtook(self, event: BarrierOvertook, task: InputTask) -> list[Effect]:
        """A barrier overtook elements that are still in the channel's queue."""
        checkpoint = event.barrier.checkpoint
        self._overtakes(checkpoint)
        effects = task.signal(OvertakingCame(checkpoint, event.channel))
        self.elements.delivered(checkpoint, event.channel, event.passed)
        return [*effects, *self.write_complete(task)]

    def _overtakes(self, checkpoint: CheckpointId) -> None:
        """The task's own barriers of this checkpoint overtake at once."""
        self._timeouts_us[checkpoint] = AT_ONCE

    def _on_outputs_overtaken(self, event: OutputsOvertaken, task: Task) -> list[Effect]:
        self.elements.overtook(event.checkpoint, event.passed)
        return self.write_complete(task)

    def barrier(self, checkpoint: CheckpointId, wanted: Format | None) -> list[Effect]:
        """Send the barrier on: behind the waiting output, or before it when it overtakes at once."""
        timeout_us = self._timeouts_us.get(checkpoint)
        self._timeouts_us = {one: after_us for one, after_us in self._timeouts_us.items() if one > checkpoint}
        barrier = Barrier(checkpoint, timeout_us, wanted)
        overtaken = self._overtaken_outputs if timeout_us == AT_ONCE else ()
        in_order: list[Effect] = [Send(channel, barrier) for channel in self._outputs if channel not in overtaken]
        return [*in_order, Overtake(barrier, overtaken)] if overtaken else in_order

    # -- snapshots -------------------------------------------------------------------

    def snapshot_taken(self, checkpoint: CheckpointId, missing: Channels) -> None:
        """Record what the channels in `missing` deliver until they deliver the barrier, and what the task's own
        barriers overtake."""
        if self._ledger is not None:
            self._ledger.mark(checkpoint)
        overtaken = self._overtaken_outputs if self._timeouts_us.get(checkpoint) == AT_ONCE else ()
        if missing or overtaken:
            self.elements.begin(checkpoint, missing, overtaken)

    def persist_once_in_flight_known(self, checkpoint: CheckpointId, snapshot: Snapshot, task: Task) -> list[Effect]:
        if self.elements.hold(checkpoint, snapshot):
            return self.write_complete(task)
        return task.persist(checkpoint, snapshot)

    def write_complete(self, task: Task) -> list[Effect]:
        if not self.elements.recording:
            return []
        effects = self.elements.secure()
        for checkpoint, snapshot in self.elements.whole():
            effects += task.persist(checkpoint, snapshot)
        return effects

    def aborted(self, checkpoint: CheckpointId) -> None:
        self.elements.aborted(checkpoint)

    def ended(self, channel: int) -> None:
        self.elements.ended(channel)

    def restored(self, checkpoint: CheckpointId, state: TaskState, now: TaskState) -> list[Effect]:
        return self.elements.restored(checkpoint, state, now)

    # -- logs of persistent channels -------------------------------------------------

    def _on_came(self, event: Came, task: Task) -> list[Effect]:
        """An element has entered a persistent channel."""
        return self._ledger.came(event.channel, event.element) if self._ledger is not None else []

    def _on_logs_found(self, event: LogsFound, task: Task) -> list[Effect]:
        """The task goes on with logs that its channels already have."""
        ledger = expect(self._ledger, Ledger)
        ledger.remember(event.positions)
        for channel, (number, logged) in enumerate(event.logs):
            ledger.resume(channel, number, logged)
        return []

    def _on_synced(self, event: Synced, task: Task) -> list[Effect]:
        """What was appended before this sync is durable."""
        expect(self._ledger, Ledger).synced(event.serial)
        return self.write_complete(task)

    def completed(self, message: Complete) -> list[Effect]:
        """Trim the logs."""
        return self._ledger.trim(message) if self._ledger is not None else []

    _handlers: ClassVar[Handlers] = Handlers(
        {
            BarrierOvertook: _on_barrier_overtook,
            OutputsOvertaken: _on_outputs_overtaken,
            Came: _on_came,
            LogsFound: _on_logs_found,
            Synced: _on_synced,
            TimerFired: _on_timer,
        }
    )


def _begins(before: State, now: State) -> bool:
    """Whether an alignment has begun between these states."""
    return isinstance(now, Aligning) and not (isinstance(before, Aligning) and before.checkpoint == now.checkpoint)
