"""What the judge says of broadcast edges and broadcast state: what is refused, and what is seen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import Result, run
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.routes import misapplied
from cutproof.properties.model.history import History, StoredState, TaskRun
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import (
    AnyOperator,
    Batch,
    Count,
    Edge,
    Input,
    Join,
    Map,
    Model,
    Node,
    Rules,
    Sum,
    Topology,
    Tumbling,
    Workload,
    problems,
)
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.quick_checker.final_result import is_fixed
from cutproof.properties.semantics.broadcast import odd_one_out, rules_in, taken_by_all
from cutproof.properties.semantics.classes import classes, last_row_is_fixed

NAMES = ("data", "changes", "rules", "sink")


def inputs(per_split: int = 80, **more: object) -> tuple[Input, ...]:
    data = tuple(tuple((n % 5, n, 1000 * at + n) for n in range(per_split)) for at in (1, 2))
    changes = (tuple((n % 5, 10 * n, 9000 + n) for n in range(per_split)),)
    return (
        msgspec.structs.replace(Input(name="data", splits=data), **more),
        msgspec.structs.replace(Input(name="changes", splits=changes), **more),
    )


def ruled(*behind: AnyOperator, before: AnyOperator | None = None) -> Workload:
    nodes = [Node(name="before", operator=before, inputs=("data",))] if before else []
    nodes.append(Node(name="rules", operator=Rules(), inputs=("before" if before else "data", "changes")))
    for number, operator in enumerate(behind):
        nodes.append(Node(name=f"op{number}", operator=operator, inputs=(nodes[-1].name,)))
    return Workload(name="ruled", inputs=inputs(), nodes=tuple(nodes))


def with_edge(topology: Topology, sender: str, how: str) -> Topology:
    edges = [
        msgspec.structs.replace(edge, partitioning=how) if edge.sender == sender else edge for edge in topology.edges
    ]
    return msgspec.structs.replace(topology, edges=tuple(edges))


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_laid_out_plainly_rules_are_broadcast() -> None:
    workload = ruled(Count())
    topology = lay_out(workload)
    assert problems(workload, topology) == []
    assert [edge.sender for edge in topology.edges if edge.partitioning == "broadcast"] == ["changes"]


@pytest.mark.parametrize("how", ["forward", "hash", "rebalance"])
def test_rules_by_any_other_edge_are_refused(how: str) -> None:
    workload = ruled()
    topology = with_edge(lay_out(workload), "changes", how)
    wrong = f"the edge from changes to rules is {how}, and every subtask has to have the rules: broadcast"
    assert problems(workload, topology) == [wrong]


@pytest.mark.parametrize(("sender", "receiver"), [("data", "rules"), ("rules", "op0"), ("op0", "sink")])
def test_anything_else_by_a_broadcast_edge_is_refused(sender: str, receiver: str) -> None:
    """Into a keyed operator, into the sink, into the side of the data: each would take a row twice."""
    workload = ruled(Count())
    topology = with_edge(lay_out(workload), sender, "broadcast")
    wrong = f"the edge from {sender} to {receiver} is broadcast: only rules are, others would take a row twice"
    assert problems(workload, topology) == [wrong]


def test_rules_need_both_inputs() -> None:
    workload = Workload(
        name="one", inputs=inputs()[:1], nodes=(Node(name="rules", operator=Rules(), inputs=("data",)),)
    )
    assert problems(workload, lay_out(workload)) == ["rules has 1 inputs, its kind takes 2"]


def test_what_goes_by_time_has_no_rules() -> None:
    timed = ruled(Tumbling(size=5))
    times = [tuple(tuple(range(len(split))) for split in source.splits) for source in timed.inputs]
    sources = tuple(msgspec.structs.replace(one, times=at) for one, at in zip(timed.inputs, times, strict=True))
    timed = msgspec.structs.replace(timed, inputs=sources)
    assert problems(timed, lay_out(timed)) == ["rules has rules and op0 goes by time: a job can have one or the other"]


def test_rules_behind_a_batch_are_refused() -> None:
    workload = ruled(before=Batch())
    assert problems(workload, lay_out(workload)) == ["the operator with rules rules stands behind a batch"]


# -- what follows from them --------------------------------------------------------------------------------------------


def test_rows_with_rules_are_of_class_h_and_so_is_all_behind_them() -> None:
    workload = ruled(Map(add=1), Sum())
    grades = classes(workload, lay_out(workload))
    assert grades == {"data": "M", "changes": "M", "rules": "H", "op0": "H", "op1": "H"}
    assert not last_row_is_fixed(workload, lay_out(workload))
    assert not is_fixed(workload, lay_out(workload)), "a batch may merge its inputs otherwise"


def test_a_model_goes_by_the_order_of_a_keys_records() -> None:
    workload = Workload(
        name="learnt", inputs=inputs()[1:], nodes=(Node(name="op", operator=Model(), inputs=("changes",)),)
    )
    assert classes(workload, lay_out(workload))["op"] == "S"
    merged = Workload(
        name="merged",
        inputs=inputs(),
        nodes=(
            Node(name="both", operator=Join(), inputs=("data", "changes")),
            Node(name="op", operator=Model(), inputs=("both",)),
        ),
    )
    assert classes(merged, lay_out(merged))["op"] == "H"


# -- what is seen ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result() -> Result:
    workload = ruled()
    kill = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=1), task="rules-1")
    scenario = Scenario(
        workload=workload,
        topology=lay_out(workload, dict.fromkeys(NAMES, 3)),
        engine=Engine(checkpoint_interval_us=1_500),
        faults=(kill,),
    )
    result = run(SimulatedSubject(), scenario)
    assert not result.judgement.violated
    return result


def altered(result: Result, alter: Callable[[History], None]) -> Case:
    history = msgspec.msgpack.decode(msgspec.msgpack.encode(result.history), type=History)
    alter(history)
    return Case(result.scenario.workload, result.scenario.topology, history)


def by_changes(run: TaskRun) -> list[int]:
    """Where among its applies those of the broadcast edge stand."""
    channels = [number for number, name in enumerate(run.inputs) if name.startswith("changes")]
    return [at for at, (channel, _) in enumerate(run.applies) if channel in channels]


def last_run(history: History) -> TaskRun:
    return [run for run in history.runs if run.task == "rules-2"][-1]


def test_all_subtasks_have_every_rule_once(result: Result) -> None:
    assert misapplied(result.case) is None
    assert all(isinstance(result.judgement.verdicts[name], Holds) for name in ("exactly-once", "consistent-cut"))


def test_a_rule_that_one_subtask_lacks_is_seen(result: Result) -> None:
    def alter(history: History) -> None:
        run = last_run(history)
        del run.applies[by_changes(run)[-1]]

    found = misapplied(altered(result, alter))
    assert isinstance(found, Violated)
    assert (found.difference, found.tasks) == ("never applied", ("rules",))


def test_a_rule_that_one_subtask_takes_twice_is_seen(result: Result) -> None:
    def alter(history: History) -> None:
        run = last_run(history)
        run.applies.append(run.applies[by_changes(run)[-1]])

    found = misapplied(altered(result, alter))
    assert isinstance(found, Violated)
    assert found.difference == "applied twice"


def test_a_row_of_the_data_is_expected_at_one_subtask_alone(result: Result) -> None:
    def alter(history: History) -> None:
        runs = [run for run in history.runs if run.operator == "rules" and run.attempt == history.runs[-1].attempt]
        channel = next(number for number, name in enumerate(runs[1].inputs) if name.startswith("data"))
        taken = next(origin for at, (_, origin) in enumerate(runs[0].applies) if at not in by_changes(runs[0]))
        runs[1].applies.append((channel, taken))

    found = misapplied(altered(result, alter))
    assert isinstance(found, Violated)
    assert found.difference == "applied twice"


def test_copies_that_differ_are_seen_though_both_are_whole(result: Result) -> None:
    """Two subtasks change what they have: the sum of it all is as it should be."""
    case = result.case
    last = case.lineage.checkpoints[-1]

    def alter(history: History) -> None:
        mine = [one for one in history.stored if one.checkpoint == last and one.task.startswith("rules")]
        states = [msgspec.json.decode(one.state) for one in mine]
        states[0]["broadcast"].append(states[1]["broadcast"].pop())
        for one, state in zip(mine, states, strict=True):
            one.state = msgspec.json.encode(state).decode()

    mutated_case = altered(result, alter)
    verdict = judge(mutated_case.workload, mutated_case.submitted, mutated_case.history).verdicts["consistent-cut"]
    assert isinstance(verdict, Violated)
    assert verdict.difference == "copies differ"
    assert all(task.startswith("rules-") for task in verdict.tasks)


# -- counting ----------------------------------------------------------------------------------------------------------


def of(subtask: int, attempt: int = 1, job: int = 1) -> TaskRun:
    return TaskRun(
        task=f"r-{subtask}", operator="r", subtask=subtask, attempt=attempt, job=job, started=0, inputs=[], outputs=[]
    )


@pytest.mark.parametrize(
    ("taken", "least", "most"),
    [
        ([[7], [7]], 1, 1),
        ([[7], []], 0, 1),
        ([[7], [7, 7]], 1, 2),
        ([[7, 7], [7, 7]], 2, 2),
    ],
    ids=["by all", "by one", "by one twice", "by all twice"],
)
def test_a_row_counts_once_where_all_have_it(taken: list[list[int]], least: int, most: int) -> None:
    found = taken_by_all([(of(subtask), origins) for subtask, origins in enumerate(taken)], {1: 2})
    assert (found[0][7], found[1][7]) == (least, most)


def test_attempts_and_layouts_are_counted_apart() -> None:
    runs = [(of(0), [7]), (of(1), [7]), *((of(number, attempt=2, job=2), [8]) for number in range(3))]
    least, most = taken_by_all(runs, {1: 2, 2: 3})
    assert (least[7], least[8]) == (most[7], most[8]) == (1, 1)


def test_the_odd_one_out() -> None:
    one, other = StoredState(broadcast=[("rules", "[1,2,3]")]), StoredState()
    assert odd_one_out({"a-0": one, "a-1": one}) is None
    assert odd_one_out({"a-0": one, "a-1": one, "a-2": other}) == ("a-0", "a-2")
    changed = StoredState(broadcast=[("rules", "[1,2,4]")])
    assert odd_one_out({"a-0": one, "a-1": changed}) == ("a-0", "a-1"), "as many, and not the same"
    assert rules_in(one) == [(0, 1, 2, 3)]
    assert rules_in(other) == []


def test_an_edge_of_its_own_is_needed() -> None:
    workload = ruled()
    topology = lay_out(workload)
    assert topology.edge("changes", "rules") == Edge(sender="changes", receiver="rules", partitioning="broadcast")
