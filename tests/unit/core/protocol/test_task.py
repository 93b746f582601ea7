"""Operator tasks: alignment, held output, failing user functions, end of data, routing."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.building import TaskBuilder
from cutproof.reference_impl.core.job.config import Config
from cutproof.reference_impl.core.job.topology import key_group, owner
from cutproof.reference_impl.core.operators.operators import Count, FlatMap, Join, Map
from cutproof.reference_impl.core.protocol.input_task import InputTask
from cutproof.reference_impl.core.vocabulary.causes import OtherBarrierFirst, SnapshotNotWritten
from cutproof.reference_impl.core.vocabulary.effects import (
    Block,
    Load,
    Mail,
    Persist,
    Report,
    Restored,
    Send,
    SetTimer,
    SnapshotTaken,
    Unblock,
)
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated
from cutproof.reference_impl.core.vocabulary.events import Mailed, PersistFailed, Received, SnapshotLoaded, TimerFired
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, Handle
from cutproof.reference_impl.core.vocabulary.messages import Complete, Record, Running
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.timeouts import RetryEndReport
from unit.core.machines import (
    END,
    ENDED,
    abort,
    ack,
    answered,
    barrier,
    build,
    cancelled,
    complete,
    decline,
    deliver,
    deploy,
    ended,
    finished,
    only,
    operator,
    output,
    reason,
    row,
    running,
    sent,
    spec,
    take,
    terminate,
    up,
)

TWICE = FlatMap(lambda value: () if value is None else (value, value + 1, value + 2)[: value % 4])


def cut(effects: list[object], checkpoint: int, *, ended: bool = False) -> list[object]:
    """Effects with the snapshot's own left out, after checking that it was taken, written and acknowledged."""
    at = effects.index(SnapshotTaken(checkpoint))
    persist = effects[at + 1]
    assert isinstance(persist, Persist)
    assert persist.checkpoint == checkpoint
    assert persist.then == (ack("op-0", checkpoint, ended=ended),)
    return [*effects[:at], "snapshot", *effects[at + 2 :]]


# -- records ---------------------------------------------------------------------------------------------------


def test_a_record_is_worked_on_and_sent() -> None:
    task = up(operator(Map(lambda key, value: (key, value + 1))))
    assert take(task, row(1, 5, tag=9, origin=3)) == [Send(0, row(1, 6, tag=9, origin=3))]


def test_the_operator_receives_the_name_of_its_input() -> None:
    """Channels 0 and 1 are its left input, channel 2 its right one."""
    described = spec("op-0", gates=(0, 0, 1), outputs=(output("forward", 0),))
    task = up(TaskBuilder(Config(), Parts()).operator(described, Join()))
    assert take(task, row(1, 5, tag=50), 1) == []
    assert sent(take(task, row(1, 6, tag=60), 2)) == [(0, row(1, 5, tag=50, tag2=60))]


@pytest.mark.parametrize("error", [ValueError("no such thing"), KeyError(3), ZeroDivisionError("by zero")])
def test_a_user_function_that_raises_fails_its_task(error: Exception) -> None:
    def raising(key: int | None, value: int | None) -> tuple[int | None, int | None]:
        raise error

    reason_text = reason(take(up(operator(Map(raising))), row(1, 1)))
    assert reason_text == f"the user function of op-0 raised {type(error).__name__}: {error}"


# -- barriers --------------------------------------------------------------------------------------------------


def test_one_input_needs_no_alignment() -> None:
    task = up(operator(outputs=(output("rebalance", 0, 1),)))
    assert cut(take(task, barrier(1)), 1) == ["snapshot", Send(0, barrier(1)), Send(1, barrier(1))]


def test_two_inputs_align() -> None:
    task = up(operator(Count(tagged=False), inputs=2))
    take(task, row(7, 0), 1)
    assert take(task, barrier(1), 0) == [Block(0)]
    take(task, row(7, 0), 1)
    effects = take(task, barrier(1), 1)
    assert cut(effects, 1) == ["snapshot", Send(0, barrier(1)), Unblock(0)]
    assert only(Persist, effects).snapshot.materialise().entries == [(0, 7, 2, 0)]


def test_at_least_once_blocks_nothing() -> None:
    task = up(operator(inputs=2, guarantee="at-least-once"))
    assert take(task, barrier(1), 0) == []
    assert cut(take(task, barrier(1), 1), 1) == ["snapshot", Send(0, barrier(1))]


