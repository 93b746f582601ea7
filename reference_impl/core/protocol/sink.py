"""The transactional sink: rows leave the engine by two-phase commit (ABS-11).

The protocol is Gray's ("Notes on Data Base Operating Systems", 1978), used as Flink's sinks use it, by its
documentation.  Rows go into a transaction.  A barrier is the request to prepare: it seals the transaction (pre-commit).
A complete checkpoint is the decision, and commits it.  A restored sink commits the transactions in its snapshot and
aborts the rest.

Before it writes, a sink fences older attempts of itself, and of the writers whose transactions it was given.  It
acknowledges a checkpoint only when everything sent before it is in the external store.  Sinks without transactions are
in `direct_sink`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ..decisions.commits import SealStep, Verdict, verdict_on
from ..decisions.postponed import Postponed
from ..vocabulary.effects import Effect, Mail, SnapshotTaken, Transact
from ..vocabulary.errors import expect
from ..vocabulary.events import Answered, Letter, Mailed
from ..vocabulary.ids import CheckpointId, TaskId
from ..vocabulary.messages import Record
from ..vocabulary.state import Sealed, Snapshot, TaskState, as_kept, read_back
from ..vocabulary.timeouts import RetryRequest
from ..vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    BeginTransaction,
    Commit,
    Done,
    Fence,
    Outcome,
    PreCommit,
    Row,
    Unfinished,
    Write,
)
from .input_task import Handler, InputTask

VerdictOf = Callable[[AnyRequest, Outcome], Verdict]
"""What an answer to a request means: a definite one settles it, after any other it is repeated."""
OnSettled = Callable[[int, AnyRequest, Outcome], list[Effect]]
"""What is done when a request, of this number, is settled."""


class StoreRequests(Protocol):
    """The requests of one task to the external store: each is repeated until the answer is definite; see
    `store_requests`."""

    asked: dict[int, AnyRequest]
    """by number: those that have no definite answer yet"""

    def ask(self, request: AnyRequest) -> Transact:
        """A request whose answer is awaited."""
        ...

    def transact(self, request: AnyRequest) -> Transact:
        """A request whose answer matters only if it is a refusal."""
        ...

    def answered(
        self, event: Answered, task: InputTask, verdict_of: VerdictOf, on_settled: OnSettled
    ) -> list[Effect]: ...

    def repeated(self, number: int) -> list[Effect]: ...

    def write_after(
        self, task: InputTask, numbers: set[int], checkpoint: CheckpointId, snapshot: Snapshot
    ) -> list[Effect]:
        """Have a snapshot written when these requests are settled; now, if there are none."""
        ...

    def written_after(self, task: InputTask, number: int) -> list[Effect]:
        """Have the snapshots written for which this request was the last."""
        ...


class AwaitingFences(msgspec.Struct, frozen=True):
    """It shuts out older attempts, and learns which transactions they left unfinished."""

    answers: tuple[tuple[TaskId, Done], ...] = ()
    """by writer for which this task is responsible"""


class Recovering(msgspec.Struct, frozen=True):
    """It commits the transactions of the restored snapshot."""


class Writing(msgspec.Struct, frozen=True):
    """It writes rows."""


Phase = AwaitingFences | Recovering | Writing


class PostponedPreCommit(Letter, frozen=True):
    """Steps of a pre-commit that are still to be carried out."""

    steps: tuple[SealStep, ...]
    checkpoint: CheckpointId


class CommitterBehind(Protocol):
    """It commits in a transactional sink's place; see `committing`."""

    def send(self, sealed: Sequence[Sealed], task: InputTask) -> list[Effect]:
        """Send sealed transactions on to it, before the barrier."""
        ...

    def held(self, unfinished: Sequence[Unfinished], task: InputTask) -> list[Sealed]:
        """Of a restored task's unfinished transactions, those that the committer has."""
        ...


class OpenTransaction(msgspec.Struct):
    """The transaction into which rows go."""

    name: str
    pooled_id: str | None = None
    rows: int = 0
    """that were sent into it"""


class TransactionNames(Protocol):
    """How transactions are named; see `transaction_names`."""

    serial: int
    """how many the sink has begun, in all its attempts"""

    def next(self, sealed: Sequence[Sealed]) -> OpenTransaction:
        """The next transaction, under a name that no unfinished one has."""
        ...


