"""at-most-once: nothing is done twice, whatever is lost.

Over all attempts no source reads a record twice, and no operator applies one twice.  No
row is visible more often than the applied records yield it; a row that they do not yield
is not visible at all.  A source that never rewinds keeps this; a hidden rewind breaks it.

Exercised by failures after a record was read.
"""

from __future__ import annotations

from collections import Counter

from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, journal_until, record_in_words
from ..model.workload import origin_of
from ..quick_checker.case import Case
from ..quick_checker.compare import violated_rows
from .parts.hazards import restores


def check(case: Case) -> Verdict:
    if "at-most-once" not in case.promised:
        return case.not_promised("at-most-once", f"{case.history.guarantee} is another promise")
    found = _read_twice(case) or _applied_twice(case)
    if found is not None:
        return found
    if not case.is_determined(every_attempt=True):
        return Unknown(
            reason=Reason.NOT_OBSERVABLE, detail="the history does not show which row was applied at which subtask"
        )
    yielded = case.expected.replay.yielded()
    extra = case.committed - yielded
    if extra:
        return violated_rows(case, lost=Counter(), extra=extra, expected=yielded, where="the output", checkpoint=None)
    exercised = sum(restore.before > 0 for restore in restores(case))
    if not exercised:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no failure after a record was read")
    return Holds(exercised=exercised)


def _read_twice(case: Case) -> Violated | None:
    reads: dict[tuple[int, int], str] = {}
    for run in case.history.runs:
        for place in run.reads:
            reader = f"{run.task} of attempt {run.attempt}"
            if place in reads:
                return _twice(case, run.task, origin_of(*place), f"{reads[place]} and {reader} both read")
            reads[place] = reader
    return None


def _applied_twice(case: Case) -> Violated | None:
    """A record applied by one operator more often than its sender emitted it, or in two attempts."""
    seen: dict[tuple[str, int], int] = {}
    for run in case.history.runs:
        for _, origin in run.applies:
            attempt = seen.setdefault((run.operator, origin), run.attempt)
            if attempt != run.attempt:
                return _twice(case, run.task, origin, f"{run.operator} applied in attempts {attempt} and {run.attempt}")
    if not case.is_determined():
        return None  # the replay may have confused rows of one origin
    for run in case.history.runs:
        case.expected.replay.run(run.task, run.attempt)
    for strange in case.expected.replay.strange:
        what = "applied again" if strange.again else "applied a record that no task had sent to it:"
        return _twice(case, strange.task, strange.origin, f"{strange.task} of attempt {strange.attempt} {what}")
    return None


def _twice(case: Case, task: str, origin: int, what: str) -> Violated:
    place = record_in_words(case.workload, origin)
    return Violated(
        difference="record repeated",
        message=f"{what} {place}",
        records=(place,),
        tasks=(task,),
        events=journal_until(case.history, None)[-LIMIT:],
    )