def test_a_cancel_barrier_is_handed_on_and_reported() -> None:
    task = up(operator(inputs=2, outputs=(output("hash", 0, 1),)))
    take(task, barrier(1), 1)
    assert take(task, cancelled(1), 0) == [
        Send(0, cancelled(1)),
        Send(1, cancelled(1)),
        decline("op-0", 1, OtherBarrierFirst()),
        Unblock(1),
    ]


def test_an_abort_lets_the_channels_go_and_is_not_declined() -> None:
    task = up(operator(inputs=2))
    take(task, barrier(1), 0)
    assert deliver(task, abort(1)) == [Send(0, cancelled(1)), Unblock(0)]
    assert take(task, barrier(1), 1) == []


def test_a_barrier_of_an_aborted_checkpoint_becomes_a_cancel_barrier() -> None:
    task = up(operator())
    assert deliver(task, abort(1)) == []
    assert take(task, barrier(1)) == [Send(0, cancelled(1))]
    assert cut(take(task, barrier(2)), 2) == ["snapshot", Send(0, barrier(2))]


def test_processing_goes_on_while_the_state_is_written() -> None:
    """The snapshot is of the barrier's moment, whenever the store gets to it (ABS-8)."""
    task = up(operator(Join(), inputs=2))
    take(task, row(1, 5, tag=50), 0)
    take(task, barrier(1), 0)
    snapshot = only(Persist, take(task, barrier(1), 1)).snapshot
    take(task, row(1, 6, tag=60), 0)
    take(task, row(2, 7, tag=70), 1)
    assert snapshot.materialise() == TaskState(entries=[(0, 1, 5, 50)], rotations=[0])


def test_a_write_that_fails_declines_the_checkpoint() -> None:
    task = up(operator())
    take(task, barrier(1))
    assert task.step(PersistFailed(1, "disk full")) == [decline("op-0", 1, SnapshotNotWritten("disk full"))]


# -- held output -----------------------------------------------------------------------------------------------


def test_the_first_row_goes_out_and_the_rest_by_mail() -> None:
    task = up(operator(TWICE))
    first, mail = take(task, row(1, 3, origin=256))
    assert first == Send(0, row(1, 3, origin=256))
    assert isinstance(mail, Mail)
    assert task.step(Mailed(mail.letter)) == [Send(0, row(1, 4, origin=257)), Send(0, row(1, 5, origin=258))]
    assert task.step(Mailed(mail.letter)) == [], "nothing is let out twice"


def test_one_row_or_none_needs_no_mail() -> None:
    task = up(operator(TWICE))
    assert take(task, row(1, 1)) == [Send(0, row(1, 1))]
    assert take(task, row(1, None)) == []


def test_held_rows_go_out_before_the_next_record() -> None:
    task = up(operator(TWICE))
    take(task, row(1, 2))
    assert sent(take(task, row(1, 5))) == [(0, row(1, 3, origin=1)), (0, row(1, 5))]


def test_held_rows_go_out_before_the_barrier() -> None:
    task = up(operator(TWICE))
    take(task, row(1, 2))
    assert cut(take(task, barrier(1)), 1) == [Send(0, row(1, 3, origin=1)), "snapshot", Send(0, barrier(1))]
    assert cut(take(task, barrier(2)), 2) == ["snapshot", Send(0, barrier(2))]


def test_held_rows_go_out_before_the_end_of_data() -> None:
    task = up(operator(TWICE))
    take(task, row(1, 2))
    assert sent(take(task, END)) == [(0, row(1, 3, origin=1)), (0, END)]


# -- the end ---------------------------------------------------------------------------------------------------


def test_data_end_when_all_inputs_have() -> None:
    task = up(operator(inputs=3))
    assert take(task, END, 0) == []
    assert take(task, END, 2) == []
    assert not task.input_ended
    assert take(task, END, 1) == [Send(0, END), ended("op-0"), SetTimer(RetryEndReport(), 12_000)]
    assert task.input_ended
    assert task.step(TimerFired(RetryEndReport())) == [ended("op-0"), SetTimer(RetryEndReport(), 12_000)]


def test_barriers_still_pass_after_the_end_of_data() -> None:
    task = up(operator(inputs=2))
    take(task, END, 0)
    take(task, END, 1)
    assert take(task, barrier(1), 0) == [Block(0)]
    assert cut(take(task, barrier(1), 1), 1, ended=True) == ["snapshot", Send(0, barrier(1)), Unblock(0)]


def test_terminate_finishes_and_is_answered_as_often_as_it_comes() -> None:
    task = up(operator())
    take(task, END)
    assert deliver(task, terminate(4)) == [Send(0, ENDED), *finished("op-0")]
    assert deliver(task, terminate(4)) == finished("op-0")
    assert task.step(TimerFired(RetryEndReport())) == []


