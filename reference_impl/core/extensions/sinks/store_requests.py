"""The requests of a sink or a committer to the external store: each is repeated until the answer is definite (ABS-11).

Of a request without an answer nobody knows whether it was carried out.  All requests may be repeated: the store carries
each out once.
"""

from __future__ import annotations

from ...decisions.commits import Rejected, RetryLater, verdict_on
from ...protocol.input_task import InputTask
from ...protocol.sink import OnSettled, VerdictOf
from ...vocabulary.causes import StoreRefused
from ...vocabulary.effects import Effect, Fail, SetTimer, Transact
from ...vocabulary.events import Answered
from ...vocabulary.ids import CheckpointId
from ...vocabulary.state import Snapshot
from ...vocabulary.timeouts import RetryRequest
from ...vocabulary.transactions import AnyRequest


class Requests:
    """The requests of one task to the external store: each is repeated until the answer is definite."""

    def __init__(self) -> None:
        self._numbers = 0
        self.asked: dict[int, AnyRequest] = {}
        """by number: those that have no definite answer yet"""
        self._unwritten: list[tuple[set[int], CheckpointId, Snapshot]] = []
        """snapshots, each with the requests for which it waits"""

    def ask(self, request: AnyRequest) -> Transact:
        """A request whose answer is awaited."""
        transact = self.transact(request)
        self.asked[self._numbers] = request
        return transact

    def transact(self, request: AnyRequest) -> Transact:
        """A request whose answer matters only if it is a refusal."""
        self._numbers += 1
        return Transact(self._numbers, request)

    def answered(self, event: Answered, task: InputTask, verdict_of: VerdictOf, on_settled: OnSettled) -> list[Effect]:
        request = self.asked.get(event.number)
        if request is None:
            refusal = verdict_on(event.outcome)
            return [_refused(task, refusal)] if isinstance(refusal, Rejected) else []
        verdict = verdict_of(request, event.outcome)
        if isinstance(verdict, RetryLater):
            return [SetTimer(RetryRequest(event.number), task.config.retry_us)]
        del self.asked[event.number]
        if isinstance(verdict, Rejected):
            return [_refused(task, verdict)]
        return on_settled(event.number, request, event.outcome)

    def repeated(self, number: int) -> list[Effect]:
        return [Transact(number, self.asked[number])] if number in self.asked else []

    def write_after(
        self, task: InputTask, numbers: set[int], checkpoint: CheckpointId, snapshot: Snapshot
    ) -> list[Effect]:
        """Have a snapshot written when these requests are settled; now, if there are none."""
        if not numbers:
            return task.persist_once_in_flight_known(checkpoint, snapshot)
        self._unwritten.append((numbers, checkpoint, snapshot))
        return []

    def written_after(self, task: InputTask, number: int) -> list[Effect]:
        """Have the snapshots written for which this request was the last."""
        effects: list[Effect] = []
        for numbers, checkpoint, snapshot in self._unwritten:
            numbers.discard(number)
            if not numbers:
                effects.extend(task.persist_once_in_flight_known(checkpoint, snapshot))
        self._unwritten = [waiting for waiting in self._unwritten if waiting[0]]
        return effects


def _refused(task: InputTask, refused: Rejected) -> Fail:
    return Fail(StoreRefused(task.spec.task, refused.transaction, refused.reason))
