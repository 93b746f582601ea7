"""progress: once all faults have ended, the job makes progress.

After the last fault has ended, and within the run's time limit, the job comes to rest:
it has ended well, or a new checkpoint is complete and covers all input.  Transactions of
completed snapshots are committed, other sealed ones are aborted.  Every command has
returned.  No attempt is started without a failure.

At any time: nothing fails without an injected fault that explains the failure (an
exception inside the engine is a violation).  No job is stopped, drained or cancelled
without a command, and no answer to a command is false (see `commands` and `deletions`).  No timer in
processing time is pending for ever (see `clocks`).

An attempt fails for failed checkpoints only if more failed in a row than the job tolerates, and then it must (see
`tolerance`).  Without any fault that may happen only if the timeout of checkpoints is too short for the run's records.
A job may fail if faults used up its restarts or destroyed what it needed, or if its user had left its
snapshot behind (see `abandoned`), and the job gives that reason; the verdict is then unknown (assumption broken).
Exercised by what the job did after healing: checkpoints, commits, commands, and its end.
"""

from __future__ import annotations

from ..model.history import (
    AttemptStarted,
    CheckpointAborted,
    CommandReturned,
    CoordinatorDown,
    FaultFired,
    JobEnded,
    JournalEntry,
    TaskFailed,
    Transaction,
)
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, journal_until, plural, row_in_words
from ..quick_checker.case import Case
from ..reconstruct.commands import WELL
from .parts.abandoned import began_from_abandoned, is_refused_since_abandoned
from .parts.clocks import overdue
from .parts.deletions import moved_and_kept, wrongly_refused, wrongly_uncopied
from .parts.incompatible import neither_begun_nor_refused, refused_by_name
from .parts.tolerance import fails_for_checkpoints, misjudged_tolerance


def check(case: Case) -> Verdict:
    unexplained: Verdict | None = _unexplained_failure(case) or _restart_from_nothing(case) or case.commands.misjudged()
    unexplained = unexplained or neither_begun_nor_refused(case) or misjudged_tolerance(case) or wrongly_refused(case)
    unexplained = unexplained or wrongly_uncopied(case)
    unexplained = unexplained or _too_slow(case) or overdue(case)
    unexplained = unexplained or next(filter(None, (_unexcused(case, end) for end in case.commands.ends)), None)
    if unexplained is not None:
        return unexplained
    ended = case.ended
    failed = ended if ended is not None and ended.status == "failed" else _lost_before_it_began(case)
    if failed is not None:
        return Unknown(reason=Reason.ASSUMPTION_BROKEN, detail=f"the job failed and gave its reason: {failed.reason}")
    if ended is None and not case.history.quiet:
        return _restless(case)
    unmet = _command_outstanding(case) or _transaction_outstanding(case) or _input_outstanding(case)
    if unmet is not None:
        return unmet
    return _achieved(case)


def _command_outstanding(case: Case) -> Violated | None:
    return case.commands.outstanding() or moved_and_kept(case)


def _healed(case: Case) -> int | None:
    """The order from which progress is required; None if a fault lasted to the end."""
    if case.history.lasting:
        return None
    if case.history.healed is None and not _fired(case):
        return 0
    return case.history.healed


def _fired(case: Case) -> bool:
    return any(isinstance(entry, FaultFired) for entry in case.history.journal)


def _too_slow(case: Case) -> Unknown | None:
    """Unknown if the machine was too slow for the run's clocks: live tasks then look dead, and work looks late."""
    if not case.history.starved:
        return None
    silent = next((entry for entry in case.history.journal if _is_silence(case, entry)), None)
    if isinstance(silent, TaskFailed):
        detail = f"the machine was too slow: {silent.task} of attempt {silent.attempt} sent no heartbeat in time"
        return Unknown(reason=Reason.NOT_OBSERVABLE, detail=detail)
    if case.ended is None and not case.history.quiet:
        return Unknown(
            reason=Reason.NOT_OBSERVABLE,
            detail="the machine was too slow: the run was cut off before the job came to rest",
        )
    return None


def _is_silence(case: Case, entry: JournalEntry) -> bool:
    """Whether a failure without an injected fault may be due to a machine that is too slow."""
    silent = isinstance(entry, TaskFailed) and entry.fault is None and entry.why.is_silence
    return silent and case.history.starved


def _unexplained_failure(case: Case) -> Violated | None:
    for entry in case.history.journal:
        if isinstance(entry, TaskFailed) and entry.fault is None:
            if _is_silence(case, entry) or is_refused_since_abandoned(case, entry):
                continue
            message = (
                f"{entry.task} of attempt {entry.attempt} failed, and no injected fault explains it: {entry.reason}"
            )
            return _violated(case, "unexplained failure", message, entry, (entry.task,))
        if isinstance(entry, CoordinatorDown) and entry.fault is None:
            message = "the coordinator failed, and no fault explains it" + (f": {entry.reason}" if entry.reason else "")
            return _violated(case, "unexplained failure", message, entry)
    return None


