"""What is drawn: valid, with one right answer, the same from the same seed, and of every kind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from msgspec.structs import replace

from cutproof.faults.plan import COMMON_KINDS, AtPoint, AtTime, FailWrite, InPhase, KillTask, StallChannel, kind_of
from cutproof.harness.generate.situations.hunted import HUNTED
from cutproof.harness.generate.situations.templates import SHARES, TEMPLATES
from cutproof.harness.generate.strategies import (
    Drawing,
    engines,
    faults,
    laid_out_workloads,
    scenario_of,
    scenarios,
    topologies,
    workloads,
)
from cutproof.harness.generate.workloads.records import tag
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.checks import ALIGNMENTS, problems_of
from cutproof.harness.scenario.files import decode_scenario, digest, text_of
from cutproof.harness.scenario.forecast import forecast
from cutproof.harness.scenario.model import COMMANDS, Resume, Savepoint, Scenario
from cutproof.harness.scenario.model import kind_of as command_kind
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import FaultFired
from cutproof.properties.model.workload import Batch, Dedup, Greater, Map, Tally, is_clocked, is_signed, problems
from cutproof.properties.semantics.broadcast import with_rules
from cutproof.properties.semantics.classes import class_of, last_row_is_fixed

SCENARIOS = 400


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    draw = scenario_of(Drawing())
    return [draw(7, index) for index in range(SCENARIOS)]


def test_each_is_valid(drawn: list[Scenario]) -> None:
    assert [(one.seed, list(problems_of(one))) for one in drawn if list(problems_of(one))] == []


@pytest.mark.parametrize("templates", [("crossed",), tuple(SHARES)], ids=["crossed", "all"])
def test_each_can_be_read_from_its_file(templates: tuple[str, ...]) -> None:
    """A crossed scenario has the job, the faults and the commands of three that need not fit each other."""
    draw = scenario_of(Drawing(templates=templates))
    for seed in (1, 2, 3):
        for index in range(250):
            scenario = draw(seed, index)
            assert decode_scenario(text_of(scenario).encode(), where=f"{seed} {index}") == scenario


def test_each_has_one_right_answer(drawn: list[Scenario]) -> None:
    by_clock = [one for one in drawn if any(is_clocked(node.operator) for node in one.workload.nodes)]
    assert {class_of(one.workload, one.topology) for one in by_clock} == {"W"}
    by_rules = [one for one in drawn if with_rules(one.workload)]
    assert {class_of(one.workload, one.topology) for one in by_rules} == {"H"}
    assert len(by_rules) > SCENARIOS // 100
    plain = [one for one in drawn if one.name != "S11" and one not in by_clock and one not in by_rules]
    assert {class_of(one.workload, one.topology) for one in plain} == {"M", "S"}
    assert {class_of(one.workload, one.topology) for one in drawn if one.name == "S11"} <= {"M", "S", "W"}
    idempotent = [one for one in drawn if one.engine.sink == "idempotent"]
    assert idempotent
    assert all(last_row_is_fixed(one.workload, one.topology) for one in idempotent)


def test_a_scenario_is_a_function_of_seed_and_index_alone(drawn: list[Scenario]) -> None:
    again = scenario_of(Drawing())
    assert [digest(again(7, index)) for index in (399, 3, 3, 0)] == [digest(drawn[index]) for index in (399, 3, 3, 0)]
    assert digest(again(8, 3)) != digest(drawn[3])
    assert drawn[3].seed == "7 3"


def test_a_known_scenario_is_drawn_as_ever(drawn: list[Scenario]) -> None:
    """Its parts are spelled out rather than hashed, so that a change of the strategies is told from an accident."""
    one = drawn[2]
    assert (one.name, one.workload.name, one.workload.records()) == ("S2", "join", 44)
    assert one.topology.parallelism == {"left": 1, "right": 1, "join": 2, "sink": 1}
    assert [edge.partitioning for edge in one.topology.edges] == ["hash", "hash", "hash"]
    assert one.faults == (
        KillTask(trigger=AtTime(at_us=5_648), task="right-0"),
        StallChannel(trigger=AtTime(at_us=3_784), sender="left-0", receiver="join-0", for_us=1_000),
        FailWrite(trigger=AtPoint(point="snapshot-taken", task="join-1"), task="join-1"),
    )
    engine = one.engine
    assert (engine.alignment, engine.concurrent_checkpoints, engine.checkpoint_interval_us) == ("aligned", 3, 600)
    saved = Savepoint(trigger=AtPoint(point="checkpoint-aborted"), format="native")
    assert (drawn[37].name, drawn[37].commands) == ("S6", (saved,))


def test_a_checkpoint_has_time_enough(drawn: list[Scenario]) -> None:
    """Where none could complete in its time, every engine would be accused of getting nowhere."""
    courses = [forecast(one.workload, one.topology, one.engine) for one in drawn]
    assert [one for one in courses if one.engine.checkpoint_timeout_us < 3 * one.checkpoint_us] == []
    timeouts = Counter(one.engine.checkpoint_timeout_us for one in courses)
    usual = [one.engine.checkpoint_timeout_us for one in courses if one.engine.tolerated_failures > 2]
    assert (min(timeouts), max(usual)) == (10_000, 40_000), "none late, some hurried"
    assert timeouts[10_000] + timeouts[40_000] > 0.9 * timeouts.total(), "others where few failures are tolerated"


def test_alignments_are_drawn_about_evenly_by_default(drawn: list[Scenario]) -> None:
    """Of the jobs that are exactly-once, as all must be in which barriers may overtake."""
    drawn_as = Counter(one.engine.alignment for one in drawn if one.engine.guarantee == "exactly-once")
    even = drawn_as.total() // len(ALIGNMENTS)
    assert set(drawn_as) == set(ALIGNMENTS)
    assert all(even * 2 // 3 < number < even * 3 // 2 for number in drawn_as.values()), drawn_as


def test_every_kind_of_everything_is_drawn(drawn: list[Scenario]) -> None:
    kinds = Counter(kind_of(fault) for one in drawn for fault in one.faults)
    triggers = {type(fault.trigger) for one in drawn for fault in one.faults}
    assert set(kinds) == set(COMMON_KINDS)
    assert triggers == {AtTime, AtPoint, InPhase}
    assert {command_kind(command) for one in drawn for command in one.commands} == set(COMMANDS)
    assert {one.name for one in drawn} == set(TEMPLATES)
    assert {perturbation.what.split(" ")[0] for one in drawn for perturbation in one.deviations} == {
        "message",
        "control",
        "write",
        "step",
        "transaction",
        "read",
        "compaction",
    }
    engines_ = [one.engine for one in drawn]
    assert {engine.guarantee for engine in engines_} == {"exactly-once", "at-least-once", "at-most-once"}
    assert {engine.sink for engine in engines_} == {"transactional", "idempotent", "plain"}
    assert {engine.state_backend for engine in engines_} == {"heap", "lsm"}
    assert {engine.snapshot_store for engine in engines_} == {"files", "memory"}
    assert {engine.concurrent_checkpoints for engine in engines_} == {1, 2, 3, 8}
    hows = {edge.partitioning for one in drawn for edge in one.topology.edges}
    assert hows == {"forward", "hash", "rebalance", "broadcast"}


def test_retractions_take_back_what_stands(drawn: list[Scenario]) -> None:
    """Each is of a record before it in its split; and those who read them know of retractions."""
    taken_back = Counter[str]()
    for one in drawn:
        for _, _, records in one.workload.splits():
            for place, (key, value, tag_) in enumerate(records):
                if tag_ < 0:
                    assert (key, value, -tag_) in records[:place]
                    taken_back[one.workload.name] += 1
                    assert any(is_signed(node.operator) for node in one.workload.nodes)
                    assert not any(isinstance(node.operator, (Dedup, Greater)) for node in one.workload.nodes)
    assert set(taken_back) == {"retracting chain", "retracting join", "retracting union"}
    assert taken_back.total() > 80


def test_lists_and_unions_are_drawn_and_rescaled(drawn: list[Scenario]) -> None:
    """Rows wait behind everything keyed; some of the jobs that hold either are resumed at another parallelism."""
    held = Counter[str]()
    for one in drawn:
        kinds = {type(node.operator) for node in one.workload.nodes} & {Batch, Tally}
        held.update(kind.__name__ for kind in kinds)
        held["anew"] += bool(kinds) and any(isinstance(each, Resume) and each.parallelism for each in one.commands)
        if Batch in kinds:
            assert one.engine.sink != "idempotent"
    assert min(held["Batch"], held["Tally"]) > SCENARIOS // 100
    assert held["anew"] > 0


def test_most_scenarios_are_exactly_once_into_transactions(drawn: list[Scenario]) -> None:
    shares = Counter((one.engine.guarantee, one.engine.sink) for one in drawn)
    assert shares["exactly-once", "transactional"] > SCENARIOS * 7 // 10


def test_checkpoints_after_a_finish_are_rarely_left_out_and_never_with_an_endless_input(
    drawn: list[Scenario],
) -> None:
    without = [one for one in drawn if not one.engine.checkpoints_after_finish]
    assert 0 < len(without) < len(drawn) // 15
    assert all(source.bounded for one in without for source in one.workload.inputs)
    assert {one.engine.finishing for one in without} == {"together"}


def test_tags_are_distinct_in_a_scenario(drawn: list[Scenario]) -> None:
    for one in drawn:
        tags = [record[2] for _, _, records in one.workload.splits() for record in records]
        assert len(set(tags)) == len(tags)
    many = [tag(number) for number in range(3_000)]
    assert len(set(many)) == 3_000
    assert many[:100] == [tag(number) for number in range(100)]


@pytest.mark.parametrize("template", sorted(TEMPLATES | HUNTED))
def test_each_template_draws_valid_scenarios(template: str) -> None:
    draw = scenario_of(Drawing(templates=(template,), max_records=30, max_faults=2))
    for index in range(40):
        one = draw(1, index)
        assert one.name == template
        assert list(problems_of(one)) == []
        assert len(one.faults) <= 2
        assert one.workload.records() <= 30


@pytest.mark.parametrize(("kind", "per_cent"), [("lose-unsynced", 25), ("fail-read", 45), ("kill-task", 80)])
def test_faults_that_need_a_moment_mostly_meet_it(drawn: list[Scenario], kind: str, per_cent: int) -> None:
    """Of thousands a third of the losses of power find something unsynced; these are a few dozen."""
    planned = fired = 0
    for scenario in drawn[:300] if kind == "kill-task" else drawn:
        targeted = {number for number, fault in enumerate(scenario.faults) if kind_of(fault) == kind}
        if not targeted:
            continue
        journal = SimulatedSubject().run(scenario).journal
        planned += len(targeted)
        fired += len(targeted & {entry.fault for entry in journal if isinstance(entry, FaultFired)})
    assert planned >= 10
    assert fired * 100 >= per_cent * planned


def test_the_fault_free_template_has_no_fault_and_empty_splits() -> None:
    draw = scenario_of(Drawing(templates=("S14",)))
    drawn = [draw(1, index) for index in range(60)]
    assert all(not one.faults for one in drawn)
    assert any(not records for one in drawn for _, _, records in one.workload.splits())


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no such template: S99"):
        scenarios(templates=("S1", "S99"))


def test_what_a_subject_cannot_do_is_not_asked_of_it() -> None:
    modest = Capabilities(
        faults=frozenset({"kill-task"}), operators=frozenset({"map", "count"}), guarantees=frozenset({"at-least-once"})
    )
    draw = scenario_of(Drawing(capabilities=modest))
    for index in range(120):
        one = draw(2, index)
        assert all(kind_of(fault) == "kill-task" for fault in one.faults)
        assert not one.commands
        assert not one.deviations
        assert {type(node.operator).__name__ for node in one.workload.nodes} <= {"Map", "Count"}
        assert (one.engine.guarantee, one.engine.sink) == ("at-least-once", "transactional")


def test_a_given_workload_is_kept() -> None:
    given_ = scenario_of(Drawing())(1, 1).workload
    draw = scenario_of(Drawing(workload=given_))
    for index in range(30):
        one = draw(3, index)
        assert one.workload == given_
        assert list(problems_of(one)) == []


@given(scenarios(max_records=40, max_faults=3))
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_hypothesis_draws_valid_scenarios(scenario: Scenario) -> None:
    assert list(problems_of(scenario)) == []
    assert len(scenario.faults) <= 3


def test_hypothesis_shrinks_records_and_faults() -> None:
    def killed_with_a_key_twice(scenario: Scenario) -> bool:
        keys = Counter(record[0] for _, _, records in scenario.workload.splits() for record in records)
        return max(keys.values(), default=0) >= 2 and any(isinstance(fault, KillTask) for fault in scenario.faults)

    quiet = settings(database=None, max_examples=300, suppress_health_check=list(HealthCheck), derandomize=True)
    smallest = find(scenarios(max_records=24), killed_with_a_key_twice, settings=quiet)
    assert len(smallest.faults) <= 2
    assert smallest.workload.records() <= 6


def test_the_parts_have_strategies_of_their_own() -> None:
    drawing = (Phase.generate,)  # the first that is found will do: how they shrink is asked above
    quiet = settings(
        database=None, max_examples=20, suppress_health_check=list(HealthCheck), derandomize=True, phases=drawing
    )
    workload = find(workloads(max_records=20), lambda one: len(one.nodes) >= 2, settings=quiet)
    topology = find(topologies(workload), lambda one: len(one.edges) >= 1, settings=quiet)
    assert problems(workload, topology) == []
    engine = find(engines(workload, topology), lambda one: one.checkpoint_interval_us > 0, settings=quiet)
    plan = find(faults(workload, topology, engine, max_faults=2), lambda some: len(some) == 2, settings=quiet)
    pair = find(laid_out_workloads(max_records=20), lambda _: True, settings=quiet)
    scenario = Scenario(workload=workload, topology=topology, engine=engine, faults=plan)
    assert list(problems_of(scenario)) == []
    assert problems(*pair) == []


def test_operators_commit_what_they_pass_on_where_a_subject_has_such() -> None:
    able = SimulatedSubject().capabilities
    draw = scenario_of(Drawing(templates=("S7",), capabilities=able))
    drawn = [draw(4, index) for index in range(300)]
    chains = [one for one in drawn if one.engine.two_phase]
    assert len(chains) >= 2
    for one in chains:
        assert one.engine.two_phase == tuple(node.name for node in one.workload.nodes if node.operator == Map())
        assert list(problems_of(one)) == []
    without = replace(able, two_phase=False)
    draw = scenario_of(Drawing(templates=("S7",), capabilities=without))
    assert [one for one in (draw(4, index) for index in range(150)) if one.engine.two_phase] == []
