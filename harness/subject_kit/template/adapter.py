"""The toy engine as a subject of cutproof: runs a scenario, kills the engine where it says, records what was seen.

Your own adapter begins with `Engine.run`.  `Recorder` is what the toy's tasks and network
saw, `WatchedStorage` what its storage saw, each a witness of its own.  A history that has
fewer witnesses is judged too, on fewer invariants: see `witnesses`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from cutproof import Capabilities, History, Scenario, SubjectFailed, history, operators, origin_of
from cutproof.faults.plan import AtPoint, AtTime, InPhase, KillTask

from .engine import Attempt, Element, Job, Killed, Observer, Row, Step, Storage, Task

MOST_ATTEMPTS = 1_000


class Engine:
    """What cutproof drives: a name, capabilities, and `run`."""

    name = "toy"
    capabilities = Capabilities(
        faults=frozenset({"kill-task"}),
        operators=frozenset({"count", "map", "filter", "batch"}),
        edges=frozenset({"forward", "hash"}),
        sources=frozenset({"bounded"}),
        guarantees=frozenset({"exactly-once", "at-most-once"}),
        sinks=frozenset({"transactional", "plain"}),
    )
    witnesses: Iterable[str] = history.WITNESSES
    """all seven; {"reader"} alone is a beginning"""
    attempt_type = Attempt

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        """Run the job to its end; start it again from its newest snapshot whenever a fault has killed it."""
        job = job_of(scenario)
        order = Order()
        storage = WatchedStorage(order)
        recorder = Recorder(scenario, storage, order)
        now, first = 0.0, 1
        for number in range(1, MOST_ATTEMPTS):
            attempt = self.attempt_type(job, storage, recorder, first, now)
            recorder.begins(number, attempt)
            try:
                attempt.run()
            except Killed:
                recorder.dies()
                now, first = attempt.now + scenario.engine.restart_delay_us, attempt.checkpoint
            else:
                recorder.finishes()
                return self._history(scenario, storage, recorder)
        raise SubjectFailed(f"the job was killed {MOST_ATTEMPTS} times")

    def _history(self, scenario: Scenario, storage: WatchedStorage, recorder: Recorder) -> History:
        """What each witness saw, without the witnesses that are not named."""
        seen: dict[str, Any] = {
            "runs": recorder.runs,
            "channels": recorder.channels,
            "stored": storage.stored,
            "completed": storage.completed,
            "transactions": list(storage.watched.values()),
            "written": storage.written,
            "committed": storage.visible,
            "reads": storage.reads,
            "journal": recorder.journal,
            "residue": storage.residue(),
        }
        named = {field for name in self.witnesses for field in history.WITNESSES[name]}
        fields = {name: value for name, value in seen.items() if name in named}
        if set(self.witnesses) != set(history.WITNESSES):
            fields["witnesses"] = list(self.witnesses)
            if "journal" in self.witnesses:  # markers of commits are for those who cannot look inside
                fields["commits"] = storage.commits
        return History(
            subject=self.name,
            guarantee=scenario.engine.guarantee,
            sink=scenario.engine.sink,
            healed=recorder.healed,
            **fields,
        )


class HastyAttempt(Attempt):
    """A planted bug: what the life before had sealed is committed, though its checkpoint may never have completed."""

    def clean_up(self, newest: int | None) -> None:
        for name in list(self.storage.sealed):
            self.storage.commit(name)
        super().clean_up(newest)


class BrokenEngine(Engine):
    """The engine with the planted bug: a kill between a snapshot and the checkpoint's completion repeats rows."""

    name = "broken toy"
    attempt_type = HastyAttempt