def _restart_from_nothing(case: Case) -> Violated | None:
    """An attempt that was started after healing although nothing had failed since the previous attempt of the job."""
    healed = _healed(case)
    explained = True
    lost: list[str] = []
    job = 0
    for entry in case.history.journal:
        if isinstance(entry, AttemptStarted):
            if entry.job == job and not explained and healed is not None and entry.order > healed:
                message = f"attempt {entry.attempt} was started although nothing had failed since the attempt before it"
                return _violated(case, "restart without a failure", message, entry)
            lost = [task for task in lost if entry.tasks and task not in entry.tasks]
            job, explained = entry.job, bool(lost)  # another region's failure does not explain a region's restart
        elif isinstance(entry, (TaskFailed, CoordinatorDown, FaultFired, CheckpointAborted)):
            explained = True  # too many aborted checkpoints are a reason too
            lost += [entry.task] if isinstance(entry, TaskFailed) else []
    return None


def _unexcused(case: Case, ended: JobEnded) -> Violated | None:
    """A job that should not have failed.

    Its restarts were not used up, and its reason named neither a lost snapshot nor the operators that are incompatible
    with its snapshot.
    """
    if ended.status != "failed" or refused_by_name(case, ended):
        return None
    if _restarts_used_up(case, ended) and began_from_abandoned(case, ended):
        return None
    hurried = case.history.short_timeout is True and ended.why.is_timeout and fails_for_checkpoints(case, ended)
    if not _fired(case) and not hurried:
        return _violated(case, "job failed", f"the job failed without any fault: {ended.reason or 'no reason'}", ended)
    if not ended.reason:
        return _violated(case, "job failed silently", "the job failed and gave no reason", ended)
    if _restarts_used_up(case, ended) or _state_destroyed(case, ended):
        return None
    message = f"the job failed although restarts remained and no snapshot was destroyed: {ended.reason}"
    return _violated(case, "job failed", message, ended)


def _restarts_used_up(case: Case, ended: JobEnded) -> bool:
    """Whether the started attempts used up a job's restarts.

    An attempt that deployed no task does not count, whatever its number.
    """
    journal = case.history.journal
    started = sum(isinstance(entry, AttemptStarted) and entry.job == ended.job for entry in journal)
    return started > case.history.restart_attempts


def _state_destroyed(case: Case, ended: JobEnded) -> bool:
    """Whether snapshots in memory were lost, or the reason names one that a fault made unreadable."""
    before = max((end.order for end in case.commands.ends if end.order < ended.order), default=0)
    lived = [entry for entry in case.history.journal if before < entry.order < ended.order]
    if case.history.snapshots == "memory" and any(isinstance(entry, CoordinatorDown) for entry in lived):
        return True
    unreadable = any(isinstance(entry, FaultFired) and entry.kind == "fail-read" for entry in lived)
    return unreadable and any(checkpoint in case.lineages.completed for checkpoint in ended.why.unreadable)


def _lost_before_it_began(case: Case) -> JobEnded | None:
    """The end of the last job, if it failed without an attempt, as what it was to begin from was destroyed."""
    last = case.commands.ends[-1] if case.commands.ends else None
    if last is None or last.status != "failed" or not _state_destroyed(case, last):
        return None
    return last if all(one.job < last.job for one in case.lineages.starts.values()) else None


def _restless(case: Case) -> Verdict:
    """The verdict on a job that was still running when the run reached its time limit.

    A job with unbounded input runs until then.  Completed checkpoints have to cover all input, and one of them has to
    be this job's own.  Its latest transactions may still be uncommitted.
    """
    healed = _healed(case)
    if healed is None:
        return Unknown(reason=Reason.NOT_OBSERVABLE, detail="a fault lasted until the run was cut off")
    if case.history.cut_short:
        return Unknown(reason=Reason.NOT_OBSERVABLE, detail="the harness ran out of time and cut the run off")
    if _came_again(case, healed):
        return Unknown(
            reason=Reason.ASSUMPTION_BROKEN, detail="an injected fault struck again after the last fault had healed"
        )
    if not all(source.bounded for source in case.workload.inputs):
        outstanding = _command_outstanding(case) or _input_outstanding(case) or _checkpoint_outstanding(case, healed)
        return outstanding or _achieved(case)
    return _violated(case, "no rest", "everything had healed, and the job did not come to rest within its bound", None)


