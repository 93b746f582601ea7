"""Nothing of a former job is heard in the one that follows, whatever attempt it names (ABS-6)."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.fencing import Fencing
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.vocabulary.effects import Discard, SendToTask, Transact
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Received
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import (
    Ack,
    AnyControl,
    Cancel,
    Control,
    Deploy,
    ToCoordinator,
    ToTask,
)
from cutproof.reference_impl.core.vocabulary.timeouts import CheckpointInterval
from cutproof.reference_impl.core.vocabulary.transactions import Fence
from unit.core.coordinator_rig import NO_ROOM, OP, SINK, SOURCE, TASKS, CoordinatorRig, handle
from unit.core.machines import ATTEMPT, source

VALUES: dict[str, Any] = {
    "task": TaskId(OP),
    "checkpoint": 1,
    "handle": handle(1, OP),
    "cause": NO_ROOM,
    "number": 1,
    "serial": 1,
    "splits": {},
    "answers": 1,
    "more": True,
}


def message(kind: type[Control], job: int, attempt: int = 1) -> Any:
    """One of a kind, with something for all that it must have."""
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
    fields = {"job": job, "attempt": AttemptId(attempt)}
    return kind(**fields, **{name: VALUES[name] for name in needed if name not in fields})


@pytest.mark.parametrize("kind", get_args(AnyControl))
def test_a_message_without_a_job_cannot_be_made(kind: type[Control]) -> None:
    with pytest.raises(TypeError, match="job"):
        kind(attempt=AttemptId(1))  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", get_args(ToTask))
def test_only_a_message_of_the_job_that_runs_is_for_anybody(kind: type[Control]) -> None:
    fencing = Fencing()
    assert fencing.addressed(message(kind, 2, 5), 2, AttemptId(5)) == 5
    assert fencing.addressed(message(kind, 2, 4), 2, AttemptId(5)) == 4, "who that is, the driver knows"
    assert fencing.addressed(message(kind, 1, 5), 2, AttemptId(5)) is None
    assert fencing.addressed(message(kind, 1, 1), 2, None) is None


@pytest.mark.parametrize("kind", [kind for kind in get_args(ToCoordinator) if kind is not Ack])
def test_nothing_that_a_task_of_another_job_sends_is_taken(kind: type[Control]) -> None:
    """Though it names the attempt that runs."""
    job, untouched = (CoordinatorRig(job=2).up() for _ in range(2))
    for each in (job, untouched):
        each.trigger()
    before = job.machine.stage, dict(job.machine.under_way.pending)
    assert job.feed(Received(message(kind, 1, job.machine.attempts.newest))) == []
    assert (job.machine.stage, job.machine.under_way.pending) == before
    assert job.ended(SOURCE, SINK) == untouched.ended(SOURCE, SINK) == [], "nor has it been told that op-0 has ended"
    assert job.ack(1) == untouched.ack(1)
    assert job.stored(1) == untouched.stored(1)
    assert job.timer(CheckpointInterval()) == untouched.timer(CheckpointInterval())


def test_what_an_acknowledgement_of_another_job_carries_is_discarded() -> None:
    job = CoordinatorRig(job=2).up()
    job.trigger()
    for task in TASKS:
        late = msgspec.structs.replace(message(Ack, 1, job.machine.attempts.newest), task=task, handle=handle(1, task))
        assert job.feed(Received(late)) == [Discard((handle(1, task),))]
    (pending,) = job.machine.under_way.pending.values()
    assert pending.acknowledged == {}


def test_a_coordinator_names_the_job_of_its_orders() -> None:
    job = CoordinatorRig(job=3)
    job.start()
    orders = [effect.message for effect in job.saved() if isinstance(effect, SendToTask)]
    assert [(order.job, type(order)) for order in orders] == [(3, Deploy)] * len(TASKS)
    job.running()
    stops = [effect.message for effect in job.command("cancel") if isinstance(effect, SendToTask)]
    assert [(order.job, type(order)) for order in stops] == [(3, Cancel)] * len(TASKS)


def test_a_machine_refuses_what_is_of_another_job() -> None:
    """Its driver should not have brought it."""
    with pytest.raises(ProtocolViolated, match="another job"):
        source().step(Received(Deploy(job=2, attempt=ATTEMPT)))


@pytest.mark.parametrize(("sink", "shut_out"), [("plain", []), ("idempotent", [SINK]), ("transactional", [SINK])])
def test_whoever_replaces_rows_is_shut_out_when_the_job_is_closed(sink: str, shut_out: list[str]) -> None:
    """A late row of a sink that the next job has no more would replace a newer one."""
    job = CoordinatorRig(config=Config(sink=sink)).up()
    job.command("cancel")
    fences = [effect.request for effect in job.saved() if isinstance(effect, Transact)]
    assert fences == [Fence(writer=TaskId(task), attempt=AttemptId(2)) for task in shut_out]