def job_of(scenario: Scenario) -> Job:
    """The scenario's workload and topology in the engine's own words."""
    workload, topology = scenario.workload, scenario.topology
    (source,) = workload.inputs

    def step(name: str, kind: str, before: str | None = None, settings: dict[str, Any] | None = None) -> Step:
        hashed = before is not None and topology.edge(before, name).partitioning == "hash"
        return Step(name, kind, topology.parallelism[name], hashed, settings or {})

    steps = [step(source.name, "source")]
    for node in workload.nodes:
        match node.operator:
            case operators.Count():
                steps.append(step(node.name, "count", node.inputs[0]))
            case operators.Map(multiply=multiply, add=add, rekey=rekey):
                steps.append(step(node.name, "map", node.inputs[0], {"multiply": multiply, "add": add, "rekey": rekey}))
            case operators.Filter(modulus=modulus, drop=drop):
                steps.append(step(node.name, "filter", node.inputs[0], {"modulus": modulus, "drop": drop}))
            case operators.Batch(size=size):
                steps.append(step(node.name, "batch", node.inputs[0], {"size": size}))
            case _:
                raise SubjectFailed(f"the toy cannot compute {node.name}")
    steps.append(step("sink", "sink", workload.output))
    return Job(
        steps=tuple(steps),
        splits=source.splits,
        checkpoint_every=scenario.engine.checkpoint_interval_us,
        read_every=scenario.engine.read_interval_us,
        transactional=scenario.engine.sink == "transactional",
        rewinds=scenario.engine.guarantee != "at-most-once",
    )


class Order:
    """Numbers all entries of a history; the clock is the engine's."""

    def __init__(self) -> None:
        self.last = 0
        self.now = 0.0

    def next(self) -> int:
        self.last += 1
        return self.last

    def entry(self) -> dict[str, Any]:
        return {"order": self.next(), "at_us": int(self.now)}


class WatchedStorage(Storage):
    """The engine's storage, and its log: the witnesses `snapshots`, `store`, `reader` and `listing`."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.attempt = self.job = 1
        self.taken: dict[str, int] = {}  # by sink subtask: how many records it took in this attempt
        self.stored: list[history.Stored] = []
        self.completed: list[history.Completed] = []
        self.watched: dict[str, history.Transaction] = {}
        self.written: list[history.Written] = []
        self.reads: list[history.Read] = []
        self.commits: list[history.Commit] = []

    def store(self, checkpoint: int, task: str, state: str) -> None:
        super().store(checkpoint, task, state)
        self.stored.append(
            history.Stored(
                **self.order.entry(), checkpoint=checkpoint, task=task, attempt=self.attempt,
                handle=handle(checkpoint, task), state=neutral(state),
            )
        )  # fmt: skip
        self.look()

    def completes(self, checkpoint: int) -> None:
        handles = {task: handle(number, task) for number, task in self.snapshots if number == checkpoint}
        self.look()  # a read that comes just before the completion
        self.completed.append(
            history.Completed(
                **self.order.entry(), checkpoint=checkpoint, job=1, attempt=self.attempt, handles=handles
            )
        )  # fmt: skip
        super().completes(checkpoint)
        self.announce(checkpoint)

    def look(self) -> None:
        """Somebody reads the output."""
        self.reads.append(history.Read(began=self.order.next(), ended=self.order.next(), rows=len(self.visible)))

    def announce(self, checkpoint: int) -> None:
        """The engine's own marker of a commit: the records below these positions may be visible from now on."""
        states = [json.loads(state) for (number, _), state in self.snapshots.items() if number == checkpoint]
        positions = {split: offset for state in states for split, offset in state["positions"]}
        self.commits.append(history.Commit(commit=checkpoint, order=self.order.next(), positions=positions))

    def begin(self, task: str) -> str:
        name = super().begin(task)
        self.watched[name] = history.Transaction(name=name, task=task, attempt=self.attempt, begun=self.order.next())
        return name

    def write(self, name: str, row: Row) -> None:
        super().write(name, row)
        self.watched[name].rows.append(row)
        self.watched[name].applied.append(self.taken[self.watched[name].task])

    def seal(self, name: str, checkpoint: int) -> None:
        super().seal(name, checkpoint)
        self.watched[name].checkpoint = checkpoint
        self.watched[name].prepared = self.order.next()
        self.watched[name].status = "prepared"

    def commit(self, name: str) -> None:
        one = self.watched[name]
        if one.status == "prepared":
            one.commit_requested = one.commit_requested or self.order.next()
            one.committed = self.order.next()
            one.status = "committed"
        super().commit(name)

    def abort(self, name: str) -> None:
        super().abort(name)
        self.watched[name].aborted = self.order.next()
        self.watched[name].status = "aborted"

    def append(self, task: str, row: Row) -> None:
        super().append(task, row)
        self.written.append(
            history.Written(
                task=task, attempt=self.attempt, order=self.order.next(), applied=self.taken[task], row=row
            )
        )  # fmt: skip

    def residue(self) -> history.Residue:
        """What a listing of the storage shows at the end."""
        sealed = [name for name in self.transactions if self.watched[name].status == "prepared"]
        return history.Residue(
            open_transactions=[name for name in self.transactions if name not in sealed],
            prepared_transactions=sealed,
            files=[handle(checkpoint, task) for checkpoint, task in self.snapshots],
            retained=list(self.complete),
        )


