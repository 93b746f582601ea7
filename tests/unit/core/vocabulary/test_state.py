"""A snapshot's bytes: there and back, and what is torn or altered is found."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.reference_impl.core.backends.heap import HeapView
from cutproof.reference_impl.core.backends.layouts import SINGLE
from cutproof.reference_impl.core.vocabulary.errors import CorruptSnapshot, ProtocolViolated
from cutproof.reference_impl.core.vocabulary.formats import decode, encode
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId
from cutproof.reference_impl.core.vocabulary.ordering import ordered
from cutproof.reference_impl.core.vocabulary.state import Kept, Ref, Snapshot, TaskState, as_kept, read_back

int64 = st.integers(-(1 << 63), (1 << 63) - 1)
nullable = st.one_of(st.none(), int64)
states = st.builds(
    TaskState,
    positions=st.dictionaries(st.integers(0, 99), st.integers(0, 1 << 40)),
    entries=st.lists(st.tuples(st.integers(0, 1), nullable, nullable, int64)),
    transactions=st.lists(st.tuples(st.text(), st.integers(1, 99))),
    rotations=st.lists(st.integers(0, 9)),
    turn=st.integers(0, 9),
    serial=st.integers(0, 99),
)


@settings(max_examples=40)
@given(states)
def test_there_and_back(state: TaskState) -> None:
    """But for the order of its entries, which the file has by side and key."""
    read = decode(encode(state))
    assert read == ordered(state)
    assert Counter(read.entries) == Counter(state.entries)


small = st.integers(0, 9)
timers = st.lists(st.tuples(small, st.none() | small, small), unique=True, max_size=5)
elements = st.lists(st.tuples(small, small, small, small, small, small), min_size=1, max_size=3)
unordered = st.builds(
    TaskState,
    positions=st.dictionaries(small, small),
    maxima=st.dictionaries(small, small),
    entries=st.lists(st.tuples(small, st.none() | small, small, small), unique_by=lambda one: one[:2]),
    idle=st.lists(small, unique=True),
    timers=timers,
    alarms=timers,
    held=st.lists(st.tuples(st.none() | small, st.sampled_from("ab*"), st.just("1")), unique_by=lambda one: one[:2]),
    declared=st.dictionaries(st.sampled_from("abcd"), st.just("value of int")),
    queued=st.dictionaries(small, elements),
    unsent=st.dictionaries(small, elements),
    replays=st.dictionaries(small, st.lists(small, min_size=1)),
    spilled=st.dictionaries(small, st.lists(st.builds(Ref, st.just("log"), small, small), min_size=1)),
)


@settings(max_examples=100)
@given(unordered, st.randoms(use_true_random=False))
def test_the_same_state_has_the_same_bytes(state: TaskState, random: Random) -> None:
    """Whatever came first: a key, a timer, a split, a channel."""
    changes: dict[str, Any] = {}
    for name in TaskState.__struct_fields__:
        content = getattr(state, name)
        if isinstance(content, dict):
            changes[name] = dict(random.sample(list(content.items()), len(content)))
        elif isinstance(content, list):
            changes[name] = random.sample(content, len(content))
    assert encode(msgspec.structs.replace(state, **changes)) == encode(state)


@settings(max_examples=40)
@given(states, st.data())
def test_torn_anywhere_is_found(state: TaskState, data: st.DataObject) -> None:
    whole = encode(state)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptSnapshot):
        decode(whole[:length])


@settings(max_examples=40)
@given(states, st.data())
def test_one_altered_byte_is_found(state: TaskState, data: st.DataObject) -> None:
    altered = bytearray(encode(state))
    place = data.draw(st.integers(0, len(altered) - 1))
    altered[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptSnapshot):
        decode(bytes(altered))


def test_a_snapshot_is_fixed_but_for_its_view() -> None:
    """If the decision on copying hands the state itself over, a later change is written."""
    copy = {1: 2}
    snapshot = Snapshot(TaskState(turn=3), HeapView(SINGLE, copy))
    copy[1] = 5
    assert snapshot.materialise() == TaskState(turn=3, entries=[(0, 1, 5, 0)])


def test_a_transaction_read_back_knows_its_writer_and_its_pooled_id() -> None:
    """Both are in its name alone; the snapshot holds nothing else."""
    names: list[Kept] = [("job-1/global-sink-2/3-1", CheckpointId(4)), ("job-1/sink-0/id-1#3-2", CheckpointId(5))]
    sealed = read_back(names)
    assert [(one.writer, one.pooled_id) for one in sealed] == [("global-sink-2", None), ("sink-0", "job-1/sink-0/id-1")]
    assert as_kept(sealed) == names
    with pytest.raises(ProtocolViolated, match="'t' names no writer"):
        read_back([("t", CheckpointId(5))])
