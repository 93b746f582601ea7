"""A toy dataflow that writes histories by hand, for the tests of the checkers.

It is no engine: one object, no messages between coordinator and tasks, every
happening asked for by the test (`read`, `take`, `trigger`, `complete`, `kill`,
`restart`, …) or drawn by `wander` from a seed.  What it records is correct by
construction; a test then tells a lie about it and looks whether the checker
sees it.
"""

from __future__ import annotations

import random
from collections import deque
from zlib import crc32

import msgspec
from meanings import Entries, apply, copies

from cutproof.properties.history import (
    AttemptRunning,
    AttemptStarted,
    Channel,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    Completed,
    FaultFired,
    History,
    JobEnded,
    JournalEntry,
    Loaded,
    Mark,
    Read,
    Residue,
    SnapshotDeleted,
    Stored,
    StoredState,
    TaskFailed,
    TaskRun,
    Transaction,
    Written,
)
from cutproof.properties.workload import (
    SINK,
    Row,
    Topology,
    Workload,
    offset_of,
    origin_of,
    split_of,
)

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


class Toy:
    """A run in the making; `history()` hands out what it let us see."""

    def __init__(
        self,
        case: Case,
        *,
        sink: str = "transactional",
        guarantee: str = "exactly-once",
        seed: int = 0,
        retained: int = 1,
    ) -> None:
        self.workload, self.topology = case
        self.seen = History(subject="toy", guarantee=guarantee, sink=sink)
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
        self.table: dict[int | None, Row] = {}
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
        self.table[row[0]] = row

    # checkpoints

    def trigger(self, savepoint: bool = False) -> int:
        """Start a checkpoint: every source snapshots and sends its barriers."""
        self.checkpoint += 1
        number = self.checkpoint
        self.note(CheckpointTriggered, checkpoint=number, job=self.job, attempt=self.attempt, savepoint=savepoint)
        self.pending[number] = {}
        if savepoint:
            self.savepoints.add(number)
        for task in self.tasks.values():
            if not task.run.inputs:
                self.snapshot(task, number)
        return number

    def barrier(self, task: Task, at: int, checkpoint: int) -> None:
        if checkpoint not in self.pending:
            return
        task.arrived.add(at)
        if self.seen.guarantee == "exactly-once":
            task.blocked.add(at)
        if len(task.arrived) == len(task.inputs):
            task.arrived.clear()
            task.blocked.clear()
            self.snapshot(task, checkpoint)

    def snapshot(self, task: Task, checkpoint: int) -> None:
        received = [0] * len(task.inputs)
        for at, _ in task.run.applies:
            received[at] += 1
        sent = [len(self.channels[name].sent) for name in task.run.outputs]
        task.run.marks.append(
            Mark(
                **self.at,
                checkpoint=checkpoint,
                reads=len(task.run.reads),
                applies=len(task.run.applies),
                received=received,
                sent=sent,
            )
        )
        self.seal(task, checkpoint)
        stored = Stored(
            **self.at,
            checkpoint=checkpoint,
            task=task.run.task,
            attempt=self.attempt,
            handle=f"{checkpoint}/{task.run.task}/{self.attempt}",
            state=msgspec.json.encode(task.state).decode(),
        )
        self.seen.stored.append(stored)
        self.pending[checkpoint][task.run.task] = stored
        self.pass_on(task, ("barrier", checkpoint, None))

    def pass_on(self, task: Task, message: Message) -> None:
        for name in task.run.outputs:
            if message[0] == "barrier":
                self.channels[name].barriers.append((message[1], len(self.channels[name].sent)))
            self.queues[name].append(message)

    def acknowledged(self, checkpoint: int) -> bool:
        return len(self.pending.get(checkpoint, ())) == len(self.tasks)

    def complete(self, checkpoint: int, *, notify: bool = True) -> None:
        """Make a checkpoint complete, tell the sinks and delete what it subsumes."""
        stored = self.pending.pop(checkpoint)
        for older in [number for number in self.pending if number < checkpoint]:
            self.abort(older, "subsumed")
        self.seen.completed.append(
            Completed(
                **self.at,
                checkpoint=checkpoint,
                job=self.job,
                attempt=self.attempt,
                handles={task: one.handle for task, one in stored.items()},
                savepoint=checkpoint in self.savepoints,
            )
        )
        if notify:
            self.notify(checkpoint)
        own = [entry for entry in self.seen.completed if not entry.savepoint]
        for entry in own[: -self.retained]:
            self.delete(entry.checkpoint, list(entry.handles.values()))

    def notify(self, checkpoint: int) -> None:
        for task in self.tasks.values():
            for sealed in list(task.pending):
                if (sealed.checkpoint or 0) <= checkpoint:
                    self.commit(sealed)
                    task.pending.remove(sealed)

    def delete(self, checkpoint: int, handles: list[str]) -> None:
        gone = {name for entry in self.seen.journal if isinstance(entry, SnapshotDeleted) for name in entry.handles}
        left = [name for name in handles if name not in gone]
        if left:
            self.note(SnapshotDeleted, checkpoint=checkpoint, handles=left)

    def abort(self, checkpoint: int, reason: str = "timed out") -> None:
        stored = self.pending.pop(checkpoint)
        self.note(CheckpointAborted, checkpoint=checkpoint, reason=reason)
        self.delete(checkpoint, [one.handle for one in stored.values()])
        for task in self.tasks.values():
            task.blocked.clear()
            task.arrived.clear()

    def checkpoint_now(self, *, savepoint: bool = False) -> int:
        """A whole checkpoint, channels drained."""
        number = self.trigger(savepoint)
        self.settle()
        self.complete(number)
        return number

    # transactions

    def begin(self, task: Task) -> None:
        number = sum(one.task == task.run.task for one in self.seen.transactions)
        task.open = Transaction(
            name=f"{task.run.task}/{number}", task=task.run.task, attempt=self.attempt, begun=self.tick()
        )
        self.seen.transactions.append(task.open)

    def seal(self, task: Task, checkpoint: int) -> None:
        if task.open is None:
            return
        task.open.checkpoint, task.open.prepared, task.open.status = checkpoint, self.tick(), "prepared"
        task.pending.append(task.open)
        task.open = None
        if not task.run.end_of_data:
            self.begin(task)

    def commit(self, sealed: Transaction) -> None:
        if sealed.status != "prepared":
            return
        sealed.commit_requested = sealed.commit_requested or self.tick()
        sealed.committed, sealed.status = self.tick(), "committed"
        self.committed += sealed.rows

    def look(self) -> None:
        """A reader reads the sink."""
        began = self.tick()
        self.seen.reads.append(Read(began=began, ended=self.tick(), rows=len(self.committed)))

    # failures and endings

    def kill(self, name: str, *, zombie: int = 0) -> None:
        """An injected kill of one task; the others are cancelled.  With `zombie` it first
        takes that many more messages, unseen by anybody."""
        fault = sum(isinstance(entry, FaultFired) for entry in self.seen.journal)
        self.note(FaultFired, fault=fault, kind="kill-task", phase="running", attempt=self.attempt)
        self.note(TaskFailed, task=name, attempt=self.attempt, reason="killed", fault=fault)
        for checkpoint in list(self.pending):
            self.abort(checkpoint, "task failed")
        for _ in range(zombie):
            self.take(name)
        for task in self.tasks.values():
            task.run.ended = self.tick()
            task.run.how = "killed" if task.run.task == name else "cancelled"
        self.seen.healed = self.tick()

    def restart(self) -> None:
        """Start the next attempt from the newest completed snapshot."""
        self.start(self.newest, cause="task failed")

    @property
    def newest(self) -> Completed | None:
        """What an attempt begins with; at-most-once begins empty and does not rewind."""
        if self.seen.guarantee == "at-most-once" or not self.seen.completed:
            return None
        return self.seen.completed[-1]

    def settle(self) -> None:
        """Until no task can take anything."""
        while any(self.take(name) for name in self.tasks):
            pass

    def read_all(self) -> None:
        while any(self.read(name) for name in self.tasks if not self.tasks[name].run.inputs):
            self.settle()

    def end(self, status: str = "finished", *, checkpoint: int | None = None, reason: str = "") -> None:
        how = {"finished": "finished", "drained": "finished", "stopped": "finished", "failed": "failed"}
        for task in self.tasks.values():
            if task.run.ended is None:
                task.run.ended, task.run.how = self.tick(), how.get(status, "cancelled")
            covered = max((entry.checkpoint for entry in self.seen.completed), default=0)
            for left in [task.open, *(one for one in task.pending if (one.checkpoint or 0) > covered)]:
                if left is not None:
                    left.status, left.aborted = "aborted", self.tick()
        for number in list(self.pending):
            self.abort(number, status)
        self.note(JobEnded, job=self.job, status=status, checkpoint=checkpoint, reason=reason)
        self.tasks = {}

    def finish(self) -> None:
        """All input is read and ended, a final checkpoint commits the rest, the job ends."""
        self.read_all()
        self.end_input()
        self.settle()
        self.end("finished", checkpoint=self.checkpoint_now())

    def end_input(self) -> None:
        for task in self.tasks.values():
            if not task.run.inputs:
                task.run.end_of_data = True
                self.pass_on(task, ("end", 0, None))

    def stop(self, *, drain: bool = False) -> None:
        """Stop with savepoint."""
        self.note(CommandIssued, command=0, kind="stop-with-savepoint", drain=drain)
        if drain:
            self.end_input()
            self.settle()
        number = self.checkpoint_now(savepoint=True)
        self.end("drained" if drain else "stopped", checkpoint=number)
        self.note(CommandReturned, command=0, checkpoint=number)

    def cancel(self) -> None:
        """Stop at once: what is sealed for a completed snapshot and not committed stays so."""
        self.note(CommandIssued, command=1, kind="cancel")
        self.end("cancelled", checkpoint=self.seen.completed[-1].checkpoint if self.seen.completed else None)
        self.note(CommandReturned, command=1)

    def resume(self) -> None:
        """A new job from the newest completed snapshot."""
        self.job += 1
        self.start(self.newest, cause="resumed")

    def wander(self, steps: int, kills: int = 1) -> None:
        """Random but correct happenings; running when it returns."""
        for _ in range(steps):
            sources = [name for name, task in self.tasks.items() if not task.run.inputs]
            ready = [(name, at) for name in self.tasks for at in self.ready(name)]
            dice = self.draw.random()
            if dice < 0.40:
                self.read(self.draw.choice(sources))
            elif dice < 0.90 and ready:
                self.take(*self.draw.choice(ready))
            elif dice < 0.94 and not self.pending:
                self.trigger()
            elif dice < 0.95 and self.pending:
                self.abort(min(self.pending))
            elif dice < 0.96 and kills:
                kills -= 1
                self.kill(self.draw.choice(sorted(self.tasks)), zombie=self.draw.randrange(3))
                self.restart()
            elif dice < 0.98:
                self.look()
            for number in [number for number in self.pending if self.acknowledged(number)]:
                told = self.draw.random() < 0.8 or not kills
                self.complete(number, notify=told)
                if not told:
                    kills -= 1
                    self.kill(self.draw.choice(sorted(self.tasks)))
                    self.restart()
        self.settle()
        for number in list(self.pending):
            self.complete(number)

    def history(self) -> History:
        """The finished account, with its listings."""
        deleted = {name for entry in self.seen.journal if isinstance(entry, SnapshotDeleted) for name in entry.handles}
        kept = [entry for entry in self.seen.completed if entry.savepoint]
        kept += [entry for entry in self.seen.completed if not entry.savepoint][-self.retained :]
        self.seen.residue = Residue(
            open_transactions=[one.name for one in self.seen.transactions if one.status == "open"],
            prepared_transactions=[one.name for one in self.seen.transactions if one.status == "prepared"],
            files=sorted({one.handle for one in self.seen.stored} - deleted),
            retained=sorted(entry.checkpoint for entry in kept),
            live_sinks=sum(task.run.operator == SINK for task in self.tasks.values()),
        )
        self.seen.committed = list(self.table.values()) if self.seen.sink == "idempotent" else list(self.committed)
        return self.seen
