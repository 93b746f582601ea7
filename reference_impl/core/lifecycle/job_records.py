"""The job's record: what a coordinator must find again after a crash is durable before it is acted on (ABS-6).

What follows a save is a value, so that it can be read and compared.
"""

from __future__ import annotations

import msgspec

from ..job.config import Config
from ..protocol.attempts import Attempts
from ..protocol.checkpoints import Checkpoints, UnderWay
from ..vocabulary.causes import AnyCause
from ..vocabulary.effects import Effect, SaveJob
from ..vocabulary.events import Closure, CompletedCheckpoint, JobRecord
from ..vocabulary.ids import AttemptId, CheckpointId
from .completed_checkpoint_store import CompletedCheckpointStore


class DeployAll(msgspec.Struct, frozen=True):
    """Deploy all tasks under their new number."""

    restores: CompletedCheckpoint | None
    cause: AnyCause


class DeployRegion(msgspec.Struct, frozen=True):
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


Then = DeployAll | DeployRegion | TriggerCheckpoint | Perform | Close


class JobRecords:
    """The versions of one job's record, and what follows each of them."""

    def __init__(
        self,
        job: int,
        config: Config,
        *,
        attempts: Attempts,
        checkpoints: Checkpoints,
        under_way: UnderWay,
        completed: CompletedCheckpointStore,
        had_snapshot: bool = False,
    ) -> None:
        self._job = job
        self._config = config
        self._attempts = attempts
        self._checkpoints = checkpoints
        self._under_way = under_way
        self._completed = completed
        self.closure: Closure | None = None
        """how and why the job is closed, once that is decided, by this coordinator or a former one"""
        self.has_begun = False
        """an attempt of the job has been deployed, or will be once this is durable"""
        self._version = 0
        self._then: dict[int, Then] = {}
        self.had_snapshot = had_snapshot
        """some checkpoint has completed or is about to, of this job or of the one that it resumes (ABS-14)"""
        self.others_had_snapshot = had_snapshot
        """some checkpoint of a former coordinator, or of the job that this one resumes, may have completed: this
        coordinator does not know all of those, but all of its own"""

    def take_over(self, record: JobRecord) -> None:
        """Go on from the record of a former coordinator: nothing is numbered as it has numbered before."""
        self._attempts.take_over(record.attempt)
        self._checkpoints.take_over(record.next_checkpoint)
        self._version = record.version
        self.had_snapshot = self.others_had_snapshot = record.had_snapshot
        self.has_begun = record.has_begun
        self.closure = record.closure

    def save_closure(self, closure: Closure, command: int | None) -> list[Effect]:
        """Make durable that the job is closed, and close it only then; `command` as in `Close`.  Each later version of
        the record says so too."""
        self.closure = closure
        return self.save(Close(command))

    def save(self, then: Then) -> list[Effect]:
        """Make the record durable, and go on only then."""
        self._version += 1
        self._then[self._version] = then
        self.has_begun = self.has_begun or isinstance(then, DeployAll)
        record = JobRecord(
            job=self._job,
            attempt=self._attempts.newest,
            next_checkpoint=self._checkpoints.next_id,
            version=self._version,
            had_snapshot=self.had_snapshot or bool(self._completed.all),
            has_begun=self.has_begun,
            closure=self.closure,
        )
        return [SaveJob(record)]

    def save_then_trigger(self, checkpoint: CheckpointId) -> list[Effect]:
        return self.save(TriggerCheckpoint(checkpoint))

    def save_had_snapshot_before(self, effects: list[Effect]) -> list[Effect]:
        """A later coordinator cannot restore what was in this one's memory (ABS-14), and must know that from the job's
        record before any commit follows from a snapshot."""
        if not self._config.snapshots_in_memory or not self._under_way.storing or self.had_snapshot:
            return effects
        self.had_snapshot = True
        return self.save(Perform(tuple(effects)))

    def saved(self, version: int) -> Then | None:
        """A version is durable: what follows."""
        return self._then.pop(version, None)
