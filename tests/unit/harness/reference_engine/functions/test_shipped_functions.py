"""The functions that the package ships: known anywhere, drawn with all that can befall them, told from wrong ones
(OPS-4)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
import pytest

from cutproof.faults.plan import kind_of
from cutproof.harness.cli.entry import main
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.functions import SHIPPED
from cutproof.harness.reference_engine.functions.changes import CHANGES, Changes
from cutproof.harness.reference_engine.functions.distinct import DISTINCT, Distinct
from cutproof.harness.reference_engine.functions.lulls import LULLS, Lulls
from cutproof.harness.reference_engine.functions.operators import entry_of, user_operator
from cutproof.harness.reference_engine.functions.periods import PERIODS, Periods
from cutproof.harness.reference_engine.functions.standby import STANDBY, Standby
from cutproof.harness.reference_engine.subjects import process_job
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.checks import ALIGNMENTS, problems_of
from cutproof.harness.scenario.files import read_scenario, write_scenario
from cutproof.harness.scenario.model import Resume, Scenario
from cutproof.harness.scenario.promises import can_show
from cutproof.harness.search import batches
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import run
from cutproof.harness.workloads.user_functions import (
    FUNCTIONS,
    RESERVED,
    UserFunction,
    demand,
    function_called,
    known,
    known_within,
)
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.properties.model.workload import Count, Node, User, Workload
from cutproof.properties.reconstruct.replay import is_determined
from cutproof.properties.semantics.classes import class_of
from cutproof.properties.semantics.user_functions import user_nodes
from cutproof.reference_impl.core.operators.user_functions import Context, Function, Out, Place, Taken

TEMPLATE = "user-function"
DRAWN = 240


@cache
def drawn() -> tuple[Scenario, ...]:
    draw = scenario_of(Drawing(templates=(TEMPLATE,), capabilities=SimulatedSubject().capabilities))
    return tuple(draw(7, index) for index in range(DRAWN))


def function_of(scenario: Scenario) -> str:
    (name,) = user_nodes(scenario.workload).values()
    return name


def of(function: UserFunction) -> list[Scenario]:
    return [scenario for scenario in drawn() if function_of(scenario) == function.name]


# -- known anywhere ----------------------------------------------------------------------------------------------


def test_their_names_are_reserved() -> None:
    assert all(function.name.startswith(RESERVED) for function in SHIPPED)
    for name in (PERIODS.name, f"{RESERVED}mine"):
        with pytest.raises(UsageError, match=f"{name}: names that begin with 'cutproof/' are those of the package"):
            known([msgspec.structs.replace(PERIODS, name=name)])


@pytest.mark.parametrize("function", SHIPPED, ids=lambda function: function.name)
def test_each_would_do_as_a_users_own(function: UserFunction) -> None:
    """Nothing that is asked of a user's function was left out for them."""
    with known_within([msgspec.structs.replace(function, name="mine")]):
        assert user_operator("mine")()
    assert function_called("mine") is None


def test_a_file_that_names_one_is_replayed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.json"
    for function in SHIPPED:
        scenario = of(function)[0]
        write_scenario(path, scenario)
        assert read_scenario(path) == scenario
        demand(scenario.workload)
    assert main(["replay", str(path), "--quick"]) == 0
    assert "exactly-once" in capsys.readouterr().out


def calling(name: str, scenario: Scenario) -> Scenario:
    """The scenario with a function of this name in place of its own."""
    replace = msgspec.structs.replace
    nodes = tuple(
        replace(node, operator=replace(node.operator, function=name)) if isinstance(node.operator, User) else node
        for node in scenario.workload.nodes
    )
    return replace(scenario, workload=replace(scenario.workload, nodes=nodes))


@pytest.mark.parametrize(
    "name", ["cutproof/none", "cutproof/base", "cutproof/../base", "cutproof.harness.reference_engine.functions"]
)
def test_no_other_name_is_looked_for_anywhere(name: str) -> None:
    other = calling(name, of(PERIODS)[0])
    before = set(sys.modules)
    with pytest.raises(UsageError, match="there is no user function"):
        demand(other.workload)
    with pytest.raises(SubjectFailed, match="there is no user function"):
        SimulatedSubject().run(other)
    assert set(sys.modules) == before


def test_the_processes_of_a_job_know_them_unasked() -> None:
    for function in SHIPPED:
        outcomes = process_job.describe(of(function)[0], None, 1)
        assert msgspec.json.decode(outcomes)["functions"] == []
        assert entry_of(function.name) is None
        assert process_job.make_job(outcomes).graph.operators


# -- drawn -------------------------------------------------------------------------------------------------------


def test_they_are_drawn_by_default() -> None:
    assert SHARES[TEMPLATE] > 0
    draw = scenario_of(Drawing(capabilities=SimulatedSubject().capabilities))
    assert any(user_nodes(draw(1, index).workload) for index in range(120))


def test_each_scenario_is_valid_and_has_one_right_answer() -> None:
    for scenario in drawn():
        assert list(problems_of(scenario)) == []
        clocked = function_of(scenario) == LULLS.name
        assert class_of(scenario.workload, scenario.topology) in (("W",) if clocked else ("M", "S"))


