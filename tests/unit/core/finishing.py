"""A job of which tasks finish before others."""

from __future__ import annotations

from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from unit.core.coordinator_rig import CoordinatorRig


def one_each() -> JobGraph:
    """A source and a task of two subtasks each, joined one to one: subtask by subtask they finish apart."""
    return JobGraph(
        (
            OperatorSpec(name="source", parallelism=2, splits=(0, 1), role="source"),
            OperatorSpec(name="op", parallelism=2, inputs=(EdgeSpec(sender="source", partitioning="forward"),)),
            OperatorSpec(name="sink", parallelism=1, inputs=(EdgeSpec(sender="op", partitioning="hash"),), role="sink"),
        ),
        16,
    )


def tasks_finish(job: CoordinatorRig, checkpoint: int, *tasks: str) -> None:
    """These acknowledge a checkpoint after all their input, the others amid theirs; it completes, and they go."""
    job.trigger()
    job.ack(checkpoint, *tasks, ended=True)
    job.ack(
        checkpoint,
        *(task for task in job.machine.tasks if task not in (*tasks, *job.machine.ends.finished)),
    )
    job.stored(checkpoint)
    job.finished(*tasks)
