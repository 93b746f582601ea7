"""Whether a job that is incompatible with its snapshot was refused, naming its operators (FIN-2; FLIP-147).

A user who resumes a job may add operators.  If a new operator stands before one that the
snapshot counts as finished, no task would take its rows.  Such a job must not begin, and
its error must name both operators.  Before any other operator a new operator may begin
empty, if the user's mapping says so.  An inserted operator is not of the workload: if a job
begins with it, the expected rows are unknown.

A user may remove operators.  The state that the snapshot holds of one is dropped if the
user allows that; otherwise the job must not begin, and its error must name the operator.
Operators are added and removed only behind a savepoint, in which nothing is in flight:
rows that a checkpoint holds of a channel could not go on where the channel is no more.

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

from ...model.history import Completed, JobEnded
from ...model.upgrade import CONVERSION, Upgrade
from ...model.verdict import Reason, Unknown, Violated
from ...model.words import journal_until
from ...model.workload import STATEFUL
from ...quick_checker.case import Case
from ...reconstruct.commands import WELL


def begun_before_finished(case: Case) -> Violated | None:
    """A job that began although a new operator stands before one that had finished."""
    for start in case.lineages.starts.values():
        for name, behind in _before_finished(case, start.job).items():
            message = (
                f"job {start.job} began with {name} before {behind}, which the snapshot that it was resumed from"
                f" counts as finished: no task would take what {name} sends"
            )
            return _violated(case, "begun though it does not fit", message, start.restores, start.order)
    return None


def begun_unmapped(case: Case) -> Violated | None:
    """A job that began from another job's snapshot, although states there find no operator, or operators no state."""
    if not case.jobs.upgraded:
        return None
    for start in case.lineages.starts.values():
        lost = unmapped(case, start.job, start.restores) or _unannounced(case, start.job, start.restores)
        if lost:
            message = (
                f"job {start.job} began with checkpoint {start.restores}, which does not fit {', '.join(lost)}: in it"
                " they have other uids or types of state, or the job lacks them, or they are new; and its user did not"
                " say what becomes of the states, or it is no savepoint"
            )
            return _violated(case, "begun though it does not fit", message, start.restores, start.order)
    return None


def unmapped(case: Case, job: int, checkpoint: int | None) -> tuple[str, ...]:
    """The operators that are in the way of a job that is to begin with another job's snapshot.

    The snapshot holds their state, the job does not have them, and its user does not allow that the state is dropped.
    Or they have other uids or types than there, and the mapping does not say so.  Or they have changed in any way, and
    the snapshot is no savepoint.  The first of these is named alone.
    """
    completed = case.lineages.completed.get(checkpoint or 0)
    if completed is None or completed.job == job or not case.jobs.upgraded:
        return ()
    given, jobs = _given(case, job), case.jobs
    gone, new = (tuple(names) for names in _changed(case, job, completed))
    new = tuple(name for name in new if jobs.uids.get(job, {}).get(name, name) in given.begin_empty)
    holding = [node.name for node in case.workload.nodes if isinstance(node.operator, STATEFUL)]
    dropped = tuple(name for name in gone if name in holding)
    if dropped and not given.allow_non_restored_state:
        return dropped
    there = [name for name in case.jobs.layouts.get(completed.job, jobs.first).parallelism if name not in gone]
    before, now = jobs.uids.get(completed.job, {}), jobs.uids.get(job, {})
    uids = {name: (before.get(name, name), now.get(name, name)) for name in there if name in {**before, **now}}
    unmoved = tuple(name for name, (old, new) in uids.items() if old != new and given.moves.get(old) != new)
    types, retyped = jobs.state_types.get(completed.job, {}), jobs.state_types.get(job, {})
    other = [name for name in {**types, **retyped} if name in there and types.get(name) != retyped.get(name)]
    unconverted = tuple(
        name for name in other if name not in retyped or given.converts.get(before.get(name, name)) != CONVERSION
    )
    if unmoved or unconverted:
        return unmoved or unconverted
    if completed.savepoint:
        return ()
    renamed = [name for name, (old, new) in uids.items() if old != new]
    return tuple(dict.fromkeys([*renamed, *other, *gone, *new]))


