"""Sinks: where rows leave the engine.

A transactional sink is a two-phase commit (ABS-11).  Rows go into a transaction.  A
barrier seals it (pre-commit), and the completed checkpoint commits it.  A restored sink
commits the transactions in its snapshot and aborts the rest.  An idempotent sink replaces
rows by identity.  A plain sink appends them, so that a replay is visible twice (ABS-17).

Before they write, all three fence older attempts of themselves.  They acknowledge a
checkpoint only when everything sent before it is in the external store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ..decisions.commits import Again, Postponed, Refused, SealStep, Verdict, verdict_on
from ..decisions.parts import Parts
from ..job.config import Config
from ..vocabulary.effects import Effect, Fail, Mail, SetTimer, Transact
from ..vocabulary.errors import expect
from ..vocabulary.events import Answered, Mailed, TimerFired
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Complete, Record, Terminate
from ..vocabulary.state import Sealed, Snapshot, TaskState
from ..vocabulary.timeouts import RetryRequest
from ..vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    Append,
    Begin,
    Commit,
    Denied,
    Done,
    Fence,
    Flush,
    Outcome,
    PreCommit,
    Row,
    Upsert,
    Write,
    id_of,
    writer_in,
)
from .input_task import InputTask
from .task import NO_CHECKPOINT, TaskSpec


class SinkTask(InputTask):
    """What all sinks share: requests to the external store, and waiting for them."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self._numbers = 0
        self._asked: dict[int, AnyRequest] = {}
        self._unwritten: list[tuple[set[int], CheckpointId, Snapshot]] = []
        """snapshots, each with the requests for which it waits"""
        self.terminating = False
        """it was notified that a checkpoint covers all its work: it commits, then finishes"""

    def ask(self, request: AnyRequest) -> Transact:
        self._numbers += 1
        self._asked[self._numbers] = request
        return Transact(self._numbers, request)

    def transact(self, request: AnyRequest) -> Transact:
        """A request whose answer matters only if it is a refusal."""
        self._numbers += 1
        return Transact(self._numbers, request)

    def on_answered(self, event: Answered) -> list[Effect]:
        request = self._asked.get(event.number)
        if request is None:
            return self._refused(event.outcome.reason) if isinstance(event.outcome, Denied) else []
        verdict = self.verdict(request, event.outcome)
        if isinstance(verdict, Again):
            return [SetTimer(RetryRequest(event.number), self.config.retry_us)]
        del self._asked[event.number]
        if isinstance(verdict, Refused):
            return self._refused(verdict.reason)
        return self.on_done(event.number, request, event.outcome)

    def verdict(self, request: AnyRequest, outcome: Outcome) -> Verdict:
        return verdict_on(outcome)

    def _refused(self, reason: str) -> list[Effect]:
        return [Fail(f"{self.spec.task}: the external store refused: {reason}")]

    def on_done(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        effects: list[Effect] = []
        for numbers, checkpoint, snapshot in self._unwritten:
            numbers.discard(number)
            if not numbers:
                effects.extend(self.write(checkpoint, snapshot))
        self._unwritten = [waiting for waiting in self._unwritten if waiting[0]]
        return effects

    def on_timer(self, event: TimerFired) -> list[Effect]:
        if isinstance(event.timeout, RetryRequest):
            number = event.timeout.number
            return [Transact(number, self._asked[number])] if number in self._asked else []
        return super().on_timer(event)

    def write_after(self, numbers: set[int], checkpoint: CheckpointId, snapshot: Snapshot) -> list[Effect]:
        """Have a snapshot written when these requests are done; now, if there are none."""
        if not numbers:
            return self.write(checkpoint, snapshot)
        self._unwritten.append((numbers, checkpoint, snapshot))
        return []

    def opened(self) -> list[Effect]:
        fence = self.parts.sink_recovery.fence(self.spec.task, self.spec.attempt)
        return [self.ask(fence)]

    def open_inputs(self) -> list[Effect]:
        return super().opened()


class DirectSink(SinkTask):
    """A plain or idempotent sink: each row is visible at once."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts, identity: str = "") -> None:
        super().__init__(spec, config, parts)
        self._identity = identity
        """"key" or "row": by this rows replace each other; "" for a plain sink"""

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        spec, row = self.spec, (record.key, record.value, record.tag, record.tag2)
        if not self._identity:
            return [self.transact(Append(writer=spec.task, attempt=spec.attempt, row=row))]
        identity = self.parts.naming.identity(row, self._identity == "key", spec.attempt)
        return [self.transact(Upsert(writer=spec.task, attempt=spec.attempt, identity=identity, row=row))]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        flush = self.ask(Flush(writer=self.spec.task, attempt=self.spec.attempt))
        return [flush, *self.write_after({flush.number}, checkpoint, self.snapshot_now())]

    def on_done(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        if not self.running:
            return self.open_inputs()
        effects = super().on_done(number, request, outcome)
        return [*effects, *self.finish()] if self.terminating and not self._asked else effects

    def on_terminate(self, message: Terminate) -> list[Effect]:
        if self.terminating:
            return []
        self.terminating = True
        return [self.ask(Flush(writer=self.spec.task, attempt=self.spec.attempt))]


class TransactionalSink(SinkTask):
    """Two-phase commit against the external transaction store."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self.sealed: list[Sealed] = []
        self.current: str | None = None
        self.rows_in_current = 0
        self._gathered: list[Row] = []
        self._serial = 0
        self._last_sealed = NO_CHECKPOINT
        self._recovering = False
        self._unfinished: tuple[tuple[str, CheckpointId | None], ...] = ()
        """the unfinished transactions in the store, of the writers for which this task is responsible"""

    # -- rows ----------------------------------------------------------------------

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        self._gathered.append((record.key, record.value, record.tag, record.tag2))
        return self.flush() if len(self._gathered) >= self.config.write_batch else []

    def flush(self) -> list[Effect]:
        """Send the gathered rows into the open transaction."""
        if not self._gathered or self.current is None:
            return []
        rows, self._gathered = tuple(self._gathered), []
        self.rows_in_current += len(rows)
        spec = self.spec
        return [self.transact(Write(writer=spec.task, attempt=spec.attempt, name=self.current, rows=rows))]

    # -- pre-commit ----------------------------------------------------------------

    def begin_transaction(self) -> list[Effect]:
        """Open the next transaction, unless the current one goes on or no rows will come."""
        if self.current is not None or self.terminating:
            return []
        spec, self._serial = self.spec, self._serial + 1
        self.current = self._new_name()
        self.rows_in_current = 0
        return [self.transact(Begin(writer=spec.task, attempt=spec.attempt, name=self.current))]

    def _new_name(self) -> str:
        """A new name; or the first transactional id that no sealed transaction holds, with an epoch."""
        spec, naming = self.spec, self.parts.naming
        if not self.config.pooled_ids:
            return naming.transaction(spec.job, spec.task, spec.attempt, self._serial, self._last_sealed)
        held = [id_of(one.name) for one in self.sealed]
        names = (naming.pooled(spec.job, spec.task, number, spec.attempt, self._serial) for number in count())
        return next(name for name in names if id_of(name) not in held)

    def seal_current(self, checkpoint: CheckpointId) -> list[Effect]:
        """Seal the open transaction for a checkpoint; an empty one stays open."""
        self._last_sealed = checkpoint
        if self.current is None or not self.parts.pre_committing.seals(self.rows_in_current):
            return []
        spec, name = self.spec, self.current
        self.sealed.append(Sealed(name, checkpoint))
        self.current = None
        return [self.ask(PreCommit(writer=spec.task, attempt=spec.attempt, name=name, checkpoint=checkpoint))]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Seal first; the snapshot is written when the transactions to which it refers are sealed."""
        effects: list[Effect] = []
        for step in self.parts.pre_committing.steps():
            if isinstance(step, Postponed):
                effects.append(Mail((step.steps, checkpoint)))
            else:
                effects.extend(self._carry_out(step, checkpoint))
        snapshot = self.snapshot_now()
        unsealed = {number for number, request in self._asked.items() if isinstance(request, PreCommit)}
        return [*effects, *self.write_after(unsealed, checkpoint, snapshot)]

    def _carry_out(self, step: SealStep, checkpoint: CheckpointId) -> list[Effect]:
        if step is SealStep.flush:
            return self.flush()
        return self.seal_current(checkpoint) if step is SealStep.seal else self.begin_transaction()

    def on_mail(self, event: Mailed) -> list[Effect]:
        steps, checkpoint = event.mail
        return [effect for step in steps for effect in self._carry_out(step, checkpoint)]

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.transactions = list(self.sealed)
        state.serial = self._serial
        return state

    # -- commit --------------------------------------------------------------------

    def on_complete(self, message: Complete) -> list[Effect]:
        due = self.parts.committing.due(self.sealed, message.checkpoint)
        return [*super().on_complete(message), *self.commit(due)]

    def commit(self, sealed: list[Sealed]) -> list[Effect]:
        """Request the commit of transactions for which it is not requested already."""
        asked = self._asked_commits()
        spec, committing = self.spec, self.parts.committing
        return [
            self.ask(committing.request(self._writer(transaction.name), spec.attempt, transaction.name))
            for transaction in sealed
            if transaction.name not in asked
        ]

    def _asked_commits(self) -> list[str]:
        """The transactions whose commit has no definite answer yet."""
        return [request.name for request in self._asked.values() if isinstance(request, Commit)]

    def verdict(self, request: AnyRequest, outcome: Outcome) -> Verdict:
        if isinstance(request, Commit):
            return self.parts.committing.verdict(outcome, self._recovering)
        return super().verdict(request, outcome)

    def on_done(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        if isinstance(request, Fence):
            self._unfinished = (*self._unfinished, *expect(outcome, Done).unfinished)
            waits = any(isinstance(asked, Fence) for asked in self._asked.values())
            return [] if waits else self._recover()
        if isinstance(request, Commit):
            self.sealed = [transaction for transaction in self.sealed if transaction.name != request.name]
        effects = super().on_done(number, request, outcome)
        if self._recovering and not self._asked_commits():
            self._recovering = False
            return [*effects, *self.begin_transaction(), *self.open_inputs()]
        return [*effects, *self._finish_if_settled()]

    def end_input(self) -> list[Effect]:
        """The last data: the final checkpoint commits it; without one it is committed or dropped now (FIN-9)."""
        effects = super().end_input()
        if self.config.finishing == "commit-at-finish":
            before = len(self.sealed)
            effects.extend([*self.flush(), *self.seal_current(self._last_sealed), *self.commit(self.sealed[before:])])
        elif self.config.finishing == "discard-at-finish":
            self._gathered = []
            effects.extend(self._drop([self.current] if self.current is not None else []))
            self.current = None
        return effects

    def _drop(self, names: Sequence[str]) -> list[Effect]:
        """Have these transactions aborted before the task finishes: repeat the request until its answer is definite.

        If a request is lost when the store crashes, sealed transactions remain, and no later attempt may look for them.
        """
        attempt = self.spec.attempt
        return [self.ask(AbortTransaction(writer=self._writer(name), attempt=attempt, name=name)) for name in names]

    def _settle(self) -> list[Effect]:
        """Without a final checkpoint: commit or drop what no complete checkpoint has committed by now (FIN-9)."""
        if self.config.finishing == "commit-at-finish":
            return self.commit(self.sealed)
        dropped, self.sealed = self.sealed, []
        return self._drop([transaction.name for transaction in dropped])

    # -- recovery and the end ------------------------------------------------------

    def take_over(self, state: TaskState) -> None:
        super().take_over(state)
        self.sealed = self.parts.sink_recovery.taken_over(state.transactions)
        self._serial = state.serial

    def _writer(self, name: str) -> TaskId:
        """The task that began a transaction: this one, or one that the job no longer has, for which this one is
        responsible (OPS-2)."""
        return writer_in(name) or self.spec.task

    def opened(self) -> list[Effect]:
        """Fence older attempts of all writers for which this task is responsible."""
        others = dict.fromkeys(self._writer(transaction.name) for transaction in self.sealed)
        fence, attempt = self.parts.sink_recovery.fence, self.spec.attempt
        return [*super().opened(), *(self.ask(fence(one, attempt)) for one in others if one != self.spec.task)]

    def _recover(self) -> list[Effect]:
        """Commit the transactions of the restored snapshot, abort the other unfinished ones, then open."""
        self._recovering = True
        recovery = self.parts.sink_recovery
        commits = self.commit(recovery.to_commit(self.sealed))
        aborts = self._drop(recovery.to_abort(self.sealed, self._unfinished))
        if commits:
            return [*commits, *aborts]
        self._recovering = False
        return [*aborts, *self.begin_transaction(), *self.open_inputs()]

    def on_terminate(self, message: Terminate) -> list[Effect]:
        self.terminating = True
        if self.config.settles_at_finish:
            return [*self._settle(), *self._finish_if_settled()]
        due = self.parts.committing.due(self.sealed, message.checkpoint or NO_CHECKPOINT)
        return [*self.commit(due), *self._finish_if_settled()]

    def _finish_if_settled(self) -> list[Effect]:
        """If every due commit is done, abort the open transaction, which is empty, and finish."""
        if not self.terminating or self._asked or self.finished:
            return []
        name = self.parts.finishing.dropped(self.current)
        if name is not None:
            self.current = None
            spec = self.spec
            return [self.ask(AbortTransaction(writer=spec.task, attempt=spec.attempt, name=name))]
        return self.finish()
