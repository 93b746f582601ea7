"""What users requested, how the requests were answered, and whether they took effect.

A job ends only by itself or at its user's command.  An answer is a promise: a command
that was answered with success had its effect.  The savepoint is complete, and was
triggered after the request.  A stop or a cancel ended the job in that way, unless
another command or a failure came first.  A deleted snapshot is not retained any more.  A
resume started a job.  A command that was refused had no effect.  If the coordinator died
before the answer, the user cannot know.

The user's witness records commands and answers, the job's how it ended, and the store's
the snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from ..model.history import (
    COPYING,
    REMOVING,
    AttemptStarted,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    Completed,
    CoordinatorDown,
    FaultFired,
    History,
    JobEnded,
    SnapshotDeleted,
)
from ..model.verdict import Violated
from ..model.words import journal_until

STOPS = ("stopped", "drained")
"""How a stop with savepoint ends a job, without and with drain."""
WELL = ("finished", *STOPS)
"""The statuses of a job that ended well."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One command, its job and its first answer.

    The job of a resume is the one that the command was to start; None where there is no job.
    """

    issued: CommandIssued
    job: int | None
    answer: CommandReturned | None
    interrupted: bool
    """the coordinator died between the command and its answer"""

    @property
    def succeeded(self) -> bool:
        return self.answer is not None and not self.answer.error

    @property
    def refused(self) -> bool:
        """The user was notified that the command had no effect."""
        return self.answer is not None and self.answer.error != "" and not self.interrupted

    @property
    def ending(self) -> str:
        """The status with which this command ends a job; empty when the command does not end a job."""
        if self.issued.kind == "stop-with-savepoint":
            return STOPS[self.issued.drain]
        return "cancelled" if self.issued.kind == "cancel" else ""


class Commands:
    """The commands of one history, and the ends of its jobs."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._snapshots = {entry.checkpoint: entry for entry in history.completed}
        self._triggered: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._downs: list[int] = []
        self.ends: list[JobEnded] = []
        issued: list[CommandIssued] = []
        answers: dict[int, CommandReturned] = {}
        for entry in history.journal:
            if isinstance(entry, CommandIssued):
                issued.append(entry)
            elif isinstance(entry, CommandReturned):
                answers.setdefault(entry.command, entry)
            elif isinstance(entry, JobEnded):
                self.ends.append(entry)
            elif isinstance(entry, AttemptStarted):
                self._starts.setdefault(entry.job, entry.order)
            elif isinstance(entry, CheckpointTriggered):
                self._triggered[entry.checkpoint] = entry.order
            elif isinstance(entry, CoordinatorDown):
                self._downs.append(entry.order)
        self.asked = [self._pair(entry, answers.get(entry.command)) for entry in issued]

    def _pair(self, issued: CommandIssued, answer: CommandReturned | None) -> Asked:
        until = answer.order if answer is not None else issued.order
        return Asked(
            issued=issued,
            job=self._started_by(issued) if issued.kind == "resume" else self.job_at(issued.order),
            answer=answer,
            interrupted=any(issued.order < down < until for down in self._downs),
        )

    def job_at(self, order: int) -> int | None:
        """The job to which a command at this moment applies."""
        for end in self.ends:
            if end.order > order:
                return end.job
        last = max(self._starts, default=None)
        return last if last not in {end.job for end in self.ends} else None

    def _started_by(self, issued: CommandIssued) -> int | None:
        """The first job of which a start, or at least an end, was recorded after a resume."""
        jobs = [job for job, order in self._starts.items() if order > issued.order]
        over = {end.job for end in self.ends if end.order < issued.order}
        jobs += [end.job for end in self.ends if end.order > issued.order and end.job not in over]
        return min(jobs, default=None)

    def resume_of(self, job: int) -> Asked | None:
        """The command that resumed a job; the last one if the command was repeated."""
        return next((one for one in reversed(self.asked) if one.issued.kind == "resume" and one.job == job), None)

    # -- deleted snapshots ---------------------------------------------------------

    @cached_property
    def deletions(self) -> list[Asked]:
        """The commands that take a snapshot away: to delete it, and to move it."""
        return [one for one in self.asked if one.issued.kind in REMOVING]

    def may_be_deleted(self, checkpoint: int) -> bool:
        """Whether a user wished that a snapshot be deleted, and was not told that it is not."""
        return any(one.issued.checkpoint == checkpoint and not one.refused for one in self.deletions)

    @cached_property
    def _deleted(self) -> dict[int, int]:
        """Of each snapshot whose record was deleted for a user: when."""
        wished = {one.issued.checkpoint: one.issued.order for one in reversed(self.deletions) if not one.refused}
        return {
            entry.checkpoint: entry.order
            for entry in (self._history.journal if wished else ())
            if isinstance(entry, SnapshotDeleted) and wished.get(entry.checkpoint, entry.order) < entry.order
        }

    def deleted_at(self, checkpoint: int) -> int | None:
        """When the record of a snapshot was deleted for a user."""
        return self._deleted.get(checkpoint) if self.deletions else None

    # -- claimed snapshots ---------------------------------------------------------

    @cached_property
    def claiming(self) -> list[Asked]:
        """The resumes that succeeded and said whose their snapshot is."""
        return [one for one in self.asked if one.issued.kind == "resume" and _says_whose(one)]

    def claims(self, order: int | None = None) -> dict[int, bool]:
        """By snapshot from which a job was resumed: whether the last resume that said so claimed it; `order`: up to
        then."""
        return {
            one.answer.checkpoint: bool(one.issued.claimed)
            for one in self.claiming
            if one.answer is not None
            and one.answer.checkpoint is not None
            and (order is None or one.issued.order < order)
        }

    # -- at any time ---------------------------------------------------------------

    def misjudged(self) -> Violated | None:
        """A job's end that no command requested, or an answer that is not true."""
        found = (*map(self._unasked, self.ends), *map(self._unmade, self.asked), *map(self._disobeyed, self.asked))
        return next(filter(None, found), None)

    def _unasked(self, ended: JobEnded) -> Violated | None:
        """A job that was stopped, drained or cancelled without a successful command."""
        if ended.status not in (*STOPS, "cancelled"):
            return None
        asked = [
            one
            for one in self.asked
            if one.ending == ended.status and one.job == ended.job and one.issued.order < ended.order
        ]
        if not asked:
            message = f"job {ended.job} was {ended.status}, although no command had requested it"
            return self._violated("ended without a command", message, ended.order, ended.checkpoint)
        if all(one.refused for one in asked):
            message = f"job {ended.job} was {ended.status}, although its command was refused: {_error(asked[-1])}"
            return self._violated("command answered wrongly", message, ended.order, ended.checkpoint)
        return self._other_savepoint(ended, [one for one in asked if not one.refused])

    def _other_savepoint(self, ended: JobEnded, asked: Sequence[Asked]) -> Violated | None:
        """A job that was stopped with another savepoint than the one taken for the command."""
        if ended.status not in STOPS or any(self._made_for(one, ended.checkpoint) for one in asked):
            return None
        message = f"job {ended.job} was {ended.status} on checkpoint {ended.checkpoint}, which is not its savepoint"
        return self._violated("command not obeyed", message, ended.order, ended.checkpoint)

    def _made_for(self, one: Asked, checkpoint: int | None) -> bool:
        """Whether a checkpoint is a completed savepoint that was triggered after the command was issued."""
        entry = self._snapshots.get(-1 if checkpoint is None else checkpoint)
        if entry is None or not entry.savepoint or entry.job != one.job:
            return False
        if one.succeeded and one.answer is not None and one.answer.checkpoint != checkpoint:
            return False
        return self._begun(entry) > one.issued.order

    def _begun(self, entry: Completed) -> int:
        return self._triggered.get(entry.checkpoint, entry.order)

    def _unmade(self, one: Asked) -> Violated | None:
        """A command answered with a savepoint that does not exist, or that was triggered before the request."""
        answer = one.answer
        if answer is None or answer.error or one.issued.kind not in ("savepoint", "stop-with-savepoint"):
            return None
        if self._made_for(one, answer.checkpoint) and self._snapshots[answer.checkpoint or 0].order < answer.order:
            return None
        message = (
            f"the command {one.issued.kind} was answered with checkpoint {answer.checkpoint}, "
            "which is no complete savepoint taken for it"
        )
        return self._violated("command not obeyed", message, answer.order, answer.checkpoint)

    @property
    def _found_no_snapshots(self) -> bool:
        """Whether a coordinator took over that may have found none, or could not read them."""
        journal = self._history.journal
        unreadable = any(isinstance(entry, FaultFired) and entry.kind == "fail-read" for entry in journal)
        took_over = any(isinstance(entry, CoordinatorDown) for entry in journal)
        return took_over and (unreadable or self._history.snapshots == "memory")

    def _disobeyed(self, one: Asked) -> Violated | None:
        """A job that ended in another way than its successful command requires.

        A job that failed although its stop had succeeded, or that a later command cancelled, does not count.  A cancel
        that was answered is durable: no failure comes after it, unless a coordinator took over that found no snapshots
        (ABS-14), or could not read them.
        """
        ended = next((end for end in self.ends if end.job == one.job), None)
        if ended is None or not one.succeeded or not one.ending:
            return None
        if ended.status == one.ending or (one.ending != "cancelled" and ended.status in ("failed", "cancelled")):
            return None
        if ended.status == "failed" and self._found_no_snapshots:
            return None
        message = f"the command {one.issued.kind} succeeded, and job {ended.job} ended {ended.status}"
        return self._violated("command not obeyed", message, ended.order, ended.checkpoint)

    # -- at rest -------------------------------------------------------------------

    def outstanding(self) -> Violated | None:
        """A command whose answer or effect is missing at rest."""
        return next(self._outstanding(), None)

    def _outstanding(self) -> Iterator[Violated]:
        over, residue = {end.job for end in self.ends}, self._history.residue
        retained, copies = residue.retained, residue.copies if isinstance(residue.copies, list) else []
        for one in self.asked:
            kind = one.issued.kind
            if one.answer is None:
                yield self._violated("command never returned", f"the command {kind} never returned", None)
            elif one.succeeded and one.ending and one.job not in over:
                yield self._violated(
                    "command not obeyed", f"the command {kind} succeeded, and the job is still running", None
                )
            elif one.succeeded and kind == "delete-snapshot" and one.issued.checkpoint in retained:
                message = f"the command {kind} succeeded, and checkpoint {one.issued.checkpoint} is still retained"
                yield self._violated("command not obeyed", message, None, one.issued.checkpoint)
            elif one.succeeded and kind in COPYING and one.issued.checkpoint not in copies:
                message = f"the command {kind} succeeded, and there is no copy of checkpoint {one.issued.checkpoint}"
                yield self._violated("command not obeyed", message, None, one.issued.checkpoint)
            elif one.succeeded and kind == "resume" and one.job is None:
                yield self._violated("command not obeyed", "the command resume succeeded, and no job began", None)

    def _violated(self, difference: str, message: str, order: int | None, checkpoint: int | None = None) -> Violated:
        events = journal_until(self._history, order)
        return Violated(difference=difference, message=message, checkpoint=checkpoint, events=events)


def _says_whose(one: Asked) -> bool:
    return one.succeeded and one.issued.claimed is not None


def _error(one: Asked) -> str:
    return one.answer.error if one.answer is not None else ""
