"""Requests to the external store whose answer nobody received, and the evidence of whether they were executed.

A process can die between a request and its answer, and a store that is down may have
executed a request that it never answered.  The outcome shows in later requests and
listings, in the rows that are visible at the end, and in the unfinished transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ....properties.model.history import Residue
from ....properties.model.workload import Row
from ....reference_impl import observed as o
from ....reference_impl.core.vocabulary import transactions as t
from ....reference_impl.core.vocabulary.status_changes import AttemptStarted
from ..subjects.past import Past
from .order import Placed, Source

Named = t.BeginTransaction | t.Write | t.PreCommit | t.Commit | t.Finalise | t.AbortTransaction
Single = t.Append | t.Upsert
"""A row that belongs to no transaction."""


class Doubt(msgspec.Struct, frozen=True):
    """A request without an answer, at the place where it was sent; `applied` as in `observed.Transacted`."""

    placed: Placed
    request: t.AnyRequest
    applied: int

    def done(self) -> Placed:
        """An answer that says it was executed, placed just behind the request."""
        return self.placed.with_event(_done(self.request, self.applied), 0.25)


class Evidence:
    """What is known at the end of each transaction, and of the rows that belong to no transaction."""

    def __init__(
        self,
        placed: Iterable[Placed],
        committed: Iterable[tuple[str | None, Row]],
        residue: Residue,
        passing: Iterable[str] = (),
        past: Past | None = None,
    ) -> None:
        """`passing` are committed transactions of which `committed` shows no row."""
        self.rows: Counter[Row] = Counter()
        """visible rows of no transaction whose requests are not known to be executed"""
        self.visible: dict[str, None] = dict.fromkeys(passing)
        for name, row in committed:
            if name is not None:
                self.visible[name] = None
            else:
                self.rows[row] += 1
        self.unfinished = {*residue.open_transactions, *residue.prepared_transactions}
        self.done: set[tuple[type, str]] = set()
        self.listed = set(self.unfinished)
        self.sealed = set(residue.prepared_transactions)
        if past is not None:  # what a run before has written is no evidence of a request in this one
            self.done.update((t.Commit, name) for name in past.committed)
            if past.history.sink == "plain":
                self.rows.subtract(one.row for one in past.history.written)
        for one in placed:
            if isinstance(one.event, o.Transacted) and one.event.is_done:
                self._add(one.event)
            elif isinstance(one.event, o.Expired):
                self.sealed.add(one.event.name)
                self.done.add((t.AbortTransaction, one.event.name))

    def _add(self, entry: o.Transacted) -> None:
        request = entry.request
        if isinstance(request, Single):
            self.rows[request.row] -= 1
        self._note(request)
        for name, checkpoint in entry.unfinished:
            self.listed.add(name)
            if checkpoint is not None:
                self.sealed.add(name)

    def speaks_for(self, request: t.AnyRequest) -> bool:
        """Whether an unanswered request must have been executed."""
        if isinstance(request, Single):
            return self.rows[request.row] > 0
        if isinstance(request, t.Commit):
            return request.name in self.visible and (t.Commit, request.name) not in self.done
        if isinstance(request, t.Publish):
            return all(name in self.visible for name in request.names) and any(
                (t.Commit, name) not in self.done for name in request.names
            )
        if isinstance(request, t.PreCommit):
            name = request.name
            settled = self.done & {(t.Commit, name), (t.Finalise, name)}
            return name in self.visible or name in self.sealed or bool(settled)
        if isinstance(request, t.AbortTransaction):
            aborted = request.name not in self.visible and request.name not in self.unfinished
            return aborted and (t.AbortTransaction, request.name) not in self.done
        if isinstance(request, t.BeginTransaction):
            name = request.name
            return (
                name in self.listed or name in self.visible or bool(self.done & {(t.Write, name), (t.PreCommit, name)})
            )
        # A write is its writer's last request, so its transaction is never sealed.  A finalise has no visible effect.
        return False

    def settle(self, request: t.AnyRequest) -> None:
        """Count the request as executed, so that its evidence does not prove a second request."""
        if isinstance(request, Single):
            self.rows[request.row] -= 1
        self._note(request)

    def _note(self, request: t.AnyRequest) -> None:
        """Note an executed request; a publish commits all transactions that it names."""
        if isinstance(request, Named):
            self.done.add((type(request), request.name))
        elif isinstance(request, t.Publish):
            self.done.update((t.Commit, name) for name in request.names)


def where_sent(placed: Sequence[Placed]) -> list[Placed]:
    """Move each executed request from the place of its answer to the place where it was sent.  A process may be stopped
    between the two for long, while other processes already see the effect.

    A fence stays at the place of its answer, because it holds only from then on.
    """
    sent: dict[int, tuple[Placed, t.AnyRequest]] = {}
    found: list[Placed] = []
    for one in placed:
        entry = one.event
        if isinstance(entry, o.Transacting):
            sent[one.source] = (one, entry.request)
        elif isinstance(entry, o.Transacted) and entry.is_done and not isinstance(entry.request, t.Fence):
            asked = sent.pop(one.source, None)
            if asked is not None and asked[1] == entry.request:
                one = asked[0].with_event(entry, 0.25)
        found.append(one)
    return sorted(found)


def settled(
    placed: Sequence[Placed],
    committed: Sequence[tuple[str | None, Row]],
    residue: Residue,
    passing: Sequence[str] = (),
    past: Past | None = None,
) -> list[Placed]:
    """For each executed request whose answer nobody received, that answer at its place."""
    doubts, found = in_doubt(placed)
    evidence = Evidence([*placed, *found], committed, residue, passing, past)
    for doubt in doubts:
        if evidence.speaks_for(doubt.request):
            evidence.settle(doubt.request)
            found.append(doubt.done())
    return found


def in_doubt(placed: Iterable[Placed]) -> tuple[list[Doubt], list[Placed]]:
    """The requests without an answer, in order, and the answers that other answers imply."""
    askers: dict[int, _Asker] = {}
    for one in placed:
        askers.setdefault(one.source, _Asker()).take(one)
    doubts = [doubt for asker in askers.values() for doubt in asker.doubts()]
    return sorted(doubts, key=lambda doubt: doubt.placed[:3]), [
        one for asker in askers.values() for one in asker.implied
    ]


class _Asker:
    """The requests of one process to the store, and their answers."""

    def __init__(self) -> None:
        self.implied: list[Placed] = []
        self._doubts: list[Doubt] = []
        self._sent: Doubt | None = None
        self._runs: dict[int, tuple[str, int]] = {}
        self._applied: Counter[tuple[str, int]] = Counter()

    def doubts(self) -> list[Doubt]:
        return [*self._doubts, *([self._sent] if self._sent is not None else [])]

    def take(self, placed: Placed) -> None:
        entry = placed.event
        if isinstance(entry, o.TaskStarted):
            self._runs[entry.run] = (entry.task, entry.attempt)
        elif isinstance(entry, o.RecordApplied):
            self._applied[self._runs[entry.run]] += 1
        elif isinstance(entry, o.Transacting):
            request = entry.request
            self._doubts = self.doubts()
            self._sent = Doubt(placed, request, self._applied[request.writer, request.attempt])
        elif isinstance(entry, o.Transacted):
            self._answered(placed, entry)

    def _answered(self, placed: Placed, entry: o.Transacted) -> None:
        request, sent, self._sent = entry.request, self._sent, None
        if entry.answer is o.Answer.NONE:
            self._doubts.append(Doubt(sent.placed if sent is not None else placed, request, entry.applied))
            return
        self._doubts = [doubt for doubt in self._doubts if not _same(doubt.request, request)]
        if entry.is_done:
            self._written(placed, request)

    def _written(self, placed: Placed, request: t.AnyRequest) -> None:
        """The store takes the rows of a writer in order, so this answer implies those of the earlier ones."""
        mine = [doubt for doubt in self._doubts if _implies(request, doubt.request)]
        self._doubts = [doubt for doubt in self._doubts if doubt not in mine]
        for number, doubt in enumerate(mine):
            shift = (number + 1) / (len(mine) + 1) - 1
            # `where_sent` may have put the answer a quarter behind its request, at whose place the request stands
            self.implied.append(placed.with_event(_done(doubt.request, doubt.applied), shift / 4))


def _implies(done: t.AnyRequest, earlier: t.AnyRequest) -> bool:
    """Whether an executed request shows that an earlier one, which wrote rows, was executed too.

    These are single rows of the same attempt, or rows of the same transaction.
    """
    if isinstance(done, Single | t.Flush):
        return isinstance(earlier, Single) and (earlier.writer, earlier.attempt) == (done.writer, done.attempt)
    return isinstance(done, t.Write | t.PreCommit) and isinstance(earlier, t.Write) and earlier.name == done.name


def _same(asked: t.AnyRequest, answered: t.AnyRequest) -> bool:
    """Whether the answer belongs to the request, sent again.  Single rows are never sent again."""
    return asked == answered and not isinstance(asked, Single)


def rolled_back(placed: Sequence[Placed], sources: Sequence[Source]) -> list[Placed]:
    """The aborts that a store does by itself if its open transactions live in sessions.  It aborts the transactions of
    a process that dies, of older attempts when a fence is set up, and all of them when the store itself dies."""
    opened: dict[str, tuple[Placed, Named]] = {}
    found: list[Placed] = []
    to_come = Counter(name for one in placed if (name := _sealed_by(one.event)))

    def abort(at: Placed, aborted: Sequence[str]) -> None:
        for number, name in enumerate(aborted):
            _, begun = opened.pop(name)
            request = t.AbortTransaction(writer=begun.writer, attempt=begun.attempt, name=name)
            found.append(at.with_event(_done(request, 0), (number + 1) / (len(aborted) + 1) / 4))

    for one in placed:
        entry = one.event
        if isinstance(entry, o.Died):
            dead = Source(entry.process, entry.incarnation)
            abort(one, [name for name, (at, _) in opened.items() if sources[at.source] == dead])
        elif isinstance(entry, o.Outage) and entry.began:
            # the aborts stand just before the store's death; a transaction that is sealed later was no longer open
            abort(one, [name for name in opened if not to_come[name]])
        elif isinstance(entry, o.Transacted) and entry.is_done:
            request = entry.request
            if isinstance(request, t.Fence):
                older = (request.writer, request.attempt)
                abort(one, [n for n, (_, b) in opened.items() if b.writer == older[0] and b.attempt < older[1]])
            elif isinstance(request, t.BeginTransaction):
                opened.setdefault(request.name, (one, request))
            elif isinstance(request, t.PreCommit | t.Commit | t.AbortTransaction):
                opened.pop(request.name, None)
                to_come[_sealed_by(entry)] -= 1
    return found


def _sealed_by(entry: o.Observed) -> str:
    """The transaction that this entry seals or commits; empty if there is none."""
    if isinstance(entry, o.Transacted) and entry.is_done:
        return entry.request.name if isinstance(entry.request, t.PreCommit | t.Commit) else ""
    return ""


def _done(request: t.AnyRequest, applied: int) -> o.Transacted:
    return o.Transacted(request, o.Answer.DONE, None, (), applied)


def completed(placed: Sequence[Placed], retained: Iterable[int]) -> list[Placed]:
    """Completed checkpoints whose writer died before it could report them, where a later entry shows them."""
    not_aborted: dict[int, tuple[Placed, o.CheckpointCompleting]] = {}
    shown: set[int | None] = set(retained)
    for one in placed:
        entry = one.event
        if isinstance(entry, o.CheckpointCompleting):
            not_aborted.setdefault(entry.snapshot.checkpoint, (one, entry))
        shown.add(_shows(entry))
    for one in placed:
        if isinstance(one.event, o.CheckpointCompleted):
            not_aborted.pop(one.event.snapshot.checkpoint, None)
    return [
        one.with_event(o.CheckpointCompleted(entry.snapshot), 0.25)
        for checkpoint, (one, entry) in not_aborted.items()
        if checkpoint in shown
    ]


def _shows(entry: o.Observed) -> int | None:
    """The checkpoint that an entry proves complete by naming it, or None."""
    if isinstance(entry, o.StatusChanged):
        return entry.change.restores if isinstance(entry.change, AttemptStarted) else None
    return entry.checkpoint if isinstance(entry, o.SnapshotsDeleted | o.JobEnded | o.CommandReturned) else None
