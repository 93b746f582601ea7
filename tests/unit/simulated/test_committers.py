"""Committers in the simulated world: what the store does for them, and whole runs with and without trouble (ABS-11)."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AnyFault, AtPoint, AtTime
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Engine, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import History, JobEnded, Transaction
from cutproof.properties.model.verdict import Holds, Unknown, Verdict, Violated
from cutproof.properties.model.workload import Edge, Input, Map, Node, Topology, Workload
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    BeginTransaction,
    Commit,
    Denied,
    Done,
    Finalise,
    PreCommit,
    Publish,
    Write,
)
from cutproof.reference_impl.simulated.external import TransactionStore
from unit.simulated.worlds import fired

BY = {"writer": TaskId("sink-0"), "attempt": AttemptId(1)}
RECORDS = tuple((n % 4, n, n) for n in range(40))


def stored(*names: str) -> TransactionStore:
    """A store with sealed transactions, each of one row."""
    store = TransactionStore()
    for tag, name in enumerate(names):
        for request in (
            BeginTransaction(**BY, name=name),
            Write(**BY, name=name, rows=((1, 1, tag, 0),)),
            PreCommit(**BY, name=name, checkpoint=CheckpointId(1)),
        ):
            assert store.handle(request) == Done()
    return store


def publish(*names: str) -> AnyRequest:
    return Publish(**BY, checkpoint=CheckpointId(1), names=names)


def scenario(committing: str, *faults: AnyFault, drain: bool = False) -> Scenario:
    workload = Workload(
        name="two inputs",
        inputs=(Input(name="source", splits=(RECORDS[:20], RECORDS[20:])),),
        nodes=(Node(name="map", inputs=("source",), operator=Map()),),
    )
    topology = Topology(
        parallelism={"source": 2, "map": 2, "sink": 2},
        edges=(
            Edge(sender="source", receiver="map", partitioning="hash"),
            Edge(sender="map", receiver="sink", partitioning="forward"),
        ),
    )
    stop = (StopWithSavepoint(trigger=AtTime(at_us=3_000), drain=True),)
    return Scenario(
        workload=workload,
        topology=topology,
        engine=Engine(committing=committing, checkpoint_interval_us=900),
        faults=faults,
        commands=stop if drain else (),
    )


def judged(drawn: Scenario) -> tuple[History, dict[str, Verdict]]:
    history = SimulatedSubject().run(drawn)
    return history, judge(drawn.workload, drawn.topology, history).verdicts


def last_end(history: History) -> JobEnded:
    return [entry for entry in history.journal if isinstance(entry, JobEnded)][-1]


# -- the store -----------------------------------------------------------------------------------


def test_what_is_final_is_not_visible_until_it_is_published() -> None:
    store = stored("a", "b")
    for name in ("a", "b"):
        assert store.handle(Finalise(**BY, name=name)) == Done()
    assert store.rows() == []
    assert store.handle(publish("a", "b")) == Done()
    assert [row[2] for row in store.rows()] == [0, 1]
    assert store.handle(publish("a", "b")) == Done()
    assert len(store.rows()) == 2


def test_a_version_shows_all_that_it_names_or_nothing() -> None:
    store = stored("a", "b")
    store.handle(Finalise(**BY, name="a"))
    assert isinstance(store.handle(publish("a", "b")), Denied)
    assert store.rows() == []


def test_what_was_given_up_is_denied_for_good() -> None:
    store = stored("a")
    store.handle(AbortTransaction(**BY, name="a"))
    assert isinstance(store.handle(Finalise(**BY, name="a")), Denied)
    assert isinstance(store.handle(publish("a")), Denied)


def test_by_its_id_alone_the_newest_transaction_is_meant() -> None:
    store = stored("id-0#1-1")
    store.handle(Commit(**BY, name="id-0#1-1"))
    store.handle(BeginTransaction(**BY, name="id-0#1-2"))
    store.handle(Write(**BY, name="id-0#1-2", rows=((9, 9, 9, 0),)))
    store.handle(Commit(**BY, name="id-0#1-1"))
    assert len(store.rows()) == 1
    store.handle(Commit(**BY, name="id-0#1-1", by_id=True))
    assert len(store.rows()) == 2


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committing", ["committer", "global"])
@pytest.mark.parametrize("drain", [False, True])
def test_all_rows_are_committed_behind_the_sink(committing: str, drain: bool) -> None:
    history, verdicts = judged(scenario(committing, drain=drain))
    assert not [one for one in verdicts.values() if isinstance(one, Violated)]
    assert last_end(history).status == ("drained" if drain else "finished")
    assert drain or len(history.committed) == len(RECORDS)
    assert {run.operator for run in history.runs} >= {"sink", "committer"}
    assert not history.residue.prepared_transactions
    assert not history.residue.open_transactions


@pytest.mark.parametrize("how", ["refused", "unavailable", "lost-response"])
@pytest.mark.parametrize("task", ["committer-1", "global-committer-0"])
def test_trouble_with_a_commit_loses_and_repeats_nothing(how: str, task: str) -> None:
    fault = plan.FailCommit(trigger=AtTime(at_us=0), task=task, how=how, times=3)
    history, verdicts = judged(scenario("global", fault))
    assert fired(history) == ["fail-commit"] * 3
    assert isinstance(verdicts["exactly-once"], Holds)
    assert isinstance(verdicts["progress"], Holds)
    assert len(history.committed) == len(RECORDS)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("point", ["commit-requested", "commit-answered", "completion-notified", "state-loaded"])
@pytest.mark.parametrize("task", ["committer-0", "global-committer-0"])
def test_a_death_at_each_step_of_a_commit_loses_and_repeats_nothing(point: str, task: str, side: str) -> None:
    first = plan.KillTask(trigger=AtTime(at_us=4_800), task="source-0")
    blow = plan.KillTask(trigger=AtPoint(point=point, occurrence=1, task=task, side=side), task=task)
    history, verdicts = judged(scenario("global", first, blow))
    assert fired(history) == ["kill-task", "kill-task"]
    assert not [one for one in verdicts.values() if isinstance(one, Violated)]
    assert len(history.committed) == len(RECORDS)


@pytest.mark.parametrize("committing", ["writer", "committer", "global"])
def test_an_expired_transaction_stops_the_job_which_names_it(committing: str) -> None:
    history, verdicts = judged(scenario(committing, plan.FailCommit(trigger=AtTime(at_us=0), how="expired")))
    end = last_end(history)
    assert end.status == "failed"
    (lost,) = [one for one in history.transactions if f"transaction {one.name} has been aborted" in end.reason]
    assert lost.prepared is not None
    assert lost.rows
    for invariant in ("exactly-once", "no-data-loss", "progress"):
        verdict = verdicts[invariant]
        assert isinstance(verdict, Unknown)
        assert verdict.reason == "assumption broken"
    assert not [one for one in verdicts.values() if isinstance(one, Violated)]


def test_to_go_on_after_an_expiry_is_a_violation() -> None:
    drawn = scenario("global", plan.FailCommit(trigger=AtTime(at_us=0), how="expired"))
    history = SimulatedSubject().run(drawn)
    history.journal[-1] = msgspec.structs.replace(last_end(history), status="finished", reason="")
    assert "exactly-once" in judge(drawn.workload, drawn.topology, history).violated


# -- the judge -------------------------------------------------------------------------------------


def shown_in_part(history: History) -> Transaction:
    """Of the transactions that were published together, have one be seen later than the others."""
    several = [one for one in history.transactions if one.rows and one.committed is not None]
    by_checkpoint = [one for one in several if one.checkpoint == several[0].checkpoint]
    assert len(by_checkpoint) > 1
    late = by_checkpoint[0]
    late.committed = max(read.ended for read in history.reads) + 1
    return late


def test_half_a_checkpoint_seen_is_a_violation_behind_a_global_committer_alone() -> None:
    for committing in ("committer", "global"):
        drawn = scenario(committing)
        history = SimulatedSubject().run(drawn)
        shown_in_part(history)
        verdict = judge(drawn.workload, drawn.topology, history).verdicts["visibility"]
        assert (isinstance(verdict, Violated) and verdict.difference == "half a checkpoint seen") is (
            committing == "global"
        )


def test_a_snapshot_that_lost_a_committable_is_seen() -> None:
    """Of the committers' own snapshots: one that holds a transaction which is not committed yet is emptied."""
    drawn = scenario("global", plan.FailCommit(trigger=AtTime(at_us=0), how="unavailable", times=40))
    history = SimulatedSubject().run(drawn)
    kept = [entry for entry in history.stored if entry.task.startswith("committer-") and "transactions" in entry.state]
    assert kept
    for entry in kept:
        entry.state = "{}"
    assert "consistent-cut" in judge(drawn.workload, drawn.topology, history).violated
