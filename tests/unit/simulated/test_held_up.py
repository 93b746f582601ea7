"""A coordinator that waits for a record to be deleted goes on in the order in which things happened."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cutproof.reference_impl.core.vocabulary.effects import Effect, SendToTask
from cutproof.reference_impl.core.vocabulary.events import DeleteFailed, Event
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.driver.coordination import CoordinatorRunner
from cutproof.reference_impl.simulated.loop import Loop

FAILED = DeleteFailed((), CheckpointId(1), "the store reported an error")


class Machine:
    """Answers each event with messages to the tasks that are written for it."""

    def __init__(self, **answers: list[Effect]) -> None:
        self.answers = answers
        self.taken: list[object] = []

    def step(self, event: Event) -> list[Effect]:
        self.taken.append(event)
        return self.answers.get(str(event), [])


def to(task: str) -> SendToTask:
    return SendToTask(TaskId(task), cast("Any", f"for {task}"))


def test_what_has_to_wait_again_comes_before_what_has_waited() -> None:
    sent: list[str] = []
    held = [False]

    def send(task: str, message: object) -> None:
        sent.append(task)
        held[0] = task in ("first", "retried")  # a delete fails while this effect is carried out

    world = SimpleNamespace(
        loop=Loop(),
        records=SimpleNamespace(holds_up=lambda runner: held[0]),
        control=SimpleNamespace(to_task=send),
    )
    machine = Machine(
        trigger=[to("first"), to("second")], late=[to("third")], **{str(FAILED): [to("retried"), to("rest")]}
    )
    runner = CoordinatorRunner(cast("Any", world), cast("Any", machine))
    runner.feed(cast("Any", "trigger"))
    runner.feed(cast("Any", "late"))
    assert (sent, machine.taken) == (["first"], ["trigger"])
    held[0] = False
    runner.retry(FAILED)
    assert (sent, machine.taken) == (["first", "retried"], ["trigger", FAILED])
    held[0] = False
    runner.retry(cast("Any", "done"))
    assert sent == ["first", "retried", "rest", "second", "third"]
    assert machine.taken == ["trigger", FAILED, "done", "late"]
