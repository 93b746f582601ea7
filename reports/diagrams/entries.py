"""One list of entries for a diagram, from all witnesses of a history.

The time line has the messages, if it was recorded at all.  Task runs, the stores' logs
and the journal are always there and have the rest.  This module brings all of them into
the form of the time line: each event once, in one order.  If the journal records a kind
of event, its entries are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from ...properties.model.history import (
    AnyJournalEntry,
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
from ...properties.model.struck import channel_of

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
        "attempt-running",
        "deploy-received",
        "running-arrived",
        "finished-arrived",
        "terminate-received",
        "ended-arrived",
        "ended",
        "transaction-prepared",
        "transaction-committed",
        "transaction-aborted",
    }
)
"""events that others show already (the send after a read, the record of a written row), or a store's log shows"""

SAME = {"ack-arrived": "ack-received", "complete-received": "completion-notified"}
"""arrivals of control messages that are also protocol points: the name of the point"""


def entries_of(history: History) -> list[Timed]:
    """Everything that is drawn, in order."""
    journal = [entry for entry in map(_from_journal, history.journal) if entry]
    journalled = {entry.what for entry in journal}
    found = [
        replace(entry, what=SAME.get(entry.what, entry.what))
        for entry in history.timeline
        if entry.what not in NOT_DRAWN and entry.what not in journalled and not _coordinator_dies(entry)
    ]
    named = {_identity(entry) for entry in found}
    others = [*_stored(history), *_transactions(history), *journal]
    found.extend(entry for entry in others if _identity(entry) not in named)
    found.extend(_acks(history, found))
    found.extend(_ends(history, found))
    return sorted(found, key=lambda entry: entry.order)


def _coordinator_dies(entry: Timed) -> bool:
    return entry.what == "killed" and entry.task == COORDINATOR


def _identity(entry: Timed) -> tuple[object, ...]:
    """The identity of an event, which is the same in the entries of two witnesses."""
    match entry.what:
        case "snapshot-taken" | "snapshot-persisted" | "state-loaded":
            return entry.what, entry.task, entry.attempt, entry.checkpoint
        case "commit-answered" | "transaction-pre-committed":
            return entry.what, entry.task, entry.checkpoint
        case "checkpoint-triggered" | "checkpoint-completed" | "checkpoint-aborted":
            return entry.what, entry.checkpoint
        case "killed" | "failed":
            return "died", entry.task, entry.attempt
    return entry.what, entry.order


def _stored(history: History) -> Iterator[Timed]:
    """The entries of snapshots, of restores, and of completed checkpoints."""
    for run in history.runs:
        of_run = partial(Timed, task=run.task, attempt=run.attempt)
        for mark in run.marks:
            before = f"{mark.reads} read, {mark.applies} applied before it" if not history.timeline else ""
            at = mark.checkpoint
            yield of_run(order=mark.order, at_us=mark.at_us, what="snapshot-taken", checkpoint=at, detail=before)
        if run.loaded:
            yield of_run(order=run.loaded.order, at_us=-1, what="state-loaded", checkpoint=run.loaded.checkpoint)
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
            attempt=completed.attempt,
            checkpoint=completed.checkpoint,
        )


def _transactions(history: History) -> Iterator[Timed]:
    for one in history.transactions:
        of_sink = partial(Timed, at_us=-1, task=one.task, attempt=one.attempt, checkpoint=one.checkpoint)
        if one.prepared is not None:
            yield of_sink(order=one.prepared, what="transaction-pre-committed")
        if one.committed is not None:
            yield of_sink(order=one.committed, what="commit-answered", detail="committed")
        if one.aborted is not None and one.rows:
            yield of_sink(order=one.aborted, what="transaction-aborted")


def _from_journal(event: AnyJournalEntry) -> Timed | None:
    timed = partial(Timed, order=event.order, at_us=event.at_us)
    of_coordinator = partial(timed, task=COORDINATOR)
    match event:
        case AttemptStarted(attempt=attempt, restores=restores, tasks=tasks):
            part = f"only {', '.join(tasks)}" if tasks else ""
            return of_coordinator(what="attempt-started", attempt=attempt, checkpoint=restores, detail=part)
        case TaskFailed(task=task, attempt=attempt, reason=reason):
            return timed(what="failed", task=task, attempt=attempt, detail=reason)
        case CoordinatorDown(reason=reason):
            return of_coordinator(what="coordinator-down", detail=reason)
        case CoordinatorUp():
            return of_coordinator(what="coordinator-up")
        case CheckpointTriggered(checkpoint=checkpoint):
            return of_coordinator(what="checkpoint-triggered", checkpoint=checkpoint)
        case CheckpointAborted(checkpoint=checkpoint, reason=reason):
            return of_coordinator(what="checkpoint-aborted", checkpoint=checkpoint, detail=reason)
        case FaultFired(kind=kind, phase=phase, detail=detail, struck=struck):
            words = f"{kind} while {phase}" + (f": {detail}" if detail else "")
            return timed(what="fault-fired", task=FAULTS, peer=kind, channel=channel_of(struck, detail), detail=words)
        case CommandIssued(kind=kind, drain=drain):
            return of_coordinator(what="command-issued", detail=kind + (" with drain" if drain else ""))
        case JobEnded(status=status):
            return of_coordinator(what="job-ended", detail=status)
    return None


def _acks(history: History, found: list[Timed]) -> Iterator[Timed]:
    """The sends of acknowledgements of which only the arrival was recorded: when the snapshot became durable."""
    sent = {(one.task, one.checkpoint) for one in found if one.what == "ack-sent"}
    arrived = {(one.peer, one.checkpoint) for one in found if one.what == "ack-received"} - sent
    for stored in history.stored:
        if (stored.task, stored.checkpoint) in arrived:
            yield Timed(
                order=stored.order,
                at_us=stored.at_us,
                what="ack-sent",
                task=stored.task,
                attempt=stored.attempt,
                peer=COORDINATOR,
                checkpoint=stored.checkpoint,
            )


def _ends(history: History, found: list[Timed]) -> Iterator[Timed]:
    """The end of each attempt of a task, unless there is an entry for it already."""
    named = {(entry.task, entry.attempt) for entry in found if entry.what in ("killed", "failed")}
    for run in history.runs:
        if run.ended is not None and (run.task, run.attempt) not in named:
            yield Timed(order=run.ended, at_us=-1, what=_ending(run), task=run.task, attempt=run.attempt)


def _ending(run: TaskRun) -> str:
    return run.how if run.how in ("killed", "failed", "finished", "cancelled") else "ended"
