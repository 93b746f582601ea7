"""Files that stay because injected faults struck every try to delete them.

An engine tries a delete `TRIES` times.  After that the file stays until somebody sweeps the store: a coordinator that
takes over, or the one that took over before, when its job ends; or a job that is resumed from a snapshot.
"""

from __future__ import annotations

from ...model.history import AttemptStarted, CoordinatorUp, FaultFired, History, JobEnded, SnapshotDeleted
from ...model.struck import StruckDelete

TRIES = 5
"""Of the reference engine: only there do faults strike deletes (`StruckDelete`), and no history says how often its
engine tries.  What a run shows does not tell either: after a file's last strike its engine has given up, or has deleted
it at the next try.  A test compares this number with the engine's own."""


def struck_to_the_last(history: History) -> dict[str, list[int]]:
    """By file: the faults that struck the tries of its delete, if they struck all, and nobody swept the store later."""
    struck: dict[str, list[FaultFired]] = {}
    for entry in history.journal:
        if isinstance(entry, FaultFired) and isinstance(entry.struck, StruckDelete):
            struck.setdefault(entry.struck.handle, []).append(entry)
    swept = _last_sweep(history) if struck else 0
    since = {file: [one.fault for one in strikes if one.order > swept] for file, strikes in struck.items()}
    return {file: faults for file, faults in since.items() if len(faults) >= TRIES}


def _last_sweep(history: History) -> int:
    """The order of the last event that had the store swept; 0 if there is none.

    A job ends behind its deletes: the sweep at its end began with the last event before that is no delete.
    """
    last, before, took_over, job_is_over = 0, 0, False, False
    for entry in sorted((*history.journal, *history.completed), key=lambda one: one.order):
        match entry:
            case CoordinatorUp():
                last, took_over = entry.order, True
            case JobEnded():
                last, took_over, job_is_over = before if took_over else last, False, True
            case AttemptStarted(restores=restores):
                last = entry.order if job_is_over and restores is not None else last
                job_is_over = False
        if not isinstance(entry, FaultFired | SnapshotDeleted):
            before = entry.order
    return last
