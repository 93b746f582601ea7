"""The examples of finishing can fail: on a run that finishes otherwise, beside one that does not differ, or mutated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.examples.claims import Comparison, NotShown
from cutproof.harness.examples.finishing.finished import late_failure, replayed
from cutproof.harness.examples.finishing.ways_to_finish import finishing_by, while_finishing
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.streaming_batch import as_bounded
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History, JobEnded
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import SINK, Edge, Map, Node
from unit.harness.example_runs import judged, not_shown, run


def as_it_should_be(scenario: Scenario) -> Scenario:
    """The scenario without its mode: what a claim sets its run beside does not differ from it."""
    engine = msgspec.structs.replace(scenario.engine, finishing="together", checkpoints_after_finish=True)
    return msgspec.structs.replace(scenario, engine=engine)


@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("mixed-bounded-unbounded", {2, 3}),
        ("two-ways-to-finish", {4}),
        ("three-2pc-chain", {0, 1, 3}),
        ("commit-at-finish", {0}),
        ("discard-at-finish", {0, 1}),
        ("drain-after-savepoint", {0, 1}),
    ],
)
def test_the_companion_is_a_run_in_which_nothing_is_otherwise(name: str, claims: set[int]) -> None:
    assert not_shown(name, run(EXAMPLES[name].scenario), as_it_should_be) == claims


@pytest.mark.parametrize(
    ("name", "how", "claims"),
    [
        ("two-ways-to-finish", "discard-at-finish", {0, 3}),
        ("three-2pc-chain", "one-by-one", {1, 2}),
        ("three-2pc-chain", "commit-at-finish", {2}),
        ("commit-at-finish", "commit-at-finish", {2}),
        ("discard-at-finish", "discard-at-finish", {2}),
        ("drain-after-savepoint", "drain-after-savepoint", {2}),
    ],
)
def test_on_a_run_that_finishes_otherwise(name: str, how: str, claims: set[int]) -> None:
    assert claims <= not_shown(name, run(finishing_by(EXAMPLES[name].scenario, how)))


def without_checkpoints(scenario: Scenario) -> Scenario:
    engine = msgspec.structs.replace(scenario.engine, checkpoints_after_finish=False)
    return msgspec.structs.replace(scenario, engine=engine)


@pytest.mark.parametrize(
    ("name", "claims"), [("mixed-bounded-unbounded", {1}), ("finished-operators-snapshot", {0, 1, 2})]
)
def test_on_a_run_without_checkpoints_after_a_finish(name: str, claims: set[int]) -> None:
    assert claims <= not_shown(name, run(without_checkpoints(EXAMPLES[name].scenario)))


def _forget_finished(history: History) -> None:
    for completed in history.completed:
        completed.finished = []


def _work_again(history: History) -> None:
    for each in history.runs:
        if each.task == "side-0":
            each.reads = [(0, 0)]


def _commit_twice(history: History) -> None:
    history.committed += history.committed[:1]


@pytest.mark.parametrize(
    ("name", "alter", "claims"),
    [
        ("mixed-bounded-unbounded", _forget_finished, {1}),
        ("finished-operators-snapshot", _forget_finished, {0, 1}),
        ("finished-operators-snapshot", _work_again, {2}),
        ("three-2pc-chain", _commit_twice, {4}),
        ("two-ways-to-finish", _commit_twice, {3}),
        ("commit-at-finish", _commit_twice, {2}),
        ("drain-after-savepoint", _commit_twice, {2}),
    ],
)
def test_on_a_history_that_was_altered(name: str, alter: Callable[[History], None], claims: set[int]) -> None:
    history = run(EXAMPLES[name].scenario)
    alter(history)
    assert claims <= not_shown(name, history)


LATE_MS = range(10, 32, 3)


def failing(at_ms: int, after_finish: bool) -> History:
    return run(late_failure(at_ms * 1_000, after_finish=after_finish).scenario)


def test_what_a_late_failure_replays_grows_without_checkpoints_after_a_finish() -> None:
    found = {after: [replayed(failing(at_ms, after), "events") for at_ms in LATE_MS] for after in (True, False)}
    assert found[False] == sorted(found[False])
    assert found[False][-1] > 4 * max(found[True])


def test_the_figures_of_the_documents_are_measured() -> None:
    page = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (\d+) ms \| (\d+) \| (\d+) \|$", page, flags=re.MULTILINE)
    assert len(documented) == 3
    for at_ms, *figures in documented:
        found = [failing(int(at_ms), after) for after in (True, False)]
        assert [str(replayed(history, "events")) for history in found] == figures


@pytest.mark.parametrize(("how", "checkpoints"), [("together", 1), ("one-by-one", 3)])
@pytest.mark.parametrize("interval_us", [5_500, 7_000, 11_000])
def test_how_many_checkpoints_the_chain_waits_for(how: str, checkpoints: int, interval_us: int) -> None:
    scenario = finishing_by(EXAMPLES["three-2pc-chain"].scenario, how, faults=())
    engine = msgspec.structs.replace(scenario.engine, checkpoint_interval_us=interval_us)
    assert len(while_finishing(run(msgspec.structs.replace(scenario, engine=engine)))) == checkpoints


PASSING = ("first-copy", "second-copy")


def chained(scenario: Scenario, how: str) -> Scenario:
    """The scenario with two operators before its sink that commit what they pass on."""
    workload, topology = scenario.workload, scenario.topology
    last, (first, second) = workload.output, PASSING
    nodes = (Node(name=first, operator=Map(), inputs=(last,)), Node(name=second, operator=Map(), inputs=(first,)))
    width = topology.parallelism[SINK]
    edges = [
        msgspec.structs.replace(edge, receiver=first) if edge.receiver == SINK else edge for edge in topology.edges
    ]
    onward = [
        Edge(sender=sender, receiver=to, partitioning="forward") for sender, to in ((first, second), (second, SINK))
    ]
    return msgspec.structs.replace(
        scenario,
        workload=msgspec.structs.replace(workload, nodes=(*workload.nodes, *nodes)),
        topology=msgspec.structs.replace(
            topology, parallelism={**topology.parallelism, first: width, second: width}, edges=(*edges, *onward)
        ),
        engine=msgspec.structs.replace(
            scenario.engine,
            finishing=how,
            two_phase=PASSING,
            committing="writer",
            pooled_ids=False,
            failover="full",
            checkpoints_after_finish=True,
        ),
        faults=tuple(fault for fault in scenario.faults if getattr(fault, "receiver", None) is None),
        deviations=(),
    )


def test_drawn_trouble_breaks_no_two_phase_operator_however_they_finish() -> None:
    """Maps that change nothing are made to commit: each of them commits what passes it, exactly once."""
    draw = scenario_of(Drawing(max_records=60))
    exercised = 0
    for index in range(60):
        scenario = chained(as_bounded(draw(23, index)), "one-by-one" if index % 2 else "together")
        history = run(scenario)
        judged = judge(scenario.workload, scenario.topology, history)
        assert judged.violated == {}, index
        end = next((entry.status for entry in history.journal if isinstance(entry, JobEnded)), "")
        for name in PASSING if end == "finished" else ():
            mine = [one for one in history.passing if one.task.startswith(name) and one.status == "committed"]
            assert Counter(row for one in mine for row in one.rows) == Counter(history.committed), index
            exercised += isinstance(judged.verdicts["exactly-once"], Holds)
    assert exercised > 40


def test_what_a_scenario_may_say_of_finishing() -> None:
    scenario = EXAMPLES["three-2pc-chain"].scenario
    assert list(problems_of(scenario)) == []
    for changes, problem in (
        ({"finishing": "somehow"}, "engine.finishing is 'somehow'"),
        ({"finishing": "one-by-one", "checkpoints_after_finish": False}, "each task waits for one"),
        ({"two_phase": ("first", "sink")}, "sink is no map that changes nothing"),
    ):
        engine = msgspec.structs.replace(scenario.engine, **changes)
        (found,) = problems_of(msgspec.structs.replace(scenario, engine=engine))
        assert problem in found


def test_on_processes_what_operators_commit_stands_apart_from_the_output() -> None:
    scenario = EXAMPLES["three-2pc-chain"].scenario
    job = process_job.make_job(process_job.describe(scenario, None, 1))
    assert job.passing == ("first-0", "second-0")


@pytest.mark.parametrize(
    ("drain", "words"), [(True, "without drain 5 windows fired"), (False, "not each window fired")]
)
def test_a_stop_that_lets_windows_go_otherwise_than_its_drain_states_is_seen(drain: bool, words: str) -> None:
    example = EXAMPLES["two-ways-to-finish"]
    claim = example.claims[2]
    assert isinstance(claim, Comparison)
    own, *companions = (
        judged(scenario, run(scenario)) for scenario in (example.scenario, *(one.scenario for one in claim.companions))
    )
    assert "without drain none of 5 open windows fired" in claim.find(own, companions)
    *others, stopped, drained = companions
    with pytest.raises(NotShown, match=words):
        claim.find(own, [*others, *((drained, drained) if drain else (stopped, stopped))])
