"""A toy stream engine: it counts by key, takes snapshots, is killed, and restores.  It knows nothing of cutproof.

Everything happens in one process and one thread.  A job is a source, a chain of steps and a
sink, each with several subtasks.  A record goes through the whole chain before the next one
is read.  So at a checkpoint no record is between two tasks, and the tasks take their
snapshots one after another.  `Storage` is what outlives the process.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Row = tuple[int | None, int | None, int, int]
"""key, value, tag, tag2"""


@dataclass(frozen=True)
class Element:
    """A row on its way, with the place of the record that it was made of."""

    row: Row
    split: int
    offset: int


@dataclass(frozen=True)
class Step:
    """One operator of the chain."""

    name: str
    kind: str  # source, count, map, filter, batch or sink
    parallelism: int
    hashed: bool = False  # whether its input is distributed by key; otherwise subtask i sends to subtask i
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    steps: tuple[Step, ...]  # the source first, the sink last
    splits: tuple[tuple[tuple[int | None, int | None, int], ...], ...]
    checkpoint_every: float  # in the time of the engine's clock
    read_every: float
    transactional: bool = True  # otherwise rows are visible as soon as they are written
    rewinds: bool = True  # otherwise no record is read twice, and a kill loses state


class Storage:
    """Snapshots, transactions and the visible rows: they outlive a kill."""

    def __init__(self) -> None:
        self.snapshots: dict[tuple[int, str], str] = {}
        self.complete: list[int] = []
        self.transactions: dict[str, list[Row]] = {}  # those that are open or sealed
        self.sealed: list[str] = []
        self.visible: list[Row] = []
        self.positions: dict[int, int] = {}  # of a job that does not rewind
        self.serial = 0

    def store(self, checkpoint: int, task: str, state: str) -> None:
        self.snapshots[checkpoint, task] = state

    def completes(self, checkpoint: int) -> None:
        self.complete.append(checkpoint)

    def forget(self, checkpoint: int) -> None:
        """Delete the files of a checkpoint that is not needed any more."""
        self.snapshots = {place: state for place, state in self.snapshots.items() if place[0] != checkpoint}
        self.complete = [one for one in self.complete if one != checkpoint]

    def begin(self, task: str) -> str:
        self.serial += 1
        name = f"{task}/{self.serial}"
        self.transactions[name] = []
        return name

    def write(self, name: str, row: Row) -> None:
        self.transactions[name].append(row)

    def seal(self, name: str, checkpoint: int) -> None:
        """Take no more rows; a later life of the process can still commit the transaction."""
        self.sealed.append(name)

    def commit(self, name: str) -> None:
        """Make the rows visible; a transaction that is not there was committed before."""
        self.visible.extend(self.transactions.pop(name, []))
        self.sealed = [one for one in self.sealed if one != name]

    def abort(self, name: str) -> None:
        del self.transactions[name]
        self.sealed = [one for one in self.sealed if one != name]

    def append(self, task: str, row: Row) -> None:
        """A row of a sink without transactions: visible at once."""
        self.visible.append(row)


class Observer:
    """Is told what happens; an adapter overrides what it records.  `at` may raise `Killed`."""

    def deployed(self, tasks: list[Task]) -> None: ...
    def running(self) -> None: ...
    def at(self, side: str, point: str, task: str = "") -> None: ...
    def read(self, task: Task, split: int, offset: int) -> None: ...
    def sent(self, channel: str, element: Element) -> None: ...
    def barrier(self, channel: str, checkpoint: int) -> None: ...
    def took(self, task: Task, channel: str, element: Element) -> None: ...
    def marked(self, task: Task, checkpoint: int) -> None: ...
    def loaded(self, task: Task, checkpoint: int) -> None: ...
    def ended(self, task: Task) -> None: ...


class Killed(Exception):
    """The process dies here: whatever was in memory is gone."""


class Task:
    """One subtask of a step, with its state."""

    def __init__(self, step: Step, subtask: int) -> None:
        self.step, self.subtask = step, subtask
        self.name = f"{step.name}-{subtask}"
        self.inputs: list[str] = []
        self.outputs: dict[str, Task] = {}
        self.positions: dict[int, int] = {}  # a source: split to the next offset
        self.counts: dict[int | None, int] = {}
        self.buffer: list[Element] = []  # a batch
        self.open: str | None = None  # a sink: its open transaction
        self.sealed: list[tuple[str, int]] = []  # those whose commit is not known to be done, with their checkpoints

    def take(self, element: Element) -> list[Element]:
        """What the task emits for an element."""
        key, value, tag, tag2 = element.row
        settings = self.step.settings
        if self.step.kind == "count":
            self.counts[key] = self.counts.get(key, 0) + 1
            return [Element((key, self.counts[key], 0, 0), element.split, element.offset)]
        if self.step.kind == "map":
            value = None if value is None else value * settings["multiply"] + settings["add"]
            key = key if key is None or settings["rekey"] is None else key % settings["rekey"]
            return [Element((key, value, tag, tag2), element.split, element.offset)]
        if self.step.kind == "filter":
            dropped = value is None or value % settings["modulus"] == settings["drop"]
            return [] if dropped else [element]
        self.buffer.append(element)  # a batch
        return self.flush() if len(self.buffer) == settings["size"] else []

    def flush(self) -> list[Element]:
        """The buffered rows."""
        flushed, self.buffer = self.buffer, []
        return flushed

    def state(self) -> dict[str, Any]:
        rows = [[list(one.row), one.split, one.offset] for one in self.buffer]
        return {
            "positions": list(self.positions.items()),
            "counts": list(self.counts.items()),
            "buffer": rows,
            "sealed": self.sealed,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.positions = dict(state["positions"])
        self.counts = dict(state["counts"])
        self.buffer = [Element(tuple(row), split, offset) for row, split, offset in state["buffer"]]
        self.sealed = [(name, checkpoint) for name, checkpoint in state["sealed"]]


class Attempt:
    """One life of the job's process: from its start, or its restore, to its end or its death."""

    def __init__(self, job: Job, storage: Storage, observer: Observer, first_checkpoint: int, now: float) -> None:
        self.job, self.storage, self.observer = job, storage, observer
        self.checkpoint = first_checkpoint
        self.now = now
        self.chain = [[Task(step, subtask) for subtask in range(step.parallelism)] for step in job.steps]
        self.tasks = [task for tasks in self.chain for task in tasks]
        for tasks, receivers in zip(self.chain, self.chain[1:], strict=False):
            for task in tasks:
                near = receivers if receivers[0].step.hashed else [receivers[task.subtask]]
                for receiver in near:
                    channel = f"{task.name}>{receiver.name}"
                    task.outputs[channel] = receiver
                    receiver.inputs.append(channel)

    # -- its course

    def run(self) -> None:
        """Restore, read everything, take a last checkpoint; raises `Killed` where the observer does."""
        self.restore()
        next_checkpoint = self.now + self.job.checkpoint_every
        for source, split in self.turns():
            self.read(source, split)
            self.now += self.job.read_every
            if self.job.rewinds and self.now >= next_checkpoint:
                self.take_checkpoint()
                next_checkpoint = self.now + self.job.checkpoint_every
        self.finish()

    def restore(self) -> None:
        self.observer.deployed(self.tasks)
        newest = max(self.storage.complete, default=None)
        for task in self.tasks:
            self.observer.at("before", "task-deployed", task.name)
            if newest is not None:
                task.restore(json.loads(self.storage.snapshots[newest, task.name]))
                self.observer.loaded(task, newest)
                self.observer.at("after", "state-loaded", task.name)
            self.observer.at("after", "task-running", task.name)
        if not self.job.rewinds:
            for task in self.chain[0]:
                task.positions = dict(self.storage.positions)
        for sink in self.chain[-1]:
            self.commit(sink)
        self.clean_up(newest)
        self.observer.running()

    def clean_up(self, newest: int | None) -> None:
        """Remove what the life before left: no snapshot that is complete names it."""
        for name in list(self.storage.transactions):
            self.storage.abort(name)
        for checkpoint in sorted({one for one, _ in self.storage.snapshots} - {newest}):
            self.storage.forget(checkpoint)

    def turns(self) -> Iterator[tuple[Task, int]]:
        """(source, split) of each record that is left, split after split in turn."""
        sources, left = self.chain[0], True
        while left:
            left = False
            for split, records in enumerate(self.job.splits):
                source = sources[split % len(sources)]
                if source.positions.get(split, 0) < len(records):
                    left = True
                    yield source, split

    def read(self, source: Task, split: int) -> None:
        self.observer.at("before", "record-read", source.name)
        offset = source.positions.get(split, 0)
        source.positions[split] = offset + 1
        if not self.job.rewinds:
            self.storage.positions[split] = offset + 1
        self.observer.read(source, split, offset)
        self.observer.at("after", "record-read", source.name)
        key, value, tag = self.job.splits[split][offset]
        self.send(source, [Element((key, value, tag, 0), split, offset)])

    def send(self, sender: Task, elements: Iterable[Element]) -> None:
        """Send elements down the chain; each goes to its end at once."""
        for element in elements:
            channel, receiver = self.route(sender, element)
            self.observer.sent(channel, element)
            self.observer.at("before", "record-applied", receiver.name)
            self.observer.took(receiver, channel, element)
            if receiver.step.kind == "sink":
                self.write(receiver, element.row)
            else:
                self.send(receiver, receiver.take(element))
            self.observer.at("after", "record-applied", receiver.name)

    def route(self, sender: Task, element: Element) -> tuple[str, Task]:
        """The channel for an element: that of its key's owner where there are several."""
        channels = list(sender.outputs.items())
        return channels[zlib.crc32(repr(element.row[0]).encode()) % len(channels)]

    def write(self, sink: Task, row: Row) -> None:
        if not self.job.transactional:
            self.storage.append(sink.name, row)
            self.observer.at("after", "row-written", sink.name)
            return
        if sink.open is None:
            sink.open = self.storage.begin(sink.name)
            self.observer.at("after", "transaction-begun", sink.name)
        self.storage.write(sink.open, row)
        self.observer.at("after", "transaction-written", sink.name)

    # -- checkpoints

    def take_checkpoint(self) -> None:
        """All tasks store their snapshots, then the checkpoint is complete, then the sinks commit."""
        number, self.checkpoint = self.checkpoint, self.checkpoint + 1
        self.observer.at("after", "checkpoint-triggered")
        for task in self.tasks:
            for channel in task.inputs:
                self.observer.barrier(channel, number)
                self.observer.at("after", "barrier-received", task.name)
            self.snapshot(task, number)
            for _ in task.outputs:
                self.observer.at("after", "barrier-sent", task.name)
        self.observer.at("after", "checkpoint-acknowledged")
        self.observer.at("before", "checkpoint-completed")
        self.storage.completes(number)
        self.observer.at("after", "checkpoint-completed")
        for older in [one for one in self.storage.complete if one < number]:
            self.storage.forget(older)
        for sink in self.chain[-1]:
            self.observer.at("after", "completion-notified", sink.name)
            self.commit(sink)

    def snapshot(self, task: Task, checkpoint: int) -> None:
        if task.open is not None:
            self.storage.seal(task.open, checkpoint)
            task.sealed.append((task.open, checkpoint))
            task.open = None
            self.observer.at("after", "transaction-pre-committed", task.name)
        self.observer.marked(task, checkpoint)
        self.observer.at("after", "snapshot-taken", task.name)
        self.storage.store(checkpoint, task.name, json.dumps(task.state()))
        self.observer.at("after", "snapshot-persisted", task.name)
        self.observer.at("after", "ack-sent", task.name)
        self.observer.at("after", "ack-received", task.name)

    def commit(self, sink: Task) -> None:
        """Commit what was sealed for a complete checkpoint."""
        for name, _ in sink.sealed:
            self.observer.at("before", "commit-requested", sink.name)
            self.storage.commit(name)
            self.observer.at("after", "commit-answered", sink.name)
        sink.sealed = []

    def finish(self) -> None:
        """The end of the data: every batch emits what it has, and a last checkpoint makes all rows visible."""
        for task in self.tasks:
            self.observer.ended(task)
            self.send(task, task.flush())
            self.observer.at("after", "end-of-data-sent", task.name)
            self.observer.at("after", "end-of-partition-sent", task.name)
        if self.job.rewinds:
            self.take_checkpoint()
