"""The judge on rows that wait in batches, global committers and operators that commit what they pass on: no run is
accused, and every mutation is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario, StopWithSavepoint
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants import drain
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.workload import SINK, Batch, Edge, Input, Node, Row, Topology, Workload
from cutproof.properties.mutations.tampering import BATCH_MUTATIONS, COMMITTER_MUTATIONS
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.buffered_rows import ROWS, batches, still_to_come
from defects.drawn import accused, first_runs, times_held
from defects.mutated import mutations_seen

RUNS = 40
SIZE = 3


@pytest.fixture(scope="module")
def holding() -> list[Result]:
    draw = scenario_of(Drawing(max_records=60, templates=("S9", "S14")))
    return first_runs((draw(6, index) for index in range(900)), RUNS, of=lambda scenario: batches(scenario.workload))


@pytest.fixture(scope="module")
def committing() -> list[Result]:
    draw = scenario_of(Drawing(max_records=60, templates=("S7",)))
    return first_runs((draw(6, index) for index in range(900)), RUNS, of=_commits_otherwise)


def _commits_otherwise(scenario: Scenario) -> bool:
    return scenario.engine.committing == "global" or bool(scenario.engine.two_phase)


def test_no_run_is_accused(holding: list[Result], committing: list[Result]) -> None:
    assert len(holding) == len(committing) == RUNS
    assert accused([*holding, *committing]) == []
    assert times_held(holding)["drain"] > RUNS // 2
    assert times_held(committing)["visibility"] > RUNS // 2


def test_every_mutation_is_seen(holding: list[Result], committing: list[Result]) -> None:
    waiting, passing = (
        Counter(name for one in results for name in mutations_seen(one)) for results in (holding, committing)
    )
    assert {name for name in BATCH_MUTATIONS if not waiting[name]} == set()
    assert {name for name in COMMITTER_MUTATIONS if not passing[name]} == set()
    assert min(waiting["hold a row back at the end"], passing["publish a checkpoint in halves"]) > RUNS // 5


# -- one job with one batch --------------------------------------------------------------------------


def buffered(records: int, *, stop_us: int = 0, kill_us: int = 0, sink: str = "transactional") -> Result:
    """numbers -> batch -> sink, a task each; with `stop_us` it is stopped then, with `kill_us` the sink dies."""
    rows = tuple((at, at, at + 1) for at in range(records))
    workload = Workload(
        name="held back",
        inputs=(Input(name="numbers", splits=(rows,)),),
        nodes=(Node(name="batch", operator=Batch(size=SIZE), inputs=("numbers",)),),
    )
    topology = Topology(
        parallelism={"numbers": 1, "batch": 1, SINK: 1},
        edges=(
            Edge(sender="numbers", receiver="batch", partitioning="forward"),
            Edge(sender="batch", receiver=SINK, partitioning="forward"),
        ),
    )
    scenario = Scenario(
        workload=workload,
        topology=topology,
        engine=Engine(sink=sink),
        commands=(StopWithSavepoint(trigger=AtTime(at_us=stop_us)),) if stop_us else (),
        faults=(KillTask(trigger=AtTime(at_us=kill_us), task="sink-0"),) if kill_us else (),
    )
    return run(SimulatedSubject(), scenario)


def altered(result: Result, alter: Callable[[History], None]) -> Case:
    history = msgspec.msgpack.decode(msgspec.msgpack.encode(result.history), type=History)
    alter(history)
    return Case(result.scenario.workload, result.scenario.topology, history)


@pytest.mark.parametrize(("records", "rest"), [(20, 2), (21, 0), (22, 1)])
def test_drain_is_exercised_by_rows_that_waited_for_the_end(records: int, rest: int) -> None:
    verdict = drain.check(buffered(records).case)
    assert verdict == Holds(exercised=rest) if rest else isinstance(verdict, Unknown)


def test_a_row_that_still_waits_when_all_has_ended_violates_drain() -> None:
    def hold(history: History) -> None:
        last = [one for one in history.stored if one.task == "batch-0"][-1]
        state = msgspec.json.decode(last.state)
        last.state = msgspec.json.encode(state | {"listed": [[ROWS, "[1,1,2,0,0,null]"]]}).decode()

    verdict = drain.check(altered(buffered(20), hold))
    assert isinstance(verdict, Violated)
    assert (verdict.difference, verdict.tasks) == ("buffer left", ("batch-0",))
    assert "holds 1 row in the buffer" in verdict.message


STOPPED_US = 20_000


def waiting_at_the_stop(result: Result) -> list[Row]:
    (ended,) = result.case.commands.ends
    assert (ended.status, ended.checkpoint is not None) == ("stopped", True)
    return list(still_to_come(result.case.workload, result.case.states(ended.checkpoint or 0)))


def test_what_waited_at_a_stop_is_no_breach_and_exercises_drain() -> None:
    result = buffered(200, stop_us=STOPPED_US)
    waiting = waiting_at_the_stop(result)
    assert 0 < len(waiting) < SIZE
    assert drain.check(result.case) == Holds(exercised=len(waiting))


def test_a_row_that_waited_at_a_stop_and_shows_violates_drain() -> None:
    result = buffered(200, stop_us=STOPPED_US)
    row = waiting_at_the_stop(result)[0]
    verdict = drain.check(altered(result, lambda history: history.committed.append(row)))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "waiting row shown"


@pytest.mark.parametrize(("sink", "is_violated"), [("transactional", True), ("plain", False)])
def test_where_an_attempt_that_went_back_may_have_shown_it_nobody_is_accused(sink: str, is_violated: bool) -> None:
    result = buffered(200, stop_us=STOPPED_US, kill_us=STOPPED_US // 2, sink=sink)
    assert len(result.case.lineages.starts) == 2
    row = waiting_at_the_stop(result)[0]
    verdict = drain.check(altered(result, lambda history: history.committed.append(row)))
    assert isinstance(verdict, Violated) is is_violated
