"""The coverage: whose cell a fault counts in, what is impossible and why, and that every cell is aimed at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from cutproof.faults.plan import (
    COMMON_KINDS,
    AnyFault,
    AtPoint,
    AtTime,
    FailCommit,
    FailWrite,
    KillTask,
    RaiseInOperator,
)
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.search.coverage import (
    CHECKPOINT_POINTS,
    COVERED,
    ENDINGS,
    FAIL_COMMIT,
    MODES,
    RULES,
    SNAPSHOT_FAULTS,
    TRANSACTION_POINTS,
    CoverageTally,
    CoverageTarget,
    all_targets,
    possible_targets,
    rule_against,
    targets_hit,
)
from cutproof.harness.subject.port import Capabilities, SubjectFailed
from cutproof.properties.model.history import FaultFired, History, JobEnded
from unit.harness.scenarios import chain

replace = msgspec.structs.replace

CAPABILITIES = SimulatedSubject().capabilities
KILLED = CoverageTarget(alignment="aligned", ending="finished", point="ack-sent", fault="kill-task")
FORBIDDEN = CoverageTarget(alignment="none", ending="finished", point="ack-sent", fault="kill-task")
"""an acknowledgement where nothing is acknowledged"""


def scenario(*faults: AnyFault, commands: tuple[AnyCommand, ...] = (), **engine: object) -> Scenario:
    return replace(
        chain(40),
        faults=faults,
        commands=commands,
        deviations=(),
        engine=Engine(checkpoint_interval_us=800, **engine),  # type: ignore[arg-type]
    )


def kill(point: str, task: str = "count-0", occurrence: int = 1) -> KillTask:
    return KillTask(trigger=AtPoint(point=point, occurrence=occurrence), task=task)


def hit(one: Scenario) -> list[CoverageTarget]:
    return list(targets_hit(one, SimulatedSubject().run(one)))


def test_a_fault_counts_where_it_was_set_off_and_how_its_job_ended() -> None:
    assert hit(scenario(kill("ack-sent"))) == [KILLED]
    assert hit(scenario(kill("ack-sent"), guarantee="at-least-once")) == [replace(KILLED, alignment="unblocked")]
    at_most_once = scenario(kill("record-read"), guarantee="at-most-once", sink="plain")
    assert hit(at_most_once) == [replace(KILLED, alignment="none", point="record-read")]


@pytest.mark.parametrize(
    ("ending", "command", "attempts"),
    [
        ("drained", StopWithSavepoint(trigger=AtTime(at_us=5_000), drain=True), 20),
        ("stopped", StopWithSavepoint(trigger=AtTime(at_us=5_000)), 20),
        ("cancelled", Cancel(trigger=AtTime(at_us=5_000)), 20),
        ("failed", Resume(trigger=AtTime(at_us=500)), 0),
    ],
)
def test_the_ending_is_that_of_the_job_that_was_hit_not_of_the_one_after(
    ending: str, command: AnyCommand, attempts: int
) -> None:
    commands = (command,) if ending == "failed" else (command, Resume(trigger=AtTime(at_us=500)))
    one = scenario(kill("record-read", occurrence=3), commands=commands, restart_attempts=attempts)
    assert hit(one) == [replace(KILLED, ending=ending, point="record-read")]


def test_a_fault_that_no_point_set_off_or_whose_job_never_ended_has_no_target() -> None:
    fired = FaultFired(order=1, at_us=1, fault=0, kind="kill-task", phase="running")
    ended = JobEnded(order=2, at_us=2, job=1, status="finished")
    history = History(subject="x", guarantee="exactly-once", sink="transactional", journal=[fired, ended])
    timed = scenario(KillTask(trigger=AtTime(at_us=1), task="count-0"))
    assert not targets_hit(timed, history)
    assert not targets_hit(scenario(kill("ack-sent")), replace(history, journal=[fired]))
    assert not targets_hit(scenario(), history), "a fault that nobody planned"
    strange = replace(history, journal=[fired, replace(ended, status="evaporated")])
    assert not targets_hit(scenario(kill("ack-sent")), strange)


def test_a_fault_that_fires_again_counts_once_in_the_job_it_hit_first() -> None:
    fired = FaultFired(order=1, at_us=1, fault=0, kind="kill-task", phase="running")
    ended = JobEnded(order=2, at_us=2, job=1, status="cancelled")
    journal = [fired, replace(fired, order=2), ended, replace(fired, order=4), replace(ended, order=5, status="failed")]
    history = History(subject="x", guarantee="exactly-once", sink="transactional", journal=journal)
    assert targets_hit(scenario(kill("ack-sent")), history) == (replace(KILLED, ending="cancelled"),)


# -- what is impossible --------------------------------------------------------------


def impossible_faults(point: str) -> Iterator[AnyFault]:
    yield kill(point)
    yield FailWrite(trigger=AtPoint(point="record-read"), task=None)
    yield FailWrite(trigger=AtPoint(point="record-read"), task="source-0")
    yield FailCommit(trigger=AtPoint(point="record-read"))


@pytest.mark.parametrize("point", sorted(CHECKPOINT_POINTS | TRANSACTION_POINTS))
def test_at_most_once_comes_to_no_point_of_a_checkpoint_or_transaction(point: str) -> None:
    """Even where it restarts: nothing is restored, written or committed."""
    again = kill("record-read", occurrence=20)
    one = scenario(*impossible_faults(point), again, guarantee="at-most-once", sink="plain")
    assert hit(one) == [replace(KILLED, alignment="none", point="record-read")]


@pytest.mark.parametrize("sink", ["transactional", "idempotent"])
def test_at_most_once_is_refused_with_a_sink_that_commits(sink: str) -> None:
    with pytest.raises(SubjectFailed, match="at-most-once takes no checkpoints"):
        SimulatedSubject().run(scenario(guarantee="at-most-once", sink=sink))


@pytest.mark.parametrize("drain", [False, True])
def test_at_most_once_refuses_a_stop_with_a_savepoint(drain: bool) -> None:
    stop = StopWithSavepoint(trigger=AtTime(at_us=2_000), drain=drain)
    history = SimulatedSubject().run(scenario(commands=(stop,), guarantee="at-most-once", sink="plain"))
    assert [entry.status for entry in history.journal if isinstance(entry, JobEnded)] == ["finished"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_at_most_once_has_no_record_after_the_end_of_a_partition(cancelled: bool) -> None:
    """Not even in the job that is begun again, where one input is far longer than the other."""
    end = AtPoint(point="end-of-partition-sent")
    commands = (Cancel(trigger=end), Resume(trigger=AtTime(at_us=500))) if cancelled else ()
    one = scenario(
        RaiseInOperator(trigger=end, task="map-1"), commands=commands, guarantee="at-most-once", sink="plain"
    )
    [source] = one.workload.inputs
    uneven = replace(source, splits=(source.splits[0][:2], source.splits[1]))
    one = replace(one, workload=replace(one.workload, inputs=(uneven,)))
    history = SimulatedSubject().run(one)
    assert not any(isinstance(entry, FaultFired) for entry in history.journal)
    assert any(isinstance(entry, JobEnded) for entry in history.journal)


def test_every_rule_forbids_something_and_has_a_reason() -> None:
    blamed = {rule.name for target in all_targets() if (rule := rule_against(target)) is not None}
    assert blamed == {rule.name for rule in RULES}
    assert all(rule.reason for rule in RULES)
    assert len(RULES) <= 6, "few rules, each a fact"


def test_the_rules_speak_of_at_most_once_alone() -> None:
    """With checkpoints, everything can happen everywhere."""
    assert {target.alignment for target in all_targets() if rule_against(target) is not None} == {"none"}
    possible = possible_targets(CAPABILITIES)
    with_barriers = [target for target in possible if target.alignment != "none"]
    both_sinks = 1
    assert len(with_barriers) == (len(MODES) - 1) * len(ENDINGS) * (len(COVERED) * len(COMMON_KINDS) - both_sinks)
    points = len(COVERED) - len(CHECKPOINT_POINTS | TRANSACTION_POINTS)
    kinds = len(set(COMMON_KINDS) - SNAPSHOT_FAULTS - {FAIL_COMMIT})
    raises_at_the_end = 1
    assert len(possible) - len(with_barriers) == 3 * (points * kinds - raises_at_the_end)


def test_a_database_is_killed_under_a_plain_sink_too() -> None:
    """At-most-once has no transactions, but its plain sink may write to the database that dies."""
    killed = CoverageTarget(alignment="none", ending="finished", point="row-written", fault="kill-database")
    assert rule_against(killed) is None
    plain = Capabilities(
        faults=frozenset({"kill-database", "fail-commit"}),
        guarantees=frozenset({"at-most-once"}),
        sinks=frozenset({"plain"}),
    )
    assert killed in possible_targets(plain)
    assert {target.fault for target in possible_targets(plain)} == {"kill-database"}
    tally = CoverageTally()
    tally.add([killed], 1)
    assert tally.contradictions() == []


def test_what_a_subject_cannot_is_not_asked_of_it() -> None:
    modest = Capabilities(faults=frozenset({"kill-task", "fail-commit"}), sinks=frozenset({"plain"}))
    targets = possible_targets(modest)
    assert {target.ending for target in targets} == {"finished", "failed"}
    assert {target.alignment for target in targets} == {"aligned"}
    assert {target.fault for target in targets} == {"kill-task"}
    assert not {target.point for target in targets} & TRANSACTION_POINTS
    able = replace(modest, sinks=frozenset({"transactional"}))
    assert "row-written" not in {target.point for target in possible_targets(able)}


# -- counting up ---------------------------------------------------------------------


def test_a_target_that_is_called_impossible_and_fired_is_reported_in_one_line() -> None:
    tally = CoverageTally()
    tally.add([KILLED, FORBIDDEN], 3)
    assert tally.contradictions() == [
        "coverage: kill-task at ack-sent in a job that finished, without barriers fired, "
        "although a rule calls it impossible: " + RULES[0].reason
    ]
    rows = dict(tally.coverage(CAPABILITIES).table.by_row())
    assert rows["none finished ack-sent"] == {"kill-task": 1}, "it is shown all the same"


def test_the_rows_hold_every_possible_target_and_what_fired() -> None:
    tally = CoverageTally()
    tally.add([KILLED, KILLED], 5)
    coverage = tally.coverage(CAPABILITIES)
    assert (coverage.possible, coverage.hit, coverage.fired, coverage.outside) == (
        len(possible_targets(CAPABILITIES)),
        1,
        2,
        3,
    )
    rows = dict(coverage.table.by_row())
    assert sum(len(fired) for fired in rows.values()) == coverage.possible
    [(row, fired)] = [(row, fired) for row, fired in rows.items() if any(fired.values())]
    assert (row, fired["kill-task"]) == ("aligned finished ack-sent", 2)
    assert list(dict.fromkeys(row.partition(" ")[0] for row in rows)) == list(MODES), "in the order of the axis"
    assert len(tally.empty(CAPABILITIES)) == coverage.possible - 1 + coverage.snapshots.possible
    assert KILLED not in tally.empty(CAPABILITIES)
    assert not tally.contradictions()


def test_every_target_is_possible_impossible_or_not_asked() -> None:
    for capabilities in (CAPABILITIES, replace(CAPABILITIES, guarantees=frozenset({"exactly-once"}))):
        coverage = CoverageTally().coverage(capabilities)
        counted = coverage.possible + sum(rule.cells for rule in coverage.impossible)
        assert counted == sum(1 for _ in all_targets(capabilities.faults))
        assert coverage.impossible[-1].rule == "not asked"


def test_the_order_of_adding_is_nothing() -> None:
    other = replace(KILLED, point="record-read")
    one, two = CoverageTally(), CoverageTally()
    for tally, parts in ((one, ([KILLED], [other, KILLED])), (two, ([other, KILLED], [KILLED]))):
        for targets in parts:
            tally.add(targets, len(targets))
    encode = msgspec.json.encode
    assert encode(one.coverage(CAPABILITIES)) == encode(two.coverage(CAPABILITIES))


# -- the drawing ---------------------------------------------------------------------


def test_the_template_hits_its_targets() -> None:
    """Mostly; and many cells in few scenarios, of every alignment and way of ending."""
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(templates=("cells",), max_records=60, max_faults=6, capabilities=CAPABILITIES))
    found: set[CoverageTarget] = set()
    targeted = 0
    for index in range(80):
        one = draw(4, index)
        found.update(targets_hit(one, subject.run(one)))
        targeted += len(
            {(fault.trigger.point, type(fault)) for fault in one.faults if isinstance(fault.trigger, AtPoint)}
        )
    assert len(found) > 150
    assert len(found) > targeted * 0.85
    assert {target.ending for target in found} == set(ENDINGS)
    assert {target.alignment for target in found} == set(MODES)
    assert {target.point for target in found} == set(COVERED)
    assert {target.fault for target in found} == set(COMMON_KINDS)
