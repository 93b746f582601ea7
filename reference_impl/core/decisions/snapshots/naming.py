"""Names in the stores: of snapshots, of transactions, of rows."""

from __future__ import annotations

from ...vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ...vocabulary.transactions import Row
from ..part import Part


class Naming(Part):
    """Names in the stores: of snapshots, of transactions, of rows."""

    def handle(self, job: int, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId) -> Handle:
        return Handle(f"job-{job}/chk-{checkpoint}/{task}-{attempt}")

    def file(self, handle: Handle, name: str) -> Handle:
        """A file that is written for a snapshot, besides that under its handle.  No other attempt, and no other
        checkpoint, writes one of this name."""
        return Handle(f"{handle}.{name}")

    def logs(self, job: int, task: TaskId, attempt: AttemptId) -> str:
        """The folder of the logs of an attempt's input channels; each is named by its number."""
        return f"job-{job}/log/{task}-{attempt}"

    def transaction(self, job: int, task: TaskId, attempt: AttemptId, serial: int) -> str:
        """`serial` counts the transactions that the sink has begun, in all its attempts."""
        return f"job-{job}/{task}/{attempt}-{serial}"

    def identity(self, row: Row, by_key: bool, attempt: AttemptId) -> tuple[int | None, ...]:
        """The identity by which an idempotent sink's rows replace each other; no replay may change it."""
        return row[:1] if by_key else row
