"""Streaming against batch: equal on drawn jobs, different where an error is planted, unknown where it may be."""

from __future__ import annotations

from collections import Counter as Multiset

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from cutproof.faults.plan import AtTime, FailCommit
from cutproof.harness.examples import EXAMPLES
from cutproof.harness.generate import strategies
from cutproof.harness.reference_engine.streaming_batch import as_bounded, compare, execute, in_order
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.reference_engine.subjects.translation import job_graph, logs
from cutproof.harness.scenario import topologies
from cutproof.harness.scenario.model import Cancel, Engine, Scenario
from cutproof.harness.scenario.slices import slice_of
from cutproof.harness.workloads import library as workloads
from cutproof.harness.workloads.inputs import LoadedWorkload
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import Holds, Unknown, Verdict, Violated
from cutproof.properties.model.workload import Count, Greater, Input, Node, Topology, Workload
from cutproof.properties.quick_checker.final_result import final_result
from cutproof.reference_impl.batch.execution import Batch, BatchResult
from cutproof.reference_impl.core.job.topology import OperatorSpec
from cutproof.reference_impl.core.operators.operators import Operator
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from unit.harness.example_runs import looked_up

RECORDS = tuple((number % 4, number * 7 % 11, 1_000 + number) for number in range(40))


def job(operator: Count | Greater, splits: int = 1, **engine: object) -> Scenario:
    """One operator over 40 records of 4 keys."""
    source = Input(name="in", splits=tuple(RECORDS[first::splits] for first in range(splits)))
    workload = Workload(name="job", inputs=(source,), nodes=(Node(name="op", operator=operator, inputs=("in",)),))
    topology = topologies.lay_out(workload, {"in": 1, "op": 2, "sink": 2})
    return msgspec.structs.replace(
        Scenario(name="job", workload=workload, topology=topology),
        engine=msgspec.structs.replace(Engine(checkpoint_interval_us=1_500), **engine),
    )


def streamed(scenario: Scenario) -> History:
    return SimulatedSubject().run(scenario)


def equal(scenario: Scenario, history: History | None = None, batch: BatchResult | None = None) -> Verdict:
    return compare(scenario, history or streamed(scenario), batch or execute(scenario), None).equal


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(strategies.scenarios(max_records=60))
def test_a_drawn_job_leaves_the_same_both_ways(drawn: Scenario) -> None:
    scenario = as_bounded(drawn)
    batch = execute(scenario)
    assert not isinstance(equal(scenario, batch=batch), Violated)
    assert all(task.keys_held <= 1 for task in batch.tasks)


def test_of_several_jobs_the_first_is_compared() -> None:
    whole = job(Count())
    (node,) = whole.workload.nodes
    workload = msgspec.structs.replace(whole.workload, nodes=(msgspec.structs.replace(node, later=True),))
    first = as_bounded(msgspec.structs.replace(whole, workload=workload))
    assert first.workload.nodes == ()
    assert set(first.topology.parallelism) == {"in", "sink"}
    assert isinstance(equal(first), Holds)


def test_most_drawn_jobs_can_be_compared() -> None:
    draw = strategies.scenario_of(strategies.Drawing(max_records=60))
    found = [equal(as_bounded(draw(3, index))) for index in range(60)]
    assert sum(isinstance(verdict, Holds) for verdict in found) >= 45


@pytest.mark.parametrize("name", ["flights", "flight-delays"])
def test_real_flights_leave_the_same_both_ways(name: str) -> None:
    loaded = workloads.find(name)
    assert isinstance(loaded, LoadedWorkload)
    workload = slice_of(loaded.workload, 1_000, 600)
    topology = loaded.topology or topologies.lay_out(workload)
    found = equal(Scenario(name=name, workload=workload, topology=topology))
    assert isinstance(found, Holds)
    assert found.exercised > 8


@pytest.mark.parametrize("operator", [Count(), Count(tagged=True), Greater()])
def test_a_batch_that_keeps_the_state_of_a_failed_attempt_differs(operator: Count | Greater) -> None:
    class Keeping(Batch):
        def operator_of(self, spec: OperatorSpec) -> Operator:
            if not hasattr(self, "kept"):
                self.kept = super().operator_of(spec)
            return self.kept

    assert isinstance(compared(job(operator), Keeping), Violated)


def test_a_batch_that_reorders_a_key_differs() -> None:
    class Backwards(Batch):
        def sort_by_key(self, fed: list) -> list:  # type: ignore[type-arg]
            return super().sort_by_key(fed[::-1])

    assert isinstance(compared(job(Greater()), Backwards), Violated)


