"""What a sink asks of the external store, in short words."""

from __future__ import annotations

from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Effect
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    Commit,
    NoAnswer,
    PreCommit,
    Write,
)
from unit.core.machines import (
    ATTEMPT,
    answered,
    barrier,
    requests,
    row,
    take,
)

SINK = TaskId("sink-0")
BY = {"writer": SINK, "attempt": ATTEMPT}
FIRST, SECOND, THIRD = (f"job-1/sink-0/3-{serial}" for serial in (1, 2, 3))
SILENCE = NoAnswer(reason="silence")
OLD = "job-1/sink-0/2-9"


def asked(effects: list[Effect]) -> list[AnyRequest]:
    return [request for _, request in requests(effects)]


def number(effects: list[Effect], kind: type) -> int:
    """The number of the one request of a kind."""
    (found,) = [number for number, request in requests(effects) if isinstance(request, kind)]
    return found


def write(name: str, *values: int) -> Write:
    return Write(**BY, name=name, rows=tuple((1, value, 0, 0) for value in values))


def pre_commit(name: str, checkpoint: int | None) -> PreCommit:
    sealed_for = CheckpointId(checkpoint) if checkpoint is not None else None
    return PreCommit(**BY, name=name, checkpoint=sealed_for)


def commit(name: str) -> Commit:
    return Commit(**BY, name=name)


def drop(name: str) -> AbortTransaction:
    return AbortTransaction(**BY, name=name)


def give(sink: InputTask, *values: int) -> list[Effect]:
    return [effect for value in values for effect in take(sink, row(1, value))]


def sealed_for(sink: InputTask, checkpoint: int, *values: int) -> None:
    """Rows, a barrier, and the store's word that they are sealed."""
    give(sink, *values)
    effects = take(sink, barrier(checkpoint))
    answered(sink, number(effects, PreCommit))
