"""The rows to which snapshots refer in logs of persistent channels.

They must be durable when the snapshot is stored, and be kept while it is retained.

A snapshot may hold in-flight data as references (log, first number, the number after
the last).  The history records a stored state with the rows that were durable in those
logs at that moment; a crash would have lost the others.  From then on no row to which a
checkpoint refers may be discarded, until the checkpoint itself is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model.history import CoordinatorDown, History, PersistentLog, SnapshotDeleted, Stored
from ...model.verdict import Violated
from ...model.words import journal_until
from ...quick_checker.case import Case
from ...reconstruct.lineage import INFINITE


def not_durable(case: Case, checkpoint: int) -> Violated | None:
    """A snapshot of a completed checkpoint that was stored before the rows to which it refers were durable."""
    if not case.history.logs:
        return None
    for task, state in case.states(checkpoint).items():
        for channel, refs in state.spilled.items():
            referred_to = sum(end - first for _, first, end in refs)
            there = len(state.queued.get(channel, ()))
            if there != referred_to:
                return Violated(
                    difference="reference to nothing",
                    message=f"checkpoint {checkpoint} was stored by {task} with references to {referred_to} elements in"
                    f" the log of its input {channel}, of which {there} were durable",
                    checkpoint=checkpoint,
                    tasks=(task,),
                    events=tuple(f"{log}: from {first} to {end - 1}" for log, first, end in refs),
                )
    return None


def discarded_early(case: Case) -> Violated | None:
    """A log that discarded rows to which a retained checkpoint referred."""
    history = case.history
    if not history.logs:
        return None
    deleted = {one.checkpoint: one.order for one in history.journal if isinstance(one, SnapshotDeleted)}
    losses = _losses(history)
    logs = {log.name: log for log in history.logs}
    for completed in history.completed:
        if case.alone is not None and completed.checkpoint <= case.alone:
            continue  # a user's copy has its in-flight data itself
        lost = next((order for order in losses if order > completed.order), INFINITE)
        retained_until = min(lost, deleted.get(completed.checkpoint, INFINITE))
        for stored, name, first in _references(case, completed.checkpoint):
            log = logs.get(name)
            order = _lost(log, first, stored.order, retained_until) if log is not None else None
            if order is not None:
                return Violated(
                    difference="in-flight data discarded",
                    message=f"what {stored.task} had in flight at checkpoint {completed.checkpoint} was discarded from"
                    f" {name} while the checkpoint was retained",
                    checkpoint=completed.checkpoint,
                    tasks=(stored.task,),
                    events=journal_until(history, order),
                )
    return None


def _losses(history: History) -> list[int]:
    """The orders at which all snapshots were lost: if they were in memory, when a coordinator died."""
    if history.snapshots != "memory":
        return []
    return [entry.order for entry in history.journal if isinstance(entry, CoordinatorDown)]


def _references(case: Case, checkpoint: int) -> Iterator[tuple[Stored, str, int]]:
    """(stored snapshot, log, first number) of each reference of a completed checkpoint."""
    handles = case.lineages.completed[checkpoint].handles
    for task, state in case.states(checkpoint).items():
        stored = case.lineages.snapshots.handles.get(handles.get(task, ""))
        if stored is not None:
            for name, first, _ in (ref for refs in state.spilled.values() for ref in refs):
                yield stored, name, first


def _lost(log: PersistentLog, first: int, since: int, until: int) -> int | None:
    """The order, between two moments, at which a log discarded rows from a number on; None if it did not."""
    for order, before in log.trims:
        if since < order < until and before > first:
            return order
    return log.cleared if log.cleared is not None and since < log.cleared < until else None