@pytest.mark.parametrize("function", SHIPPED, ids=lambda function: function.name)
def test_each_is_drawn_with_what_can_befall_it(function: UserFunction) -> None:
    scenarios = of(function)
    assert len(scenarios) > DRAWN // 10
    by_time = function.function.timed or function.function.clocked
    assert {one.engine.alignment for one in scenarios} == ({"aligned"} if by_time else set(ALIGNMENTS))
    wider = [one for one in scenarios if any(isinstance(each, Resume) and each.parallelism for each in one.commands)]
    assert len(wider) > len(scenarios) // 5
    assert len({kind_of(fault) for one in scenarios for fault in one.faults}) > 8
    assert len({one.engine.guarantee for one in scenarios}) > 1


def test_a_subject_that_does_not_know_them_gets_none() -> None:
    known_to = SimulatedSubject().capabilities
    operators = known_to.operators - {FUNCTIONS}
    draw = scenario_of(
        Drawing(templates=(TEMPLATE,), capabilities=msgspec.structs.replace(known_to, operators=operators))
    )
    assert not any(user_nodes(draw(5, index).workload) for index in range(30))


# -- judged ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", SHIPPED, ids=lambda function: function.name)
def test_no_run_of_a_right_one_is_accused(function: UserFunction) -> None:
    held: Counter[str] = Counter()
    for scenario in of(function)[:24]:
        verdicts = run(SimulatedSubject(), scenario).judgement
        assert verdicts.violated == {}
        held.update(name for name, verdict in verdicts.verdicts.items() if isinstance(verdict, Holds))
    assert min(held[name] for name in ("exactly-once", "no-data-loss", "consistent-cut")) > 12
    assert held["restored-state"] > 1


def test_what_no_counterpart_speaks_of_is_not_counted_as_shown() -> None:
    """In weaker modes what is taken again comes late for timers."""
    weak = [one for function in (PERIODS, LULLS, STANDBY) for one in of(function)]
    weak = [one for one in weak if one.engine.guarantee == "at-least-once"]
    assert len(weak) > 3
    assert {name for one in weak for name in can_show(one)} <= {"progress", "no-leaks"}
    assert "at-least-once" in {name for one in of(CHANGES) for name in can_show(one)}
    verdicts = run(SimulatedSubject(), weak[0]).judgement.verdicts
    why = "records may come late for a user's timers, and no counterpart defines what happens to them"
    late = Unknown(reason=Reason.NOT_PROMISED, detail=why)
    assert {verdicts[name] for name in ("at-least-once", "no-data-loss", "restored-state")} == {late}
    assert verdicts["at-most-once"] == Unknown(reason=Reason.NOT_PROMISED, detail="at-least-once is another promise"), (
        "which would not be promised without timers either"
    )


def test_a_batch_leaves_what_the_stream_does() -> None:
    asked = [of(function)[index] for function in SHIPPED for index in range(6)]
    outcomes = [batches.CompanionBatches().judged(index, scenario) for index, scenario in enumerate(asked)]
    compared = {function_of(asked[one.number]) for one in outcomes if isinstance(one.verdict, Holds)}
    assert compared == {function.name for function in SHIPPED} - {LULLS.name}, "a batch takes its records at once"
    assert not any(isinstance(one.verdict, Violated) for one in outcomes)


class KeepsNothing(Changes):
    def snapshot(self) -> Mapping[int | None, int | None]:
        return {}


class KeepsTheWrongOnes(Distinct):
    def keeps(self, name: str, item: str, place: Place) -> bool:
        return not super().keeps(name, item, place)


class ForgetsTheNext(Periods):
    """Sets no timer from a timer."""

    def on_timer(self, time: int, context: Context) -> Iterator[Out]:
        waiting = context.get("sums")
        yield from super().on_timer(time, context)
        for end in waiting:
            context.drop_timer(int(end))


class KeepsOne(Standby):
    """Remembers one record alone."""

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        yield from super().on_record(record, context)
        context.put("waiting", context.get("waiting")[-1:])


class IsNotPutOff(Lulls):
    """Tells of a lull by the first record."""

    def on_record(self, record: Taken, context: Context) -> Iterator[Out]:
        first = context.get("until")
        yield from super().on_record(record, context)
        if first is not None:
            context.drop_wake(context.get("until"))
            context.put("until", first)
            context.wake_at(first)


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (CHANGES, KeepsNothing),
        (DISTINCT, KeepsTheWrongOnes),
        (PERIODS, ForgetsTheNext),
        (STANDBY, KeepsOne),
        (LULLS, IsNotPutOff),
    ],
)
def test_a_wrong_one_is_found_by_search(function: UserFunction, wrong: type[Function]) -> None:
    with known_within([msgspec.structs.replace(function, name="wrong", function=wrong)]):
        scenarios = [calling("wrong", scenario) for scenario in of(function)[:16]]
        violated = [run(SimulatedSubject(), scenario).judgement.violated for scenario in scenarios]
    assert any("exactly-once" in found for found in violated)


def test_where_rows_wait_for_no_key_a_replay_does_not_know_what_comes_of_them() -> None:
    scenario = next(one for one in of(STANDBY) if one.workload.output == "standby")
    workload, topology = scenario.workload, scenario.topology
    assert not is_determined(workload, topology)
    assert is_determined(workload, topology, at_sink=False), "what it took itself is known"
    behind = Workload(
        name="behind",
        inputs=workload.inputs,
        nodes=(*workload.nodes, Node(name="count", operator=Count(), inputs=("standby",))),
    )
    assert not is_determined(behind, topology, at_sink=False)
    timed = next(one for one in of(PERIODS) if all(edge.partitioning == "hash" for edge in one.topology.edges[1:]))
    assert is_determined(timed.workload, timed.topology)
