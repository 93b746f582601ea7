"""A log discards what no snapshot can ask for (ABS-15)."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.protocol.source import SourceTask
from cutproof.reference_impl.core.vocabulary.effects import Effect, Trim
from cutproof.reference_impl.core.vocabulary.events import Poll
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Complete
from cutproof.reference_impl.core.vocabulary.state import TaskState
from unit.core.coordinator_rig import CoordinatorRig, sent_to_tasks
from unit.core.machines import deliver, deploy, reason, source, spec, trigger, up
from unit.core.machines import output as edge


def complete(task: SourceTask, checkpoint: int, oldest: int) -> list[Effect]:
    return deliver(
        task,
        Complete(job=1, attempt=AttemptId(3), checkpoint=CheckpointId(checkpoint), oldest=CheckpointId(oldest)),
    )


def read_to(task: SourceTask, reads: int, checkpoint: int) -> None:
    for _ in range(reads):
        task.step(Poll())
    deliver(task, trigger(checkpoint))


def test_everything_before_the_oldest_snapshot_goes() -> None:
    task = up(source(10, trims_logs=True))
    read_to(task, 2, 1)
    read_to(task, 3, 2)
    assert complete(task, 1, oldest=1) == [Trim(0, 2)]
    assert complete(task, 2, oldest=1) == [Trim(0, 2)], "the older one is still retained"
    assert complete(task, 2, oldest=2) == [Trim(0, 5)]


def test_what_a_snapshot_that_is_not_known_here_needs_is_kept() -> None:
    """A savepoint of an earlier attempt, say."""
    task = up(source(10, trims_logs=True))
    read_to(task, 4, 7)
    assert complete(task, 7, oldest=3) == []


def test_the_restored_snapshot_is_known() -> None:
    task = source(10, trims_logs=True)
    deliver(task, deploy(checkpoint=4, state=TaskState(positions={0: 6})))
    read_to(task, 1, 5)
    assert complete(task, 5, oldest=4) == [Trim(0, 6)]


def test_nothing_goes_unless_it_is_asked_for() -> None:
    task = up(source(10))
    read_to(task, 2, 1)
    assert complete(task, 1, oldest=1) == []


@pytest.mark.parametrize(
    ("position", "checkpoint", "who"), [(3, 2, "checkpoint 2 needs"), (None, None, "a new job needs")]
)
def test_what_has_been_discarded_cannot_be_restored(position: int | None, checkpoint: int | None, who: str) -> None:
    logs = [SplitLog(split=0, records=[(0, 0, 0)] * 9, begins=4)]
    task = TaskBuilder(Config(), Parts()).source(spec("source-0", outputs=(edge("forward", 0),)), logs)
    state = TaskState(positions={0: position}) if position is not None else None
    failed = reason(deliver(task, deploy(checkpoint=checkpoint, state=state)))
    assert failed == f"split 0 has been discarded up to record 4, and {who} record {position or 0}"
    assert not task.has_started


def test_the_coordinator_states_which_snapshot_is_the_oldest() -> None:
    job = CoordinatorRig(retained_checkpoints=2).up()
    oldest = [
        {message.oldest for _, message in sent_to_tasks(Complete, job.checkpoint(number))} for number in (1, 2, 3)
    ]
    assert oldest == [{1}, {1}, {2}]


def test_a_pending_savepoint_holds_trimming_back() -> None:
    """Whether it still awaits an acknowledgement or its record is being stored, until it is complete or aborted."""
    job = CoordinatorRig(retained_checkpoints=1).up()
    job.command("savepoint")
    job.saved()
    pending = {message.oldest for _, message in sent_to_tasks(Complete, job.checkpoint(2))}
    job.ack(1)
    being_stored = {message.oldest for _, message in sent_to_tasks(Complete, job.checkpoint(3))}
    assert (pending, being_stored) == ({1}, {1})
    job.store_fails(1)
    assert {message.oldest for _, message in sent_to_tasks(Complete, job.checkpoint(4))} == {4}


def test_a_savepoint_that_was_aborted_holds_nothing_back() -> None:
    job = CoordinatorRig(retained_checkpoints=1).up()
    job.command("savepoint")
    job.saved()
    job.decline(1)
    assert {message.oldest for _, message in sent_to_tasks(Complete, job.checkpoint(2))} == {2}
