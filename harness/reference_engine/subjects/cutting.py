"""A history up to one snapshot: what a job that begins from this snapshot has behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec

from ....properties.model import history as h

T = TypeVar("T", bound=msgspec.Struct)
E = TypeVar("E", h.TaskRun, h.Channel, h.Stored, h.Transaction)


def up_to(history: h.History, checkpoint: int) -> h.History:
    """A copy of a history, as if this snapshot were the last that completed, and everything had ended with it.

    Later snapshots, attempts and commands are left out.  What a task did after its part of the snapshot stays, as that
    of any attempt that has failed since.  But where a later attempt recovered in place, in channels of the attempt that
    went on, it is left out as well.  Transactions that were sealed for later snapshots, or not at all, count as
    aborted.  Faults stay, since they may have struck a transaction of this snapshot.
    """
    last = next(one for one in history.completed if one.checkpoint == checkpoint)

    issued = {one.command for one in history.journal if isinstance(one, h.CommandIssued) and one.order < last.order}
    starts = (one for one in history.journal if isinstance(one, h.AttemptStarted))
    answered = answers(history)
    went_on = any(one.in_place and one.attempt > last.attempt for one in starts)

    def before(entries: Iterable[E]) -> list[E]:
        return [_copied(one) for one in entries if one.attempt <= last.attempt]

    return msgspec.structs.replace(
        history,
        runs=[cut_run(run, last) for run in before(history.runs)] if went_on else before(history.runs),
        channels=before(history.channels),
        stored=before(history.stored),
        completed=[one for one in history.completed if one.checkpoint <= checkpoint],
        transactions=[_up_to(one, checkpoint) for one in before(history.transactions)],
        passing=[_up_to(one, checkpoint) for one in before(history.passing)],
        logs=[_copied(log) for log in history.logs],
        written=[one for one, kept in zip(history.written, written_before(history, checkpoint), strict=True) if kept],
        committed=[],
        reads=[],
        journal=[
            _claimed_later(one, answered, last.order)
            for one in history.journal
            if one.order <= last.order or _is_of(last, one, issued)
        ],
        lasting=[],
        unapplied=[],
        timeline=[],
        forks=msgspec.UNSET,
    )


def kept_as_copy(history: h.History, checkpoint: int) -> h.History:
    """A history in which nobody has taken a snapshot away: a copy of it is restored."""
    removed = {one.command for one in history.journal if isinstance(one, h.CommandIssued) and _removes(one, checkpoint)}
    history.journal = [
        one
        for one in history.journal
        if not (isinstance(one, h.CommandIssued | h.CommandReturned) and one.command in removed)
        and not (isinstance(one, h.SnapshotDeleted) and one.checkpoint == checkpoint)
    ]
    return history


def _removes(issued: h.CommandIssued, checkpoint: int) -> bool:
    return issued.kind in h.REMOVING and issued.checkpoint == checkpoint


def answers(history: h.History) -> dict[int, int | None]:
    """By command, the snapshot with which it was answered."""
    returned = (one for one in history.journal if isinstance(one, h.CommandReturned))
    return {one.command: one.checkpoint for one in returned}


def written_before(history: h.History, checkpoint: int) -> list[bool]:
    """Of each row that was written outside of a transaction: whether its writer had taken the records behind it before
    its part of a snapshot.  The row itself may have been written later: the acknowledgement waited for it."""
    last = next(one for one in history.completed if one.checkpoint == checkpoint)
    ends = {
        (run.task, run.attempt): mark.applies
        for run in history.runs
        for mark in run.marks
        if mark.checkpoint == checkpoint and run.task not in last.finished
    }
    return [
        one.applied <= ends[one.task, one.attempt]
        if (one.task, one.attempt) in ends
        else one.attempt <= last.attempt and one.order < last.order
        for one in history.written
    ]


def cut_run(run: h.TaskRun, last: h.Completed) -> h.TaskRun:
    """A task's run up to its part of a snapshot, if it took one.  All that a finished task did is in front of it."""
    at = next((number for number, mark in enumerate(run.marks) if mark.checkpoint == last.checkpoint), None)
    if at is None or run.task in last.finished:
        return run
    mark = run.marks[at]
    return msgspec.structs.replace(
        run,
        reads=run.reads[: mark.reads],
        read_at=run.read_at[: mark.reads],
        applies=run.applies[: mark.applies],
        marks=run.marks[: at + 1],
        watermarks=run.watermarks[: mark.watermarks],
        advanced_at=run.advanced_at[: mark.watermarks],
        ticks=run.ticks[: mark.ticks],
        assigned=[one for one in run.assigned if one[0] <= mark.reads],
        end_of_data=run.end_of_data and (mark.reads, mark.applies) == (len(run.reads), len(run.applies)),
    )


def _is_of(last: h.Completed, entry: h.AnyJournalEntry, issued: Collection[int]) -> bool:
    """Whether something that was recorded after a snapshot had completed belongs to the history up to the snapshot;
    `issued` are the commands of that history."""
    if isinstance(entry, h.CommandIssued):
        return entry.kind in h.OF_A_SNAPSHOT or entry.claimed is True
    if isinstance(entry, h.CommandReturned):
        return entry.checkpoint == last.checkpoint and entry.command in issued
    if isinstance(entry, h.JobEnded):
        return entry.checkpoint == last.checkpoint
    return isinstance(entry, h.FaultFired | h.SnapshotDeleted)


def _claimed_later(entry: h.AnyJournalEntry, answered: dict[int, int | None], order: int) -> h.AnyJournalEntry:
    """A later job may delete the snapshot that it claims, as if its user had it deleted; the job is left out."""
    if not isinstance(entry, h.CommandIssued) or entry.claimed is None or entry.order <= order:
        return entry
    claimed = answered.get(entry.command)
    return msgspec.structs.replace(entry, kind="delete-snapshot", checkpoint=claimed, claimed=None)


def _up_to(transaction: h.Transaction, checkpoint: int) -> h.Transaction:
    sealed_for = transaction.checkpoint
    if transaction.prepared is None or (sealed_for is not None and sealed_for > checkpoint):
        aborted = transaction.aborted if transaction.aborted is not None else transaction.begun
        transaction.status, transaction.committed, transaction.aborted = "aborted", None, aborted
        transaction.commit_requested = None
    return transaction


def _copied(entry: T) -> T:
    """A copy whose lists grow by themselves."""
    lists = {name: list(value) for name in entry.__struct_fields__ if isinstance(value := getattr(entry, name), list)}
    return msgspec.structs.replace(entry, **lists)
