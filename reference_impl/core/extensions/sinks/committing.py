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

from collections.abc import Callable, Mapping, Sequence

from ...decisions.commits import Verdict
from ...job.task_spec import TaskSpec
from ...protocol.input_task import Handler, InputTask
from ...vocabulary.effects import Effect
from ...vocabulary.errors import ProtocolViolated
from ...vocabulary.events import Answered
from ...vocabulary.ids import CheckpointId, is_newer, newest, oldest, preceding
from ...vocabulary.messages import Committable, EndOfPartition, Record, Settled
from ...vocabulary.state import Sealed, TaskState, as_kept, read_back
from ...vocabulary.timeouts import RetryRequest
from ...vocabulary.transactions import (
    AnyRequest,
    Commit,
    CommitRequest,
    Finalise,
    Outcome,
    Publish,
    Unfinished,
    names_of,
)
from .store_requests import Requests


def _checkpoint_of(sealed: Sealed) -> CheckpointId:
    """Committers are refused with *commit-at-finish*, so what they take was sealed at a barrier."""
    if sealed.checkpoint is None:
        raise ProtocolViolated(f"a committer got {sealed.name}, which was sealed for no checkpoint")
    return sealed.checkpoint


def _handle(sealed: Sealed) -> Committable:
    return Committable(sealed.name, _checkpoint_of(sealed), sealed.writer)


class DownstreamCommitter:
    """What a writer leaves to its committer."""

    def send(self, sealed: Sequence[Sealed], task: InputTask) -> list[Effect]:
        return [effect for one in sealed for effect in task.broadcast(_handle(one))]

    def held(self, unfinished: Sequence[Unfinished], task: InputTask) -> list[Sealed]:
        """The committer has what was sealed up to the restored checkpoint."""
        restored = task.starts_from
        if restored is None:
            return []
        return [
            Sealed(name, checkpoint, task.spec.task)
            for name, checkpoint in unfinished
            if isinstance(checkpoint, int) and checkpoint <= restored
        ]


