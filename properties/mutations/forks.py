"""Mutations of a forked job: it does not begin, it fails, or its own history is mutated as that of any other run."""

from __future__ import annotations

from collections.abc import Callable

from ..invariants.restorable import OF_A_FORK, begun_at
from ..model.history import AttemptRunning, History, JobEnded, TaskFailed
from ..model.verdict import Holds, Reason, Unknown
from ..quick_checker.case import Case
from .cuts_and_records import Alteration, Mutation, middle


def _chosen(case: Case) -> tuple[int, Case] | None:
    at = middle(range(len(case.forks)))
    return None if at is None else (at, case.forks[at][1])


def _in_fork(at: int, alter: Alteration) -> Alteration:
    """The same alteration, of the history of a forked job."""

    def altered(history: History) -> None:
        assert isinstance(history.forks, list)
        alter(history.forks[at].history)

    return altered


def never_run(case: Case) -> Mutation | None:
    """A forked job is started, and none of its attempts runs."""
    chosen = _chosen(case)
    if chosen is None:
        return None
    at, fork = chosen
    begun = begun_at(case.forks[at][0], fork)

    def alter(history: History) -> None:
        history.journal[begun:] = [
            entry for entry in history.journal[begun:] if not isinstance(entry, AttemptRunning | JobEnded)
        ]

    return ("restorable",), _in_fork(at, alter)


def fail(case: Case) -> Mutation | None:
    """A task of a forked job fails, since a file of the snapshot is missing."""
    chosen = _chosen(case)
    if chosen is None or not chosen[1].history.runs:
        return None
    at, fork = chosen
    run, begun = fork.history.runs[-1], begun_at(case.forks[at][0], fork)

    def alter(history: History) -> None:
        order = history.journal[begun].order
        reason = "its snapshot cannot be read: a file is not in the store"
        failed = TaskFailed(order=order, at_us=0, task=run.task, attempt=run.attempt, reason=reason)
        history.journal.insert(begun + 1, failed)

    return ("restorable",), _in_fork(at, alter)


def of_its_own(mutate: Callable[[Case], Mutation | None]) -> Callable[[Case], Mutation | None]:
    """The mutation of any run, applied to a forked job, if an invariant that the fork must keep shows it."""

    def mutated(case: Case) -> Mutation | None:
        chosen = _chosen(case)
        mutation = mutate(chosen[1]) if chosen is not None else None
        if chosen is None or mutation is None:
            return None
        at, fork = chosen
        touched = [name for name in mutation[0] if name in fork.promised and name in OF_A_FORK]
        if not any(_is_observed(fork, name) for name in touched):
            return None
        return ("restorable",), _in_fork(at, mutation[1])

    return mutated


def _is_observed(fork: Case, invariant: str) -> bool:
    found = OF_A_FORK[invariant](fork)
    return isinstance(found, Holds) or (isinstance(found, Unknown) and found.reason == Reason.NOT_EXERCISED)
