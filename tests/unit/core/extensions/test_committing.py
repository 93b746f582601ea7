"""A sink in three stages: what a writer hands on, a committer asks for, a global committer publishes (ABS-11)."""

from __future__ import annotations

from typing import Any

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.effects import Effect, Persist, Ship, SnapshotTaken
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.messages import Committable, Settled
from cutproof.reference_impl.core.vocabulary.state import Sealed, TaskState
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Fence,
    Finalise,
    NoAnswer,
    PreCommit,
    Publish,
    writer_in,
)
from unit.core.machines import (
    ATTEMPT,
    END,
    ENDED,
    answered,
    barrier,
    complete,
    deliver,
    deploy,
    finished,
    output,
    requests,
    row,
    running,
    sent,
    spec,
    take,
    terminate,
    up,
    work,
)
from unit.core.sinks import SINK, asked, number

FORWARD = (output("forward", 0),)
A, B = "job-1/sink-0/3-1", "job-1/sink-1/3-1"
LATER = "job-1/sink-0/3-2"


def cp(checkpoint: int) -> CheckpointId:
    return CheckpointId(checkpoint)


def settings(**more: Any) -> Config:
    return Config(**{"committing": "global", "write_batch": 1, **more})


def writer() -> InputTask:
    return TaskBuilder(settings(), Parts()).writer(spec("sink-0", gates=(0,), outputs=FORWARD))


def committer(*, last: bool = False) -> InputTask:
    outputs = () if last else FORWARD
    return TaskBuilder(settings(), Parts()).committer(spec("committer-0", gates=(0,), outputs=outputs))


def publisher(inputs: int = 2) -> InputTask:
    return TaskBuilder(settings(), Parts()).global_committer(spec("global-committer-0", gates=(0,) * inputs))


def handed(name: str, checkpoint: int) -> Committable:
    return Committable(name, cp(checkpoint), writer_in(name))


def settled(checkpoint: int) -> Settled:
    return Settled(cp(checkpoint))


def finalise(name: str) -> Finalise:
    return Finalise(writer=TaskId("committer-0"), attempt=ATTEMPT, name=name)


def publish(checkpoint: int, *names: str) -> Publish:
    return Publish(writer=TaskId("global-committer-0"), attempt=ATTEMPT, checkpoint=cp(checkpoint), names=names)


def state_in(effects: list[Effect]) -> TaskState:
    """What the one snapshot among the effects holds."""
    (written,) = [effect for effect in effects if isinstance(effect, Persist | Ship)]
    return written.snapshot.materialise()


def restored(*committables: tuple[str, int]) -> TaskState:
    return TaskState(transactions=[(name, cp(checkpoint)) for name, checkpoint in committables])


# -- the writer ----------------------------------------------------------------------------


def test_a_writer_hands_on_what_it_sealed_in_front_of_the_barrier_and_keeps_nothing_of_it() -> None:
    sink = up(writer())
    take(sink, row(1, 1))
    effects = take(sink, barrier(1))
    assert sent(effects) == [(0, handed(A, 1)), (0, barrier(1))]
    seal = number(effects, PreCommit)
    assert not [effect for effect in effects if isinstance(effect, Persist)]
    assert state_in(answered(sink, seal)).transactions == []
    assert deliver(sink, complete(1)) == []


def test_a_writer_without_rows_hands_nothing_on() -> None:
    assert sent(take(up(writer()), barrier(1))) == [(0, barrier(1))]


def test_a_restored_writer_leaves_what_it_sealed_up_to_the_checkpoint_and_aborts_the_rest() -> None:
    sink = writer()
    fence = number(deliver(sink, deploy(TaskState(), checkpoint=4)), Fence)
    effects = answered(sink, fence, Done(unfinished=(("a", cp(3)), ("b", cp(4)), ("c", cp(5)), ("d", None))))
    assert [type(one) for one in asked(effects)] == [AbortTransaction, AbortTransaction, BeginTransaction]
    assert [one.name for one in asked(effects) if isinstance(one, AbortTransaction)] == ["c", "d"]
    assert effects[-2:] == running("sink-0")


# -- the committer -------------------------------------------------------------------------


def test_a_committer_holds_committables_in_its_state_until_their_checkpoint_is_complete() -> None:
    task = up(committer())
    assert take(task, handed(A, 1)) == []
    effects = take(task, barrier(1))
    assert state_in(effects).transactions == [(A, cp(1))]
    assert asked(deliver(task, complete(1))) == [finalise(A)]


def test_what_is_final_is_handed_on_and_then_reported_to_be_all() -> None:
    task = up(committer())
    take(task, handed(A, 1))
    request = number(deliver(task, complete(1)), Finalise)
    assert sent(answered(task, request)) == [(0, handed(A, 1)), (0, settled(1))]
    assert state_in(take(task, barrier(2))).transactions == []


def test_a_committer_with_nothing_to_commit_states_that_nothing_is_left() -> None:
    assert sent(deliver(up(committer()), complete(1))) == [(0, settled(1))]


def test_a_notification_that_was_lost_is_made_up_for_by_the_next() -> None:
    task = up(committer())
    take(task, handed(A, 1))
    take(task, handed(LATER, 2))
    effects = deliver(task, complete(2))
    assert asked(effects) == [finalise(A), finalise(LATER)]
    first, second = (number for number, _ in requests(effects))
    assert sent(answered(task, second)) == [(0, handed(LATER, 2))]
    assert sent(answered(task, first)) == [(0, handed(A, 1)), (0, settled(2))]


