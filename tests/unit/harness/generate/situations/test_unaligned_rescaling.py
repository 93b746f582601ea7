"""S5: what was in flight is redistributed, two to three and three to two and back, and nobody is accused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from cutproof.faults.plan import AtPoint, AtTime
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Cancel, Engine, Resume, Scenario
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import AttemptStarted, History
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Edge, Input, Topology, Workload
from cutproof.properties.reconstruct.snapshots import decode_state
from cutproof.reference_impl.core.extensions.rescaling.in_flight_redistribution import is_record
from cutproof.reference_impl.core.vocabulary.state import TaskState

DRAWN = 120
RUNS = 50
KEPT = ("forward", "broadcast")


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing(max_records=50, templates=("S5",)))
    return [draw(2, index) for index in range(DRAWN)]


@pytest.fixture(scope="module")
def results(drawn: list[Scenario]) -> list[Result]:
    return [run(SimulatedSubject(), scenario) for scenario in drawn[:RUNS]]


def resumed(scenario: Scenario) -> list[dict[str, int]]:
    return [dict(one.parallelism) for one in scenario.commands if isinstance(one, Resume)]


def overtaken(scenario: Scenario) -> set[str]:
    """The operators, or the sink, over none of whose edges barriers have to stay in line."""
    kept = {edge.receiver for edge in scenario.topology.edges if edge.partitioning in KEPT}
    return {edge.receiver for edge in scenario.topology.edges} - kept


def redistributed(history: History) -> Iterator[tuple[str, TaskState]]:
    """(operator, state) of what the tasks of a resumed job began with, where records were in flight."""
    began = {one.job: one.attempt for one in reversed(history.journal) if isinstance(one, AttemptStarted)}
    for one in history.runs:
        state = decode_state(one.loaded.state) if one.loaded and one.attempt in list(began.values()) else None
        if state is not None and any(is_record(each) for passing in state.queued.values() for each in passing):
            yield one.task.rpartition("-")[0], state


def test_it_is_drawn_among_the_others() -> None:
    assert SHARES["S5"] > 0


def test_two_become_three_and_three_two_and_mostly_back(drawn: list[Scenario]) -> None:
    ways = Counter[tuple[int, int]]()
    for one in drawn:
        there, *back = resumed(one)
        old = one.topology.parallelism
        asked = [command for command in one.commands if isinstance(command, Cancel | Resume)]
        assert [type(command) for command in asked[::2]] == [Cancel] * (1 + len(back))
        assert there
        ways.update((old[name], number) for name, number in there.items())
        assert back in ([], [{name: old[name] for name in there}])
    assert set(ways) == {(2, 3), (3, 2)}
    assert DRAWN // 2 < sum(len(resumed(one)) > 1 for one in drawn) < DRAWN * 4 // 5
    assert DRAWN // 4 < sum(len(resumed(one)[0]) == len(one.topology.parallelism) for one in drawn) < DRAWN * 3 // 4


def test_few_and_many_are_in_flight_over_every_kind_of_edge(drawn: list[Scenario]) -> None:
    assert {one.engine.alignment for one in drawn} == {"unaligned", "timeout", "in-turn"}
    assert Counter(one.engine.channel_capacity <= 3 for one in drawn).keys() == {True, False}
    hows = Counter(how for one in drawn for how in {edge.partitioning for edge in one.topology.edges})
    assert min(hows[how] for how in ("hash", "rebalance", *KEPT)) > DRAWN // 12


def test_somewhere_barriers_may_overtake(drawn: list[Scenario]) -> None:
    assert [one for one in drawn if not overtaken(one)] == []


def test_in_most_runs_records_are_redistributed_few_or_many_and_none_over_edges_that_are_never_unaligned(
    results: list[Result],
) -> None:
    counts = []
    for result in results:
        found = list(redistributed(result.history))
        assert {operator for operator, _ in found} <= overtaken(result.scenario)
        passing = [each for _, state in found for channel in state.queued.values() for each in channel]
        counts.append(sum(is_record(each) for each in passing))
    assert sum(count > 0 for count in counts) > RUNS * 3 // 5
    assert min(count for count in counts if count) <= 3
    assert max(counts) >= 20


def test_nobody_is_accused(results: list[Result]) -> None:
    for result in results:
        assert not result.judgement.violated, result.scenario
    held = Counter(
        name for result in results for name, one in result.judgement.verdicts.items() if isinstance(one, Holds)
    )
    assert min(held[name] for name in ("exactly-once", "consistent-cut", "restored-state")) > RUNS // 2


def amid(completed: int) -> Cancel:
    return Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=completed))


def test_a_split_that_another_task_reads_now_stays_in_order_through_a_checkpoint_amid_the_replay() -> None:
    """Found by the search and shrunk.  Split 3 was read by source-1, whose records are put back into its channel, and
    is read on by source-0; the next restore finds records of it in both channels."""
    rows = ((), ((0, 1, 11), (0, 1, 12)), (), ((0, 1, 31), (0, 1, 32), (0, 1, 33)))
    scenario = Scenario(
        workload=Workload(name="chain", inputs=(Input(name="source", splits=rows),), nodes=()),
        topology=Topology(
            parallelism={"source": 2, "sink": 1}, edges=(Edge(sender="source", receiver="sink", partitioning="hash"),)
        ),
        engine=Engine(alignment="unaligned", checkpoint_interval_us=462, read_interval_us=400, apply_cost_us=800),
        commands=(
            amid(1),
            Resume(trigger=AtTime(at_us=0), parallelism={"source": 3}),
            amid(2),
            Resume(trigger=AtTime(at_us=0)),
        ),
    )
    result = run(SimulatedSubject(), scenario)
    (again,) = [one for one in result.history.runs if one.task == "sink-0" and one.job == 3]
    state = decode_state(again.loaded.state) if again.loaded else None
    assert state is not None
    assert (len(state.queued), state.replays) == (2, {1: [1]}), "what was left of the first replay, and what was new"
    assert not result.judgement.violated
    assert isinstance(result.judgement.verdicts["order"], Holds)
