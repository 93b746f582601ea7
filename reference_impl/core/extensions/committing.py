"""A sink in three stages: writers, committers and a global committer (ABS-11).

At the barrier a writer seals its rows into a transaction.  It sends the transaction's
handle, a committable, to its committer before the barrier, so that the committer has
it in the same checkpoint.  The committer keeps committables in its state until their
checkpoint is complete, then commits them, and repeats the request until the answer is
definite.

With a global committer the committer's request makes a transaction final, but not yet
visible.  The committer then sends the committable on.  It also sends up to which
checkpoint it has sent all its committables.  The global committer waits until it has
this from every committer, and publishes a checkpoint's transactions in one step.  The
coordinator's notification that a checkpoint is complete does not prove that its
committables have arrived: control messages overtake data (FLINK-24530).

Between commit and publication a committable is always in exactly one snapshot: the
committer's until it is sent on, then the global committer's.  A committer in front of a
global one sends committables even after all its input has ended, so it stays until the
job ends.

Committables are plain entries of a state, each with one owner, so that a rescaled job
can redistribute them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..decisions.commits import Verdict
from ..decisions.parts import Parts
from ..job.config import Config
from ..protocol.sink import SinkTask, TransactionalSink
from ..protocol.task import NO_CHECKPOINT, TaskSpec
from ..vocabulary.effects import Effect
from ..vocabulary.events import Arrived
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Committable, Complete, EndOfPartition, Settled, Terminate
from ..vocabulary.state import Sealed, TaskState
from ..vocabulary.transactions import AnyRequest, Commit, CommitRequest, Finalise, Outcome, Publish, names_of

EVERYTHING = CheckpointId((1 << 62) - 1)
"""What is settled in a channel in which nothing follows."""


class WriterSink(TransactionalSink):
    """It writes and seals; the committers behind it commit."""

    def seal_current(self, checkpoint: CheckpointId) -> list[Effect]:
        effects = super().seal_current(checkpoint)
        handed, self.sealed = self.sealed, []
        return [*effects, *(e for one in handed for e in self.broadcast(Committable(one.name, one.checkpoint)))]

    def _recover(self) -> list[Effect]:
        """The committer has what was sealed up to the restored checkpoint; all else that is unfinished is aborted."""
        handed = [
            Sealed(name, checkpoint)
            for name, checkpoint in self._unfinished
            if checkpoint is not None and checkpoint <= self.restored_checkpoint
        ]
        aborts = self._drop(self.parts.sink_recovery.to_abort(handed, self._unfinished))
        return [*aborts, *self.begin_transaction(), *self.open_inputs()]


class CommittingTask(SinkTask, ABC):
    """What both kinds of committers share: committables in the state, and commits of them."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self.sealed: list[Sealed] = []
        self.notified = NO_CHECKPOINT
        """the newest checkpoint that it knows to be complete"""
        self._recovering = False

    def on_arrived(self, event: Arrived) -> list[Effect]:
        element = event.element
        if type(element) is Committable:
            self.accept(Sealed(element.name, element.checkpoint))
            return []
        return super().on_arrived(event)

    def accept(self, committable: Sealed) -> None:
        """Keep a committable, once: the last state of a finished committer is sent again."""
        if committable not in self.sealed:
            self.sealed.append(committable)

    @abstractmethod
    def commit(self) -> list[Effect]:
        """Request the commits that are due and not requested already."""

    def on_complete(self, message: Complete) -> list[Effect]:
        self.notified = max(self.notified, message.checkpoint)
        return self.commit()

    def on_terminate(self, message: Terminate) -> list[Effect]:
        self.terminating = True
        self.notified = max(self.notified, message.checkpoint or NO_CHECKPOINT)
        return [*self.commit(), *self.finish_if_settled()]

    @abstractmethod
    def finish_if_settled(self) -> list[Effect]:
        """Finish if nothing is left to commit or to send on."""

    def asked_for(self) -> list[str]:
        """The transactions in requests that have no answer yet."""
        requests = self._asked.values()
        return [name for request in requests if isinstance(request, CommitRequest) for name in names_of(request)]

    def verdict(self, request: AnyRequest, outcome: Outcome) -> Verdict:
        return self.parts.committing.verdict(outcome, self._recovering)

    def settle(self, request: AnyRequest) -> list[Sealed]:
        """A commit is done: its committables leave the state."""
        names = names_of(request) if isinstance(request, CommitRequest) else ()
        done = [one for one in self.sealed if one.name in names]
        self.sealed = [one for one in self.sealed if one.name not in names]
        self._recovering = self._recovering and bool(self._asked)
        return done

    # -- recovery ------------------------------------------------------------------

    def take_over(self, state: TaskState) -> None:
        super().take_over(state)
        self.sealed = self.parts.sink_recovery.taken_over(state.transactions)

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.transactions = list(self.sealed)
        return state

    def opened(self) -> list[Effect]:
        """No writer has this task's name, so none is fenced.  At-least-once lets a committable behind the restored
        checkpoint overtake the barrier; it comes again under another name."""
        self.notified = self.restored_checkpoint
        self.sealed = [one for one in self.sealed if one.checkpoint <= self.notified]
        return self.open_inputs()


