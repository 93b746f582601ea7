"""What a coordinator knows of its tasks: the numbers of their attempts, and how far each has come to its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.reference_impl.core.lifecycle.task_ends import (
    CountsAsFinished,
    InputProcessed,
    InputToCome,
    OrderedToFinish,
    ReportedFinished,
    TaskEnd,
    TaskEnds,
)
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.messages import Cancel
from unit.core.coordinator_rig import GRAPH, OP, SINK, SOURCE, TASKS, attempts_up_to

FIVE = CheckpointId(5)


def at_end(end: TaskEnd) -> TaskEnds:
    """`op-0` between a source and a sink that run."""
    ends = TaskEnds(GRAPH)
    ends.begin((OP,) if isinstance(end, CountsAsFinished) else ())
    if isinstance(end, InputProcessed | OrderedToFinish):
        ends.end_input(OP)
    if isinstance(end, OrderedToFinish):
        ends.order_to_finish((SOURCE, OP), end.checkpoint)
    if isinstance(end, ReportedFinished):
        ends.reported(OP)
    return ends


def sender_finished(ends: TaskEnds) -> None:
    ends.reported(SOURCE)
    while ends.count_next_finished() is not None:
        pass


STEPS: dict[str, Callable[[TaskEnds], object]] = {
    "input ended": lambda ends: ends.end_input(OP),
    "ordered to finish": lambda ends: ends.order_to_finish((SOURCE, OP), FIVE),
    "reported": lambda ends: ends.reported(OP),
    "sender finished": sender_finished,
}

TABLE: dict[tuple[TaskEnd, str], TaskEnd] = {
    (InputToCome(), "input ended"): InputProcessed(),
    (InputToCome(), "ordered to finish"): OrderedToFinish(FIVE),
    (InputToCome(), "reported"): ReportedFinished(None),
    (InputToCome(), "sender finished"): InputToCome(),
    (InputProcessed(), "input ended"): InputProcessed(),
    (InputProcessed(), "ordered to finish"): OrderedToFinish(FIVE),
    (InputProcessed(), "reported"): ReportedFinished(None),
    (InputProcessed(), "sender finished"): InputProcessed(),
    (OrderedToFinish(FIVE), "input ended"): OrderedToFinish(FIVE),
    (OrderedToFinish(FIVE), "ordered to finish"): OrderedToFinish(FIVE),
    (OrderedToFinish(FIVE), "reported"): ReportedFinished(FIVE),
    (OrderedToFinish(FIVE), "sender finished"): OrderedToFinish(FIVE),
    (ReportedFinished(None), "input ended"): ReportedFinished(None),
    (ReportedFinished(None), "ordered to finish"): ReportedFinished(None),
    (ReportedFinished(None), "reported"): ReportedFinished(None),
    (ReportedFinished(None), "sender finished"): CountsAsFinished(),
    (CountsAsFinished(), "input ended"): CountsAsFinished(),
    (CountsAsFinished(), "ordered to finish"): CountsAsFinished(),
    (CountsAsFinished(), "reported"): CountsAsFinished(),
    (CountsAsFinished(), "sender finished"): CountsAsFinished(),
}


def end_of_op(ends: TaskEnds) -> TaskEnd:
    return ends._ends[OP]


@pytest.mark.parametrize(("end", "step"), TABLE)
def test_one_step_of_a_task_towards_its_end(end: TaskEnd, step: str) -> None:
    ends = at_end(end)
    assert end_of_op(ends) == end
    STEPS[step](ends)
    assert end_of_op(ends) == TABLE[end, step]


def test_the_table_has_every_pair() -> None:
    assert len(TABLE) == len({type(end) for end, _ in TABLE}) * len(STEPS)


def test_a_task_counts_as_finished_behind_those_that_send_to_it() -> None:
    ends = TaskEnds(GRAPH)
    ends.order_to_finish(TASKS, FIVE)
    for task in (SINK, OP):
        ends.reported(task)
        assert ends.count_next_finished() is None
    ends.reported(SOURCE)
    assert [ends.count_next_finished() for _ in range(4)] == [(SOURCE, FIVE), (OP, FIVE), (SINK, FIVE), None]
    assert ends.finished == TASKS


def test_a_task_is_not_ordered_to_finish_before_those_that_send_to_it() -> None:
    """In at-least-once mode its snapshot may have all its input, where that of its sender has not sent it all."""
    ends, six = TaskEnds(GRAPH), CheckpointId(6)
    assert ends.order_to_finish((SINK, OP), FIVE) == []
    assert ends.order_to_finish((SINK, SOURCE, OP), six) == [SOURCE, OP, SINK]
    assert ends.ordered_to_finish == {SOURCE: six, OP: six, SINK: six}


def test_a_part_that_begins_again_forgets_how_far_it_was() -> None:
    ends = TaskEnds(GRAPH)
    ends.order_to_finish(TASKS, FIVE)
    ends.begin_region((OP, SINK), (SINK,))
    assert ends.ordered_to_finish == {SOURCE: FIVE}
    assert ends.finished == (SINK,)
    assert not ends.may_have_sent_its_end(OP)


def test_those_that_a_restart_spares_keep_their_number_and_messages_bear_it() -> None:
    attempts = attempts_up_to(3)
    attempts.begin()
    attempts.begin(survivors=(SOURCE,))
    attempts.begin(survivors=(SOURCE, OP))
    assert [attempts.number_of(task) for task in TASKS] == [4, 5, 6]
    orders = [attempts.message_to(task, Cancel(job=1, attempt=attempts.newest)) for task in TASKS]
    assert [order.message.attempt for order in orders] == [4, 5, 6]
    attempts.begin()
    assert [attempts.number_of(task) for task in TASKS] == [7, 7, 7]


@pytest.mark.parametrize(("channels_stay", "of_op"), [(False, 5), (True, 4)])
def test_the_channels_of_one_that_restarts_alone_are_new_or_those_that_were_there(
    channels_stay: bool, of_op: int
) -> None:
    attempts = attempts_up_to(3, channels_stay=channels_stay)
    attempts.begin()
    attempts.all_deployed()
    attempts.begin(survivors=(SOURCE, SINK))
    assert [attempts.channels_of(task) for task in TASKS] == [4, of_op, 4]