class TransactionalSink:
    """Two-phase commit against the external transaction store."""

    task: InputTask

    def __init__(
        self,
        names: TransactionNames,
        requests: StoreRequests,
        committer: CommitterBehind | None = None,
        *,
        passes_on: bool = False,
    ) -> None:
        """`committer`: None if the sink itself commits.  `passes_on`: it emits each row too, as an operator does."""
        self.sealed: list[Sealed] = []
        self.current: OpenTransaction | None = None
        self._gathered: list[Row] = []
        self._names = names
        self._last_barrier: CheckpointId | None = None
        """the checkpoint of the last barrier, if any came.  With *commit-at-finish* a transaction that is sealed at the
        end of the input counts for this checkpoint (FIN-9)"""
        self._phase: Phase = AwaitingFences()
        self._committer = committer
        self._passes_on = passes_on
        self._requests = requests
        self._ask = requests.ask

    def also_takes(self) -> Mapping[type, Handler]:
        return {Answered: self.on_answered, RetryRequest: self.repeat, Mailed: self.on_mail}

    # -- rows ----------------------------------------------------------------------

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        self._gathered.append((record.key, record.value, record.tag, record.tag2))
        flushed = self._flush() if len(self._gathered) >= self.task.config.write_batch else []
        return [*flushed, *self.task.emit((record,))] if self._passes_on else flushed

    def _flush(self) -> list[Effect]:
        """Send the gathered rows into the open transaction."""
        if not self._gathered or self.current is None:
            return []
        rows, self._gathered = tuple(self._gathered), []
        self.current.rows += len(rows)
        spec, name = self.task.spec, self.current.name
        return [self._requests.transact(Write(writer=spec.task, attempt=spec.attempt, name=name, rows=rows))]

    # -- pre-commit ----------------------------------------------------------------

    def _begin_transaction(self) -> list[Effect]:
        """Open the next transaction, unless the current one goes on or no rows will come."""
        if self.current is not None or self.task.awaits_commits:
            return []
        spec = self.task.spec
        self.current = self._names.next(self.sealed)
        return [
            self._requests.transact(BeginTransaction(writer=spec.task, attempt=spec.attempt, name=self.current.name))
        ]

    def _seal(self, checkpoint: CheckpointId | None) -> list[Effect]:
        """Seal the open transaction for a checkpoint; an empty one stays open."""
        effects = self._seal_current(checkpoint)
        if self._committer is None:
            return effects
        sealed, self.sealed = self.sealed, []
        return [*effects, *self._committer.send(sealed, self.task)]

    def _seal_current(self, checkpoint: CheckpointId | None) -> list[Effect]:
        self._last_barrier = checkpoint
        if self.current is None or not self.task.parts.pre_committing.seals(self.current.rows):
            return []
        spec, name = self.task.spec, self.current.name
        self.sealed.append(Sealed(name, checkpoint, spec.task, self.current.pooled_id))
        self.current = None
        return [self._ask(PreCommit(writer=spec.task, attempt=spec.attempt, name=name, checkpoint=checkpoint))]

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        """Request that the transaction be sealed.  The snapshot is written once the store has answered."""
        effects: list[Effect] = [SnapshotTaken(checkpoint)]
        for step in self.task.parts.pre_committing.steps():  # flush, seal, begin the next one
            if isinstance(step, Postponed):
                effects.append(Mail(PostponedPreCommit(step.steps, checkpoint)))
            else:
                effects.extend(self._carry_out(step, checkpoint))
        snapshot = self.task.current_snapshot()
        unsealed = {number for number, request in self._requests.asked.items() if isinstance(request, PreCommit)}
        return [*effects, *self._requests.write_after(self.task, unsealed, checkpoint, snapshot)]

    def _carry_out(self, step: SealStep, checkpoint: CheckpointId) -> list[Effect]:
        if step is SealStep.flush:
            return self._flush()
        return self._seal(checkpoint) if step is SealStep.seal else self._begin_transaction()

    def on_mail(self, event: Mailed) -> list[Effect]:
        postponed = expect(event.letter, PostponedPreCommit)
        return [effect for step in postponed.steps for effect in self._carry_out(step, postponed.checkpoint)]

    def describe(self, state: TaskState) -> None:
        state.transactions = as_kept(self.sealed)
        state.serial = self._names.serial

    # -- commit --------------------------------------------------------------------

    def on_complete(self, checkpoint: CheckpointId) -> list[Effect]:
        due = self.task.parts.committing.due(self.sealed, checkpoint)  # those sealed for it or for an earlier one
        return self._commit(due)

    def _commit(self, sealed: Sequence[Sealed]) -> list[Effect]:
        """Request the commit of transactions for which it is not requested already."""
        asked = self._asked_commits()
        attempt, committing = self.task.spec.attempt, self.task.parts.committing
        return [
            self._ask(committing.request(transaction.writer, attempt, transaction.name))
            for transaction in sealed
            if transaction.name not in asked
        ]

    def _asked_commits(self) -> list[str]:
        """The transactions whose commit has no definite answer yet."""
        return [request.name for request in self._requests.asked.values() if isinstance(request, Commit)]

    def on_answered(self, event: Answered) -> list[Effect]:
        return self._requests.answered(event, self.task, self._verdict_of, self._on_settled)

    def _verdict_of(self, request: AnyRequest, outcome: Outcome) -> Verdict:
        if not isinstance(request, Commit):
            return verdict_on(outcome)
        parts = self.task.parts
        decision = parts.sink_recovery if isinstance(self._phase, Recovering) else parts.committing
        return decision.verdict(outcome)

    def _on_settled(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        if isinstance(request, Fence):
            return self._on_fenced(expect(self._phase, AwaitingFences), request.writer, expect(outcome, Done))
        if isinstance(request, Commit):
            self.sealed = [transaction for transaction in self.sealed if transaction.name != request.name]
        effects = self._requests.written_after(self.task, number)
        if isinstance(self._phase, Recovering) and not self._asked_commits():
            return [*effects, *self._start_writing()]
        return [*effects, *self._finish_if_settled()]

    def repeat(self, timeout: RetryRequest) -> list[Effect]:
        """It is time to repeat a request."""
        return self._requests.repeated(timeout.number)

    def on_end(self) -> list[Effect]:
        """The last data: the final checkpoint commits it; without one it is committed or discarded now (FIN-9)."""
        end, finishing = self.task.end_input(), self.task.config.finishing
        if finishing == "commit-at-finish":
            before = len(self.sealed)
            return [*end, *self._flush(), *self._seal(self._last_barrier), *self._commit(self.sealed[before:])]
        if finishing == "discard-at-finish":
            self._gathered = []
            left_open, self.current = self.current, None
            return [*end, *(self._abort(self.task.spec.task, left_open.name) if left_open is not None else [])]
        return end

    def _abort(self, writer: TaskId, *names: str) -> list[Effect]:
        """Have a writer's transactions aborted before the task finishes: repeat the request until its answer is
        definite.

        If a request is lost when the store crashes, sealed transactions remain, and there may be no later attempt that
        looks for them.
        """
        attempt = self.task.spec.attempt
        return [self._ask(AbortTransaction(writer=writer, attempt=attempt, name=name)) for name in names]

    def _commit_or_discard(self) -> list[Effect]:
        """Without a final checkpoint: commit or discard what no complete checkpoint has committed by now (FIN-9)."""
        if self.task.config.finishing == "commit-at-finish":
            return self._commit(self.sealed)
        aborted, self.sealed = self.sealed, []
        return [effect for one in aborted for effect in self._abort(one.writer, one.name)]

    # -- recovery and the end ------------------------------------------------------

    def adopt(self, state: TaskState) -> None:
        self.sealed = read_back(state.transactions)
        self._names.serial = state.serial

    def on_restored(self) -> list[Effect]:
        """Fence older attempts of all writers for which this task is responsible: itself, and those that the job no
        longer has and whose transactions it was given (OPS-2)."""
        task, attempt = self.task.spec.task, self.task.spec.attempt
        writers = dict.fromkeys([task, *(transaction.writer for transaction in self.sealed)])
        fence = self.task.parts.sink_recovery.fence
        return [self._ask(fence(writer, attempt)) for writer in writers]

    def _on_fenced(self, phase: AwaitingFences, writer: TaskId, answer: Done) -> list[Effect]:
        """Commit the transactions of the restored snapshot, abort the unfinished ones that are not among them; then
        open the inputs."""
        answers = (*phase.answers, (writer, answer))
        self._phase = AwaitingFences(answers)
        if any(isinstance(asked, Fence) for asked in self._requests.asked.values()):
            return []
        if self._committer is not None:
            return [*self._abort_others(answers), *self._start_writing()]
        self._phase = Recovering()
        commits = self._commit(self.task.parts.sink_recovery.to_commit(self.sealed, self.task.starts_from))
        aborts = self._abort_others(answers)
        return [*commits, *aborts] if commits else [*aborts, *self._start_writing()]

    def _abort_others(self, answers: Sequence[tuple[TaskId, Done]]) -> list[Effect]:
        """Abort what these writers left unfinished, except what the restored snapshot has sealed: this sink commits
        that, or the committer behind it does."""
        effects: list[Effect] = []
        for writer, answer in answers:
            unfinished = answer.unfinished
            promised = self._committer.held(unfinished, self.task) if self._committer is not None else self.sealed
            effects += self._abort(writer, *self.task.parts.sink_recovery.to_abort(promised, unfinished))
        return effects

    def _start_writing(self) -> list[Effect]:
        self._phase = Writing()
        return [*self._begin_transaction(), *self.task.open_inputs()]

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        self.task.await_commits()
        if not self.task.config.has_final_checkpoint:
            return [*self._commit_or_discard(), *self._finish_if_settled()]
        commits = self.on_complete(checkpoint) if checkpoint is not None else []
        return [*commits, *self._finish_if_settled()]

    def _finish_if_settled(self) -> list[Effect]:
        """If every due commit is done, abort the open transaction, which is empty, and finish behind that."""
        asked, left_open = self._requests.asked, self.current
        if not self.task.awaits_commits:
            return []
        if self.task.parts.finishing.may_finish(len(asked), is_open=left_open is not None):
            return self.task.finish()
        if asked or left_open is None:
            return []
        self.current = None
        return self._abort(self.task.spec.task, left_open.name)