class Committables:
    """What both kinds of committers hold: committables, and the requests to commit them."""

    def __init__(self) -> None:
        self.sealed: list[Sealed] = []
        self.notified: CheckpointId | None = None
        """the newest checkpoint that is known to be complete, if any is"""
        self.requests = Requests()
        self._recovering = False
        """requests of the restored checkpoint have no definite answer yet"""

    def add(self, committable: Committable) -> None:
        """Keep a committable, once: the last state of a finished committer is sent again."""
        sealed = Sealed(committable.name, committable.checkpoint, committable.writer)
        if sealed not in self.sealed:
            self.sealed.append(sealed)

    def complete(self, checkpoint: CheckpointId | None) -> None:
        """A checkpoint is complete; None: none is."""
        self.notified = newest([self.notified, checkpoint])

    def restored(self, checkpoint: CheckpointId | None) -> None:
        """The task has restored this checkpoint, if any.  At-least-once lets a committable behind it overtake the
        barrier; it comes again under another name."""
        if checkpoint is not None:
            self.notified = checkpoint
            self.sealed = [one for one in self.sealed if not is_newer(one.checkpoint, checkpoint)]

    def ask(self, requests: Sequence[CommitRequest]) -> list[Effect]:
        return [self.requests.ask(one) for one in requests]

    def ask_restored(self, requests: Sequence[CommitRequest]) -> list[Effect]:
        """Request what the restored checkpoint promised."""
        self._recovering = bool(requests)
        return self.ask(requests)

    def asked(self) -> list[str]:
        """The transactions whose commit has no definite answer yet."""
        requests = self.requests.asked.values()
        return [name for one in requests if isinstance(one, CommitRequest) for name in names_of(one)]

    def answered(self, event: Answered, task: InputTask, then: Callable[[list[Sealed]], list[Effect]]) -> list[Effect]:
        """The external store has answered.  Committables that are committed now are dropped, and given to `then`."""

        def verdict_of(request: AnyRequest, outcome: Outcome) -> Verdict:
            decision = task.parts.sink_recovery if self._recovering else task.parts.committing
            return decision.verdict(outcome)

        def on_settled(number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
            names = names_of(request) if isinstance(request, CommitRequest) else ()
            done = [one for one in self.sealed if one.name in names]
            self.sealed = [one for one in self.sealed if one.name not in names]
            self._recovering = self._recovering and bool(self.requests.asked)
            return then(done)

        return self.requests.answered(event, task, verdict_of, on_settled)


class Committer:
    """It commits what its writer sealed, once the checkpoint is complete."""

    task: InputTask

    def __init__(self, spec: TaskSpec) -> None:
        self._held = Committables()
        self._has_global = bool(spec.outputs)
        self._announced: CheckpointId | None = None

    @property
    def sealed(self) -> Sequence[Sealed]:
        return self._held.sealed

    def also_takes(self) -> Mapping[type, Handler]:
        return {Committable: self.on_committable, Answered: self.on_answered, RetryRequest: self.repeat}

    # -- committables ----------------------------------------------------------------

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        raise ProtocolViolated(f"{self.task.spec.task} takes no records")

    def on_committable(self, committable: Committable, channel: int) -> list[Effect]:
        self._held.add(committable)
        return []

    # -- commits ---------------------------------------------------------------------

    def on_complete(self, checkpoint: CheckpointId) -> list[Effect]:
        self._held.complete(checkpoint)
        return self._commit()

    def _commit(self) -> list[Effect]:
        """Request the commits that are due and not requested already."""
        asked = self._held.asked()
        due = self.task.parts.committing.due(self._held.sealed, self._held.notified)
        requests = [self._request(one.name) for one in due if one.name not in asked]
        return [*self._held.ask(requests), *self._announce()]

    def _request(self, name: str) -> Commit | Finalise:
        spec = self.task.spec
        if self._has_global:
            return Finalise(writer=spec.task, attempt=spec.attempt, name=name)
        return self.task.parts.committing.request(spec.task, spec.attempt, name)

    def on_answered(self, event: Answered) -> list[Effect]:
        return self._held.answered(event, self.task, self._on_committed)

    def _on_committed(self, done: list[Sealed]) -> list[Effect]:
        handed = done if self._has_global else []
        effects = [effect for one in handed for effect in self.task.broadcast(_handle(one))]
        return [*effects, *self._announce(), *self._finish_if_settled()]

    def _announce(self) -> list[Effect]:
        """Send up to which checkpoint nothing is left here, if that has advanced."""
        held = [preceding(_checkpoint_of(one)) for one in self._held.sealed]
        level = oldest([self._held.notified, *held])
        if not self._has_global or level is None or not is_newer(level, self._announced):
            return []
        self._announced = level
        return self.task.broadcast(Settled(level))

    def repeat(self, timeout: RetryRequest) -> list[Effect]:
        return self._held.requests.repeated(timeout.number)

    # -- state -----------------------------------------------------------------------

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        return self.task.take_snapshot(checkpoint)

    def describe(self, state: TaskState) -> None:
        state.transactions = as_kept(self._held.sealed)
        # The global committer still expects from it what it will settle.
        state.ended = state.ended and not self._has_global

    def adopt(self, state: TaskState) -> None:
        self._held.sealed = read_back(state.transactions)

    def on_restored(self) -> list[Effect]:
        """No writer has this task's name, so none is fenced."""
        self._held.restored(self.task.starts_from)
        due = self.task.parts.sink_recovery.to_commit(self._held.sealed, self.task.starts_from)
        asks = self._held.ask_restored([self._request(one.name) for one in due])
        return [*self.task.open_inputs(), *asks, *self._announce()]

    # -- the end ---------------------------------------------------------------------

    def on_end(self) -> list[Effect]:
        return self.task.end_input()

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        self.task.await_commits()
        self._held.complete(checkpoint)
        return [*self._commit(), *self._finish_if_settled()]

    def _finish_if_settled(self) -> list[Effect]:
        """Finish if nothing is left to commit or to send on."""
        held = self._held
        due = any(not is_newer(one.checkpoint, held.notified) for one in held.sealed)
        return self.task.finish() if self.task.awaits_commits and not due and not held.requests.asked else []


class GlobalCommitter:
    """One subtask: it publishes what all committers of a checkpoint have made final, in one step."""

    task: InputTask

    def __init__(self, spec: TaskSpec) -> None:
        self._held = Committables()
        self._settled: dict[int, CheckpointId | None] = dict.fromkeys(spec.input_channels)
        """by channel that has not ended: the checkpoint up to which all committables have come, if any"""

    @property
    def sealed(self) -> Sequence[Sealed]:
        return self._held.sealed

    @property
    def level(self) -> CheckpointId | None:
        """The checkpoint up to which it may publish: that of the newest committable, once nothing more can come."""
        held = self._held
        if not self._settled:
            return newest([held.notified, *(one.checkpoint for one in held.sealed)])
        return self.task.parts.global_committing.up_to(tuple(self._settled.values()), held.notified)

    def also_takes(self) -> Mapping[type, Handler]:
        return {
            Committable: self.on_committable,
            Settled: self.on_settled,
            EndOfPartition: self.on_partition_ended,
            Answered: self.on_answered,
            RetryRequest: self.repeat,
        }

    # -- committables ----------------------------------------------------------------

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        raise ProtocolViolated(f"{self.task.spec.task} takes no records")

    def on_committable(self, committable: Committable, channel: int) -> list[Effect]:
        self._held.add(committable)
        return []

    def on_settled(self, settled: Settled, channel: int) -> list[Effect]:
        self._settled[channel] = newest([self._settled[channel], settled.checkpoint])
        return self._go_on()

    def on_partition_ended(self, end: EndOfPartition, channel: int) -> list[Effect]:
        del self._settled[channel]
        return self._go_on()

    # -- commits ---------------------------------------------------------------------

    def on_complete(self, checkpoint: CheckpointId) -> list[Effect]:
        self._held.complete(checkpoint)
        return self._publish()

    def _publish(self) -> list[Effect]:
        """Publish one version of the table at a time."""
        due = self.task.parts.committing.due(self._held.sealed, self.level)
        if not due or self._held.requests.asked:
            return []
        names = tuple(one.name for one in due)
        last, spec = max(_checkpoint_of(one) for one in due), self.task.spec
        return self._held.ask([Publish(writer=spec.task, attempt=spec.attempt, checkpoint=last, names=names)])

    def on_answered(self, event: Answered) -> list[Effect]:
        return self._held.answered(event, self.task, lambda done: self._go_on())

    def _go_on(self) -> list[Effect]:
        return [*self._publish(), *self._finish_if_settled()]

    def repeat(self, timeout: RetryRequest) -> list[Effect]:
        return self._held.requests.repeated(timeout.number)

    # -- state -----------------------------------------------------------------------

    def snapshot(self, checkpoint: CheckpointId) -> list[Effect]:
        return self.task.take_snapshot(checkpoint)

    def describe(self, state: TaskState) -> None:
        state.transactions = as_kept(self._held.sealed)
        state.ended = False  # its committers will still send committables, whatever the checkpoint

    def adopt(self, state: TaskState) -> None:
        self._held.sealed = read_back(state.transactions)

    def on_restored(self) -> list[Effect]:
        """No writer has this task's name, so none is fenced."""
        self._held.restored(self.task.starts_from)
        return self.task.open_inputs()

    # -- the end ---------------------------------------------------------------------

    def on_end(self) -> list[Effect]:
        return self.task.end_input()

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        self.task.await_commits()
        self._held.complete(checkpoint)
        return self._go_on()

    def _finish_if_settled(self) -> list[Effect]:
        """If it was ordered to finish: finish once everything up to the last checkpoint has come and is visible."""
        level, held = self.level, self._held
        due = any(not is_newer(one.checkpoint, level) for one in held.sealed)
        is_settled = not is_newer(held.notified, level) and not due and not held.requests.asked
        return self.task.finish() if self.task.awaits_commits and is_settled else []
