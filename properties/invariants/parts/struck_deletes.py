"""Files that stay because injected faults struck every try to delete them.

An engine tries a delete `TRIES` times.  After that the file stays until somebody sweeps the store: a coordinator that
takes over, or the one that took over before, when its job ends; or a job that is resumed from a snapshot.
"""

from __future__ import annotations

from ...model.history import AttemptStarted, CoordinatorUp, FaultFired, History, JobEnded
from ...model.struck import StruckDelete

TRIES = 5


def struck_to_the_last(history: History) -> dict[str, list[int]]:
    """By file: the faults that struck the tries of its delete, if they struck all, and nobody swept the store later."""
    struck: dict[str, list[FaultFired]] = {}
    for entry in history.journal:
        if isinstance(entry, FaultFired) and isinstance(entry.struck, StruckDelete):
            struck.setdefault(entry.struck.handle, []).append(entry)
    swept = _last_sweep(history) if struck else 0
    return {
        file: [one.fault for one in strikes]
        for file, strikes in struck.items()
        if len(strikes) >= TRIES and strikes[-1].order > swept
    }


def _last_sweep(history: History) -> int:
    """The order of the last event that had the store swept; 0 if there is none."""
    last, took_over, job_is_over = 0, False, False
    for entry in history.journal:
        match entry:
            case CoordinatorUp():
                last, took_over = entry.order, True
            case JobEnded():
                last, took_over, job_is_over = entry.order if took_over else last, False, True
            case AttemptStarted(restores=restores):
                last = entry.order if job_is_over and restores is not None else last
                job_is_over = False
    return last
