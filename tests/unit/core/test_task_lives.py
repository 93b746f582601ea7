"""What a coordinator knows of its tasks: the numbers of their attempts, and how far each has come to its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.reference_impl.core.protocol.task_lives import (
    Attempts,
    Finished,
    InputEnded,
    MayLeave,
    Reported,
    Running,
    TaskEnds,
    TaskLife,
)
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Cancel
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS

FIVE = CheckpointId(5)


def in_life(life: TaskLife) -> TaskEnds:
    """`op-0` between a source and a sink that run."""
    ends = TaskEnds(GRAPH)
    ends.begin((OP,) if isinstance(life, Finished) else ())
    if isinstance(life, InputEnded | MayLeave):
        ends.input_ended(OP)
    if isinstance(life, MayLeave):
        ends.let_leave((OP,), life.checkpoint)
    if isinstance(life, Reported):
        ends.reported(OP)
    return ends


def sender_finished(ends: TaskEnds) -> None:
    ends.reported(SOURCE)
    while ends.count_next() is not None:
        pass


STEPS: dict[str, Callable[[TaskEnds], object]] = {
    "input ended": lambda ends: ends.input_ended(OP),
    "may leave": lambda ends: ends.let_leave((OP,), FIVE),
    "reported": lambda ends: ends.reported(OP),
    "sender finished": sender_finished,
}

TABLE: dict[tuple[TaskLife, str], TaskLife] = {
    (Running(), "input ended"): InputEnded(),
    (Running(), "may leave"): MayLeave(FIVE),
    (Running(), "reported"): Reported(None),
    (Running(), "sender finished"): Running(),
    (InputEnded(), "input ended"): InputEnded(),
    (InputEnded(), "may leave"): MayLeave(FIVE),
    (InputEnded(), "reported"): Reported(None),
    (InputEnded(), "sender finished"): InputEnded(),
    (MayLeave(FIVE), "input ended"): MayLeave(FIVE),
    (MayLeave(FIVE), "may leave"): MayLeave(FIVE),
    (MayLeave(FIVE), "reported"): Reported(FIVE),
    (MayLeave(FIVE), "sender finished"): MayLeave(FIVE),
    (Reported(None), "input ended"): Reported(None),
    (Reported(None), "may leave"): Reported(None),
    (Reported(None), "reported"): Reported(None),
    (Reported(None), "sender finished"): Finished(),
    (Finished(), "input ended"): Finished(),
    (Finished(), "may leave"): Finished(),
    (Finished(), "reported"): Finished(),
    (Finished(), "sender finished"): Finished(),
}


def life_of_op(ends: TaskEnds) -> TaskLife:
    return ends._lives[OP]


@pytest.mark.parametrize(("life", "step"), TABLE)
def test_one_step_of_a_tasks_life(life: TaskLife, step: str) -> None:
    ends = in_life(life)
    assert life_of_op(ends) == life
    STEPS[step](ends)
    assert life_of_op(ends) == TABLE[life, step]


def test_the_table_has_every_pair() -> None:
    assert len(TABLE) == len({type(life) for life, _ in TABLE}) * len(STEPS)


def test_a_task_counts_as_finished_behind_those_that_send_to_it() -> None:
    ends = TaskEnds(GRAPH)
    for task in (SINK, OP):
        ends.let_leave((task,), FIVE)
        ends.reported(task)
        assert ends.count_next() is None
    ends.reported(SOURCE)
    assert [ends.count_next() for _ in range(4)] == [(SOURCE, None), (OP, FIVE), (SINK, FIVE), None]
    assert ends.finished == TASKS


def test_a_part_that_begins_again_forgets_how_far_it_was() -> None:
    ends = TaskEnds(GRAPH)
    ends.let_leave(TASKS, FIVE)
    ends.begin_part((OP, SINK), (SINK,))
    assert ends.leaving == {SOURCE: FIVE}
    assert ends.finished == (SINK,)
    assert not ends.may_have_sent_its_end(OP)


def test_those_that_a_restart_spares_keep_their_number_and_messages_bear_it() -> None:
    attempts = Attempts(AttemptId(3), channels_stay=False)
    attempts.begin()
    attempts.begin(survivors=(SOURCE,))
    attempts.begin(survivors=(SOURCE, OP))
    assert [attempts.of(task) for task in TASKS] == [4, 5, 6]
    orders = [attempts.message_to(task, Cancel(job=1, attempt=attempts.newest)) for task in TASKS]
    assert [order.message.attempt for order in orders] == [4, 5, 6]
    attempts.begin()
    assert [attempts.of(task) for task in TASKS] == [7, 7, 7]


@pytest.mark.parametrize(("channels_stay", "of_op"), [(False, 5), (True, 4)])
def test_the_channels_of_one_that_restarts_alone_are_new_or_those_that_were_there(
    channels_stay: bool, of_op: int
) -> None:
    attempts = Attempts(AttemptId(3), channels_stay=channels_stay)
    attempts.begin()
    attempts.deployed_as_a_whole()
    attempts.begin(survivors=(SOURCE, SINK))
    assert [attempts.channels_of(task) for task in TASKS] == [4, of_op, 4]
