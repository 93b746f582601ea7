"""Nodes as the coordinator's process knows them, and what a test has both of them do."""

from __future__ import annotations

from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary.events import CommandKind
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Ack, Deploy, Running, Trigger
from cutproof.reference_impl.core.vocabulary.stages import StageName
from cutproof.reference_impl.processes.network import frames as f
from unit.processes.rig import (
    CONTROL,
    TASKS,
    CoordinatorProcess,
    now,
    until,
)

APART: dict[TaskId, str] = {task: str(task) for task in TASKS}


class FakeNode:
    """A node as the coordinator knows one."""

    def __init__(
        self, process: CoordinatorProcess, name: str = "node-0", incarnation: int = 0, *, attempt: int | None = None
    ) -> None:
        homes = process.world.coordination.processes
        self.tasks = [task for task in homes if homes[task] == name]
        self.peer = process.connect(CONTROL)
        live = AttemptId(attempt) if attempt is not None else None
        hello = f.Hello(now(), name, incarnation, dict.fromkeys(self.tasks, live), 0)
        self.peer.send(hello)
        known = process.world.control.connections
        until(lambda: any(one.hello == hello for one in list(known)))

    def deployed(self, attempt: int) -> None:
        for task in self.tasks:
            self.peer.expect(f.ForTask, task=task, message=Deploy(job=1, attempt=AttemptId(attempt)))

    def runs(self, attempt: int = 1) -> FakeNode:
        """Come up with every task."""
        self.deployed(attempt)
        for task in self.tasks:
            self.peer.send(f.FromTask(now(), task, Running(job=1, attempt=AttemptId(attempt), task=task)))
        return self

    def acknowledges(self, checkpoint: int, attempt: int = 1) -> None:
        for task in self.tasks:
            handle = Handle(f"job-1/chk-{checkpoint}/{task}-{attempt}")
            message = Ack(
                job=1,
                attempt=AttemptId(attempt),
                task=task,
                checkpoint=CheckpointId(checkpoint),
                handle=handle,
                state=None,
            )
            self.peer.send(f.FromTask(now(), task, message))

    @property
    def messages(self) -> list[object]:
        return [frame.message for frame in self.peer.all(f.ForTask)]


def submit(process: CoordinatorProcess, attempt: int = 1, checkpoint: int = 1, **fields: object) -> None:
    initial = fields.get("initial", ())
    process.harness.send(f.Submit(now(), 1, AttemptId(attempt), checkpoint, initial, bool(fields.get("recall"))))  # type: ignore[arg-type]


def working(process: CoordinatorProcess, attempt: int = 1) -> None:
    process.harness.expect(f.JobFacts, stage=StageName.WORKING, attempt=attempt)


def savepoint(process: CoordinatorProcess, node: FakeNode, checkpoint: int = 1, command: int = 0) -> None:
    """Have one triggered, and wait until it is."""
    process.harness.send(f.Issue(now(), 1, command, CommandKind.SAVEPOINT, False))
    node.peer.expect(f.ForTask, message=Trigger(job=1, attempt=AttemptId(1), checkpoint=CheckpointId(checkpoint)))


def losses(process: CoordinatorProcess) -> list[tuple[str, int, str]]:
    return [(one.task, one.attempt, one.reason) for one in process.entries(o.TaskFailed)]


def watched(process: CoordinatorProcess, times: int = 1) -> None:
    """It has looked after its nodes again."""
    for _ in range(times):
        before = process.world.control.watched_us
        until(lambda before=before: process.world.control.watched_us > before)  # type: ignore[misc]


def meddle(process: CoordinatorProcess, how: str, message: str, by_us: int = 0) -> None:
    process.harness.send(f.Meddle(now(), how, message, TASKS[1], 8, by_us))
    process.answers()