# -- coming up -------------------------------------------------------------------------------------------------


def test_the_state_is_restored_before_any_input() -> None:
    task = operator(Count(tagged=False))
    state = TaskState(entries=[(0, 7, 2, 0)], rotations=[0])
    assert deliver(task, deploy(checkpoint=4, handle=Handle("h"))) == [Load(Handle("h"))]
    assert not task.has_started
    assert task.step(SnapshotLoaded(state)) == [Restored(4, state), *running("op-0")]
    assert sent(take(task, row(7, 0))) == [(0, row(7, 3))]


def test_what_it_reports_to_have_restored_is_what_it_holds() -> None:
    """Not what it was given: an operator that forgets on restore is seen to."""

    class Forgetful(Count):
        def resume(self, state: TaskState) -> None:
            super().resume(TaskState(entries=state.entries[:1]))

    task = operator(Forgetful(tagged=False))
    effects = deliver(task, deploy(checkpoint=4, state=TaskState(entries=[(0, 1, 5, 0), (0, 2, 6, 0)], rotations=[0])))
    assert effects[0] == Restored(4, TaskState(entries=[(0, 1, 5, 0)], rotations=[0]))


def test_messages_of_the_same_attempt_repeated_change_nothing() -> None:
    task = up(operator())
    take(task, barrier(1))
    for message in (deploy(), complete(1), complete(1), abort(1)):
        assert deliver(task, message) == []
    assert sent(take(task, barrier(2))) == [(0, barrier(2))]


def test_a_message_of_another_attempt_is_a_bug_of_the_driver() -> None:
    with pytest.raises(ProtocolViolated, match="another attempt"):
        up(operator()).step(Received(Complete(job=1, attempt=AttemptId(2), checkpoint=1)))


def test_what_a_task_is_not() -> None:
    task = up(operator())
    with pytest.raises(ProtocolViolated, match="op-0 takes no Answered"):
        answered(task, 1)
    with pytest.raises(ProtocolViolated, match="committer-0 takes no records"):
        take(build().committer(spec("committer-0", gates=(0,))), row(1, 1))


# -- routing ---------------------------------------------------------------------------------------------------


def channels(task: InputTask, rows: list[Record]) -> list[int]:
    return [channel for record in rows for channel, _ in sent(take(task, record))]


def test_forward_keeps_to_one_channel() -> None:
    assert channels(up(operator(outputs=(output("forward", 4),))), [row(k, 0) for k in range(3)]) == [4, 4, 4]


def test_hash_goes_to_the_owner_of_the_key_group() -> None:
    task = up(operator(outputs=(output("hash", 5, 6, 7),)))
    keys = [*range(20), None, *range(20), None]
    wanted = [5 + owner(key_group(key, 16), 16, 3) for key in keys]
    assert channels(task, [row(key, 0) for key in keys]) == wanted
    assert set(wanted) == {5, 6, 7}


def test_rebalance_goes_round_and_its_position_is_in_the_snapshot() -> None:
    task = up(operator(outputs=(output("rebalance", 0, 1, 2),)))
    assert channels(task, [row(1, 0)] * 5) == [0, 1, 2, 0, 1]
    state = only(Persist, take(task, barrier(1))).snapshot.materialise()
    assert state == TaskState(rotations=[2])
    again = up(operator(outputs=(output("rebalance", 0, 1, 2),)), state, 1)
    assert channels(again, [row(1, 0)] * 2) == [2, 0]


def test_a_state_without_rotations_leaves_them_at_the_start() -> None:
    again = up(operator(outputs=(output("rebalance", 0, 1),)), TaskState(), 1)
    assert channels(again, [row(1, 0)] * 2) == [0, 1]


def test_several_outputs_each_get_every_row() -> None:
    task = up(operator(outputs=(output("rebalance", 0, 1), output("forward", 2))))
    assert channels(task, [row(1, 0)] * 3) == [0, 2, 1, 2, 0, 2]
    assert sent(take(task, barrier(1))) == [(0, barrier(1)), (1, barrier(1)), (2, barrier(1))]


def test_no_output_sends_nothing() -> None:
    assert take(up(operator(outputs=())), row(1, 0)) == []


def test_it_reports_to_the_coordinator_under_its_attempt() -> None:
    report = deliver(operator(), deploy())[1]
    assert report == Report(Running(job=1, attempt=AttemptId(3), task="op-0"))
