"""Closing a job down: what a cancelled or failed job leaves in the external store.

Its sinks may be dead, so the coordinator itself shuts every writer out and
aborts what no complete checkpoint covers.  What one covers stays: it was
promised, and a resumed job commits it.  Who writes rows that replace others is
shut out too: a job that is resumed with fewer sinks would not do it, and what
is under way would replace newer rows.
"""

from __future__ import annotations

import msgspec

from .effects import Effect, SetTimer, Transact
from .events import Answered
from .ids import AttemptId, CheckpointId, TaskId
from .transactions import AbortTransaction, Done, Fence

FENCE = 1
"""The number of the one request whose answer matters."""

UNANSWERED = 0
"""The number of abort requests: the list of the next fence shows whether they were done."""


class Closing(msgspec.Struct, frozen=True):
    """Writers in `waiting` have not been settled; `covered` is the newest complete checkpoint.

    One writer is asked at a time, so that an answer is always the first one's.
    """

    status: str
    reason: str
    attempt: AttemptId
    covered: CheckpointId
    waiting: tuple[TaskId, ...]
    is_saved: bool = False
    """the decision is durable; what was being stored before it is awaited"""

    def requests(self) -> list[Effect]:
        """A fence for the next writer."""
        return [Transact(FENCE, Fence(writer=self.waiting[0], attempt=self.attempt))] if self.waiting else []


def close_step(stage: Closing, event: Answered, retry_us: int) -> tuple[Closing, list[Effect]]:
    """The first writer is fenced: abort what is not covered, and fence it again behind that.

    An abort may die with the store, which comes back with what was sealed; so only a
    fence that finds nothing left to abort lets the next writer come.
    """
    if event.number != FENCE or not stage.waiting:
        return stage, []
    if not isinstance(event.outcome, Done):
        return stage, [SetTimer("close", retry_us)]
    writer, *remaining = stage.waiting
    aborts: list[Effect] = [
        Transact(UNANSWERED, AbortTransaction(writer=writer, attempt=stage.attempt, name=name))
        for name, checkpoint in event.outcome.unfinished
        if checkpoint is None or checkpoint > stage.covered
    ]
    if not aborts:
        stage = msgspec.structs.replace(stage, waiting=tuple(remaining))
    return stage, [*aborts, *stage.requests()]
