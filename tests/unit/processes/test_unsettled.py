"""What a node says of a task that commits: the oldest checkpoint that it has not settled."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.task_spec import TaskSpec
from cutproof.reference_impl.core.vocabulary.events import Arrived, Received
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Committable, Deploy
from cutproof.reference_impl.processes.stores.unsettled import is_handed, oldest_unsettled

Kind = Callable[[TaskBuilder, TaskSpec], Any]


def committing(kind: Kind, *checkpoints: int, waiting: int = 0) -> Any:
    """What is seen of a committer that holds transactions of these checkpoints; so many elements wait at its input."""
    spec = TaskSpec(task=TaskId("committer-0"), job=1, attempt=AttemptId(1), gates=(0,))
    machine = kind(TaskBuilder(Config(), Parts()), spec)
    machine.step(Received(Deploy(job=1, attempt=AttemptId(1))))
    for number in checkpoints:
        machine.step(Arrived(0, Committable(f"job-1/sink-0/1-{number}", CheckpointId(number), TaskId("sink-0"))))
    return SimpleNamespace(task=machine, inputs=[SimpleNamespace(queue=[None] * waiting)])


def test_a_committer_has_not_settled_what_it_holds() -> None:
    assert oldest_unsettled(committing(TaskBuilder.committer).task) is None
    assert oldest_unsettled(committing(TaskBuilder.committer, 5, 4).task) == 4
    assert oldest_unsettled(committing(TaskBuilder.global_committer, 3).task) == 3


def test_what_is_on_its_way_to_a_global_committer_is_of_some_checkpoint_that_is_complete() -> None:
    assert is_handed(committing(TaskBuilder.global_committer, waiting=1))
    assert not is_handed(committing(TaskBuilder.global_committer, 3))
    assert not is_handed(committing(TaskBuilder.committer, waiting=2)), "a barrier may be among them"
