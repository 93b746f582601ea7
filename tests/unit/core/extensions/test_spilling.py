"""When buffers are spilled, freed and trimmed, and when a channel's part of a checkpoint is safe."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.extensions.in_flight_data.spilling import (
    ALIGNED,
    AT_ONCE,
    CONTINUOUS,
    ChannelSpilling,
    Copy,
    Drop,
    FlushWrites,
    Free,
    PartComplete,
    Spill,
    Way,
    spilling_after,
)
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated


def _with(way: Way, buffers: int) -> ChannelSpilling:
    machine = ChannelSpilling(way)
    for _ in range(buffers):
        machine.came()
    return machine


def test_aligned_spills_nothing_and_frees_what_was_processed() -> None:
    machine = ChannelSpilling(ALIGNED)
    assert machine.came() == []
    assert machine.processed(0) == [Free(0)]
    assert machine.snapshot(1, [], closed=True) == [PartComplete(1)]


def test_at_once_spills_what_a_barrier_overtook_for_this_checkpoint_alone() -> None:
    machine = _with(AT_ONCE, 2)
    assert machine.snapshot(1, [0, 1], closed=True) == [Spill(Copy(1, 0)), Spill(Copy(1, 1)), FlushWrites()]


def test_continuously_a_buffer_is_spilled_as_it_comes_and_not_again() -> None:
    machine = ChannelSpilling(CONTINUOUS)
    assert machine.came() == [Spill(Copy(0, 0))]
    assert machine.snapshot(1, [0], closed=True) == [FlushWrites()]
    assert machine.copies_of(1) == (Copy(0, 0),)


def test_only_a_buffer_that_waited_is_spilled_before_a_checkpoint() -> None:
    machine = _with(spilling_after(5), 3)
    assert machine.waited(0) == [Spill(Copy(0, 0))]
    assert machine.waited(0) == []
    machine.processed(1)
    assert machine.waited(1) == []
    assert machine.snapshot(1, [2], closed=True) == [Spill(Copy(0, 2)), FlushWrites()]


def test_a_part_is_safe_when_all_of_it_is_durable_and_not_before() -> None:
    machine = _with(AT_ONCE, 2)
    machine.snapshot(1, [0, 1], closed=True)
    assert machine.written(Copy(1, 0)) == []
    assert machine.written(Copy(1, 1)) == []
    assert machine.flushed([Copy(1, 0)]) == []
    assert machine.flushed([Copy(1, 1)]) == [PartComplete(1)]
    assert machine.flushed([Copy(1, 1)]) == []


def test_what_comes_before_the_channels_own_barrier_belongs_to_the_part() -> None:
    machine = _with(AT_ONCE, 1)
    assert machine.snapshot(1, [0], closed=False) == [Spill(Copy(1, 0))]
    assert machine.came() == [Spill(Copy(1, 1))]
    assert machine.flushed([Copy(1, 0), Copy(1, 1)]) == []
    assert machine.barrier(1) == [PartComplete(1)]
    assert machine.came() == []


def test_memory_is_freed_when_a_buffer_is_processed_and_written() -> None:
    machine = _with(CONTINUOUS, 2)
    assert machine.processed(0) == []
    assert machine.written(Copy(0, 0)) == [Free(0)]
    assert machine.written(Copy(0, 1)) == []
    assert machine.processed(1) == [Free(1)]


def test_a_complete_checkpoint_trims_what_was_processed_before_it_and_no_more() -> None:
    machine = _with(CONTINUOUS, 4)
    machine.processed(0)
    machine.snapshot(1, [1, 2, 3], closed=True)
    machine.processed(1)
    assert machine.completed(1) == [Drop((Copy(0, 0),))]


def test_a_newer_checkpoint_drops_the_copies_of_the_older() -> None:
    machine = _with(AT_ONCE, 1)
    machine.snapshot(1, [0], closed=True)
    assert machine.completed(1) == []
    assert machine.snapshot(2, [0], closed=True) == [Spill(Copy(2, 0)), FlushWrites()]
    assert machine.completed(2) == [Drop((Copy(1, 0),))]


def test_a_rewind_reads_the_part_in_order_and_drops_everything_else() -> None:
    machine = _with(CONTINUOUS, 3)
    machine.snapshot(1, [1, 2], closed=True)
    machine.completed(1)
    machine.came()
    kept, effects = machine.rewind(1)
    assert kept == [Copy(0, 1), Copy(0, 2)]
    assert effects == [Drop((Copy(0, 0), Copy(0, 3)))]
    assert machine.processed(1) == [Free(1)]


def test_a_rewind_to_the_beginning_keeps_nothing() -> None:
    machine = _with(CONTINUOUS, 2)
    assert machine.rewind(None) == ([], [Drop((Copy(0, 0), Copy(0, 1)))])


def test_numbers_are_never_used_again() -> None:
    machine = _with(AT_ONCE, 2)
    machine.rewind(None)
    assert machine.next_number == 2


def test_what_it_does_not_have_is_refused() -> None:
    machine = _with(AT_ONCE, 1)
    with pytest.raises(ProtocolViolated, match="buffer 7 is not in flight"):
        machine.processed(7)
    with pytest.raises(ProtocolViolated, match="no part of checkpoint 3"):
        machine.barrier(3)