def handle(checkpoint: int, task: str) -> str:
    return f"{checkpoint}/{task}"


def neutral(text: str) -> str:
    """A snapshot of the engine in the layout that cutproof compares."""
    state = json.loads(text)
    listed = [["rows", json.dumps([*row, origin_of(split, offset), 0])] for row, split, offset in state["buffer"]]
    return json.dumps(
        {
            "positions": {str(split): offset for split, offset in state["positions"]},
            "entries": [[0, key, count, 0] for key, count in state["counts"]],
            "listed": listed,
            "transactions": state["sealed"],
        }
    )


class Recorder(Observer):
    """What tasks and network saw, and the journal; kills the engine where a fault of the scenario is due."""

    def __init__(self, scenario: Scenario, storage: WatchedStorage, order: Order) -> None:
        self.storage, self.order = storage, order
        self.runs: list[history.TaskRun] = []
        self.channels: list[history.Channel] = []
        self.journal: list[history.AnyJournalEntry] = []
        self.healed: int | None = None
        self._live: dict[str, history.TaskRun] = {}
        self._open: dict[str, history.Channel] = {}
        self._kills = [Kill(number, fault) for number, fault in enumerate(scenario.faults)]
        self._number = 0
        self._attempt: Attempt | None = None

    # -- the life of an attempt

    def begins(self, number: int, attempt: Attempt) -> None:
        self._number, self._attempt, self.storage.attempt = number, attempt, number
        self.order.now = attempt.now
        newest = max(self.storage.complete, default=None)
        self.journal.append(history.AttemptStarted(**self.order.entry(), attempt=number, job=1, restores=newest))

    def dies(self) -> None:
        for run in self._live.values():
            run.ended, run.how = self.order.next(), "killed"
        self.healed = self.order.next()  # a kill undoes itself: it lasts no longer than its moment

    def finishes(self) -> None:
        for run in self._live.values():
            run.ended, run.how = self.order.next(), "finished"
        last = max(self.storage.complete, default=None)
        self.journal.append(history.JobEnded(**self.order.entry(), job=1, status="finished", checkpoint=last))

    def deployed(self, tasks: list[Task]) -> None:
        self._live = {
            task.name: history.TaskRun(
                task=task.name, operator=task.step.name, subtask=task.subtask, attempt=self._number, job=1,
                started=self.order.next(), inputs=task.inputs, outputs=list(task.outputs),
            )
            for task in tasks
        }  # fmt: skip
        self.runs += self._live.values()
        names = [name for task in tasks for name in task.outputs]
        self._open = {name: history.Channel(name=name, attempt=self._number) for name in names}
        self.channels += self._open.values()
        self.storage.taken = {task.name: 0 for task in tasks}

    def running(self) -> None:
        self.journal.append(history.AttemptRunning(**self.order.entry(), attempt=self._number))

    # -- what happens in it

    def read(self, task: Task, split: int, offset: int) -> None:
        self._live[task.name].reads.append((split, offset))

    def sent(self, channel: str, element: Element) -> None:
        self._open[channel].sent.append(origin_of(element.split, element.offset))

    def barrier(self, channel: str, checkpoint: int) -> None:
        self._open[channel].barriers.append((checkpoint, len(self._open[channel].sent)))

    def took(self, task: Task, channel: str, element: Element) -> None:
        origin = origin_of(element.split, element.offset)
        self._live[task.name].applies.append((task.inputs.index(channel), origin))
        self.storage.taken[task.name] += 1

    def marked(self, task: Task, checkpoint: int) -> None:
        run = self._live[task.name]
        received = [0] * len(run.inputs)
        for number, _ in run.applies:
            received[number] += 1
        run.marks.append(
            history.Mark(
                **self.order.entry(), checkpoint=checkpoint, reads=len(run.reads), applies=len(run.applies),
                received=received, sent=[len(self._open[name].sent) for name in run.outputs],
            )
        )  # fmt: skip

    def loaded(self, task: Task, checkpoint: int) -> None:
        self._live[task.name].loaded = history.Loaded(
            checkpoint=checkpoint, order=self.order.next(), state=neutral(json.dumps(task.state()))
        )

    def ended(self, task: Task) -> None:
        self._live[task.name].end_of_data = True

    # -- faults

    def at(self, side: str, point: str, task: str = "") -> None:
        """The engine is before or after a protocol point: kill it if a fault is due."""
        assert self._attempt is not None
        self.order.now = self._attempt.now
        for kill in self._kills:
            kill.look(side, point, task, self._number, self.order.now)
        due = next((one for one in self._kills if not one.has_fired and one.is_due(self.order.now)), None)
        if due is None:
            return
        due.has_fired = True
        self.journal.append(
            history.FaultFired(
                **self.order.entry(), fault=due.number, kind="kill-task", phase=due.phase, attempt=self._number
            )
        )  # fmt: skip
        self.journal.append(
            history.TaskFailed(
                **self.order.entry(), task=due.task, attempt=self._number, reason="killed", fault=due.number
            )
        )  # fmt: skip
        raise Killed