def _came_again(case: Case, healed: int) -> bool:
    """Whether an attempt that began after the last fault had healed failed.

    A failure that the last fault itself caused does not count, although that fault healed as soon as it had struck.
    """
    begun = [entry for entry in case.history.journal if isinstance(entry, AttemptStarted) and entry.order < healed]
    newest = max((entry.attempt for entry in begun), default=0)
    return any(
        isinstance(entry, TaskFailed) and entry.order > healed and entry.attempt > newest
        for entry in case.history.journal
    )


def _transaction_outstanding(case: Case) -> Violated | None:
    """A sealed transaction that a job had to commit or abort, and did not."""
    if case.ended is not None and case.ended.status not in WELL:
        return None
    for outstanding in case.pending_transactions:
        message = f"transaction {outstanding.name} belongs to a completed checkpoint and was never committed"
        return _about(case, "commit outstanding", message, outstanding)
    for leftover in (*case.history.transactions, *case.history.passing):
        if leftover.status == "prepared" and _replaced(case, leftover):
            name = f"transaction {leftover.name} of attempt {leftover.attempt}"
            message = f"{name} is bound to no snapshot and was never aborted"
            return _about(case, "abort outstanding", message, leftover)
    return None


def _replaced(case: Case, leftover: Transaction) -> bool:
    """Whether a later attempt of the same job has replaced the writer of a transaction."""
    lineages = case.lineages
    start, tip = (
        lineages.starts.get(leftover.attempt),
        lineages.starts.get(lineages.serving(leftover.task, lineages.last_attempt)),
    )
    return start is not None and tip is not None and start.job == tip.job and leftover.attempt < tip.attempt


def _about(case: Case, difference: str, message: str, transaction: Transaction) -> Violated:
    return Violated(
        difference=difference,
        message=message,
        records=tuple(row_in_words(row) for row in transaction.rows[:LIMIT]),
        checkpoint=transaction.checkpoint,
        tasks=(transaction.task,),
        events=journal_until(case.history, None),
    )


def _input_outstanding(case: Case) -> Violated | None:
    """Input of a running job that no completed snapshot covers."""
    if case.ended is not None:
        return None
    if all(source.bounded for source in case.workload.inputs):
        return _violated(
            case, "job never ended", "all inputs are bounded, and the job came to rest without ending", None
        )
    if case.history.guarantee == "at-most-once" or _healed(case) is None:
        return None
    newest = case.lineage.checkpoints[-1] if case.lineage.checkpoints else None
    positions = case.positions(newest)
    for split, _, records in case.workload.splits():
        if positions[split] < len(records):
            covered = "no checkpoint was completed" if newest is None else f"checkpoint {newest} is the newest"
            return _violated(
                case,
                "input not covered",
                f"split {split} has {plural(len(records), 'record')}, {positions[split]} of them covered: {covered}",
                None,
            )
    return None


def _checkpoint_outstanding(case: Case, healed: int) -> Violated | None:
    """A running job that completed no checkpoint of its own after healing.

    Checkpoints of an earlier job may already cover all input.
    """
    start = case.lineages.starts.get(case.lineages.last_attempt)
    if start is None or case.history.guarantee == "at-most-once":
        return None
    if any(one.job == start.job and one.order > healed for one in case.history.completed):
        return None
    message = f"everything had healed, and job {start.job} completed no checkpoint until it was cut off"
    return _violated(case, "no checkpoint", message, None)


def _achieved(case: Case) -> Verdict:
    healed = _healed(case)
    if healed is None and case.ended is None:
        return Unknown(reason=Reason.NOT_EXERCISED, detail="no fault undid itself before the run was over")
    if healed is None:
        return (
            Holds(exercised=1)
            if _is_well(case)
            else Unknown(reason=Reason.NOT_EXERCISED, detail="a fault lasted to the end")
        )
    since = healed
    exercised = sum(entry.order > since for entry in case.history.completed)
    exercised += sum((one.committed or 0) > since for one in case.history.transactions)
    exercised += sum(isinstance(entry, CommandReturned) and entry.order > since for entry in case.history.journal)
    exercised += _is_well(case)
    if exercised:
        return Holds(exercised=exercised)
    return Unknown(reason=Reason.NOT_EXERCISED, detail="after the last fault had healed the job had nothing more to do")


def _is_well(case: Case) -> bool:
    return case.ended is not None and case.ended.status in WELL


def _violated(
    case: Case, difference: str, message: str, entry: JournalEntry | None, tasks: tuple[str, ...] = ()
) -> Violated:
    events = journal_until(case.history, entry.order if entry is not None else None)
    return Violated(difference=difference, message=message, tasks=tasks, events=events)
