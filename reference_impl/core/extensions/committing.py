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
from collections.abc import Sequence

from ..decisions.commits import Verdict
from ..job.task_spec import TaskSpec
from ..protocol.input_task import InputTask, Work
from ..protocol.sink import Requests
from ..protocol.task import NO_CHECKPOINT
from ..vocabulary.effects import Effect
from ..vocabulary.events import Answered
from ..vocabulary.ids import CheckpointId
from ..vocabulary.messages import Committable, Settled
from ..vocabulary.state import Sealed, TaskState
from ..vocabulary.transactions import AnyRequest, Commit, CommitRequest, Finalise, Outcome, Publish, names_of

EVERYTHING = CheckpointId((1 << 62) - 1)
"""What is settled in a channel in which nothing follows."""


class CommitterBehind:
    """What a writer leaves to its committer."""

    def hand_over(self, sealed: Sequence[Sealed], task: InputTask) -> list[Effect]:
        return [effect for one in sealed for effect in task.broadcast(Committable(one.name, one.checkpoint))]

    def handed(self, unfinished: Sequence[tuple[str, CheckpointId | None]], task: InputTask) -> list[Sealed]:
        """The committer has what was sealed up to the restored checkpoint."""
        return [
            Sealed(name, checkpoint)
            for name, checkpoint in unfinished
            if checkpoint is not None and checkpoint <= task.restored_checkpoint
        ]


class Committing(Work, ABC):
    """What both kinds of committers share: committables in the state, and commits of them."""

    def __init__(self) -> None:
        self.sealed: list[Sealed] = []
        self.notified = NO_CHECKPOINT
        """the newest checkpoint that it knows to be complete"""
        self._recovering = False
        self._requests = Requests()

    def on_committable(self, committable: Committable) -> list[Effect]:
        """Keep a committable, once: the last state of a finished committer is sent again."""
        sealed = Sealed(committable.name, committable.checkpoint)
        if sealed not in self.sealed:
            self.sealed.append(sealed)
        return []

    @abstractmethod
    def commit(self) -> list[Effect]:
        """Request the commits that are due and not requested already."""

    @abstractmethod
    def on_done(self, done: Sequence[Sealed]) -> list[Effect]:
        """These are committed."""

    @abstractmethod
    def finish_if_settled(self) -> list[Effect]:
        """Finish if nothing is left to commit or to send on."""

    def on_complete(self, checkpoint: CheckpointId) -> list[Effect]:
        self.notified = max(self.notified, checkpoint)
        return self.commit()

    def on_terminate(self, checkpoint: CheckpointId | None) -> list[Effect]:
        self.task.await_commits()
        self.notified = max(self.notified, checkpoint or NO_CHECKPOINT)
        return [*self.commit(), *self.finish_if_settled()]

    def on_answered(self, event: Answered) -> list[Effect]:
        return self._requests.answered(event, self.task, self._judge, self._on_settled)

    def _judge(self, request: AnyRequest, outcome: Outcome) -> Verdict:
        return self.task.parts.committing.verdict(outcome, self._recovering)

    def _on_settled(self, number: int, request: AnyRequest, outcome: Outcome) -> list[Effect]:
        """A commit is done: its committables leave the state."""
        names = names_of(request) if isinstance(request, CommitRequest) else ()
        done = [one for one in self.sealed if one.name in names]
        self.sealed = [one for one in self.sealed if one.name not in names]
        self._recovering = self._recovering and bool(self._requests.asked)
        return self.on_done(done)

    def repeat(self, number: int) -> list[Effect]:
        return self._requests.repeated(number)

    # -- recovery ------------------------------------------------------------------

    def take_over(self, state: TaskState) -> None:
        self.sealed = self.task.parts.sink_recovery.taken_over(state.transactions)

    def describe(self, state: TaskState) -> None:
        state.transactions = list(self.sealed)

    def on_restored(self) -> list[Effect]:
        """No writer has this task's name, so none is fenced.  At-least-once lets a committable behind the restored
        checkpoint overtake the barrier; it comes again under another name."""
        self.notified = self.task.restored_checkpoint
        self.sealed = [one for one in self.sealed if one.checkpoint <= self.notified]
        return self.task.open_inputs()


