"""Whether a job that a snapshot does not fit was refused by the names of its operators (FIN-2; FLIP-147).

Who resumes a job may bring operators that it had not.  One that stands before an
operator which the snapshot counts as finished would work for nobody: such a job
must not begin, and must say of which operators it speaks.  Before any other a new
operator may begin with nothing; but then the job is another than the one that was
described, and of what it does nothing is known.

What the user brought is in the command, what the snapshot counts as finished in
the store's record, whether an attempt began and why the job ended in the job's own.
"""

from __future__ import annotations

import re

from .case import Case
from .history import JobEnded
from .verdict import Unknown, Violated
from .words import journal_until


def begun_before_finished(case: Case) -> Violated | None:
    """An attempt of a job in which a new operator stands before one that had finished."""
    for start in case.lines.starts.values():
        for name, behind in _brought(case, start.job).items():
            if behind in finished_before(case, start.job):
                message = (
                    f"job {start.job} began with {name} before {behind}, which the snapshot that it was resumed from"
                    " counts as finished: nothing that it sends would be taken"
                )
                return Violated(
                    difference="begun though it does not fit",
                    message=message,
                    checkpoint=start.restores,
                    events=journal_until(case.history, start.order),
                )
    return None


def unfollowed(case: Case) -> Unknown | None:
    """What is known of a run in which a job began with operators that nobody described: nothing."""
    for start in case.lines.starts.values():
        brought = _brought(case, start.job)
        if brought:
            detail = f"job {start.job} began with {', '.join(brought)}, which the workload does not describe"
            return Unknown(reason="not observable", detail=detail)
    return None


def refused_by_name(case: Case, ended: JobEnded) -> bool:
    """Whether a job failed before it began, for an operator that it has and its snapshot has not, and says for which;
    and which has finished behind it, if one has."""
    brought = _brought(case, ended.job)
    if not brought or any(start.job == ended.job for start in case.lines.starts.values()):
        return False
    finished = finished_before(case, ended.job)
    return any(
        _names(ended.reason, name) and (behind not in finished or _names(ended.reason, behind))
        for name, behind in brought.items()
    )


def finished_before(case: Case, job: int) -> tuple[str, ...]:
    """The operators all of whose tasks the snapshot that a job was to begin with counts as finished."""
    completed = case.lines.completed.get(_snapshot(case, job) or 0)
    if completed is None:
        return ()
    layout = case.layouts.get(completed.job, case.submitted)
    return tuple(
        name
        for name, number in layout.parallelism.items()
        if all(f"{name}-{subtask}" in completed.finished for subtask in range(number))
    )


def _names(reason: str, operator: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(operator)}(?![\w-])", reason) is not None


def _brought(case: Case, job: int) -> dict[str, str]:
    """The operators that a job was resumed with and that its snapshot knows nothing of, each with the one behind it."""
    resume = case.commands.resume_of(job)
    return resume.issued.inserted if resume is not None and _snapshot(case, job) is not None else {}


def _snapshot(case: Case, job: int) -> int | None:
    """The checkpoint that a job was to begin with."""
    resume = case.commands.resume_of(job)
    if resume is None:
        return None
    if resume.answer is not None:
        return resume.answer.checkpoint
    newest = case.newest_before(resume.issued.order)
    return newest.checkpoint if newest is not None else None
