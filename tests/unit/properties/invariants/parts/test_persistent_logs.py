"""Logs of persistent channels: each planted error is seen, and a correct run is not accused."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.properties.invariants import consistent_cut, no_leaks, restored_state
from cutproof.properties.invariants.parts import persistent_logs
from cutproof.properties.model.history import CoordinatorDown, History, PersistentLog
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count, Input, Node, Workload
from cutproof.properties.mutations.persistent_logs import keep_deleted_log, trim_early
from cutproof.properties.quick_checker.case import Case


@cache
def scenario() -> Scenario:
    """Two splits into a count that is slower than they are, a crash amid it."""
    splits = tuple(tuple((n % 3, n, 1000 * split + n + 1) for n in range(40)) for split in range(2))
    workload = Workload(
        name="spilled",
        inputs=(Input(name="source", splits=splits),),
        nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
    )
    engine = Engine(
        alignment="unaligned",
        spilling="continuous",
        apply_cost_us=260,
        read_interval_us=100,
        channel_capacity=6,
        checkpoint_interval_us=1_500,
    )
    kill = KillTask(trigger=AtTime(at_us=5_200), task="count-0")
    topology = lay_out(workload, {"source": 2, "count": 2, "sink": 2})
    return Scenario(workload=workload, topology=topology, engine=engine, faults=(kill,))


@cache
def recorded() -> bytes:
    return msgspec.msgpack.encode(SimulatedSubject().run(scenario()))


def fresh() -> History:
    return msgspec.msgpack.decode(recorded(), type=History)


def case(history: History) -> Case:
    return Case(scenario().workload, scenario().topology, history)


@pytest.mark.parametrize("check", [consistent_cut.check, restored_state.check, no_leaks.check])
def test_a_correct_run_holds(check: object) -> None:
    verdict = check(case(fresh()))  # type: ignore[operator]
    assert isinstance(verdict, Holds)


def test_a_snapshot_that_was_stored_before_what_it_refers_to_was_durable() -> None:
    history = fresh()
    handles = {handle for one in history.completed for handle in one.handles.values()}
    stored = next(one for one in history.stored if one.handle in handles and '"spilled"' in one.state)
    state = msgspec.json.decode(stored.state)
    channel = next(iter(state["spilled"]))
    state["queued"][channel].pop()
    stored.state = msgspec.json.encode(state).decode()
    verdict = consistent_cut.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "reference to nothing"
    assert (verdict.checkpoint, verdict.tasks) == (stored.checkpoint, (stored.task,))


def test_what_a_retained_checkpoint_refers_to_is_discarded() -> None:
    history = fresh()
    mutation = trim_early(case(history))
    assert mutation is not None
    mutation[1](history)
    verdict = restored_state.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "in-flight data discarded"


def test_a_log_that_is_deleted_while_a_checkpoint_refers_to_it() -> None:
    history = fresh()
    lineages = case(history).lineages
    number, log = next(
        (number, refs[0][0])
        for number in lineages.completed
        for state in lineages.snapshots.states(number).values()
        for refs in state.spilled.values()
    )
    next(one for one in history.logs if one.name == log).cleared = lineages.completed[number].order + 1
    verdict = restored_state.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.checkpoint == number


def test_a_log_that_nobody_needs_is_left() -> None:
    history = fresh()
    mutation = keep_deleted_log(case(history))
    assert mutation is not None
    mutation[1](history)
    verdict = no_leaks.check(case(history))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "log left"


def test_a_log_that_was_opened_when_nobody_could_delete_it_any_more_is_excused() -> None:
    history = fresh()
    late = max(entry.order for entry in history.journal) + 1
    history.logs.append(PersistentLog(name="late", task="count-0", attempt=1, opened=late))
    history.residue.logs.append("late")
    assert isinstance(no_leaks.check(case(history)), Holds)


def test_what_died_with_a_coordinators_memory_is_retained_until_then_and_no_longer() -> None:
    history = fresh()
    checkpoint = next(number for number, spilled in _spilled(history).items() if spilled)
    log = next(one for one in history.logs if one.name == _spilled(history)[checkpoint][0])
    completed = next(one for one in history.completed if one.checkpoint == checkpoint)
    history.snapshots = "memory"
    history.journal.append(CoordinatorDown(order=completed.order + 2, at_us=completed.at_us))
    history.journal.sort(key=lambda entry: entry.order)
    log.cleared = completed.order + 3
    assert persistent_logs.discarded_early(case(history)) is None
    log.cleared = completed.order + 1
    assert persistent_logs.discarded_early(case(history)) is not None
    history.snapshots, log.cleared = "files", completed.order + 3
    assert persistent_logs.discarded_early(case(history)) is not None


def _spilled(history: History) -> dict[int, list[str]]:
    """The logs that each completed checkpoint refers to."""
    lineages = case(history).lineages
    return {
        number: [
            ref[0]
            for state in lineages.snapshots.states(number).values()
            for refs in state.spilled.values()
            for ref in refs
        ]
        for number in lineages.completed
    }
