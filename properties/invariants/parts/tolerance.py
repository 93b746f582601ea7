"""Whether a job restarts, or fails, for failed checkpoints when it must, and only then.

An engine tolerates so many failed checkpoints in a row (`History.tolerated_failures`).  With one more the attempt
fails.  The failures are counted here from the journal and from the log of the snapshot store, not from what the engine
says of its count.  A checkpoint has failed if it was aborted, unless a newer one subsumed it, or it was aborted with
its attempt (`CheckpointAborted.failed`).  A complete checkpoint ends the row, and so does a new attempt of all tasks.

Two counts bound the engine's own.  The greater one has every aborted checkpoint.  It has those too that were aborted
because a task was lost, which an engine does not count, and it does not end with the restart of a part.  If even this
count is within the tolerance, the restart had no reason.  The smaller one has only those of the newest attempt since
all its tasks ran.  If even this count is beyond the tolerance, no further checkpoint may be triggered.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ...model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    Completed,
    CoordinatorDown,
    JobEnded,
    JournalEntry,
    TaskFailed,
)
from ...model.verdict import Violated
from ...model.words import journal_until, plural
from ...quick_checker.case import Case


class _Count(msgspec.Struct, kw_only=True):
    """What is known of the newest attempt."""

    attempt: int = 0
    job: int = 0
    runs: bool = False
    """all its tasks have run"""
    lost: dict[str, None] = {}
    """the tasks that were lost and not started again since"""
    taken_over: bool = False
    """the coordinator was lost since a whole attempt was started"""
    stops: bool = False
    """its job was requested to stop with a savepoint, which may not fail"""
    newest: int = 0
    """the newest complete checkpoint"""
    at_most: int = 0
    at_least: int = 0
    """how many have failed in a row"""
    peak: int = 0
    """the greatest `at_most` of the attempt: a record that is stored while a restart waits takes no reason away"""
    own: dict[int, None] = {}
    """the checkpoints that it triggered since all its tasks ran"""


def misjudged_tolerance(case: Case) -> Violated | None:
    """A restart or a failure of the job for too few failed checkpoints, or a job that goes on after too many."""
    tolerated = case.history.tolerated_failures
    if tolerated < 0:
        return None
    count = _Count()
    for entry in _in_order(case):
        if isinstance(entry, AttemptStarted):
            if entry.job == count.job and (found := _without_reason(case, count, entry)):
                return found
            _start(count, entry)
        elif isinstance(entry, CheckpointTriggered) and entry.attempt == count.attempt and count.runs:
            if count.at_least > tolerated:
                message = (
                    f"checkpoint {entry.checkpoint} was triggered in attempt {count.attempt}, although"
                    f" {plural(count.at_least, 'checkpoint')} had failed in a row, and the job tolerates {tolerated}"
                )
                return _violated(case, "failures not counted", message, entry)
            count.own[entry.checkpoint] = None
        elif isinstance(entry, JobEnded) and entry.status == "failed" and entry.job == count.job:
            if found := _without_reason(case, count, entry):
                return found
        else:
            _take(count, entry)
    return None


def fails_for_checkpoints(case: Case, ended: JobEnded) -> bool:
    """Whether the job's last attempt lost no task, and more checkpoints failed in it than are tolerated."""
    count = _Count()
    for entry in _in_order(case):
        if entry is ended:
            break
        if isinstance(entry, AttemptStarted):
            _start(count, entry)
        else:
            _take(count, entry)
    return not count.lost and not count.taken_over and count.peak > case.history.tolerated_failures >= 0


def _in_order(case: Case) -> Iterator[JournalEntry | Completed]:
    history = case.history
    yield from sorted((*history.journal, *history.completed), key=lambda entry: entry.order)


def _start(count: _Count, started: AttemptStarted) -> None:
    count.attempt, count.job = started.attempt, started.job
    count.runs = False
    count.at_least, count.own = 0, {}
    count.lost = {task: None for task in count.lost if started.tasks and task not in started.tasks}
    if not started.tasks:
        count.at_most = count.peak = 0
        count.taken_over = False


def _take(count: _Count, entry: JournalEntry | Completed) -> None:
    match entry:
        case AttemptRunning(attempt=attempt):
            count.runs = count.runs or attempt == count.attempt
        case TaskFailed(task=task):
            count.lost[task] = None
        case CoordinatorDown():
            count.taken_over = True
        case CommandIssued(kind="stop-with-savepoint"):
            count.stops = True
        case CommandIssued(kind="resume"):
            count.stops = False  # a former job was stopped; the new one may be before its first attempt starts
        case Completed(checkpoint=checkpoint):
            count.newest = max(count.newest, checkpoint)
            count.at_most = count.at_least = 0
        case CheckpointAborted(checkpoint=checkpoint, failed=True) if checkpoint > count.newest:
            count.at_most += 1
            count.peak = max(count.peak, count.at_most)
            count.at_least += checkpoint in count.own
        case _:
            pass


def _without_reason(case: Case, count: _Count, entry: AttemptStarted | JobEnded) -> Violated | None:
    """An attempt that was given up although no task was lost and not too many checkpoints had failed."""
    tolerated = case.history.tolerated_failures
    stopping = count.stops and count.peak > 0
    if not count.runs or count.lost or count.taken_over or stopping or count.peak > tolerated:
        return None
    then = "the job failed" if isinstance(entry, JobEnded) else f"attempt {entry.attempt} was started"
    message = (
        f"{then} although no task of attempt {count.attempt} was lost and only {plural(count.peak, 'checkpoint')}"
        f" had failed in a row: the job tolerates {tolerated}"
    )
    return _violated(case, "tolerance not used up", message, entry)


def _violated(case: Case, difference: str, message: str, entry: JournalEntry) -> Violated:
    return Violated(difference=difference, message=message, events=journal_until(case.history, entry.order))
