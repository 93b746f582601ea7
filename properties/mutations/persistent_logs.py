"""Mutations of logs of persistent channels (see `tampering`); only a history with logs has a place for them."""

from __future__ import annotations

from ..model.history import History, PersistentLog, SnapshotDeleted
from ..quick_checker.case import Case
from .cuts_and_records import Mutation, middle


def _referred_to(case: Case) -> list[tuple[PersistentLog, int]]:
    """(log, order at which a retained checkpoint refers to the log)."""
    deleted = {one.checkpoint: one.order for one in case.history.journal if isinstance(one, SnapshotDeleted)}
    logs = {log.name: log for log in case.history.logs}
    return [
        (logs[ref[0]], entry.order + 1)
        for number, entry in case.lineages.completed.items()
        if deleted.get(number, entry.order + 2) > entry.order + 1
        for state in case.states(number).values()
        for refs in state.spilled.values()
        for ref in refs
    ]


def trim_early(case: Case) -> Mutation | None:
    """A log discards elements to which a retained checkpoint refers."""
    chosen = middle(_referred_to(case))
    if chosen is None:
        return None
    log, moment = chosen

    def alter(history: History) -> None:
        of_that_name = next(one for one in history.logs if one.name == log.name)
        of_that_name.trims.append((moment, 1 << 40))

    return ("restored-state",), alter


def keep_deleted_log(case: Case) -> Mutation | None:
    """A log that was deleted is still in the store at the end."""
    deleted = middle([log for log in case.history.logs if log.cleared is not None])
    if deleted is None:
        return None

    def alter(history: History) -> None:
        history.residue.logs.append(deleted.name)

    return ("no-leaks",), alter