class Committer(Committing):
    """It commits what its writer sealed, once the checkpoint is complete."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__()
        self._has_global = bool(spec.outputs)
        self._announced = NO_CHECKPOINT

    def commit(self) -> list[Effect]:
        requests = self._requests.asked.values()
        asked = [name for request in requests if isinstance(request, CommitRequest) for name in names_of(request)]
        due = [one for one in self.task.parts.committing.due(self.sealed, self.notified) if one.name not in asked]
        return [*(self._requests.ask(self._request(one.name)) for one in due), *self._announce()]

    def _request(self, name: str) -> Commit | Finalise:
        spec = self.task.spec
        if self._has_global:
            return Finalise(writer=spec.task, attempt=spec.attempt, name=name)
        return self.task.parts.committing.request(spec.task, spec.attempt, name)

    def on_done(self, done: Sequence[Sealed]) -> list[Effect]:
        handed = [Committable(one.name, one.checkpoint) for one in done] if self._has_global else []
        effects = [effect for one in handed for effect in self.task.broadcast(one)]
        return [*effects, *self._announce(), *self.finish_if_settled()]

    def _announce(self) -> list[Effect]:
        """Send up to which checkpoint nothing is left here, if that has advanced."""
        held = [CheckpointId(one.checkpoint - 1) for one in self.sealed]
        level = min([self.notified, *held])
        if not self._has_global or level <= self._announced:
            return []
        self._announced = level
        return self.task.broadcast(Settled(level))

    def on_restored(self) -> list[Effect]:
        opened = super().on_restored()
        due = self.task.parts.sink_recovery.to_commit(self.sealed)
        self._recovering = bool(due)
        asks: list[Effect] = [self._requests.ask(self._request(one.name)) for one in due]
        return [*opened, *asks, *self._announce()]

    def finish_if_settled(self) -> list[Effect]:
        due = any(one.checkpoint <= self.notified for one in self.sealed)
        return self.task.finish() if self.task.awaits_commits and not due and not self._requests.asked else []

    def describe(self, state: TaskState) -> None:
        super().describe(state)
        # The global committer still expects from it what it will settle.
        state.ended = state.ended and not self._has_global


class GlobalCommitter(Committing):
    """One subtask: it publishes what all committers of a checkpoint have made final, in one step."""

    publishes = True

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__()
        self._settled = [NO_CHECKPOINT] * len(spec.gates)
        """by channel: the checkpoint up to which all committables have come"""

    @property
    def level(self) -> CheckpointId:
        """The checkpoint up to which it may publish."""
        return self.task.parts.global_committing.up_to(self._settled, self.notified)

    def on_settled(self, settled: Settled, channel: int) -> list[Effect]:
        self._settled[channel] = max(self._settled[channel], settled.checkpoint)
        return [*self.commit(), *self.finish_if_settled()]

    def on_partition_ended(self, channel: int) -> list[Effect]:
        self._settled[channel] = EVERYTHING
        return [*self.commit(), *self.finish_if_settled()]

    def commit(self) -> list[Effect]:
        """Publish one version of the table at a time."""
        level = self.level
        due = self.task.parts.committing.due(self.sealed, level)
        if not due or self._requests.asked:
            return []
        names = tuple(one.name for one in due)
        last, spec = max(one.checkpoint for one in due), self.task.spec
        return [self._requests.ask(Publish(writer=spec.task, attempt=spec.attempt, checkpoint=last, names=names))]

    def on_done(self, done: Sequence[Sealed]) -> list[Effect]:
        return [*self.commit(), *self.finish_if_settled()]

    def finish_if_settled(self) -> list[Effect]:
        """If it was ordered to finish: finish once everything up to the last checkpoint has come and is visible."""
        level = self.level
        due = any(one.checkpoint <= level for one in self.sealed)
        is_settled = level >= self.notified and not due and not self._requests.asked
        return self.task.finish() if self.task.awaits_commits and is_settled else []

    def describe(self, state: TaskState) -> None:
        super().describe(state)
        state.ended = False  # its committers will still send committables, whatever the checkpoint
