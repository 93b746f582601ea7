"""Closing a job: what a cancelled or failed job leaves in the external store.

The job's sinks may be dead, so the coordinator itself fences every writer and aborts
the transactions that no complete checkpoint covers.  Covered transactions stay: they
were promised, and a resumed job commits them.  Writers whose rows replace others are
fenced too.  A job that resumes with fewer sinks would not fence them all, and rows
still under way would replace newer ones.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from ..vocabulary.effects import Effect, SetTimer, Transact
from ..vocabulary.events import Answered
from ..vocabulary.ids import CheckpointId
from ..vocabulary.stages import Closing, Covered, CoveredUpTo, NothingCovered, Settling
from ..vocabulary.timeouts import RetryFence
from ..vocabulary.transactions import AbortTransaction, Done, Fence


class Asked(IntEnum):
    """The requests to the store, by the numbers with which they are sent and answered."""

    FENCE = 1
    ABORT = 2
    """The answer does not matter: the list of the next fence shows whether it was done."""


def requests(stage: Closing) -> list[Effect]:
    """A fence for the next writer."""
    if not isinstance(stage.step, Settling) or not stage.step.waiting:
        return []
    return [Transact(Asked.FENCE, Fence(writer=stage.step.waiting[0], attempt=stage.attempt))]


def is_settled(stage: Closing) -> bool:
    """Every writer is fenced, and left nothing to abort."""
    return isinstance(stage.step, Settling) and not stage.step.waiting


def close_step(stage: Closing, event: Answered, retry_us: int) -> tuple[Closing, list[Effect]]:
    """The first writer is fenced: abort what is not covered, then fence the writer again.

    The coordinator sends requests for one writer at a time, so an answer always belongs to the first that waits.
    An abort may be lost when the store crashes, which then still has the sealed transaction.
    So the next writer's turn comes only when a fence finds nothing left to abort.
    """
    step = stage.step
    if event.number != Asked.FENCE or not isinstance(step, Settling) or not step.waiting:
        return stage, []
    if not isinstance(event.outcome, Done):
        return stage, [SetTimer(RetryFence(), retry_us)]
    writer, *remaining = step.waiting
    aborts: list[Effect] = [
        Transact(Asked.ABORT, AbortTransaction(writer=writer, attempt=stage.attempt, name=name))
        for name, checkpoint in event.outcome.unfinished
        if checkpoint is None or not covers(step.covered, checkpoint)
    ]
    if not aborts:
        stage = msgspec.structs.replace(stage, step=Settling(step.covered, tuple(remaining)))
    return stage, [*aborts, *requests(stage)]


def covers(covered: Covered, checkpoint: CheckpointId) -> bool:
    """Whether a transaction that is sealed for this checkpoint stays: it was promised, or may have been."""
    if isinstance(covered, CoveredUpTo):
        return checkpoint <= covered.checkpoint
    return not isinstance(covered, NothingCovered)
