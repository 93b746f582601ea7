"""A toy dataflow that writes histories by hand, for the tests of the checkers.

It is no engine: one object, no messages between coordinator and tasks, every
happening asked for by the test (`read`, `take`, `trigger`, `complete`, `kill`,
`restart`, …) or drawn by `wander` from a seed.  What it records is correct by
construction; a test then mutates it and looks whether the checker
sees it.
"""

from __future__ import annotations

import msgspec

from cutproof.properties.model.history import (
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    Completed,
    FaultFired,
    History,
    JobEnded,
    Mark,
    Read,
    Residue,
    SnapshotDeleted,
    Stored,
    TaskFailed,
    Transaction,
)
from cutproof.properties.model.workload import SINK
from unit.properties.dataflow import Case, Dataflow, Message, Task

__all__ = ["Case", "Task", "Toy"]


class Toy(Dataflow):
    """A run in the making; `history()` hands out what it let us see."""

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
        deleted_handles = {
            name for entry in self.seen.journal if isinstance(entry, SnapshotDeleted) for name in entry.handles
        }
        left = [name for name in handles if name not in deleted_handles]
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

    def resume(self, checkpoint: int | None = None) -> None:
        """A new job from the newest completed snapshot, or from the one that its user names."""
        named = next((entry for entry in self.seen.completed if entry.checkpoint == checkpoint), self.newest)
        self.job += 1
        self.note(CommandIssued, command=2, kind="resume", checkpoint=checkpoint)
        self.note(CommandReturned, command=2, checkpoint=named.checkpoint if named else None)
        self.start(named, cause="resumed")

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
                notified = self.draw.random() < 0.8 or not kills
                self.complete(number, notify=notified)
                if not notified:
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