def _given(case: Case, job: int) -> Upgrade:
    """The upgrade with which a job was resumed."""
    resume = case.commands.resume_of(job)
    upgrade = resume.issued.upgrade if resume is not None else msgspec.UNSET
    return upgrade if isinstance(upgrade, Upgrade) else Upgrade()


def _changed(case: Case, job: int, completed: Completed) -> tuple[list[str], list[str]]:
    """The nodes that the job of a snapshot had and another job lacks, and those that it has and the former lacked."""
    before, now = case.jobs.absent.get(completed.job, ()), case.jobs.absent.get(job, ())
    return [name for name in now if name not in before], [name for name in before if name not in now]


def _added(case: Case, job: int, checkpoint: int | None) -> tuple[str, ...]:
    """The nodes of a job that the job of its snapshot lacked."""
    completed = case.lineages.completed.get(checkpoint or 0)
    return tuple(_changed(case, job, completed)[1]) if completed is not None and completed.job != job else ()


def _unannounced(case: Case, job: int, checkpoint: int | None) -> tuple[str, ...]:
    """The nodes of a job that the job of its snapshot lacked, and that do not begin empty by the user's mapping."""
    uids, given = case.jobs.uids.get(job, {}), _given(case, job)
    return tuple(name for name in _added(case, job, checkpoint) if uids.get(name, name) not in given.begin_empty)


def undescribed(case: Case) -> Unknown | None:
    """Unknown if a job of the run began with operators that the workload does not describe."""
    if not case.commands.asked or not any(one.issued.inserted for one in case.commands.asked):
        return None
    for start in case.lineages.starts.values():
        resume = case.commands.resume_of(start.job)
        if resume is not None and (brought := resume.issued.inserted):
            detail = f"job {start.job} began with {', '.join(brought)}, which the workload does not describe"
            return Unknown(reason=Reason.NOT_OBSERVABLE, detail=detail)
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
    pairs = _before_finished(case, ended.job) or {name: name for name in _brought(case, ended.job)}
    return any(ended.why.blames(name) and ended.why.blames(behind) for name, behind in pairs.items())


def finished_before(case: Case, job: int) -> tuple[str, ...]:
    """The operators that had finished, with all of their tasks, in the snapshot that a job was to begin with."""
    completed = case.lineages.completed.get(_snapshot(case, job) or 0)
    if completed is None:
        return ()
    layout = case.jobs.layouts.get(completed.job, case.jobs.first)
    return tuple(
        name
        for name, number in layout.parallelism.items()
        if all(f"{name}-{subtask}" in completed.finished for subtask in range(number))
    )


def _brought(case: Case, job: int) -> dict[str, str]:
    """The new operators of a resumed job, each with the operator before which it stands."""
    resume = case.commands.resume_of(job)
    inserted = resume.issued.inserted if resume is not None else {}
    added = _added(case, job, _snapshot(case, job)) if case.jobs.any_absent else ()
    return inserted | {name: case.jobs.reader(name, job) for name in added}


def _is_incompatible(case: Case, job: int) -> bool:
    """Whether a job has operators that are not in the snapshot with which it was to begin, and that do not begin empty
    or stand before one that had finished; or states in the snapshot do not find their operators."""
    checkpoint = _snapshot(case, job)
    if checkpoint is None:
        return False
    resume = case.commands.resume_of(job)
    if (resume is not None and resume.issued.inserted) or unmapped(case, job, checkpoint):
        return True
    return bool(_unannounced(case, job, checkpoint)) or bool(_before_finished(case, job))


def _before_finished(case: Case, job: int) -> dict[str, str]:
    """The new operators of a job that stand before one that had finished, each with that one."""
    brought = _brought(case, job)
    finished = finished_before(case, job) if brought else ()
    return {name: behind for name, behind in brought.items() if behind in finished}


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
