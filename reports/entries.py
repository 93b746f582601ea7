"""One list of entries for a diagram, from whatever witnesses a history has.

A history may carry a full time line, kept on request; its journal and its task
runs are always there.  Both are brought into the form of the time line, in one
order, so that the diagram is drawn from one kind of thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..properties.history import (
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    CoordinatorDown,
    CoordinatorUp,
    FaultFired,
    History,
    JobEnded,
    TaskFailed,
    TaskRun,
    Timed,
)

COORDINATOR = "coordinator"
STORE = "snapshot store"
FAULTS = "faults"

NOT_DRAWN = frozenset(
    {
        "record-read",
        "row-written",
        "transaction-begun",
        "transaction-written",
        "checkpoint-acknowledged",
        "task-deployed",
        "task-running",
        "ended",
    }
)
"""What a neighbour shows already: a read is the send behind it, a row the record it comes from."""


def entries_of(history: History) -> list[Timed]:
    """Everything that is drawn, in order."""
    found = [entry for entry in history.timeline if entry.what not in NOT_DRAWN]
    if not history.timeline:
        found.extend(_coarse(history))
    seen = {(entry.what, entry.order) for entry in found}
    present = {entry.what for entry in found}
    for entry in _journal(history):
        same_kind_is_timed = entry.what in present and entry.what.startswith("checkpoint-")
        if not same_kind_is_timed and (entry.what, entry.order) not in seen:
            found.append(entry)
    found.extend(_ends(history, found))
    return sorted(found, key=lambda entry: entry.order)


def _coarse(history: History) -> Iterator[Timed]:
    """What is known without a time line: snapshots, what they rest on, and completions."""
    for run in history.runs:
        for mark in run.marks:
            yield Timed(
                order=mark.order,
                at_us=mark.at_us,
                what="snapshot-taken",
                task=run.task,
                attempt=run.attempt,
                checkpoint=mark.checkpoint,
                detail=f"{mark.reads} read, {mark.applies} applied before it",
            )
        if run.loaded:
            yield Timed(
                order=run.loaded.order,
                at_us=-1,
                what="state-loaded",
                task=run.task,
                attempt=run.attempt,
                checkpoint=run.loaded.checkpoint,
            )
    for stored in history.stored:
        yield Timed(
            order=stored.order,
            at_us=stored.at_us,
            what="snapshot-persisted",
            task=stored.task,
            attempt=stored.attempt,
            checkpoint=stored.checkpoint,
        )
    for completed in history.completed:
        yield Timed(
            order=completed.order,
            at_us=completed.at_us,
            what="checkpoint-completed",
            task=COORDINATOR,
            checkpoint=completed.checkpoint,
        )
    for transaction in history.transactions:
        if transaction.committed is not None:
            yield Timed(
                order=transaction.committed,
                at_us=-1,
                what="commit-answered",
                task=transaction.task,
                attempt=transaction.attempt,
                checkpoint=transaction.checkpoint,
                detail="committed",
            )


def _journal(history: History) -> Iterator[Timed]:
    for event in history.journal:
        timed = partial(Timed, order=event.order, at_us=event.at_us)
        match event:
            case AttemptStarted(attempt=attempt, restores=restores):
                yield timed(what="attempt-started", task=COORDINATOR, attempt=attempt, checkpoint=restores)
            case TaskFailed(task=task, attempt=attempt, reason=reason):
                yield timed(what="failed", task=task, attempt=attempt, detail=reason)
            case CoordinatorDown():
                yield timed(what="coordinator-down", task=COORDINATOR)
            case CoordinatorUp():
                yield timed(what="coordinator-up", task=COORDINATOR)
            case CheckpointTriggered(checkpoint=checkpoint):
                yield timed(what="checkpoint-triggered", task=COORDINATOR, checkpoint=checkpoint)
            case CheckpointAborted(checkpoint=checkpoint, reason=reason):
                yield timed(what="checkpoint-aborted", task=COORDINATOR, checkpoint=checkpoint, detail=reason)
            case FaultFired(kind=kind, phase=phase, detail=detail):
                words = f"{kind} while {phase}" + (f": {detail}" if detail else "")
                yield timed(what="fault-fired", task=FAULTS, peer=kind, channel=_channel_in(detail), detail=words)
            case CommandIssued(kind=kind, drain=drain):
                yield timed(
                    what="command-issued", task=COORDINATOR, detail=kind + (" with drain" if drain else "")
                )
            case JobEnded(status=status):
                yield timed(what="job-ended", task=COORDINATOR, detail=status)


def _ends(history: History, found: list[Timed]) -> Iterator[Timed]:
    """The end of each attempt of a task, where nothing has told it yet."""
    told = {(entry.task, entry.attempt) for entry in found if entry.what in ("killed", "failed")}
    for run in history.runs:
        if run.ended is not None and (run.task, run.attempt) not in told:
            yield Timed(order=run.ended, at_us=-1, what=_ending(run), task=run.task, attempt=run.attempt)


def _ending(run: TaskRun) -> str:
    return run.how if run.how in ("killed", "failed", "finished", "cancelled") else "ended"


def _channel_in(detail: str) -> str:
    return next((word.strip(",.;:") for word in detail.split() if ">" in word.strip("<>")), "")
