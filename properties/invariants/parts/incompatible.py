"""Whether a job that is incompatible with its snapshot was refused, naming its operators (FIN-2; FLIP-147).

A user who resumes a job may add operators.  If a new operator stands before one that the
snapshot counts as finished, no task would take its rows.  Such a job must not begin, and
its error must name both operators.  Before any other operator a new operator may begin
empty.  But then the job is not the one that the workload describes, and its expected
rows are unknown.

A user may also give an operator another uid, under which its states are held from then on
(SNAP-5), or let a sum keep a state of another type.  The states in the snapshot are then
found, and converted, by the mapping that the user gives with it.  A job whose mapping lacks an
operator must not begin, nor one that would take over such states from a snapshot that is no
savepoint.  Its error must name the operators.

The command has the operators that the user added.  The store's record has the operators
that the snapshot counts as finished.  The job reports whether an attempt began, and why
the job ended.
"""

from __future__ import annotations

import msgspec

from ...model.history import JobEnded
from ...model.upgrade import CONVERSION, Upgrade
from ...model.verdict import Unknown, Violated
from ...model.words import journal_until
from ...quick_checker.case import Case
from ...reconstruct.commands import WELL


def begun_before_finished(case: Case) -> Violated | None:
    """A job that began although a new operator stands before one that had finished."""
    for start in case.lineages.starts.values():
        for name, behind in _brought(case, start.job).items():
            if behind in finished_before(case, start.job):
                message = (
                    f"job {start.job} began with {name} before {behind}, which the snapshot that it was resumed from"
                    f" counts as finished: no task would take what {name} sends"
                )
                return _violated(case, "begun though it does not fit", message, start.restores, start.order)
    return None


def begun_unmapped(case: Case) -> Violated | None:
    """A job that began from another job's snapshot, although operators could not find their states there."""
    if not any(case.uids.values()) and not case.retyped:
        return None
    for start in case.lineages.starts.values():
        lost = unmapped(case, start.job, start.restores)
        if lost:
            message = (
                f"job {start.job} began with checkpoint {start.restores}, in which the states of {', '.join(lost)} are"
                " held under other uids or as other types; no mapping moves or converts them, or it is no savepoint"
            )
            return _violated(case, "begun though it does not fit", message, start.restores, start.order)
    return None


def unmapped(case: Case, job: int, checkpoint: int | None) -> tuple[str, ...]:
    """The operators of a job that cannot take over their states from another job's snapshot: they have other uids or
    types than there, and the mapping does not say so, or the snapshot is no savepoint.  Those without a move come
    first: without these the others are not to be named."""
    completed, uids = case.lineages.completed.get(checkpoint or 0), case.uids
    if completed is None or completed.job == job or not (any(uids.values()) or case.retyped):
        return ()
    before, now = uids.get(completed.job, {}), uids.get(job, {})
    changed = {name: (before.get(name, name), now.get(name, name)) for name in {**before, **now}}
    resume = case.commands.resume_of(job)
    upgrade = resume.issued.upgrade if resume is not None else msgspec.UNSET
    given = upgrade if isinstance(upgrade, Upgrade) else Upgrade()
    unmoved = tuple(name for name, (old, new) in changed.items() if old != new and given.moves.get(old) != new)
    types, retyped = case.state_types.get(completed.job, {}), case.state_types.get(job, {})
    other = [name for name in {**types, **retyped} if types.get(name) != retyped.get(name)]
    unconverted = tuple(
        name for name in other if name not in retyped or given.converts.get(before.get(name, name)) != CONVERSION
    )
    if unmoved or unconverted or completed.savepoint:
        return unmoved or unconverted
    return tuple(dict.fromkeys([*(name for name, (old, new) in changed.items() if old != new), *other]))


def undescribed(case: Case) -> Unknown | None:
    """Unknown if a job of the run began with operators that the workload does not describe."""
    if not case.commands.asked or not any(one.issued.inserted for one in case.commands.asked):
        return None
    for start in case.lineages.starts.values():
        if brought := _brought(case, start.job):
            detail = f"job {start.job} began with {', '.join(brought)}, which the workload does not describe"
            return Unknown(reason="not observable", detail=detail)
    return None


def neither_begun_nor_refused(case: Case) -> Violated | None:
    """A job that is incompatible with its snapshot, and ended well although none of its attempts was started."""
    started = {start.job for start in case.lineages.starts.values()}
    for end in case.commands.ends:
        if end.status in WELL and end.job not in started and _is_incompatible(case, end.job):
            message = f"job {end.job} is incompatible with its snapshot; it never began, and yet it is {end.status}"
            return _violated(case, "neither begun nor refused", message, end.checkpoint, end.order)
    return None


def refused_by_name(case: Case, ended: JobEnded) -> bool:
    """Whether a job failed because of an operator that its snapshot does not have, and its cause names this operator.

    If the new operator stands before one that had finished, the cause has to name both; and of operators that do not
    find their states, all.
    """
    if not _is_incompatible(case, ended.job):
        return False
    if lost := unmapped(case, ended.job, _snapshot(case, ended.job)):
        return all(ended.why.blames(name) for name in lost)
    brought, finished = _brought(case, ended.job), finished_before(case, ended.job)
    pairs = {name: behind for name, behind in brought.items() if behind in finished} or {name: name for name in brought}
    return any(ended.why.blames(name) and ended.why.blames(behind) for name, behind in pairs.items())


def finished_before(case: Case, job: int) -> tuple[str, ...]:
    """The operators that had finished, with all of their tasks, in the snapshot that a job was to begin with."""
    completed = case.lineages.completed.get(_snapshot(case, job) or 0)
    if completed is None:
        return ()
    layout = case.layouts.get(completed.job, case.submitted)
    return tuple(
        name
        for name, number in layout.parallelism.items()
        if all(f"{name}-{subtask}" in completed.finished for subtask in range(number))
    )


def _brought(case: Case, job: int) -> dict[str, str]:
    """The new operators of a resumed job, each with the operator before which it stands."""
    resume = case.commands.resume_of(job)
    return resume.issued.inserted if resume is not None else {}


def _is_incompatible(case: Case, job: int) -> bool:
    """Whether a job has operators that are not in the snapshot with which it was to begin, or do not find their states
    there."""
    checkpoint = _snapshot(case, job)
    return (bool(_brought(case, job)) and checkpoint is not None) or bool(unmapped(case, job, checkpoint))


def _snapshot(case: Case, job: int) -> int | None:
    """The checkpoint that a job was to begin with.

    The answer to the command names it.  Without a successful answer it is the one that the user named, or the newest.
    """
    resume = case.commands.resume_of(job)
    if resume is None:
        return None
    if resume.succeeded and resume.answer is not None:
        return resume.answer.checkpoint
    newest = case.newest_before(resume.issued.order)
    return resume.issued.checkpoint or (newest.checkpoint if newest is not None else None)


def _violated(case: Case, difference: str, message: str, checkpoint: int | None, order: int) -> Violated:
    events = journal_until(case.history, order)
    return Violated(difference=difference, message=message, checkpoint=checkpoint, events=events)
