"""How many checkpoints may fail in a row before the attempt fails (ABS-3)."""

from __future__ import annotations

from ..decisions.checkpointing import CheckpointFailure, Tolerance
from ..vocabulary.causes import AnyCause
from ..vocabulary.ids import CheckpointId
from .completed_checkpoint_store import CompletedCheckpointStore


class CheckpointFailureManager:
    """The checkpoints of the present attempt that have failed since the last complete one."""

    def __init__(self, tolerance: Tolerance, tolerated: int, completed: CompletedCheckpointStore) -> None:
        self._tolerance = tolerance
        self._tolerated = tolerated
        self._completed = completed
        self._failed_in_a_row = 0

    def completed(self) -> None:
        """A checkpoint is complete."""
        self._failed_in_a_row = 0

    def failed(self, checkpoint: CheckpointId, cause: AnyCause) -> bool:
        """One more has failed; whether more have failed now than the job tolerates."""
        latest = self._completed.latest
        complete = latest.checkpoint if latest is not None else None
        failure = CheckpointFailure(checkpoint, cause)
        self._failed_in_a_row = self._tolerance.failed_in_a_row(self._failed_in_a_row, failure, complete)
        return self._failed_in_a_row > self._tolerated

    def attempt_over(self) -> None:
        self._failed_in_a_row = 0