class Committer(CommittingTask):
    """It commits what its writer sealed, once the checkpoint is complete."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self._has_global = bool(spec.outputs)
        self._announced = NO_CHECKPOINT

    def commit(self) -> list[Effect]:
        asked = self.asked_for()
        due = [one for one in self.parts.committing.due(self.sealed, self.notified) if one.name not in asked]
        return [*(self.ask(self._request(one.name)) for one in due), *self._announce()]

    def _request(self, name: str) -> Commit | Finalise:
        spec = self.spec
        if self._has_global:
            return Finalise(writer=spec.task, attempt=spec.attempt, name=name)
        return self.parts.committing.request(spec.task, spec.attempt, name)

    def on_done(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        done = self.settle(request)
        handed = [Committable(one.name, one.checkpoint) for one in done] if self._has_global else []
        effects = [effect for one in handed for effect in self.broadcast(one)]
        return [*effects, *self._announce(), *self.finish_if_settled()]

    def _announce(self) -> list[Effect]:
        """Send up to which checkpoint nothing is left here, if that has advanced."""
        held = [CheckpointId(one.checkpoint - 1) for one in self.sealed]
        level = min([self.notified, *held])
        if not self._has_global or level <= self._announced:
            return []
        self._announced = level
        return self.broadcast(Settled(level))

    def opened(self) -> list[Effect]:
        opened = super().opened()
        due = self.parts.sink_recovery.to_commit(self.sealed)
        self._recovering = bool(due)
        asks: list[Effect] = [self.ask(self._request(one.name)) for one in due]
        return [*opened, *asks, *self._announce()]

    def finish_if_settled(self) -> list[Effect]:
        due = any(one.checkpoint <= self.notified for one in self.sealed)
        return self.finish() if self.terminating and not due and not self._asked and not self.finished else []

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.ended = (
            state.ended and not self._has_global
        )  # the global committer still expects from it what it will settle
        return state


class GlobalCommitter(CommittingTask):
    """One subtask: it publishes what all committers of a checkpoint have made final, in one step."""

    def __init__(self, spec: TaskSpec, config: Config, parts: Parts) -> None:
        super().__init__(spec, config, parts)
        self._settled = [NO_CHECKPOINT] * len(spec.gates)
        """by channel: the checkpoint up to which all committables have come"""

    @property
    def level(self) -> CheckpointId:
        """The checkpoint up to which it may publish."""
        return self.parts.global_committing.up_to(self._settled, self.notified)

    def on_arrived(self, event: Arrived) -> list[Effect]:
        element = event.element
        if type(element) is Settled:
            self._settled[event.channel] = max(self._settled[event.channel], element.checkpoint)
            return [*self.commit(), *self.finish_if_settled()]
        if type(element) is EndOfPartition:
            self._settled[event.channel] = EVERYTHING
            return [*super().on_arrived(event), *self.commit(), *self.finish_if_settled()]
        return super().on_arrived(event)

    def commit(self) -> list[Effect]:
        """Publish one version of the table at a time."""
        level = self.level
        due = self.parts.committing.due(self.sealed, level)
        if not due or self._asked:
            return []
        names = tuple(one.name for one in due)
        last = max(one.checkpoint for one in due)
        return [self.ask(Publish(writer=self.spec.task, attempt=self.spec.attempt, checkpoint=last, names=names))]

    def on_done(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        self.settle(request)
        return [*self.commit(), *self.finish_if_settled()]

    def finish_if_settled(self) -> list[Effect]:
        """If it was ordered to finish: finish once everything up to the last checkpoint has come and is visible."""
        level = self.level
        due = any(one.checkpoint <= level for one in self.sealed)
        is_settled = level >= self.notified and not due and not self._asked
        return self.finish() if self.terminating and is_settled and not self.finished else []

    def fixed_state(self) -> TaskState:
        state = super().fixed_state()
        state.ended = False  # its committers will still send committables, whatever the checkpoint
        return state