def test_a_commit_is_asked_for_again_until_the_answer_is_definite() -> None:
    task = up(committer())
    take(task, handed(A, 1))
    request = number(deliver(task, complete(1)), Finalise)
    assert sent(answered(task, request, NoAnswer(reason="silence"))) == []
    assert work(task).sealed == [Sealed(A, cp(1), SINK)]
    assert asked(deliver(task, complete(2))) == []  # it is being asked for
    assert sent(answered(task, request)) == [(0, handed(A, 1)), (0, settled(2))]


def test_a_transaction_that_its_store_gave_up_fails_the_task_by_name() -> None:
    task = up(committer())
    take(task, handed(A, 1))
    request = number(deliver(task, complete(1)), Finalise)
    assert A in str(answered(task, request, Denied(reason=f"transaction {A} has been aborted")))


def test_a_restored_committer_commits_what_its_snapshot_holds_and_takes_input_at_once() -> None:
    effects = deliver(committer(), deploy(restored((A, 3)), checkpoint=3))
    assert effects[1:3] == running("committer-0")
    assert asked(effects) == [finalise(A)]
    assert sent(effects) == [(0, settled(2))]


def test_a_restored_committer_drops_what_overtook_the_barrier() -> None:
    effects = deliver(committer(), deploy(restored((A, 3), (LATER, 4)), checkpoint=3))
    assert asked(effects) == [finalise(A)]


def test_the_last_of_the_chain_makes_visible_and_hands_nothing_on() -> None:
    task = up(committer(last=True))
    take(task, handed(A, 1))
    effects = deliver(task, complete(1))
    assert asked(effects) == [Commit(writer=TaskId("committer-0"), attempt=ATTEMPT, name=A)]
    assert sent(answered(task, number(effects, Commit))) == []


def test_a_committer_finishes_when_all_is_committed_and_handed_on() -> None:
    task = up(committer())
    take(task, handed(A, 1))
    take(task, END)
    effects = deliver(task, terminate(1))
    last = answered(task, number(effects, Finalise))
    assert sent(last) == [(0, handed(A, 1)), (0, settled(1)), (0, ENDED)]
    assert last[-1:] == finished("committer-0")


@pytest.mark.parametrize(("last", "ended"), [(True, True), (False, False)])
def test_a_committer_with_another_behind_it_stays_until_the_end(last: bool, ended: bool) -> None:
    task = up(committer(last=last))
    take(task, END)
    assert state_in(take(task, barrier(1))).ended is ended


# -- the global committer --------------------------------------------------------------------


def test_it_publishes_when_every_committer_has_reported_that_all_is_there() -> None:
    task = up(publisher())
    take(task, handed(A, 1), 0)
    assert take(task, settled(1), 0) == []
    take(task, handed(B, 1), 1)
    assert asked(take(task, settled(1), 1)) == [publish(1, A, B)]


def test_news_of_a_complete_checkpoint_proves_nothing_of_what_has_come() -> None:
    task = up(publisher())
    take(task, handed(A, 1), 0)
    take(task, settled(1), 0)
    assert deliver(task, complete(1)) == []
    assert deliver(task, terminate(1)) == []
    assert not task.finished


def test_what_is_behind_the_level_of_all_waits() -> None:
    task = up(publisher())
    take(task, handed(A, 1), 0)
    take(task, handed(LATER, 2), 0)
    take(task, settled(2), 0)
    assert asked(take(task, settled(1), 1)) == [publish(1, A)]


def test_one_version_at_a_time() -> None:
    task = up(publisher(1))
    take(task, handed(A, 1))
    first = number(take(task, settled(1)), Publish)
    take(task, handed(LATER, 2))
    assert asked(take(task, settled(2))) == []
    assert asked(answered(task, first)) == [publish(2, LATER)]


def test_a_channel_in_which_nothing_follows_is_waited_for_no_more() -> None:
    task = up(publisher())
    take(task, handed(A, 1), 0)
    take(task, settled(1), 0)
    assert asked(take(task, ENDED, 1)) == [publish(1, A)]


def test_what_comes_twice_is_kept_once() -> None:
    task = up(publisher())
    take(task, handed(A, 1))
    take(task, handed(A, 1))
    assert work(task).sealed == [Sealed(A, cp(1), SINK)]


def test_a_restored_global_committer_waits_for_its_committers_again() -> None:
    task = publisher()
    effects = deliver(task, deploy(restored((A, 3)), checkpoint=3))
    assert asked(effects) == []
    take(task, settled(3), 0)
    assert asked(take(task, settled(3), 1)) == [publish(3, A)]


def test_a_committer_that_has_finished_holds_nothing_back() -> None:
    """The other's mark counts alone; once both have finished, all that has come is published."""
    task = up(publisher())
    take(task, handed(A, 1), 0)
    take(task, handed(LATER, 2), 1)
    take(task, ENDED, 0)
    request = number(take(task, settled(1), 1), Publish)
    assert answered(task, request) == []
    assert asked(take(task, ENDED, 1)) == [publish(2, LATER)]


def test_it_finishes_when_the_last_checkpoint_is_published() -> None:
    task = up(publisher(1))
    take(task, handed(A, 1))
    deliver(task, terminate(1))
    request = number(take(task, settled(1)), Publish)
    assert answered(task, request) == finished("global-committer-0")


def test_its_snapshot_holds_what_is_not_published() -> None:
    task = up(publisher(1))
    take(task, handed(A, 1))
    effects = take(task, barrier(2))
    assert effects[0] == SnapshotTaken(cp(2))
    held = state_in(effects)
    assert (held.transactions, held.ended) == ([(A, cp(1))], False)


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"committing": "nobody"},
        {"committing": "global", "sink": "plain"},
        {"committing": "committer", "finishing": "one-by-one"},
        {"pooled_ids": True, "sink": "plain"},
        {"pooled_ids": True, "committing": "committer"},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        Config(**wrong).check()
