"""Names in the stores: of snapshots, of transactions, of rows."""

from __future__ import annotations

from ..vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from ..vocabulary.transactions import EPOCH, Row
from .part import Part


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

    def sorted_file(self, task: TaskId, attempt: AttemptId, number: int) -> str:
        """The `number`-th sorted file of an attempt's state.  No two files of a job have one name: a state may begin
        with files of earlier attempts."""
        return f"{task}-{attempt}-{number}"

    def transaction(self, job: int, task: TaskId, attempt: AttemptId, serial: int, last: CheckpointId) -> str:
        """`serial` counts the attempt's transactions, `last` is the checkpoint sealed before."""
        return f"job-{job}/{task}/{attempt}-{serial}"

    def pooled_id(self, job: int, task: TaskId, number: int) -> str:
        """The `number`-th transactional id of a task; transactions use it one after the other."""
        return f"job-{job}/{task}/id-{number}"

    def pooled(self, pooled_id: str, attempt: AttemptId, serial: int) -> str:
        """The name of a transaction under this id; an epoch distinguishes it from others."""
        return f"{pooled_id}{EPOCH}{attempt}-{serial}"

    def identity(self, row: Row, by_key: bool, attempt: AttemptId) -> tuple[int | None, ...]:
        """The identity by which an idempotent sink's rows replace each other; no replay may change it."""
        return row[:1] if by_key else row
