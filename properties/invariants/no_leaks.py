"""no-leaks: at rest no store holds garbage.

A running sink subtask has at most one open transaction, an ended job has none.  No
transaction of a dead attempt remains unless an actor will end it.  Each file in the
snapshot store belongs to a retained snapshot, or to one in progress.  Each file in the directory of a user belongs to a
copy there.  For each log of a
persistent channel, a retained snapshot refers to the log, or a task still writes it.
Of the snapshots that are the engine's own, no more are retained than it keeps (see `claims`).
What the engine lists to its user is what the store has (see `listings`).

A correct engine may leave three things: the sealed transactions of completed snapshots
if the job failed or was cancelled (a resumed job commits them); the transactions that an
attempt had open when it died, if no later attempt came up to abort them; and a file or
log that no actor had occasion to delete since it was written.  The last happens because
a task that is out of reach may write late, and its acknowledgement may be lost.  The
occasions to delete a file are: the job ends; another coordinator comes up, and sweeps;
the coordinator that triggered the file's checkpoint, and knows the file's name, completes
another checkpoint.  Savepoints belong to the user, and stay until the user has them deleted
or claims them.  If injected faults strike each try to delete a file, and the file stays, the verdict is unknown:
assumption broken (see `struck_deletes`).

Exercised by everything that became garbage during the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ..model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CoordinatorDown,
    CoordinatorUp,
    FaultFired,
    JobEnded,
    PersistentLog,
    SnapshotDeleted,
    Stored,
    TaskFailed,
    Transaction,
)
from ..model.struck import torn
from ..model.verdict import Holds, Reason, Unknown, Verdict, Violated
from ..model.words import LIMIT, entry_in_words, journal_until, row_in_words
from ..quick_checker.case import Case
from ..reconstruct.lineage import INFINITE
from .parts.claims import files_of, not_subsumed
from .parts.listings import wrongly_listed
from .parts.struck_deletes import struck_to_the_last


def check(case: Case) -> Verdict:
    if not case.history.quiet:
        return Unknown(reason=Reason.NOT_OBSERVABLE, detail="the run did not come to rest")
    leftovers = _Leftovers(case)
    found = leftovers.transactions() or leftovers.crowded() or leftovers.files() or leftovers.logs()
    found = found or not_subsumed(case) or wrongly_listed(case)
    if found is not None:
        return found
    for handle in case.history.residue.files:
        if faults := leftovers.struck.get(handle):
            numbers = ", ".join(map(str, faults))
            return Unknown(
                reason=Reason.ASSUMPTION_BROKEN, detail=f"faults {numbers} struck each try to delete the file {handle}"
            )
    exercised = _garbage(case)
    if exercised:
        return Holds(exercised=exercised)
    return Unknown(reason=Reason.NOT_EXERCISED, detail="nothing became garbage")


def _garbage(case: Case) -> int:
    """How much had to be cleaned up: deleted files, aborted transactions, replaced attempts."""
    deleted = sum(len(entry.handles) for entry in case.history.journal if isinstance(entry, SnapshotDeleted))
    aborted = sum(transaction.aborted is not None for transaction in case.history.transactions)
    lineages = case.lineages
    replaced = sum(run.attempt < lineages.serving(run.task, lineages.last_attempt) for run in case.history.runs)
    return deleted + aborted + replaced


class _Leftovers:
    """The listings of the stores at rest, compared with the actors that may still need each entry."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.residue = case.history.residue
        self.status = case.ended.status if case.ended is not None else "alive"
        self.by_name = {
            transaction.name: transaction for transaction in (*case.history.transactions, *case.history.passing)
        }

    @cached_property
    def running(self) -> list[int]:
        """The attempts whose tasks all ran."""
        return [entry.attempt for entry in self.case.history.journal if isinstance(entry, AttemptRunning)]

    @cached_property
    def stored(self) -> dict[str, Stored]:
        """By the name of a file: the snapshot for which it was written."""
        snapshots = self.case.lineages.snapshots.handles
        files = {name: entry for entry in snapshots.values() for name, _, is_own in entry.files if is_own}
        return files | snapshots

    @cached_property
    def struck(self) -> dict[str, list[int]]:
        """By file: the faults because of which no actor could delete it."""
        return struck_to_the_last(self.case.history)

    @cached_property
    def unreadable(self) -> bool:
        """Whether the job failed because it could not read a checkpoint's record.

        It then does not know which snapshots are retained, and may delete none.
        """
        reads = (entry for entry in self.case.history.journal if isinstance(entry, FaultFired))
        return self.status == "failed" and any(entry.kind == "fail-read" for entry in reads)

    def transactions(self) -> Violated | None:
        """An open or sealed transaction that no actor will end."""
        for name in self.residue.open_transactions:
            leftover = self.by_name.get(name)
            if leftover is None or self._abandoned(leftover):
                return self._transaction("transaction left", name, leftover, "open")
        for name in self.residue.prepared_transactions:
            leftover = self.by_name.get(name)
            if leftover is None or (self._abandoned(leftover) and not self._bound(leftover)):
                return self._transaction("transaction left", name, leftover, "sealed")
        return None

    def _abandoned(self, leftover: Transaction) -> bool:
        """Whether a transaction's writer no longer runs, and another actor had to end the transaction."""
        if any(self.case.lineages.serving(leftover.task, attempt) > leftover.attempt for attempt in self.running):
            return True
        if self.status in ("finished", "drained", "stopped"):
            return True
        return self.status == "cancelled" and self._cancelled_in_order(leftover)

    def _cancelled_in_order(self, leftover: Transaction) -> bool:
        """Whether the cancel command, and no failure, ended a transaction's writer while its attempt ran."""
        run = self.case.runs.get((leftover.task, leftover.attempt))
        failed = any(
            isinstance(entry, TaskFailed) and entry.attempt == leftover.attempt for entry in self.case.history.journal
        )
        return run is not None and run.how == "cancelled" and leftover.attempt in self.running and not failed

    def _bound(self, leftover: Transaction) -> bool:
        """Whether a completed snapshot holds a transaction.

        Its commit is then outstanding, or left to a job that is resumed after a failure or a cancel.
        """
        return any(
            leftover.checkpoint is not None and entry.checkpoint >= leftover.checkpoint
            for entry in self.case.lineages.taken_by(leftover.task, leftover.attempt)
        )

    def crowded(self) -> Violated | None:
        """A second open transaction of one live sink subtask."""
        seen: dict[str, str] = {}
        for name in self.residue.open_transactions:
            leftover = self.by_name.get(name)
            if leftover is not None and self.status == "alive":
                if leftover.task in seen:
                    how = f"open while the same task has open {seen[leftover.task]}"
                    return self._transaction("second open transaction", name, leftover, how)
                seen[leftover.task] = name
        return None

    def files(self) -> Violated | None:
        """A file that no retained snapshot refers to.

        A job that could not read a checkpoint's record cannot know what is garbage, and leaves all files.
        """
        if self.unreadable:
            return None
        reached = set(self._reached())
        for handle in self.residue.files:
            if handle in reached or handle in self.struck:
                continue
            entry = self.stored.get(handle)
            if (entry is not None and self._under_way(entry)) or self._missed(handle):
                continue
            entries = [
                entry_in_words(event)
                for event in self.case.history.journal
                if entry is not None and getattr(event, "checkpoint", None) == entry.checkpoint
            ]
            return Violated(
                difference="file left",
                message=f"the file {handle} remains in the store, and no retained snapshot refers to it",
                checkpoint=entry.checkpoint if entry is not None else None,
                tasks=(entry.task,) if entry is not None else (),
                events=tuple(entries[-LIMIT:]),
            )
        return self._copied()

    def _copied(self) -> Violated | None:
        """A file in the directory of a user that belongs to no copy.  A coordinator that dies while it copies leaves
        some, and the next one deletes them; but not if the job ends before."""
        copies, copied = self.residue.copies, self.residue.copied
        if not isinstance(copies, list) or not isinstance(copied, list):
            return None
        entries = [one for one in self.case.history.completed if one.checkpoint in copies]
        reached = {name for entry in entries for _, name in files_of(self.case, entry)}
        left = next((name for name in copied if name not in reached), None)
        if left is None:
            return None
        return Violated(
            difference="file left",
            message=f"the file {left} remains in the directory of the copies, and belongs to none of them",
            events=journal_until(self.case.history, None),
        )

    def logs(self) -> Violated | None:
        """A log of a persistent channel that no retained snapshot refers to, and to which no task appends."""
        if self.unreadable or not self.residue.logs:
            return None
        retained = [one.checkpoint for one in self.case.history.completed if one.checkpoint in self.residue.retained]
        states = [state for checkpoint in retained for state in self.case.states(checkpoint).values()]
        reached = {ref[0] for state in states for refs in state.spilled.values() for ref in refs}
        opened = {log.name: log for log in self.case.history.logs}
        for name in self.residue.logs:
            log = opened.get(name)
            if name not in reached and (log is None or not self._excused(log)):
                return Violated(
                    difference="log left",
                    message=f"the log {name} remains in the store, and no retained snapshot refers to it",
                    tasks=(log.task,) if log is not None else (),
                    events=journal_until(self.case.history, None),
                )
        return None

    def _excused(self, log: PersistentLog) -> bool:
        """Whether its task still appends to a log, or no actor had occasion to delete the log."""
        lineages = self.case.lineages
        whole, serving = self._channels_of(log.attempt), lineages.serving(log.task, lineages.last_attempt)
        if self.status == "alive" and whole == self._channels_of(serving):
            return True
        runs = [run for run in self.case.history.runs if run.task == log.task]
        newer = [run.started for run in runs if self._channels_of(run.attempt) > whole]
        since = max(log.opened, min(newer, default=0), self._made(log))
        occasions = (JobEnded, CoordinatorUp, AttemptStarted)
        cleared = any(isinstance(event, occasions) and event.order > since for event in self.case.history.journal)
        return not cleared and not any(one.order > since for one in self.case.history.completed)

    def _made(self, log: PersistentLog) -> int:
        """The latest moment at which a log may have been created: if it was never deleted, the end of its writer.

        The writer may have been stalled after the creation was recorded, and may not know that it was declared lost.
        """
        run = self.case.runs.get((log.task, log.attempt))
        if log.cleared is not None or run is None:
            return log.opened
        return INFINITE if run.ended is None else run.ended

    def _channels_of(self, attempt: int) -> int:
        """The attempt whose channels and logs this attempt uses: with local recovery the newest one that started all
        tasks."""
        persistent = self.case.lineages.persistent
        return persistent.whole(attempt) if persistent is not None else attempt

    def _reached(self) -> Iterator[str]:
        for entry in self.case.history.completed:
            if self.case.is_kept(entry):
                for handle in entry.handles.values():
                    yield handle
                    if handle in self.stored:
                        yield from (name for name, _, _ in self.stored[handle].files)

    def _is_of_the_last(self, entry: Stored) -> bool:
        return entry.attempt == self.case.lineages.serving(entry.task, self.case.lineages.last_attempt)

    def _under_way(self, stored: Stored) -> bool:
        """Whether a living job is still taking this snapshot."""
        checkpoint = stored.checkpoint
        if self.status != "alive" or not self._is_of_the_last(stored) or checkpoint in self.case.lineages.completed:
            return False
        latest = None
        for entry in self.case.history.journal:
            if isinstance(entry, (CheckpointTriggered, CheckpointAborted)) and entry.checkpoint == checkpoint:
                latest = entry
        return isinstance(latest, CheckpointTriggered)

    def _missed(self, handle: str) -> bool:
        """Whether no actor had occasion to delete a file since it was written or its checkpoint was aborted."""
        written = self._written(handle)
        start = self.case.lineages.starts.get(written[1]) if written is not None else None
        if written is None or start is None:
            return False
        since, journal = written[0], self.case.history.journal
        for event in journal:
            ends = isinstance(event, JobEnded) and event.job == start.job
            if event.order > since and (ends or isinstance(event, CoordinatorUp)):
                return False
        deaths = (event.order for event in journal if isinstance(event, CoordinatorDown))
        died = min((death for death in deaths if death > start.order), default=INFINITE)
        since = max([since, *self._aborted(handle)])
        return not any(one.job == start.job and since < one.order < died for one in self.case.history.completed)

    def _written(self, handle: str) -> tuple[int, int] | None:
        """(order, attempt) of a file's write, also of a torn one."""
        entry = self.stored.get(handle)
        if entry is not None:
            return entry.order, entry.attempt
        for event in self.case.history.journal:
            if not isinstance(event, FaultFired) or event.kind != "tear-write":
                continue
            if torn(event.struck, event.detail, handle):
                return (event.order, event.attempt) if event.attempt is not None else None
        return None

    def _aborted(self, handle: str) -> Iterator[int]:
        entry = self.stored.get(handle)
        for event in self.case.history.journal:
            if isinstance(event, CheckpointAborted) and entry is not None and event.checkpoint == entry.checkpoint:
                yield event.order

    def _transaction(self, difference: str, name: str, leftover: Transaction | None, how: str) -> Violated:
        whose = (
            f" of attempt {leftover.attempt} of {leftover.task}" if leftover is not None else ", which no task began,"
        )
        return Violated(
            difference=difference,
            message=f"transaction {name}{whose} remains {how}",
            records=tuple(row_in_words(row) for row in leftover.rows[:LIMIT]) if leftover is not None else (),
            checkpoint=leftover.checkpoint if leftover is not None else None,
            tasks=(leftover.task,) if leftover is not None else (),
            events=journal_until(self.case.history, None),
        )
