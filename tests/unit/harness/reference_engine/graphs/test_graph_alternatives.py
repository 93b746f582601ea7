"""What the text sets beside the general snapshot, measured (CL-4)."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.reference_engine.graphs.run import run, run_and_judge
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.reference_impl.simulated.graphs.plan import Act, Beginning, Channel, System


def _stream(records: int, takes_us: int) -> System:
    """A log's reader sends a record every 10 µs, which is on its way for a while."""
    return System(
        processes=("reader", "counter"),
        channels=(Channel(name="stream", sender="reader", receiver="counter", takes_us=takes_us),
                  Channel(name="back", sender="counter", receiver="reader", takes_us=10)),
        acts=tuple(
            Act(at_us=10 * number, process="reader", label=f"record {number}", channel="stream")
            for number in range(records)
        ),
        beginnings=(Beginning(at_us=5 * records, process="counter", snapshot="S"),),
    )  # fmt: skip


def _bytes_of_channels(system: System) -> int:
    history = run(system)
    (taken,) = history.snapshots
    held = [history.events[number].label for part in taken.parts for own in part.channels.values() for number in own]
    return len(msgspec.json.encode(held))


def _bytes_of_offsets(system: System) -> int:
    """What a reader that can go back stores instead: how far it was when the marker passed, aligned."""
    (taken,) = run(msgspec.structs.replace(_begun_by_the_reader(system), method="aligned")).snapshots
    assert [own for part in taken.parts for own in part.channels.values() if own] == []
    return len(msgspec.json.encode({"stream": len(taken.parts[0].events)}))


def _begun_by_the_reader(system: System) -> System:
    (begin,) = system.beginnings
    acyclic = msgspec.structs.replace(system, channels=system.channels[:1])
    return msgspec.structs.replace(acyclic, beginnings=(msgspec.structs.replace(begin, process="reader"),))


def test_source_offsets_need_less_space_than_recorded_channels() -> None:
    channels = [_bytes_of_channels(_stream(200, takes_us)) for takes_us in (100, 400, 800)]
    offsets = [_bytes_of_offsets(_stream(200, takes_us)) for takes_us in (100, 400, 800)]
    assert channels == sorted(channels)
    assert channels[0] * 4 < channels[2]  # grows with what is under way
    assert len(set(offsets)) == 1  # an offset does not
    assert offsets[0] * 5 < channels[0]


def _two_way(skew_us: int) -> System:
    """P1 and P2 send to each other every 50 µs; a message takes 100."""
    pairs = (("P1", "there"), ("P2", "back"))
    return System(
        processes=("P1", "P2"),
        channels=(Channel(name="there", sender="P1", receiver="P2"), Channel(name="back", sender="P2", receiver="P1")),
        acts=tuple(
            Act(at_us=50 * number, process=name, label=f"{name} {number}", channel=channel)
            for number in range(40)
            for name, channel in pairs
        ),
        beginnings=(Beginning(at_us=1_010, process="P1", snapshot="S"),),
        method="clocks",
        skews_us={"P2": skew_us},
    )


@pytest.mark.parametrize("skew_us", [0, 30, -60, 90])
def test_clocks_that_differ_by_less_than_a_message_takes_are_right(skew_us: int) -> None:
    assert isinstance(run_and_judge(_two_way(skew_us)).verdict, Holds)


@pytest.mark.parametrize("skew_us", [200, -200, 500, -700])
def test_clocks_that_differ_by_more_are_not(skew_us: int) -> None:
    verdict = run_and_judge(_two_way(skew_us)).verdict
    assert isinstance(verdict, Violated)
    assert verdict.difference == "received, not sent"


def test_a_stopped_world_stands_still_and_markers_stop_nobody() -> None:
    system = msgspec.structs.replace(_two_way(0), skews_us={})
    stopped = run(msgspec.structs.replace(system, method="stop-the-world"))
    marked = run(msgspec.structs.replace(system, method="chandy-lamport"))
    undisturbed = run(msgspec.structs.replace(system, beginnings=()))
    assert all(time >= 200 for time in stopped.stopped_us.values())
    assert not any(marked.stopped_us.values())
    assert marked.events == undisturbed.events != stopped.events
