"""The records of the toy: tasks, their channels, and what each operator makes of a row."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from zlib import crc32

import msgspec

from cutproof.properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    Channel,
    Completed,
    History,
    JournalEntry,
    Loaded,
    Stored,
    StoredState,
    TaskRun,
    Transaction,
    Written,
)
from cutproof.properties.model.workload import SINK, Row, Topology, Workload, offset_of, origin_of, split_of
from unit.properties.meanings import Entries, apply, copies

Case = tuple[Workload, Topology]

Message = tuple[str, int, Row | None]
"""(record, its origin, the row), (barrier, its checkpoint, None) or (end, 0, None)"""


class Task:
    """One attempt of one task, with its working state and its input queues."""

    def __init__(self, run: TaskRun, inputs: list[deque[Message]]) -> None:
        self.run = run
        self.inputs = inputs
        self.positions: dict[int, int] = {}
        self.entries: Entries = []
        self.pending: list[Transaction] = []
        """sealed, not known to be committed"""
        self.open: Transaction | None = None
        self.blocked: set[int] = set()
        self.arrived: set[int] = set()
        self.ended: set[int] = set()
        self.robin = 0
        self.barrier: int | None = None

    @property
    def state(self) -> StoredState:
        sealed = [(held.name, held.checkpoint or 0) for held in self.pending]
        return StoredState(positions=dict(self.positions), entries=list(self.entries), transactions=sealed)


class Dataflow(ABC):
    """Deploys attempts and moves records; `toy.Toy` adds checkpoints, transactions, failures and endings."""

    def __init__(
        self,
        case: Case,
        *,
        sink: str = "transactional",
        guarantee: str = "exactly-once",
        identity: str = "key",
        seed: int = 0,
        retained: int = 1,
    ) -> None:
        self.workload, self.topology = case
        self.seen = History(subject="toy", guarantee=guarantee, sink=sink, identity=identity)
        self.draw = random.Random(seed)
        self.retained = retained
        self.order = 0
        self.attempt = 0
        self.job = 1
        self.checkpoint = 0
        self.pending: dict[int, dict[str, Stored]] = {}
        self.savepoints: set[int] = set()
        self.tasks: dict[str, Task] = {}
        self.channels: dict[str, Channel] = {}
        self.splits = dict(enumerate(records for _, _, records in self.workload.splits()))
        self.committed: list[Row] = []
        self.table: dict[object, Row] = {}
        self.resting: int | None = None

    def tick(self) -> int:
        self.order += 1
        return self.order

    @property
    def at(self) -> dict[str, int]:
        """The order and time of a new entry."""
        order = self.tick()
        return {"order": order, "at_us": order * 10}

    def note(self, entry: type[JournalEntry], /, **fields: object) -> None:
        """Write an entry into the journal."""
        self.seen.journal.append(entry(**self.at, **fields))  # type: ignore[arg-type]

    # deployment

    def names(self, operator: str) -> list[str]:
        return [f"{operator}-{subtask}" for subtask in range(self.topology.parallelism[operator])]

    def operators(self) -> list[str]:
        return [source.name for source in self.workload.inputs] + [node.name for node in self.workload.nodes] + [SINK]

    def feeding(self, operator: str) -> list[str]:
        if operator == SINK:
            return [self.workload.output]
        return next((list(node.inputs) for node in self.workload.nodes if node.name == operator), [])

    def senders(self, operator: str, subtask: int) -> list[str]:
        """The tasks that send to this one, in the task's numbering of its channels."""
        found = []
        for sender in self.feeding(operator):
            forward = self.topology.edge(sender, operator).partitioning == "forward"
            found += [f"{sender}-{subtask}"] if forward else self.names(sender)
        return found

    def start(self, restores: Completed | None = None, cause: str = "") -> None:
        """Deploy a new attempt of the whole dataflow and give it its state."""
        self.attempt += 1
        chosen = restores.checkpoint if restores else None
        self.note(AttemptStarted, attempt=self.attempt, job=self.job, restores=chosen, cause=cause)
        self.tasks = {}
        queues: dict[str, deque[Message]] = {}
        for operator in self.operators():
            for subtask, name in enumerate(self.names(operator)):
                inputs = [f"{sender}>{name}" for sender in self.senders(operator, subtask)]
                for channel in inputs:
                    queues[channel] = deque()
                    self.channels[channel] = Channel(name=channel, attempt=self.attempt)
                    self.seen.channels.append(self.channels[channel])
                run = TaskRun(
                    task=name,
                    operator=operator,
                    subtask=subtask,
                    attempt=self.attempt,
                    job=self.job,
                    started=self.tick(),
                    inputs=inputs,
                    outputs=[],
                )
                self.seen.runs.append(run)
                self.tasks[name] = Task(run, [queues[channel] for channel in inputs])
        for task in self.tasks.values():
            for channel in task.run.inputs:
                self.tasks[channel.split(">")[0]].run.outputs.append(channel)
        self.queues = queues
        for task in self.tasks.values():
            self.load(task, restores)
        self.note(AttemptRunning, attempt=self.attempt)

    def load(self, task: Task, restores: Completed | None) -> None:
        kept = StoredState()
        if restores:
            handle = restores.handles[task.run.task]
            text = next(stored.state for stored in self.seen.stored if stored.handle == handle)
            kept = msgspec.json.decode(text, type=StoredState)
            task.run.loaded = Loaded(checkpoint=restores.checkpoint, order=self.tick(), state=text)
        task.entries = list(kept.entries)
        task.positions = kept.positions or {split: self.first_offset(split) for split in self.splits_of(task)}
        if task.run.operator == SINK and self.seen.sink == "transactional":
            for name, _ in kept.transactions:
                self.commit(next(sealed for sealed in self.seen.transactions if sealed.name == name))
            for old in self.seen.transactions:
                if old.task == task.run.task and old.status in ("open", "prepared"):
                    old.status, old.aborted = "aborted", self.tick()
            self.begin(task)

    def splits_of(self, task: Task) -> list[int]:
        if task.run.operator not in [source.name for source in self.workload.inputs]:
            return []
        own = self.workload.splits_of(task.run.operator)
        return list(own[task.run.subtask :: self.topology.parallelism[task.run.operator]])

    def first_offset(self, split: int) -> int:
        """Where an attempt that restores nothing begins: behind all that was read, if it does not rewind."""
        if self.seen.guarantee != "at-most-once":
            return 0
        return max((offset + 1 for run in self.seen.runs for of, offset in run.reads if of == split), default=0)

    # records

    def read(self, name: str) -> bool:
        """A source reads one record of the split that is furthest behind; False at its end."""
        task = self.tasks[name]
        left = [split for split, at in task.positions.items() if at < len(self.splits[split])]
        if task.run.end_of_data or not left:
            return False
        split = min(left, key=lambda number: task.positions[number])
        offset = task.positions[split]
        task.positions[split] += 1
        task.run.reads.append((split, offset))
        self.tick()
        key, value, tag = self.splits[split][offset]
        self.send(task, origin_of(split, offset), (key, value, tag, 0))
        return True

    def send(self, task: Task, origin: int, row: Row) -> None:
        outputs = task.run.outputs
        receiver = self.reader(task.run.operator)
        how = self.topology.edge(task.run.operator, receiver).partitioning
        if how == "hash":
            group = crc32(repr(row[0]).encode()) % self.topology.key_groups
            at = group * len(outputs) // self.topology.key_groups
        else:
            at, task.robin = task.robin % len(outputs), task.robin + 1
        self.channels_of(task)[outputs[at]].sent.append(origin)
        self.queue_of(task, outputs[at]).append(("record", origin, row))

    def reader(self, operator: str) -> str:
        return (
            next(node.name for node in self.workload.nodes if operator in node.inputs)
            if (operator != self.workload.output)
            else SINK
        )

    def channels_of(self, task: Task) -> dict[str, Channel]:
        if task.run.attempt == self.attempt:
            return self.channels
        return {channel.name: channel for channel in self.seen.channels if channel.attempt == task.run.attempt}

    def queue_of(self, task: Task, channel: str) -> deque[Message]:
        return self.queues[channel] if task.run.attempt == self.attempt else deque()

    def ready(self, name: str) -> list[int]:
        """The channels that a task may take from."""
        task = self.tasks[name]
        return [at for at, queue in enumerate(task.inputs) if queue and at not in task.blocked]

    def take(self, name: str, channel: int | None = None) -> bool:
        """A task takes one message, from the first channel that has one; False when none has."""
        ready = self.ready(name)
        if not ready:
            return False
        at = ready[0] if channel is None else channel
        self.handle(self.tasks[name], at)
        return True

    def handle(self, task: Task, at: int) -> None:
        what, number, row = task.inputs[at].popleft()
        self.tick()
        if what == "record":
            assert row is not None
            task.run.applies.append((at, number))
            self.process(task, at, number, row)
        elif what == "barrier":
            self.barrier(task, at, number)
        else:
            task.ended.add(at)
            task.run.end_of_data = len(task.ended) == len(task.inputs)
            if task.run.end_of_data:
                self.pass_on(task, ("end", 0, None))

    def process(self, task: Task, at: int, origin: int, row: Row) -> None:
        if task.run.operator == SINK:
            self.write(task, row)
            return
        operator = self.workload.node(task.run.operator).operator
        side = self.feeding(task.run.operator).index(task.run.inputs[at].split(">")[0].rsplit("-", 1)[0])
        out = apply(operator, task.entries, side, row)
        for copy, made in enumerate(out):
            lineage = origin_of(split_of(origin), offset_of(origin), copy) if copies(operator) else origin
            self.send(task, lineage, made)

    def write(self, task: Task, row: Row) -> None:
        applied = len(task.run.applies)
        if self.seen.sink == "transactional":
            assert task.open is not None
            task.open.rows.append(row)
            task.open.applied.append(applied)
            return
        self.seen.written.append(
            Written(task=task.run.task, attempt=task.run.attempt, order=self.tick(), applied=applied, row=row)
        )
        self.committed.append(row)
        self.table[row[0] if self.seen.identity == "key" else row] = row

    # what the records meet on their way

    @abstractmethod
    def barrier(self, task: Task, at: int, checkpoint: int) -> None: ...

    @abstractmethod
    def pass_on(self, task: Task, message: Message) -> None: ...

    @abstractmethod
    def begin(self, task: Task) -> None: ...

    @abstractmethod
    def commit(self, sealed: Transaction) -> None: ...
