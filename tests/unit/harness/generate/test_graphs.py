"""General snapshots on drawn systems: consistent whatever the graph, and not if a precondition is broken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from cutproof.harness.generate.systems import system_of, systems
from cutproof.harness.reference_engine.graphs.run import run, run_and_judge
from cutproof.properties.graphs.causality import GraphHistory, in_absolute_time
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.reference_impl.simulated.graphs.plan import Act, Beginning, Breach, Channel, System


def _judged(systems: Iterable[System]) -> list[GraphHistory]:
    """A hundred drawn systems, each run and judged: none is violated, and most of them had something to see."""
    found = []
    for system in systems:
        judged = run_and_judge(system)
        assert not isinstance(judged.verdict, Violated), judged.verdict
        assert {one.snapshot for one in system.beginnings} == {one.name for one in judged.history.snapshots}
        found.append(judged)
    assert sum(isinstance(judged.verdict, Holds) for judged in found) >= len(found) // 2
    return [judged.history for judged in found]


def _drawn(*, acyclic: bool = False, method: str = "chandy-lamport") -> list[System]:
    draw = system_of(acyclic=acyclic, method=method)
    return [draw(1, index) for index in range(100)]


def _with_something_under_way(history: GraphHistory) -> bool:
    return any(messages for one in history.snapshots for part in one.parts for messages in part.channels.values())


def _overlap(history: GraphHistory) -> bool:
    spans = sorted((one.begun_us, one.complete_us or one.begun_us) for one in history.snapshots)
    return any(before[1] > after[0] for before, after in itertools.pairwise(spans))


def test_on_any_graph_every_snapshot_is_consistent_and_completes() -> None:
    found = _judged(_drawn())
    assert sum(map(_with_something_under_way, found)) > 5
    assert sum(map(_overlap, found)) > 5


def test_on_an_acyclic_graph_with_alignment_no_channel_has_a_state() -> None:
    found = _judged(_drawn(acyclic=True, method="aligned"))
    assert not any(map(_with_something_under_way, found))


def test_a_world_that_is_stopped_is_consistent() -> None:
    found = _judged(map(_begun_once, _drawn(method="stop-the-world")))
    assert sum(map(_with_something_under_way, found)) > 5


def test_clocks_that_agree_are_consistent() -> None:
    found = _judged(map(_begun_once, _drawn(method="clocks")))
    assert sum(map(_with_something_under_way, found)) > 5


def _begun_once(system: System) -> System:
    return replace(system, beginnings=system.beginnings[:1])


def test_a_system_is_had_again_by_its_seed_and_number_alone() -> None:
    there = [system_of()(7, index) for index in range(12)]
    draw = system_of()
    assert [draw(7, index) for index in reversed(range(12))] == there[::-1]
    assert len({msgspec.json.encode(system) for system in there}) == 12
    assert draw(8, 0) != there[0]


TWO = System(
    processes=("P1", "P2"),
    channels=(
        Channel(name="to", sender="P1", receiver="P2", takes_us=100),
        Channel(name="fro", sender="P2", receiver="P1", takes_us=100),
    ),
    acts=(
        Act(at_us=10, process="P2", label="a", channel="fro", takes_us=10),
        Act(at_us=150, process="P2", label="b", channel="fro", takes_us=100),
        Act(at_us=220, process="P1", label="c", channel="to", takes_us=10),
        Act(at_us=230, process="P2", label="d", channel="fro", takes_us=10),
    ),
    beginnings=(Beginning(at_us=100, process="P1", snapshot="S"),),
)
"""P1 begins; a lies before the cut, b crosses it; the marker is number 0 of `to` and number 2 of `fro`"""

BREACHES = (
    (Breach(kind="lose", channel="to", number=0), "snapshot without an end"),
    (Breach(kind="lose", channel="fro", number=2), "snapshot without an end"),
    (Breach(kind="lose", channel="fro", number=1), "lost from a channel"),
    (Breach(kind="repeat", channel="fro", number=1), "twice in a channel"),
    (Breach(kind="repeat", channel="fro", number=0), "received twice"),
    (Breach(kind="overtake", channel="fro", number=2), "missing in a channel"),
    (Breach(kind="gap", process="P1", by_us=150), "received, not sent"),
)
"""what is broken, and the wrong cut or the hang that follows"""


def test_while_nothing_is_broken_the_cut_is_right() -> None:
    judged = run_and_judge(TWO)
    history, verdict = judged.history, judged.verdict
    assert isinstance(verdict, Holds)
    assert history.fired == ()
    (taken,) = history.snapshots
    assert [_named(history, part.channels) for part in taken.parts] == [{"fro": ["b"]}, {"to": []}]


@pytest.mark.parametrize(("breach", "difference"), BREACHES)
def test_a_broken_precondition_is_found(breach: Breach, difference: str) -> None:
    judged = run_and_judge(replace(TWO, breaches=(breach,)))
    history, verdict = judged.history, judged.verdict
    assert history.fired == (0,)
    assert isinstance(verdict, Violated)
    assert verdict.difference == difference


def test_a_message_that_passes_the_marker_in_front_of_it_is_received_and_not_sent() -> None:
    slow = replace(TWO.channels[0], takes_us=400)
    late = replace(TWO, channels=(slow, TWO.channels[1]))
    judged = run_and_judge(replace(late, breaches=(Breach(kind="overtake", channel="to", number=1),)))
    history, verdict = judged.history, judged.verdict
    assert history.fired == (0,)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "received, not sent"
    assert isinstance(run_and_judge(late).verdict, Holds)


def test_a_marker_that_comes_twice_reports_nothing_new() -> None:
    judged = run_and_judge(replace(TWO, breaches=(Breach(kind="repeat", channel="fro", number=2),)))
    history, verdict = judged.history, judged.verdict
    assert history.fired == (0,)
    assert [channel for _, channel, _ in history.markers] == ["to", "fro", "fro"]
    assert isinstance(verdict, Holds)


def _named(history: GraphHistory, channels: dict[str, tuple[int, ...]]) -> dict[str, list[str]]:
    return {channel: [history.events[number].label for number in messages] for channel, messages in channels.items()}


@settings(max_examples=100)
@given(systems())
def test_what_breaks_nothing_fires_nothing(system: System) -> None:
    late = Breach(kind="gap", process=system.processes[0], number=99, by_us=1)
    assert run(replace(system, breaches=(late,))) == run(system)


def test_without_alignment_channels_have_states_on_an_acyclic_graph_too() -> None:
    joined = System(
        processes=("P1", "P2", "P3"),
        channels=(
            Channel(name="left", sender="P1", receiver="P3", takes_us=10),
            Channel(name="right", sender="P2", receiver="P3", takes_us=10),
        ),
        acts=(
            Act(at_us=150, process="P2", label="a", channel="right"),
            Act(at_us=160, process="P1", label="b", channel="left"),
        ),
        beginnings=(
            Beginning(at_us=100, process="P1", snapshot="S"),
            Beginning(at_us=200, process="P2", snapshot="S"),
        ),
    )
    whole, aligned = run_and_judge(joined), run_and_judge(replace(joined, method="aligned"))
    assert isinstance(whole.verdict, Holds)
    assert isinstance(aligned.verdict, Holds)
    assert _named(whole.history, whole.history.snapshots[0].parts[2].channels) == {"left": [], "right": ["a"]}
    assert _named(aligned.history, aligned.history.snapshots[0].parts[2].channels) == {"left": [], "right": []}


def test_alignment_waits_for_ever_on_a_cycle() -> None:
    ring = System(
        processes=("P1", "P2"),
        channels=(Channel(name="C1", sender="P1", receiver="P2"), Channel(name="C2", sender="P2", receiver="P1")),
        acts=(Act(at_us=5, process="P1", label="a"), Act(at_us=900, process="P1", label="b")),
        beginnings=(Beginning(at_us=10, process="P2", snapshot="S"),),
    )
    assert isinstance(run_and_judge(ring).verdict, Holds)
    assert isinstance(run_and_judge(replace(ring, method="aligned")).verdict, Holds), (
        "one marker goes round, and is the last of each"
    )
    judged = replace(ring, method="aligned", channels=(*ring.channels, Channel(name="C3", sender="P1", receiver="P1")))
    verdict = run_and_judge(judged).verdict
    assert isinstance(verdict, Violated)
    assert verdict.difference == "snapshot without an end"


TO, OWN = Channel(name="to", sender="P1", receiver="P2", takes_us=3), Channel(name="own", sender="P1", receiver="P1")


def _small_systems(processes: int, channels: tuple[Channel, ...], events: int) -> Iterator[System]:
    """All of one size: who does something alone, and when; P1 begins at 1, and P2 is told at 4."""
    names = ("P1", "P2")[:processes]
    acts = [Act(at_us=at_us, process=name, label=f"{name} at {at_us}") for at_us in (0, 2, 3, 5) for name in names]
    begin = Beginning(at_us=1, process="P1", snapshot="S")
    for chosen in itertools.combinations(acts, events):
        yield System(processes=names, channels=channels, acts=chosen, beginnings=(begin,))


def _accused_in_absolute_time(system: System) -> bool:
    judged = run_and_judge(system)
    history, verdict = judged.history, judged.verdict
    assert not isinstance(verdict, Violated)
    return any(any(in_absolute_time(history, one)) for one in history.snapshots if one.complete_us is not None)


def test_the_absolute_reading_accuses_the_algorithms_own_cut() -> None:
    """CL-3: two processes, one channel, two events; nothing smaller does."""
    assert not any(_accused_in_absolute_time(system) for system in _small_systems(1, (), 2))
    assert not any(_accused_in_absolute_time(system) for system in _small_systems(1, (OWN,), 2))
    assert not any(_accused_in_absolute_time(system) for system in _small_systems(2, (TO,), 1))
    accused = [system for system in _small_systems(2, (TO,), 2) if _accused_in_absolute_time(system)]
    assert [[act.label for act in system.acts] for system in accused] == [["P1 at 2", "P2 at 3"]]
