"""A world of bytes and time for the arithmetic of unaligned checkpoints (UNA-2, 3, 6 to 9).

Tasks work at rates, channels are bounded, stores write at rates, and everything else follows event by event: no
duration here is computed from another one.  core/spilling decides what is spilled, and when it is safe.  A crash takes
all tasks and everything that no store has flushed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...core.extensions.in_flight_data.spilling import (
    ChannelSpilling,
    Copy,
    Drop,
    FlushWrites,
    Free,
    PartComplete,
    Spill,
    SpillEffect,
)
from ...core.vocabulary.errors import InvalidGraph, ProtocolViolated
from ..loop import Loop
from .coordinator import PipelineCoordinator, Recoveries
from .parts import (
    Barrier,
    Buffer,
    Checkpoint,
    Mark,
    PipelineChannel,
    PipelineOutcome,
    Recovery,
    Task,
    in_flight,
)
from .plan import Pipeline, faults_of
from .reading_back import ReadingBack
from .spill_store import Content, Series, SpillStore

MakeSpilling = Callable[[Pipeline], ChannelSpilling]


def spilling_of(pipeline: Pipeline) -> ChannelSpilling:
    """The correct state machine of a channel."""
    return ChannelSpilling(pipeline.way)


class PipelineWorld:
    """Runs one pipeline to its end; raises InvalidGraph for a description that cannot run."""

    def __init__(self, pipeline: Pipeline, spilling: MakeSpilling = spilling_of) -> None:
        found = faults_of(pipeline)
        if found:
            raise InvalidGraph(found[0])
        self._pipeline = pipeline
        self._size = pipeline.buffer_bytes
        self._loop = Loop()
        nodes = dict.fromkeys(stage.node for stage in pipeline.stages)
        self._stores = {node: SpillStore(self._loop, pipeline.device, pipeline.slice_us) for node in nodes}
        self._tasks = [Task(stage, number) for number, stage in enumerate(pipeline.stages)]
        self._channels = self._connect(spilling)
        self._sources = [task for task in self._tasks if not task.inputs]
        self._sink_content: list[Content] = []
        self._processed = Series(pipeline.slice_us)
        self._marks: dict[tuple[int, int], Mark] = {}
        self._recoveries = Recoveries()
        names = [*(task.stage.name for task in self._tasks), *(channel.name for channel in self._channels)]
        self._coordinator = PipelineCoordinator(self._loop, pipeline, names, self._send_barriers, self._completed)
        self._life = 0

    def _connect(self, spilling: MakeSpilling) -> list[PipelineChannel]:
        by_name, channels = {task.stage.name: task for task in self._tasks}, []
        for task in self._tasks:
            for name in task.stage.inputs:
                sender, store = by_name[name], self._stores[task.stage.node]
                limit = self._pipeline.channel_bytes
                channel = PipelineChannel(
                    f"{name}>{task.stage.name}", sender, task, limit, store, spilling(self._pipeline)
                )
                sender.output = channel
                task.inputs.append(channel)
                channels.append(channel)
        return channels

    def run(self) -> PipelineOutcome:
        """Run to the end."""
        for at_us in self._pipeline.crashes_us:
            self._loop.at(at_us, self._crash)
        self._begin()
        self._loop.run(self._pipeline.until_us)
        for channel in self._channels:
            channel.unblock(self._loop.now)
        return self._outcome()

    def _begin(self) -> None:
        self._coordinator.begin()
        for task in self._tasks:
            self._step(task)

    def _send_barriers(self, barrier: Barrier) -> None:
        for source in self._sources:
            self._mark(source, barrier)
            source.asked.append(barrier)
        for source in self._sources:
            self._step(source)

    def _completed(self, checkpoint: Checkpoint) -> None:
        checkpoint.written_bytes = sum(store.written for store in self._stores.values())
        for channel in self._channels:
            checkpoint.stored_bytes += len(channel.spilling.copies_of(checkpoint.number)) * self._size
            self._perform(channel, channel.spilling.completed(checkpoint.number))

    # -- tasks -----------------------------------------------------------------------

    def _step(self, task: Task) -> None:
        """Let a free task do its next step: first barriers that overtake, then the queue."""
        while not task.busy:
            if task.asked:
                self._overtake(task, task.asked.pop(0))
            elif not task.inputs:
                self._read(task)
                return
            elif not self._take(task):
                return

    def _read(self, source: Task) -> None:
        output, stage = source.output, source.stage
        if output is None or not output.has_room(self._size):
            return
        if stage.arrives is not None:
            there_us = -(-(source.position + 1) * self._size * 1_000_000 // stage.arrives)
            if there_us > self._loop.now:
                if not source.waking:
                    source.waking = True
                    self._loop.at(there_us, self._wake, source, self._life)
                return
        self._work(source, (source.number, source.position), None)

    def _wake(self, source: Task, life: int) -> None:
        if life == self._life:
            source.waking = False
            self._step(source)

    def _take(self, task: Task) -> bool:
        """Take the next element, from the inputs round-robin; False if there is none that the task may take."""
        for offset in range(len(task.inputs)):
            channel = task.inputs[(task.next_input + offset) % len(task.inputs)]
            if not channel.queue or channel.blocked_since is not None:
                continue
            if isinstance(channel.queue[0], Barrier):
                self._align(task, channel)
                return True
            if task.output is not None and not task.output.has_room(self._size):
                continue
            task.next_input = (task.next_input + offset + 1) % len(task.inputs)
            buffer = channel.queue.popleft()
            if isinstance(buffer, Buffer):
                self._work(task, buffer.content, (channel, buffer.number))
            return True
        return False

    def _work(self, task: Task, content: Content, origin: tuple[PipelineChannel, int] | None) -> None:
        task.busy, task.in_hand = True, content
        if task.output is not None:
            task.output.held += self._size
        self._loop.after(task.pace.takes_us(self._size), partial(self._finish, task, content, origin), self._life)

    def _finish(
        self, task: Task, content: Content, origin: tuple[PipelineChannel, int] | None, life: int, _: None
    ) -> None:
        if life != self._life:
            return
        task.busy, task.in_hand = False, None
        if origin is None:
            task.position += 1
        if task.output is not None:
            self._put(task.output, content)
        else:
            self._sink_content.append(content)
            self._processed.add(self._loop.now, self._size)
            self._recoveries.processed(len(self._sink_content), self._loop.now)
        if origin is not None:
            self._perform(origin[0], origin[0].spilling.processed(origin[1]))
        self._step(task)

    # -- channels --------------------------------------------------------------------

    def _put(self, channel: PipelineChannel, content: Content) -> None:
        number = channel.spilling.next_number
        channel.queue.append(Buffer(number, content))
        channel.contents[number] = content
        self._perform(channel, channel.spilling.came())
        wait_us = self._pipeline.way.spills_after_us
        if wait_us:
            self._loop.after(wait_us, partial(self._waited, channel, number), self._life)
        self._step(channel.receiver)

    def _waited(self, channel: PipelineChannel, number: int, life: int, _: None) -> None:
        if life == self._life:
            self._perform(channel, channel.spilling.waited(number))

    def _perform(self, channel: PipelineChannel, effects: list[SpillEffect]) -> None:
        for effect in effects:
            match effect:
                case Free(number):
                    del channel.contents[number]
                    channel.held -= self._size
                    self._step(channel.sender)
                case Spill(copy):
                    content = channel.contents[copy.number]
                    channel.store.write(channel.name, copy, content, self._size, partial(self._written, channel))
                case FlushWrites():
                    channel.store.flush(channel.name, partial(self._flushed, channel))
                case PartComplete(checkpoint):
                    self._coordinator.acknowledge(checkpoint, channel.name)
                case Drop(copies):
                    channel.store.drop(channel.name, copies)

    def _written(self, channel: PipelineChannel, copy: Copy | None) -> None:
        if copy is not None:
            self._perform(channel, channel.spilling.written(copy))

    def _flushed(self, channel: PipelineChannel, copies: list[Copy]) -> None:
        self._perform(channel, channel.spilling.flushed(copies))

    # -- barriers --------------------------------------------------------------------

    def _mark(self, task: Task, barrier: Barrier) -> Mark:
        key = (barrier.checkpoint, task.number)
        if key not in self._marks:
            mark = Mark(task=task.stage.name, checkpoint=barrier.checkpoint, first_barrier_us=self._loop.now)
            self._marks[key] = mark
        return self._marks[key]

    def _arrive(self, channel: PipelineChannel, barrier: Barrier) -> None:
        """A barrier enters a channel."""
        task = channel.receiver
        self._mark(task, barrier)
        if barrier.checkpoint in task.taken:
            channel.had[barrier.checkpoint] = None
            self._perform(channel, channel.spilling.barrier(barrier.checkpoint))
            return
        channel.queue.append(barrier)
        wait_us = self._pipeline.way.overtakes_after_us
        if wait_us is not None:
            remaining_us = barrier.begun_us + wait_us - self._loop.now
            if remaining_us > 0:
                self._loop.after(remaining_us, partial(self._alignment_timed_out, task, barrier), self._life)
            else:
                self._alignment_timed_out(task, barrier, self._life, None)
        self._step(task)

    def _alignment_timed_out(self, task: Task, barrier: Barrier, life: int, _: None) -> None:
        if life == self._life and barrier.checkpoint not in task.taken and barrier not in task.asked:
            task.asked.append(barrier)
            self._step(task)

    def _align(self, task: Task, channel: PipelineChannel) -> None:
        """A barrier is the next element of the queue."""
        barrier = channel.queue.popleft()
        if not isinstance(barrier, Barrier):
            raise ProtocolViolated(f"{channel.name} has a buffer where a barrier was")
        channel.had[barrier.checkpoint] = None
        if all(barrier.checkpoint in one.had for one in task.inputs):
            if len(task.inputs) > 1:
                channel.block(self._loop.now)
            self._snapshot(task, barrier, overtaking=False)
        else:
            channel.block(self._loop.now)

    def _overtake(self, task: Task, barrier: Barrier) -> None:
        """A barrier overtakes the queue.  A source has no queue; its barrier goes as an aligned one at first."""
        if barrier.checkpoint not in task.taken:
            stays_in_order = not task.inputs and self._pipeline.way.overtakes_after_us != 0
            self._snapshot(task, barrier, overtaking=not stays_in_order)

    def _snapshot(self, task: Task, barrier: Barrier, *, overtaking: bool) -> None:
        """Take the snapshot; a barrier that overtakes is downstream before the synchronous part of the snapshot
        (UNA-7)."""
        number, mark = barrier.checkpoint, self._mark(task, barrier)
        task.taken[number] = None
        for channel in task.inputs:
            self._cut(channel, barrier)
        self._remember(task, number)
        if overtaking:
            self._forward(task, barrier, mark)
            for channel in task.inputs:
                channel.unblock(self._loop.now)
        mark.sync_began_us = self._loop.now
        task.busy = True
        done = partial(self._end_sync, task, barrier, overtaking)
        if task.stage.sync_us:
            self._loop.after(task.stage.sync_us, done, self._life)
        else:
            done(self._life, None)

    def _cut(self, channel: PipelineChannel, barrier: Barrier) -> None:
        """Store the part of a channel that belongs to the checkpoint: what its barrier overtook, or all elements
        until it comes."""
        overtaken, closed = channel.cut(barrier)
        self._perform(channel, channel.spilling.snapshot(barrier.checkpoint, overtaken, closed=closed))

    def _remember(self, task: Task, number: int) -> None:
        """Record the task's own state: a source's position, the list of buffers that the sink has processed."""
        pending = self._coordinator.pending
        if pending is None or pending.number != number:
            return
        if not task.inputs:
            pending.positions = {**pending.positions, task.stage.name: task.position}
        if task.output is None:
            pending.processed = len(self._sink_content)

    def _forward(self, task: Task, barrier: Barrier, mark: Mark) -> None:
        mark.forwarded_us = self._loop.now
        if task.output is not None:
            self._arrive(task.output, barrier)

    def _end_sync(self, task: Task, barrier: Barrier, overtaking: bool, life: int, _: None) -> None:
        if life != self._life:
            return
        mark = self._mark(task, barrier)
        mark.sync_ended_us = self._loop.now
        task.busy = False
        store, name = self._stores[task.stage.node], task.stage.name
        if task.stage.state_bytes:
            store.write(f"state of {name}", None, (0, 0), task.stage.state_bytes, lambda _: None)
            store.flush(f"state of {name}", lambda _: self._coordinator.acknowledge(barrier.checkpoint, name))
        else:
            self._coordinator.acknowledge(barrier.checkpoint, name)
        if not overtaking:
            self._forward(task, barrier, mark)
            for channel in task.inputs:
                channel.unblock(self._loop.now)
        self._step(task)

    # -- crashes ---------------------------------------------------------------------

    def _crash(self, _: None, __: None) -> None:
        self._life += 1
        for channel in self._channels:
            channel.unblock(self._loop.now)
        retained = self._coordinator.fail()
        for store in self._stores.values():
            store.crash()
        kept = retained.processed if retained else 0
        recovery = self._recoveries.crashed(
            retained, self._loop.now, len(self._sink_content), (len(self._sink_content) - kept) * self._size
        )
        del self._sink_content[kept:]
        for task in self._tasks:
            task.restart(retained.positions.get(task.stage.name, 0) if retained else 0)
        for channel in self._channels:
            copies, effects = channel.spilling.rewind(recovery.restores)
            channel.clear()
            channel.unread.extend(copies)
            self._perform(channel, effects)
        self._loop.after(self._pipeline.restart_us, partial(self._read_back, recovery), self._life)

    def _read_back(self, recovery: Recovery, life: int, _: None) -> None:
        if life == self._life:
            ReadingBack(self._channels, self._size, recovery, self._restored).begin()

    def _restored(self, recovery: Recovery) -> None:
        recovery.restored_us = self._loop.now
        self._recoveries.processed(len(self._sink_content), self._loop.now)
        self._begin()

    # -- the end ---------------------------------------------------------------------

    def _outcome(self) -> PipelineOutcome:
        return PipelineOutcome(
            buffer_bytes=self._size,
            ended_us=self._loop.now,
            processed=self._sink_content,
            positions={task.stage.name: task.position for task in self._sources},
            in_flight=in_flight(self._tasks),
            sources=tuple(task.stage.name for task in self._tasks),
            checkpoints=self._coordinator.checkpoints,
            recoveries=self._recoveries.recoveries,
            marks=list(self._marks.values()),
            blocked_us={channel.name: channel.blocked_us for channel in self._channels},
            written={node: store.written for node, store in self._stores.items()},
            most_stored={node: store.most for node, store in self._stores.items()},
            reads={node: store.reads for node, store in self._stores.items()},
            written_series={node: store.series.bytes for node, store in self._stores.items()},
            processed_series=self._processed.bytes,
        )
