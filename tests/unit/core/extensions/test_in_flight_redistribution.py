"""Data in flight where a job is rescaled: `core.in_flight_redistribution`, and the share that a new subtask takes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.core.decisions.snapshots.redistribution import Redistribution, Share, States
from cutproof.reference_impl.core.extensions.rescaling.in_flight_redistribution import Before, is_record, owned
from cutproof.reference_impl.core.extensions.rescaling.rescale import Gathering
from cutproof.reference_impl.core.job.topology import key_group, owner
from cutproof.reference_impl.core.vocabulary.ids import Handle
from cutproof.reference_impl.core.vocabulary.messages import Piece
from cutproof.reference_impl.core.vocabulary.state import BEGINNING, Passing, TaskState

GROUPS = 16


def record(key: int, origin: int) -> Passing:
    return (key, 10 * key, 0, 0, origin, None)


def piece(*gates: int) -> Piece:
    return Piece(handle=Handle("there"), state=None, gates=gates, finished=False)


def states(*held: TaskState, gates: tuple[int, ...] = ()) -> States:
    return [(piece(*gates), state) for state in held]


A, B, C, D = (record(key, key) for key in range(4))


def test_of_each_old_channel_comes_first_what_lay_at_the_receiver() -> None:
    """Two receivers, whose channels 1 and 2 come from the two senders over gate 1."""
    receivers = states(TaskState(queued={1: [A], 2: [B]}), TaskState(queued={1: [C]}), gates=(0, 1, 1))
    senders = states(TaskState(unsent={0: [D]}), TaskState(unsent={1: [A, (5,)]}))
    assert Before(1, receivers, senders).lanes(Redistribution().in_order) == [[A, D, C], [B, A, (5,)]]


def test_what_was_put_back_most_often_is_redistributed_first_whoever_sent_it() -> None:
    """Sender 0 goes on with what sender 1 had read before: C and D of the latter come before A and B, which are new."""
    old = TaskState(queued={0: [A], 1: [C, D]}, replays={1: [2, 1]})
    receivers = [Piece(handle=None, state=old, gates=(0, 0), finished=False)]
    sent = [TaskState(unsent={0: [B]}), TaskState()]
    senders = [Piece(handle=None, state=state, gates=(), finished=False) for state in sent]
    gathering = Gathering(receivers, share(0, 1, "hash", 1), senders=(senders,))
    assert gathering.next_handle() is None
    state = gathering.state(Redistribution())
    assert (state.queued, state.replays) == ({0: [C, D, A, B]}, {0: [2, 1]})


def test_a_mark_of_being_idle_is_something() -> None:
    assert Before(0, states(TaskState(queued={0: [()]}), gates=(0,)), states(TaskState())).is_anything()
    assert not Before(0, states(TaskState(), gates=(0,)), states(TaskState())).is_anything()


def test_nothing_of_another_input_is_redistributed() -> None:
    receivers = states(TaskState(queued={0: [A]}), gates=(0, 1))
    assert Before(1, receivers, states(TaskState())).lanes(Redistribution().in_order) == [[]]


def test_the_time_is_the_least_that_some_sender_had_reported_last() -> None:
    """The one said 9, under way; of the other 4 was heard, and 7 is under way to one of two."""
    receivers = states(
        TaskState(queued={0: [(9,)]}, times=[3, 4]), TaskState(queued={0: [(9,)]}, times=[3, 4]), gates=(0, 0)
    )
    senders = states(TaskState(), TaskState(unsent={0: [A, (7,)]}))
    assert Before(0, receivers, senders).last_watermark() == 4


def test_no_time_is_reported_where_none_was() -> None:
    assert Before(0, states(TaskState(queued={0: [A]}), gates=(0,)), states(TaskState())).last_watermark() == BEGINNING


@given(keys=st.lists(st.integers(0, 40), max_size=30), wide=st.integers(1, 7))
def test_every_record_of_a_hash_edge_has_one_owner(keys: list[int], wide: int) -> None:
    lane = [record(key, number) for number, key in enumerate(keys)]
    shares = [owned([*lane, (8,), ()], subtask, wide, GROUPS) for subtask in range(wide)]
    assert sorted(one for mine in shares for one in mine) == sorted(lane)
    for subtask, mine in enumerate(shares):
        assert mine == [one for one in lane if owner(key_group(one[0], GROUPS), GROUPS, wide) == subtask]


def test_what_is_no_record_is_no_record() -> None:
    assert [is_record(one) for one in (A, (4,), ())] == [True, False, False]


def share(subtask: int, wide: int, how: str, senders: int) -> Share:
    return Share(subtask=subtask, parallelism=wide, key_groups=GROUPS, gates=(0,) * senders, partitioning=(how,))


def shares(wide: int, how: str, new_senders: int) -> list[dict[int, list[Passing]]]:
    """By new subtask what it finds in its inputs: of two old receivers and three old senders, all in memory."""
    rows = iter(record(number % 5, number) for number in range(100))
    old = [
        TaskState(queued={channel: [next(rows), next(rows)] for channel in range(3)}, times=[6, 6, 6]) for _ in range(2)
    ]
    sent = [TaskState(unsent={channel: [next(rows), (8,)] for channel in range(2)}) for _ in range(3)]
    receivers = [Piece(handle=None, state=state, gates=(0, 0, 0), finished=False) for state in old]
    senders = [Piece(handle=None, state=state, gates=(), finished=False) for state in sent]
    found = []
    for subtask in range(wide):
        gathering = Gathering(receivers, share(subtask, wide, how, new_senders), senders=(senders,))
        assert gathering.next_handle() is None
        found.append(gathering.state(Redistribution()).queued)
    return found


LANES = ((0, 1, 12, 6, 7, 13), (2, 3, 14, 8, 9, 15), (4, 5, 16, 10, 11, 17))
"""of each old sender, what `dealt` says that it had under way: at a receiver, then for it, then of the next"""


@pytest.mark.parametrize("how", ["hash", "rebalance"])
@pytest.mark.parametrize(("wide", "new_senders"), [(1, 2), (3, 2), (2, 7), (7, 3)])
def test_each_record_is_redistributed_once_and_each_sender_s_stay_in_order(
    how: str, wide: int, new_senders: int
) -> None:
    found = shares(wide, how, new_senders)
    rows = [one for mine in found for passing in mine.values() for one in passing if is_record(one)]
    assert Counter(one[4] for one in rows) == Counter(range(18))
    for mine in found:
        for lane in LANES:
            channels = {channel: [one[4] for one in passing if is_record(one)] for channel, passing in mine.items()}
            there = [[origin for origin in origins if origin in lane] for origins in channels.values()]
            (together,) = [origins for origins in there if origins] or [[]]
            assert together == [origin for origin in lane if origin in together]
        assert set(mine) <= set(range(new_senders))
        for passing in mine.values():
            assert passing[-1] == (8,)
            assert [len(one) > 1 for one in passing[:-1]] == [True] * (len(passing) - 1)


def test_a_sender_s_records_are_in_one_channel_behind_one_another() -> None:
    """Old sender 1 had 2 and 3 at the first receiver, 14 for it, 8 and 9 at the second, 15 for that."""
    single = shares(1, "rebalance", 3)[0]
    assert [one[4] for one in single[1][:-1]] == [2, 3, 14, 8, 9, 15]
