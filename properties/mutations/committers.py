"""Mutations of global committers and of two-phase operators (see `tampering`)."""

from __future__ import annotations

from ..model.history import History, Read
from ..model.stages import COMMITTERS
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, middle


def publish_in_halves(case: Case) -> Mutation | None:
    """A reader saw one transaction of a checkpoint before another, although a global committer publishes both."""
    if not any(run.operator == COMMITTERS[-1] for run in case.history.runs):
        return None
    first: dict[int, int] = {}
    places = []
    for at, one in enumerate(case.history.transactions):
        if one.rows and one.prepared is not None and one.committed is not None and one.checkpoint is not None:
            order = first.setdefault(one.checkpoint, one.committed)
            if order < one.committed:
                places.append((at, order))
    chosen = middle(places)
    if chosen is None:
        return None
    place, shown = chosen

    def alter(history: History) -> None:
        history.transactions[place].committed = shown + 2
        history.reads.append(Read(began=shown + 1, ended=shown + 1, rows=0))

    return ("visibility",), alter


def _two_phase_commits(case: Case) -> list[int]:
    """The indices in `passing` of committed transactions that have rows, and whose writer was observed."""
    return [
        at
        for at, one in enumerate(case.history.passing)
        if one.rows and one.prepared is not None and one.committed is not None and (one.task, one.attempt) in case.runs
    ]


def commit_two_phase_early(case: Case) -> Mutation | None:
    """The commit of a two-phase operator's transaction is requested before the first snapshot is complete."""
    at = middle(_two_phase_commits(case))
    if at is None:
        return None

    def alter(history: History) -> None:
        history.passing[at].commit_requested = min(entry.order for entry in history.completed) - 1

    return ("visibility",), alter


def commit_two_phase_unsealed(case: Case) -> Mutation | None:
    """A two-phase operator's committed transaction had never been sealed."""
    at = middle(_two_phase_commits(case))
    if at is None:
        return None

    def alter(history: History) -> None:
        history.passing[at].prepared = None

    return ("visibility",), alter


def reopen_two_phase_transaction(case: Case) -> Mutation | None:
    """A two-phase operator's transaction is still open in the store although its job has ended."""
    if case.ended is None or case.ended.status not in ("finished", "drained", "stopped"):
        return None
    at = middle(_two_phase_commits(case))
    if at is None:
        return None

    def alter(history: History) -> None:
        leftover = history.passing[at]
        leftover.status, leftover.prepared, leftover.committed, leftover.commit_requested = "open", None, None, None
        history.residue.open_transactions.append(leftover.name)

    return ("no-leaks",), alter
