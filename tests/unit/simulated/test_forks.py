"""Jobs that are forked from retained snapshots, or resumed from another one than the newest."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime, KillCoordinator, KillTask
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.properties.invariants import restorable as restorable_check
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Forked,
    History,
    JobEnded,
    TaskFailed,
)
from cutproof.properties.model.verdict import Holds, Reason, Unknown, Violated
from cutproof.properties.model.workload import Count
from cutproof.properties.mutations.tampering import FORK_MUTATIONS, tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import counted, job, journal, run

EARLY = Savepoint(trigger=AtTime(at_us=1_000), name="early")
AT_REST = Fork(trigger=AtRest())


def forks(history: History) -> list[Forked]:
    assert isinstance(history.forks, list)
    return history.forks


def forked(*commands: object, records: int = 60, **engine: object) -> tuple[Scenario, History]:
    scenario = job(records, Count(), commands=commands, retained_checkpoints=2, trims_logs=True, **engine)  # type: ignore[arg-type]
    return scenario, run(scenario)


def restorable(scenario: Scenario, history: History) -> object:
    return judge(scenario.workload, scenario.topology, history).verdicts["restorable"]


def test_every_retained_snapshot_is_forked_and_yields_what_is_owed() -> None:
    scenario, history = forked(EARLY, AT_REST)
    early = journal(CommandReturned, history)[0].checkpoint
    assert [one.checkpoint for one in forks(history)] == history.residue.retained
    assert early in history.residue.retained
    for one in forks(history):
        assert Counter(one.history.committed) == counted(scenario)
        assert journal(AttemptStarted, one.history)[-1].restores == one.checkpoint
        assert journal(JobEnded, one.history)[-1].status == "finished"
    assert restorable(scenario, history) == Holds(exercised=len(forks(history)))


@pytest.mark.parametrize("reason", ["not observable", "assumption broken", "checker failed"])
@pytest.mark.parametrize("name", restorable_check.OF_A_FORK)
def test_a_fork_that_cannot_be_judged_is_no_proof(monkeypatch: pytest.MonkeyPatch, name: str, reason: str) -> None:
    scenario, history = forked(EARLY, AT_REST)
    unjudged = Unknown(reason=reason, detail="why")
    monkeypatch.setitem(restorable_check.OF_A_FORK, name, lambda fork: unjudged)
    assert restorable(scenario, history) == unjudged


def test_a_fork_of_which_nothing_was_compared_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, history = forked(Fork(trigger=AtRest(), snapshot="newest"))
    for name in restorable_check.OF_A_FORK:
        monkeypatch.setitem(
            restorable_check.OF_A_FORK, name, lambda fork: Unknown(reason=Reason.NOT_PROMISED, detail="plain sink")
        )
    verdict = restorable(scenario, history)
    assert isinstance(verdict, Unknown)
    assert (verdict.reason, "nothing behind checkpoint" in verdict.detail) == ("not exercised", True)


def test_a_fork_reads_again_what_lies_behind_its_snapshot() -> None:
    _, history = forked(EARLY, AT_REST)
    first, *_, last = forks(history)

    def reads(one: Forked) -> int:
        attempt = journal(AttemptStarted, one.history)[-1].attempt
        return sum(len(run.reads) for run in one.history.runs if run.attempt == attempt)

    assert reads(first) > 30
    assert reads(last) == 0


def test_a_fork_leaves_the_job_as_it_is() -> None:
    scenario, history = forked(EARLY, AT_REST, Fork(trigger=AtTime(at_us=5_000)))
    alone = run(msgspec.structs.replace(scenario, commands=(EARLY,)))
    assert len(forks(history)) > len(history.residue.retained)
    assert msgspec.structs.replace(history, forks=msgspec.UNSET) == alone


def test_the_same_snapshot_is_forked_twice_at_other_parallelisms() -> None:
    widths = [{"source": 1, "op0": 3, "sink": 3}, {"source": 2, "op0": 1, "sink": 1}]
    commands = [Fork(trigger=AtRest(), snapshot="early", parallelism=one) for one in widths]
    scenario, history = forked(EARLY, *commands, splits=2, width=2)
    one, other = forks(history)
    assert one.checkpoint == other.checkpoint
    for wide, fork in zip(widths, (one, other), strict=True):
        attempt = journal(AttemptStarted, fork.history)[-1].attempt
        tasks = [run.operator for run in fork.history.runs if run.attempt == attempt]
        assert Counter(tasks) == wide
        assert Counter(fork.history.committed) == counted(scenario)
    assert restorable(scenario, history) == Holds(exercised=2)


def test_a_fork_amid_the_records_has_what_was_durable_by_then() -> None:
    scenario, history = forked(Fork(trigger=AtTime(at_us=5_000), snapshot="newest"))
    (one,) = forks(history)
    assert one.at_us == 5_000
    assert one.checkpoint == max(entry.checkpoint for entry in history.completed if entry.at_us <= 5_000)
    assert one.checkpoint == max(one.retained)
    assert Counter(one.history.committed) == counted(scenario)


@pytest.mark.parametrize("sink", ["transactional", "idempotent", "plain"])
def test_a_fork_has_its_own_sink(sink: str) -> None:
    scenario, history = forked(EARLY, AT_REST, sink=sink)
    one = forks(history)[0]
    seen, owed = Counter(one.history.committed), counted(scenario)
    if sink == "idempotent":
        assert len(one.history.committed) == 3
    else:
        assert seen == owed
    assert isinstance(restorable(scenario, history), Holds)


def test_snapshots_in_the_coordinators_memory_are_forked_too() -> None:
    scenario, history = forked(EARLY, AT_REST, snapshot_store="memory")
    assert forks(history)
    assert isinstance(restorable(scenario, history), Holds)


def test_a_fork_before_any_snapshot_is_not_applied() -> None:
    scenario, history = forked(Fork(trigger=AtTime(at_us=10)))
    assert history.unapplied == ["command 0: fork"]
    found = restorable(scenario, history)
    assert isinstance(found, Unknown)
    assert found.reason == "not exercised"


def test_logs_that_were_trimmed_too_early_are_named() -> None:
    scenario = job(60, Count(), commands=(EARLY, AT_REST), retained_checkpoints=2, trims_logs=True)
    history = SimulatedSubject("P11").run(scenario)
    assert history.defect_reached
    found = restorable(scenario, history)
    assert isinstance(found, Violated)
    assert found.difference == "not restored"
    assert "split 0" in found.message, "the error names the split whose log begins too late"
    assert set(judge(scenario.workload, scenario.topology, history).violated) == {"restorable"}


def test_a_missing_file_is_named() -> None:
    scenario = job(60, Count(), commands=(EARLY, AT_REST), retained_checkpoints=2)
    made = Run(scenario, Parts(), False)
    made.world.run()
    missing = next(handle for handle in made.world.files.files if handle.endswith("op0-0-1"))
    del made.world.files.files[missing]
    made._fork_at_rest()
    failed = [entry.reason for one in made.forks.run() for entry in journal(TaskFailed, one.history)]
    assert failed
    assert all(f"{missing} is not in the store" in reason for reason in failed)


@pytest.mark.parametrize("mutation", FORK_MUTATIONS)
def test_lies_about_a_fork_are_seen(mutation: str) -> None:
    scenario, history = forked(EARLY, AT_REST)
    case = Case(scenario.workload, scenario.topology, history)
    (tampered,) = [one for one in tamperings(case) if one.name == mutation]
    assert isinstance(restorable(scenario, tampered.apply(history)), Violated)


# -- a job that is resumed from another snapshot -----------------------------------------------------------------

CANCEL = Cancel(trigger=AtTime(at_us=7_000))
STOP = StopWithSavepoint(trigger=AtTime(at_us=7_000), name="last")


def resumed(snapshot: str, *faults: object, parts: Parts | None = None) -> tuple[Scenario, History]:
    again = Resume(trigger=AtTime(at_us=700), snapshot=snapshot)
    scenario = job(60, Count(), commands=(EARLY, STOP, again), retained_checkpoints=2, trims_logs=True, faults=faults)
    return scenario, Run(scenario, parts or Parts(), False).history()


@pytest.mark.parametrize("snapshot", ["newest", "oldest", "early", "last"])
def test_a_job_is_resumed_from_the_snapshot_that_its_user_names(snapshot: str) -> None:
    scenario, history = resumed(snapshot)
    early, last = (one.checkpoint for one in journal(CommandReturned, history)[:2])
    expected = early if snapshot in ("oldest", "early") else last
    asked = journal(CommandIssued, history)[-1]
    assert asked.checkpoint == (None if snapshot == "newest" else expected)
    assert journal(AttemptStarted, history)[-1].restores == expected
    assert judge(scenario.workload, scenario.topology, history).violated == {}
    repeated = Counter(history.committed) - counted(scenario)
    assert bool(repeated) is (expected == early), "its user asked for the rows behind the older snapshot again"
    assert not counted(scenario) - Counter(history.committed)


def test_a_failure_before_its_own_first_checkpoint_restores_the_named_snapshot_again() -> None:
    dies = KillTask(trigger=AtPoint(point="state-loaded", task="op0-0"), task="op0-0")
    scenario, history = resumed("early", dies)
    assert [entry.restores for entry in journal(AttemptStarted, history)] == [None, 1, 1]
    assert judge(scenario.workload, scenario.topology, history).violated == {}


def test_so_does_another_coordinator() -> None:
    dies = KillCoordinator(trigger=AtPoint(point="state-loaded", task="op0-0"))
    scenario, history = resumed("early", dies)
    assert [entry.restores for entry in journal(AttemptStarted, history)] == [None, 1, 1]
    assert judge(scenario.workload, scenario.topology, history).violated == {}


def test_a_newer_snapshot_that_was_passed_over_is_not_restored() -> None:
    dies = KillTask(trigger=AtPoint(point="state-loaded", task="op0-0"), task="op0-0")
    scenario, history = resumed("early", dies, parts=parts_for("P12"))
    assert "restored-state" in judge(scenario.workload, scenario.topology, history).violated


def test_a_savepoint_that_was_not_taken_cannot_be_resumed_from() -> None:
    again = Resume(trigger=AtTime(at_us=700), snapshot="early")
    late = Savepoint(trigger=AtTime(at_us=900_000), name="early")
    _, history = forked(late, CANCEL, again)
    assert "resume" in history.unapplied
    assert len(journal(JobEnded, history)) == 1
