"""The named protocol points at which a fault or a command can strike.

A point is addressed by a stable name, "the second ack of task count-1", and never by a global step number.  So
shrinking one part of a scenario does not move the others, and one file steers the simulator and real processes alike.
At each point a trigger can fire `before` or `after` it.
"""

from __future__ import annotations

POINTS: dict[str, str] = {
    # sources and operators
    "record-read": "a source reads its next record",
    "record-applied": "an operator or sink takes a record from a channel",
    "barrier-sent": "a task puts a barrier into one of its channels",
    "barrier-received": "a task takes a barrier from a channel",
    "snapshot-taken": "a task has recorded its state and hands it to the store",
    "file-written": "a file of a task's snapshot gets its name in the store",
    "snapshot-persisted": "the store reports a task's snapshot durable",
    "memtable-flushed": "a task makes a sorted file of the memtable of its state",
    "files-compacted": "the sorted files of a task's state are merged",
    "ack-sent": "a task acknowledges a checkpoint",
    "end-of-data-sent": "a task sends into a channel that its input has ended",
    "end-of-partition-sent": "a task sends into a channel that it has finished",
    # the coordinator
    "checkpoint-triggered": "the coordinator starts a checkpoint",
    "ack-received": "the coordinator receives an acknowledgement",
    "checkpoint-acknowledged": "the last acknowledgement has arrived, nothing is stored yet",
    "checkpoint-completed": "the coordinator's record of the checkpoint is durable",
    "checkpoint-aborted": "the coordinator aborts a checkpoint",
    "completion-notified": "a task is notified that a checkpoint is complete",
    "snapshot-deleted": "the record of a complete snapshot is deleted, since it is subsumed or its user wishes it",
    "file-deleted": "the coordinator deletes a file of a snapshot",
    "file-copied": "the coordinator copies a file of a snapshot for a user",
    "snapshot-copied": "the record of a snapshot is copied for a user, with which the copy is complete",
    "snapshot-marked": "the record of a snapshot is replaced by one that says that it was moved",
    # recovery
    "task-deployed": "a task of a new attempt comes up",
    "state-loaded": "a task has read the snapshot it restores",
    "task-running": "a task reports that it is restored and running",
    # transactions and rows
    "transaction-begun": "a sink opens a transaction",
    "transaction-written": "a sink writes a row into its transaction",
    "transaction-pre-committed": "a sink seals a transaction for a checkpoint",
    "commit-requested": "a sink requests the commit of a transaction",
    "commit-answered": "a sink receives the answer to a commit",
    "row-written": "a plain or idempotent sink writes a row",
    # commands
    "savepoint-requested": "a user requests a savepoint or a stop",
}

STATE_POINTS: tuple[str, ...] = ("memtable-flushed", "files-compacted")
"""Points that only a task reaches whose state is in files."""

FILE_POINT = "file-written"
"""A point that only a job reaches whose snapshots are in files: once for each file, and the manifest is the last."""

DELETION_POINTS: tuple[str, ...] = ("snapshot-deleted", "file-deleted")
"""Points that only a job reaches whose snapshots are in files."""

COPY_POINTS: tuple[str, ...] = ("file-copied", "snapshot-copied", "snapshot-marked")
"""Points that only a job reaches of which a user has a snapshot copied or moved."""

COORDINATOR_POINTS: tuple[str, ...] = (
    "checkpoint-triggered",
    "checkpoint-acknowledged",
    "checkpoint-completed",
    "checkpoint-aborted",
    "snapshot-deleted",
    "file-deleted",
    "file-copied",
    "snapshot-copied",
    "snapshot-marked",
    "savepoint-requested",
)
"""Points that belong to no task: a trigger at one of them names none."""

PHASES: dict[str, str] = {
    "deploying": "the first attempt is coming up",
    "running": "no checkpoint is under way",
    "aligning": "some task has one barrier and waits for another",
    "checkpointing": "a checkpoint is under way and no task aligns",
    "committing": "a checkpoint is complete and its commits are not all answered",
    "recovering": "a later attempt is coming up, or a resumed job is being refused",
    "finishing": "the job ends: all input has ended, or a stop, a cancel or a failure is under way, or over",
}
"""The phases of a job; a fired fault is counted under the phase in which it fired."""

CONTROL_MESSAGES: tuple[str, ...] = (
    "deploy",
    "running",
    "ask",
    "assign",
    "assigned",
    "trigger",
    "ack",
    "decline",
    "complete",
    "abort",
    "cancel",
    "terminate",
    "ended",
    "finished",
)
"""The control messages that lose-, late- and repeat-message can hit."""
