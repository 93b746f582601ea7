"""A plain or idempotent sink: each row is visible in the external store at once (ABS-17).

A plain sink appends its rows, so that a replay is visible twice.  An idempotent sink replaces rows by identity.

Before it writes, it fences older attempts of itself, as a transactional sink does.  It acknowledges a checkpoint only
when everything sent before it is in the external store.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ...decisions.commits import Verdict, verdict_on
from ...protocol.input_task import Handler, InputTask
from ...vocabulary.effects import Effect, SnapshotTaken, Transact
from ...vocabulary.events import Answered
from ...vocabulary.ids import CheckpointId
from ...vocabulary.messages import Record
from ...vocabulary.state import TaskState
from ...vocabulary.timeouts import RetryRequest
from ...vocabulary.transactions import AnyRequest, Append, Fence, Flush, Outcome, Upsert
from .store_requests import Requests


class Identity(Enum):
    """By what the rows of an idempotent sink replace each other."""

    key = "key"
    row = "row"


class DirectSink:
    """A plain or idempotent sink: each row is visible at once."""

    task: InputTask

    def __init__(self, identity: Identity | None = None) -> None:
        """`identity`: None for a plain sink."""
        self._identity = identity
        self._requests = Requests()

    def also_takes(self) -> Mapping[type, Handler]:
        return {Answered: self.on_answered, RetryRequest: self.repeat}

    def on_restored(self) -> list[Effect]:
        spec = self.task.spec
        return [self._requests.ask(self.task.parts.sink_recovery.fence(spec.task, spec.attempt))]

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        spec, row = self.task.spec, (record.key, record.value, record.tag, record.tag2)
        if self._identity is None:
            return [self._requests.transact(Append(writer=spec.task, attempt=spec.attempt, row=row))]
        identity = self.task.parts.naming.identity(row, self._identity is Identity.key, spec.attempt)
        return [self._requests.transact(Upsert(writer=spec.task, attempt=spec.attempt, identity=identity, row=row))]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        flush, snapshot = self._flush(), self.task.current_snapshot()
        written = self._requests.write_after(self.task, {flush.number}, checkpoint, snapshot)
        return [SnapshotTaken(checkpoint), flush, *written]

    def on_end(self) -> list[Effect]:
        return self.task.end_input()

    def describe(self, state: TaskState) -> None:
        """Nothing of it is in a snapshot."""

    def adopt(self, state: TaskState) -> None:
        """As in `describe`."""

    def _flush(self) -> Transact:
        return self._requests.ask(Flush(writer=self.task.spec.task, attempt=self.task.spec.attempt))

    def on_answered(self, event: Answered) -> list[Effect]:
        return self._requests.answered(event, self.task, _verdict_of, self._on_settled)

    def _on_settled(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        if isinstance(request, Fence):
            return self.task.open_inputs()
        effects = self._requests.written_after(self.task, number)
        return [*effects, *self.task.finish()] if self.task.awaits_commits and not self._requests.asked else effects

    def repeat(self, timeout: RetryRequest) -> list[Effect]:
        return self._requests.repeated(timeout.number)

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        if self.task.awaits_commits:
            return []
        self.task.await_commits()
        return [self._flush()]


def _verdict_of(request: AnyRequest, outcome: Outcome) -> Verdict:
    return verdict_on(outcome)
