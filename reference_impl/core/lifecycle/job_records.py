"""The job's record: what a coordinator must find again after a crash is durable before it is acted on (ABS-6).

What follows a save is a value, so that it can be read and compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..protocol.checkpoints import Checkpoints, RetainedSnapshots
from ..protocol.task_tracking import Attempts
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, SaveJob
from ..vocabulary.events import Closure, CompletedSnapshot, JobRecord
from ..vocabulary.ids import AttemptId, CheckpointId


class DeployAll(msgspec.Struct, frozen=True):
    """Deploy all tasks under their new number."""

    restores: CompletedSnapshot | None
    cause: AnyCause


class DeployPart(msgspec.Struct, frozen=True):
    """Deploy the tasks of a partial failover under this new number."""

    attempt: AttemptId


class TriggerCheckpoint(msgspec.Struct, frozen=True):
    """Trigger the checkpoint to which this id was given."""

    checkpoint: CheckpointId


class Perform(msgspec.Struct, frozen=True):
    """Carry these effects out."""

    effects: tuple[Effect, ...]


class Close(msgspec.Struct, frozen=True):
    """Close the job; `command` is the user's request, if any."""

    command: int | None


Then = DeployAll | DeployPart | TriggerCheckpoint | Perform | Close


class JobRecords:
    """The versions of one job's record, and what follows each of them."""

    def __init__(self, job: int, attempts: Attempts, checkpoints: Checkpoints, snapshots: RetainedSnapshots) -> None:
        self._job = job
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._snapshots = snapshots
        self.took_over = False
        """another coordinator saved a record before"""
        self._version = 0
        self._then: dict[int, Then] = {}
        self.had_snapshot = False
        """some checkpoint has completed or is about to (ABS-14)"""

    def take_over(self, record: JobRecord) -> None:
        self.took_over = True
        self._version = record.version
        self.had_snapshot = record.had_snapshot

    def expect_snapshot(self) -> None:
        """A checkpoint is about to complete."""
        self.had_snapshot = True

    def save(self, then: Then, closure: Closure | None = None) -> list[Effect]:
        """Make the record durable, and go on only then."""
        self._version += 1
        self._then[self._version] = then
        record = JobRecord(
            job=self._job,
            attempt=self._attempts.newest,
            next_checkpoint=self._checkpoints.next_id,
            version=self._version,
            had_snapshot=self.had_snapshot or bool(self._snapshots.all),
            closure=closure,
        )
        return [SaveJob(record)]

    def save_before_trigger(self, checkpoint: CheckpointId) -> list[Effect]:
        return self.save(TriggerCheckpoint(checkpoint))

    def save_before(self, effects: Sequence[Effect]) -> list[Effect]:
        return self.save(Perform(tuple(effects)))

    def saved(self, version: int) -> Then | None:
        """A version is durable: what follows."""
        return self._then.pop(version, None)