PHASE_AFTER = {
    "task-deployed": ("deploying", "recovering"),
    "checkpoint-triggered": ("checkpointing", "checkpointing"),
    "checkpoint-completed": ("committing", "committing"),
    "end-of-data-sent": ("finishing", "finishing"),
    "record-read": ("running", "running"),
}
"""the phase of the job that begins with a point: in its first attempt, and in later ones"""


TWO_SIDED = ("record-read", "record-applied", "checkpoint-completed")
"""the points that the engine announces before and after; at any other the two are one moment"""


class Kill:
    """A fault of the scenario, and how near it is to its trigger."""

    def __init__(self, number: int, fault: Any) -> None:
        if not isinstance(fault, KillTask):
            raise SubjectFailed(f"the toy cannot be hit by {type(fault).__name__}")
        self.number, self.task, self.trigger = number, fault.task, fault.trigger
        self.has_fired = False
        self.phase = ""
        self._met = 0
        self._due_at: float | None = fault.trigger.at_us if isinstance(fault.trigger, AtTime) else None

    def look(self, side: str, point: str, task: str, attempt: int, now: float) -> None:
        before, trigger = self.phase, self.trigger
        self.phase = PHASE_AFTER.get(point, (before, before))[attempt > 1]
        after_us = 0
        match trigger:
            case AtPoint():
                there = trigger.side == side or point not in TWO_SIDED
                met = there and trigger.point == point and trigger.task in (None, task)
            case InPhase():
                met = before != self.phase == trigger.phase
                after_us = trigger.after_us
            case _:
                return
        self._met += met
        if met and self._met == trigger.occurrence:
            self._due_at = now + after_us

    def is_due(self, now: float) -> bool:
        return self._due_at is not None and now >= self._due_at
