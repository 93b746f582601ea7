"""The general snapshot's machine: one process, and the collector."""

from __future__ import annotations

import gc
import weakref

import pytest

from cutproof.reference_impl.core.protocol.chandy_lamport import (
    ChannelName,
    Collector,
    Contribute,
    Contribution,
    LastMarker,
    ProcessName,
    Recorder,
    SendMarker,
    SnapshotName,
)
from cutproof.reference_impl.core.vocabulary.errors import ProtocolViolated

P, Q = ProcessName("P"), ProcessName("Q")
LEFT, RIGHT, OUT, OWN = (ChannelName(name) for name in ("left", "right", "out", "own"))
S, T = SnapshotName("S"), SnapshotName("T")


def _contribution(state: object, snapshot: SnapshotName = S, **channels: tuple[object, ...]) -> Contribute:
    held = {ChannelName(name): messages for name, messages in channels.items()}
    return Contribute(contribution=Contribution(snapshot=snapshot, process=P, state=state, channels=held))


def test_a_beginner_records_and_sends_its_markers_in_one_step() -> None:
    recorder = Recorder(P, [LEFT], [OUT, OWN])
    assert recorder.begin(S, "state") == [SendMarker(channel=OUT, snapshot=S), SendMarker(channel=OWN, snapshot=S)]


def test_the_first_marker_makes_its_channel_empty_and_records_the_others() -> None:
    recorder = Recorder(P, [LEFT, RIGHT], [OUT])
    recorder.on_message(LEFT, "before")
    assert recorder.on_marker(LEFT, S, "state") == [SendMarker(channel=OUT, snapshot=S)]
    recorder.on_message(LEFT, "after the marker")
    recorder.on_message(RIGHT, "one")
    recorder.on_message(RIGHT, "two")
    assert recorder.on_marker(RIGHT, S, "a later state") == [_contribution("state", left=(), right=("one", "two"))]
    recorder.on_message(RIGHT, "three")
    assert recorder.on_marker(RIGHT, S, "again") == []


def test_who_has_no_input_is_done_at_once_and_who_has_no_output_notifies_nobody() -> None:
    assert Recorder(P, [], []).begin(S, 7) == [_contribution(7)]


def test_a_message_to_oneself_is_in_the_channel_until_it_is_received() -> None:
    recorder = Recorder(P, [OWN], [OWN])
    assert recorder.begin(S, "state") == [SendMarker(channel=OWN, snapshot=S)]
    recorder.on_message(OWN, "to myself")
    assert recorder.on_marker(OWN, S, "later") == [_contribution("state", own=("to myself",))]


def test_a_second_beginning_and_a_second_marker_say_nothing_new() -> None:
    recorder = Recorder(P, [LEFT, RIGHT], [])
    assert recorder.on_marker(LEFT, S, "first") == []
    assert recorder.begin(S, "second") == []
    assert recorder.on_marker(LEFT, S, "third") == []
    assert recorder.on_marker(RIGHT, S, "fourth") == [_contribution("first", left=(), right=())]
    assert recorder.begin(S, "fifth") == []


def test_two_snapshots_at_a_time_have_their_own_states_and_channels() -> None:
    recorder = Recorder(P, [LEFT], [])
    recorder.begin(S, "early")
    recorder.on_message(LEFT, "one")
    recorder.begin(T, "late")
    recorder.on_message(LEFT, "two")
    assert recorder.on_marker(LEFT, T, "") == [_contribution("late", T, left=("two",))]
    recorder.on_message(LEFT, "three")
    assert recorder.on_marker(LEFT, S, "") == [_contribution("early", left=("one", "two", "three"))]


def test_with_alignment_a_channel_is_blocked_until_the_last_marker() -> None:
    recorder = Recorder(P, [LEFT, RIGHT], [OUT], LastMarker())
    assert recorder.on_marker(LEFT, S, "early") == []
    assert (recorder.is_blocked(LEFT), recorder.is_blocked(RIGHT)) == (True, False)
    recorder.on_message(RIGHT, "one")
    done = recorder.on_marker(RIGHT, S, "late")
    assert done == [SendMarker(channel=OUT, snapshot=S), _contribution("late", left=(), right=())]
    assert not recorder.is_blocked(LEFT)


def test_a_marker_by_a_strangers_channel_is_refused() -> None:
    with pytest.raises(ProtocolViolated, match="out is no input of P"):
        Recorder(P, [LEFT], [OUT]).on_marker(OUT, S, "state")


def test_a_snapshot_is_complete_when_all_have_contributed_once() -> None:
    collector = Collector([P, Q])
    mine, theirs = (Contribution(snapshot=S, process=name, state=name, channels={}) for name in (P, Q))
    assert collector.on_contribution(theirs) == ()
    assert collector.on_contribution(mine) == (mine, theirs)
    with pytest.raises(ProtocolViolated, match="P contributed to S twice"):
        collector.on_contribution(mine)
    with pytest.raises(ProtocolViolated, match="R is no process of the system"):
        collector.on_contribution(Contribution(snapshot=T, process=ProcessName("R"), state="", channels={}))


class Large:
    """A state, or a message, of which one wants to know whether anybody still has it."""


def test_what_is_complete_is_handed_over_and_only_its_name_is_kept() -> None:
    """The name, so that nothing of it begins again."""
    state, message = Large(), Large()
    forgotten = [weakref.ref(state), weakref.ref(message)]
    collector, recorder = Collector([P]), Recorder(P, [LEFT], [OUT])
    recorder.begin(S, state)
    recorder.on_message(LEFT, message)
    (contribute,) = recorder.on_marker(LEFT, S, state)
    assert isinstance(contribute, Contribute)
    assert collector.on_contribution(contribute.contribution) == (contribute.contribution,)
    del state, message, contribute
    gc.collect()
    assert [one() for one in forgotten] == [None, None]
    with pytest.raises(ProtocolViolated, match="P contributed to S twice"):
        collector.on_contribution(Contribution(snapshot=S, process=P, state="again", channels={}))
    assert recorder.begin(S, "again") == recorder.on_marker(LEFT, S, "again") == []
