"""Splits that an enumerator assigns: no correct run is accused, and each mutation of an assignment is seen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.properties.invariants import consistent_cut, drain, restored_state
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History, TaskRun
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count, Edge, Input, Node, Topology, Workload, problems
from cutproof.properties.quick_checker.case import Case

SPLITS = tuple(tuple((number % 3, number, 1000 * split + number) for number in range(12)) for split in range(4))
SCENARIO = Scenario(
    workload=Workload(
        name="chain",
        inputs=(Input(name="source", splits=SPLITS, assignment="enumerated", discovered_us=(0, 0, 0, 3_000)),),
        nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
    ),
    topology=Topology(
        parallelism={"source": 2, "count": 1, "sink": 1},
        edges=(
            Edge(sender="source", receiver="count", partitioning="hash"),
            Edge(sender="count", receiver="sink", partitioning="forward"),
        ),
    ),
    engine=Engine(checkpoint_interval_us=1_000, snapshot_write_us=200),
    faults=(KillTask(trigger=AtTime(at_us=5_500), task="source-0"),),
)


@pytest.fixture(scope="module")
def recorded() -> bytes:
    """A run in which a reader dies after a checkpoint, and its splits are given again."""
    history = SimulatedSubject().run(SCENARIO)
    assert judge(SCENARIO.workload, SCENARIO.topology, history).outcome == "held"
    return msgspec.json.encode(history)


@pytest.fixture
def history(recorded: bytes) -> History:
    return msgspec.json.decode(recorded, type=History)


def case(history: History) -> Case:
    return Case(SCENARIO.workload, SCENARIO.topology, history)


def readers(history: History, attempt: int) -> list[TaskRun]:
    return [run for run in history.runs if run.operator == "source" and run.attempt == attempt]


def test_a_split_moves_with_its_position(history: History) -> None:
    given = {split: position for run in readers(history, 2) for _, split, position in run.assigned}
    assert sorted(given) == [0, 1, 2, 3]
    assert any(given.values()), "some had been read in part"
    assert isinstance(consistent_cut.check(case(history)), Holds)
    assert isinstance(restored_state.check(case(history)), Holds)


def given_to_both(history: History) -> None:
    one, other = readers(history, 1)
    other.assigned.append(one.assigned[0])


def never_given(history: History) -> None:
    run = readers(history, 1)[0]
    run.assigned.remove(run.assigned[0])


def given_later(history: History) -> None:
    run = readers(history, 1)[0]
    _, split, position = run.assigned[0]
    run.assigned[0] = (1, split, position)


def still_with_the_enumerator(history: History) -> None:
    state_of_source = history.completed[0].enumerators["source"]
    state_of_source.unassigned[min(state_of_source.assigned)] = 0


def with_somebody_else(history: History) -> None:
    state_of_source = history.completed[0].enumerators["source"]
    state_of_source.assigned[min(state_of_source.assigned)] = "source-7"


def with_nobody(history: History) -> None:
    state_of_source = history.completed[0].enumerators["source"]
    state_of_source.assigned[99] = "source-0"


@pytest.mark.parametrize(
    ("mutation", "difference"),
    [
        (given_to_both, "two owners"),
        (never_given, "read without assignment"),
        (given_later, "read without assignment"),
        (still_with_the_enumerator, "split held twice"),
        (with_somebody_else, "split held by nobody"),
        (with_nobody, "split held by nobody"),
    ],
)
def test_a_cut_in_which_a_split_has_not_one_owner(
    history: History, mutation: Callable[[History], None], difference: str
) -> None:
    mutation(history)
    verdict = consistent_cut.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == difference


def test_an_unassigned_split_stands_where_the_enumerator_has_it(history: History) -> None:
    """As in a checkpoint that was taken after readers had handed their splits back."""
    state_of_source = history.completed[-1].enumerators["source"]
    handle = history.completed[-1].handles["source-0"]
    stored = next(one for one in history.stored if one.handle == handle)
    state = msgspec.json.decode(stored.state)
    split, position = next((int(split), at) for split, at in state["positions"].items() if at)
    del state["positions"][str(split)], state_of_source.assigned[split]
    stored.state = msgspec.json.encode(state).decode()
    state_of_source.unassigned[split] = position
    assert isinstance(consistent_cut.check(case(history)), Holds)
    state_of_source.unassigned[split] = position - 1
    verdict = consistent_cut.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "position differs from reads"


def test_a_split_that_is_given_from_elsewhere(history: History) -> None:
    run = readers(history, 2)[0]
    before, split, position = run.assigned[0]
    run.assigned[0] = (before, split, position + 1)
    verdict = restored_state.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "read on from elsewhere"


def test_a_reader_that_ends_before_it_has_read_what_it_was_given(history: History) -> None:
    run = next(run for run in readers(history, 2) if run.reads)
    run.reads.pop()
    verdict = drain.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "end of data too early"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"assignment": "random", "discovered_us": ()}, "source has the unknown assignment 'random'"),
        ({"rewindable": False}, "source is enumerated: it can have no event time, and must be rewindable"),
        ({"discovered_us": (-1,)}, "source discovers splits before an attempt begins, or without an enumerator"),
        ({"assignment": "static"}, "source discovers splits before an attempt begins, or without an enumerator"),
    ],
)
def test_what_cannot_be_enumerated_is_a_problem(change: dict[str, object], problem: str) -> None:
    source = msgspec.structs.replace(SCENARIO.workload.inputs[0], **change)
    workload = msgspec.structs.replace(SCENARIO.workload, inputs=(source,))
    assert problems(workload, SCENARIO.topology) == [problem]
