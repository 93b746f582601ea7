"""Sessions between sinks and the external transaction store; each keeps its order, and answers take time."""

from __future__ import annotations

from typing import Protocol

from ... import observed as o
from ...core.vocabulary.events import Answered
from ...core.vocabulary.transactions import (
    AnyRequest,
    Append,
    BeginTransaction,
    Commit,
    CommitRequest,
    Denied,
    Finalise,
    NoAnswer,
    Outcome,
    PreCommit,
    Publish,
    Upsert,
    Write,
    names_of,
)
from ..arms import Arms
from ..ports import Actor, External, Faults, Site


class SessionsWorld(Site, Faults, Protocol):
    """What sessions with the external store need of their world."""

    def read_sink(self) -> None:
        """A read-committed reader looks at the sink."""


POINTS: dict[type, str] = {
    BeginTransaction: "transaction-begun",
    Write: "transaction-written",
    PreCommit: "transaction-pre-committed",
    Commit: "commit-requested",
    Finalise: "commit-requested",
    Publish: "commit-requested",
    Append: "row-written",
    Upsert: "row-written",
}
QUIET = (Append, Upsert, Write, BeginTransaction)
"""Requests that are answered only by a refusal."""


class Sessions:
    """Carries requests to the store and answers back; the requests of one sender stay in order."""

    def __init__(self, world: SessionsWorld, store: External, arms: Arms) -> None:
        self.world = world
        self.store = store
        self.arms = arms
        self._clear_at: dict[str, int] = {}
        self._expired: dict[str, int] = {}
        """by name: transactions that a fault made the store abort, and the fault"""

    def send(self, asker: Actor, number: int, request: AnyRequest, applied: int) -> None:
        """Send a request; `Answered(number, …)` follows, for some kinds only if they are refused.  `applied`: how many
        records the asker has applied."""
        point = POINTS.get(type(request))
        if point is not None and not self.world.points.reach(point, asker.name, "before", asker):
            return
        if isinstance(request, CommitRequest):
            for name in names_of(request):
                self.world.observer.saw(o.CommitRequested(name))
        loop = self.world.loop
        arrival = loop.now + self.world.settings.transaction_us
        if self.world.perturbations.any:
            arrival += self.world.perturbations.late(f"transaction {asker.name}")
        arrival = max(arrival, self._clear_at.get(asker.name, 0))
        self._clear_at[asker.name] = arrival
        loop.at(arrival, self._arrive, (asker, number, applied), request)
        if point is not None:
            self.world.points.reach(point, asker.name, "after", asker)

    @property
    def has_sent(self) -> bool:
        """Whether some request has not arrived yet."""
        return any(arrival > self.world.loop.now for arrival in self._clear_at.values())

    def _arrive(self, sender: tuple[Actor, int, int], request: AnyRequest) -> None:
        asker, number, applied = sender
        owed_to: int | None = None
        if isinstance(request, CommitRequest):
            outcome, owed_to = self._commit(asker, request)
        else:
            outcome = self._done(request, applied)
        if isinstance(request, QUIET) and not isinstance(outcome, Denied):
            return
        silent = isinstance(outcome, NoAnswer) and not outcome.at_once
        delay_us = self.world.settings.transaction_timeout_us if silent else self.world.settings.transaction_us
        self.world.loop.after(delay_us, self._answer, (asker, number), (request, outcome, owed_to))

    def _done(self, request: AnyRequest, applied: int) -> Outcome:
        outcome = self.store.handle(request)
        self.world.observer.saw(o.Transacted.of(request, outcome, applied))
        return outcome

    def _commit(self, asker: Actor, request: CommitRequest) -> tuple[Outcome, int | None]:
        """Commit, with the faults for commits: refused, not answered, or done and not answered.  Besides the outcome it
        returns the fault to which a refusal is owed."""
        for how in ("refused", "unavailable", "lost-response"):
            for target in (asker.name, None):
                fault = self.arms.take(how, target)
                if fault is None:
                    continue
                names = names_of(request)
                detail = f"the commit of {', '.join(names)}: {how}"
                self.world.fired(fault, detail, asker.attempt, o.StruckCommit(tuple(names), how))
                if how == "lost-response":
                    self._done(request, 0)
                return NoAnswer(reason=how, at_once=how == "refused"), None
        outcome = self._expired_or_done(asker, request)
        known = [name for name in names_of(request) if name in self._expired]
        return outcome, self._expired[known[0]] if isinstance(outcome, Denied) and known else None

    def _expired_or_done(self, asker: Actor, request: CommitRequest) -> Outcome:
        """Commit, unless a fault makes the store's timeout abort the transaction just before."""
        if not isinstance(request, Commit | Finalise):
            return self._done(request, 0)
        for target in (asker.name, None):
            fault = self.arms.take("expired", target)
            if fault is None:
                continue
            self.arms.arm("expired", target, fault)  # the world may disarm it in `expire`
            if self.world.expire(fault, request.name, asker.attempt):
                self.arms.take("expired", target)
                self._expired[request.name] = fault
            break
        return self._done(request, 0)

    def _answer(self, asked: tuple[Actor, int], answer: tuple[AnyRequest, Outcome, int | None]) -> None:
        (asker, number), (request, outcome, owed_to) = asked, answer
        answered = isinstance(request, CommitRequest)
        if answered and not self.world.points.reach("commit-answered", asker.name, "before", asker):
            return
        asker.deliver(Answered(number, outcome), owed_to)
        if answered:
            self.world.read_sink()
            self.world.points.reach("commit-answered", asker.name, "after", asker)
