"""Closing a job: what a cancelled or failed job leaves in the external store.

The job's sinks may be dead, so the coordinator itself fences every writer and aborts
the transactions that no complete checkpoint covers.  Covered transactions stay: they
were promised, and a resumed job commits them.  Writers whose rows replace others are
fenced too.  A job that resumes with fewer sinks would not fence them all, and rows
still under way would replace newer ones.
"""

from __future__ import annotations

import msgspec

from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, SetTimer, Transact
from ..vocabulary.events import Answered
from ..vocabulary.ids import AttemptId, CheckpointId, TaskId
from ..vocabulary.timeouts import RetryFence
from ..vocabulary.transactions import AbortTransaction, Done, Fence

FENCE = 1
"""The number of the fence request, the only one whose answer matters."""

UNANSWERED = 0
"""The number of abort requests: the list of the next fence shows whether they were done."""


class Closing(msgspec.Struct, frozen=True):
    """Writers in `waiting` have not been settled; `covered` is the newest complete checkpoint.

    The coordinator sends requests for one writer at a time, so an answer always belongs to the first in `waiting`.
    """

    status: str
    cause: AnyCause | None
    attempt: AttemptId
    covered: CheckpointId
    waiting: tuple[TaskId, ...]
    is_saved: bool = False
    """the decision is durable; records that were being stored before it are awaited"""

    def requests(self) -> list[Effect]:
        """A fence for the next writer."""
        return [Transact(FENCE, Fence(writer=self.waiting[0], attempt=self.attempt))] if self.waiting else []


def close_step(stage: Closing, event: Answered, retry_us: int) -> tuple[Closing, list[Effect]]:
    """The first writer is fenced: abort what is not covered, then fence the writer again.

    An abort may be lost when the store crashes, which then still has the sealed transaction.
    So the next writer's turn comes only when a fence finds nothing left to abort.
    """
    if event.number != FENCE or not stage.waiting:
        return stage, []
    if not isinstance(event.outcome, Done):
        return stage, [SetTimer(RetryFence(), retry_us)]
    writer, *remaining = stage.waiting
    aborts: list[Effect] = [
        Transact(UNANSWERED, AbortTransaction(writer=writer, attempt=stage.attempt, name=name))
        for name, checkpoint in event.outcome.unfinished
        if checkpoint is None or checkpoint > stage.covered
    ]
    if not aborts:
        stage = msgspec.structs.replace(stage, waiting=tuple(remaining))
    return stage, [*aborts, *stage.requests()]