def test_a_batch_that_does_not_sort_differs() -> None:
    class Unsorted(Batch):
        def sort_by_key(self, fed: list) -> list:  # type: ignore[type-arg]
            return fed

    assert isinstance(compared(job(Count()), Unsorted), Violated)


def compared(scenario: Scenario, kind: type[Batch]) -> Verdict:
    """What comes of a batch of this kind, two tasks of which fail; the right kind holds."""
    failures = {TaskId("op-0"): (5,), TaskId("op-1"): (5,)}
    assert isinstance(equal(scenario, batch=execute(scenario, failures)), Holds)
    wrong = kind(job_graph(scenario.workload, scenario.topology), logs(scenario.workload), failures).run()
    return equal(scenario, batch=wrong)


def test_a_stream_that_loses_repeats_or_alters_a_row_differs() -> None:
    scenario = job(Count(tagged=True))
    for rows in ([1, 0], [0, 0, 1]):
        history = streamed(scenario)
        assert isinstance(equal(scenario, history), Holds)
        history.committed[:2] = [history.committed[index] for index in rows][: 3 if len(rows) == 3 else 1]
        assert isinstance(equal(scenario, history), Violated)


@pytest.mark.parametrize(("times", "words"), [(2, "the stream has 1 more ("), (0, "the batch has 1 more (")])
def test_the_message_names_the_execution_that_has_a_row_more_often(times: int, words: str) -> None:
    scenario = job(Count(tagged=True))
    history = streamed(scenario)
    first, *others = history.committed
    history.committed[:] = [first] * times + others
    found = equal(scenario, history)
    assert isinstance(found, Violated)
    assert found.message.startswith(words), found.message


def test_a_stream_whose_last_update_is_lost_differs() -> None:
    scenario = job(Count())
    history = streamed(scenario)
    last = final_result(scenario.workload, in_order(history))
    history.committed.remove(next(row for row in last))
    assert isinstance(equal(scenario, history), Violated)


def test_a_late_commit_does_not_make_an_older_row_the_last() -> None:
    """The reader sees an older row of a key after a newer one, and the newer one is what is left."""
    refused = FailCommit(trigger=AtTime(at_us=6_000), how="refused", times=2)
    scenario = msgspec.structs.replace(job(Count()), faults=(refused,))
    history = streamed(scenario)
    assert Multiset(in_order(history)) == Multiset(history.committed)
    assert in_order(history) != history.committed
    assert final_result(scenario.workload, history.committed) != final_result(scenario.workload, in_order(history))
    assert isinstance(equal(scenario, history), Holds)


def why_unknown(scenario: Scenario) -> str:
    found = equal(scenario)
    assert isinstance(found, Unknown)
    return found.detail


def test_where_the_two_may_differ_it_is_unknown() -> None:
    assert "order in which inputs merge" in why_unknown(job(Greater(), splits=3))
    assert "did not finish" in why_unknown(
        msgspec.structs.replace(job(Count()), commands=(Cancel(trigger=AtTime(at_us=3_000)),))
    )
    assert "plain" in why_unknown(job(Count(), sink="plain"))
    rebalanced = job(Count())
    edges = [msgspec.structs.replace(edge, partitioning="rebalance") for edge in rebalanced.topology.edges[-1:]]
    topology: Topology = msgspec.structs.replace(rebalanced.topology, edges=(*rebalanced.topology.edges[:-1], *edges))
    assert "distributed" in why_unknown(msgspec.structs.replace(rebalanced, topology=topology))
    empty = msgspec.structs.replace(rebalanced.workload, inputs=(Input(name="in", splits=((),)),))
    assert "no row" in why_unknown(msgspec.structs.replace(rebalanced, workload=empty))


def test_without_pyspark_only_the_two_are_compared() -> None:
    found = compare(job(Count()), streamed(job(Count())), execute(job(Count())), None)
    assert [type(verdict) for verdict in found.verdicts] == [Unknown, Unknown, Holds]


@pytest.mark.parametrize(("wrong", "claim"), [("drop_state", 1), ("sort_by_key", 2)])
def test_the_example_does_not_show_on_a_batch_with_an_error(
    wrong: str, claim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = EXAMPLES["count-streaming-batch"]
    history = SimulatedSubject().run(example.scenario, timeline=True)
    monkeypatch.setattr(Batch, wrong, lambda self, given: given)
    assert sum(not shown.shown for shown in looked_up(example, history)) >= claim
