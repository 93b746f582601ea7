"""Jobs that claim the snapshot from which they are resumed, or leave it to its user."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime, KillCoordinator
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import CommandIssued, CommandReturned, Completed, History
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count
from cutproof.properties.mutations.claims import CLAIM_MUTATIONS
from cutproof.properties.mutations.tampering import tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import counted, job, journal


def behind(occurrence: int) -> AtPoint:
    return AtPoint(point="checkpoint-completed", occurrence=occurrence, side="after")


CANCEL = Cancel(trigger=behind(3))
STOP = StopWithSavepoint(trigger=behind(3), name="last", format="incremental")


def resume(claim_mode: str, snapshot: str = "newest") -> Resume:
    return Resume(trigger=AtTime(at_us=700), snapshot=snapshot, claim_mode=claim_mode)


def _run(
    *commands: object, faults: tuple[object, ...] = (), defect: str | None = None, **engine: object
) -> tuple[Scenario, History]:
    settings = {"snapshot_format": "incremental", "full_every": 16, **engine}
    scenario = job(90, Count(), commands=commands, faults=faults, **settings)  # type: ignore[arg-type]
    return scenario, Run(scenario, parts_for(defect) if defect else Parts(), False).history()


def violated(scenario: Scenario, history: History) -> list[tuple[str, str]]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return [(name, one.difference) for name, one in verdicts.items() if isinstance(one, Violated)]


def resumed(*commands: object, faults: tuple[object, ...] = (), **engine: object) -> History:
    """The history of jobs in which nothing is violated, and each row is there once."""
    scenario, history = _run(*commands, faults=faults, **engine)
    assert violated(scenario, history) == []
    assert Counter(history.committed) == counted(scenario)
    return history


def begun_from(history: History) -> Completed:
    """The snapshot with which the last job began."""
    number = [one.command for one in journal(CommandIssued, history) if one.kind == "resume"][-1]
    (taken,) = [one.checkpoint for one in journal(CommandReturned, history) if one.command == number]
    return next(one for one in history.completed if one.checkpoint == taken)


def needed_by_others(history: History, snapshot: Completed) -> set[str]:
    """The files of a snapshot that those need which completed after it."""
    names = {one.handle: {one.handle, *(name for name, _, _ in one.files)} for one in history.stored}
    own = set().union(*(names[handle] for handle in snapshot.handles.values()))
    later = [one for one in history.completed if one.order > snapshot.order]
    return own.intersection(*[set().union(*(names[handle] for one in later for handle in one.handles.values()))])


@pytest.mark.parametrize(
    ("stop", "claim_mode", "stays"),
    [
        (CANCEL, "by-kind", False),
        (CANCEL, "claim", False),
        (CANCEL, "no-claim", True),
        (STOP, "by-kind", True),
        (STOP, "claim", False),
        (STOP, "no-claim", True),
    ],
)
def test_whose_a_snapshot_is_decides_whether_it_stays(stop: object, claim_mode: str, stays: bool) -> None:
    history = resumed(stop, resume(claim_mode))
    assert (begun_from(history).checkpoint in history.residue.retained) is stays


@pytest.mark.parametrize("stop", [CANCEL, STOP])
@pytest.mark.parametrize(("claim_mode", "builds"), [("by-kind", False), ("claim", True), ("no-claim", False)])
def test_only_a_claimed_snapshot_is_built_on(stop: object, claim_mode: str, builds: bool) -> None:
    history = resumed(stop, resume(claim_mode))
    assert bool(needed_by_others(history, begun_from(history))) is builds


def test_the_files_of_a_claimed_snapshot_stay_while_a_later_one_needs_them() -> None:
    history = resumed(STOP, resume("claim"))
    assert history.residue.retained
    assert needed_by_others(history, begun_from(history)) <= set(history.residue.files)


@pytest.mark.parametrize(("claim_mode", "stays"), [("claim", False), ("no-claim", True)])
def test_a_coordinator_that_takes_over_knows_whose_it_is(claim_mode: str, stays: bool) -> None:
    dies = KillCoordinator(trigger=AtPoint(point="checkpoint-triggered", occurrence=5, side="after"), down_us=300)
    history = resumed(STOP if claim_mode == "claim" else CANCEL, resume(claim_mode), faults=(dies,))
    assert not history.unapplied
    assert (begun_from(history).checkpoint in history.residue.retained) is stays


@pytest.mark.parametrize(("claim_mode", "stays"), [("claim", False), ("no-claim", True)])
def test_the_job_after_the_next_knows_it_too(claim_mode: str, stays: bool) -> None:
    early = Savepoint(trigger=AtTime(at_us=1_000), name="early")
    first = Cancel(trigger=behind(2))
    second = Cancel(trigger=behind(3))
    commands = (early, first, resume(claim_mode, "early"), second, resume("by-kind"))
    _, history = _run(*commands)
    taken = journal(CommandReturned, history)[0].checkpoint
    assert (taken in history.residue.retained) is stays


def test_the_last_word_counts() -> None:
    early = Savepoint(trigger=AtTime(at_us=1_000), name="early")
    stops = (Cancel(trigger=behind(2)), Cancel(trigger=AtPoint(point="task-running", occurrence=6, side="after")))
    scenario, history = _run(early, *stops, resume("claim", "early"), resume("no-claim", "early"))
    taken = journal(CommandReturned, history)[0].checkpoint
    assert [one.claimed for one in journal(CommandIssued, history) if one.kind == "resume"] == [True, False]
    assert taken in history.residue.retained
    assert violated(scenario, history) == []


@pytest.mark.parametrize("claim_mode", ["claim", "no-claim"])
@pytest.mark.parametrize("stop", [CANCEL, STOP])
def test_every_retained_snapshot_can_be_forked(stop: object, claim_mode: str) -> None:
    amid = Fork(trigger=behind(2))
    scenario, history = _run(stop, resume(claim_mode), amid, Fork(trigger=AtRest()), retained_checkpoints=2)
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    assert violated(scenario, history) == []
    assert isinstance(verdicts["restorable"], Holds)


def test_a_claim_needs_a_mode_that_there_is_and_snapshots() -> None:
    unknown = job(9, Count(), commands=(CANCEL, resume("copy")))
    assert list(problems_of(unknown)) == [
        "command 1 (resume): claim_mode is 'copy'; it can be by-kind, claim, no-claim"
    ]
    without = job(9, Count(), commands=(CANCEL, resume("claim")), guarantee="at-most-once", sink="plain")
    assert list(problems_of(without)) == [
        "command 1 (resume): claim_mode claim: an at-most-once job restores no snapshot, and has nothing to claim"
    ]


# -- defects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defect", "stop", "claim_mode", "found"),
    [
        ("P25", STOP, "no-claim", ("restored-state", "file of an unclaimed snapshot")),
        ("P25", CANCEL, "no-claim", ("restored-state", "file of an unclaimed snapshot")),
        ("P26", STOP, "claim", ("no-leaks", "snapshot left")),
        ("P27", CANCEL, "no-claim", ("restored-state", "file missing")),
    ],
)
def test_a_job_that_mistakes_whose_a_snapshot_is(
    defect: str, stop: object, claim_mode: str, found: tuple[str, str]
) -> None:
    assert found in violated(*_run(stop, resume(claim_mode), defect=defect))


# -- lies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mutation", CLAIM_MUTATIONS)
def test_lies_about_a_claim_are_seen(mutation: str) -> None:
    scenario, history = _run(STOP, resume("claim" if mutation == "retain what was claimed" else "no-claim"))
    case = Case(scenario.workload, scenario.topology, history)
    (tampered,) = [one for one in tamperings(case) if one.name == mutation]
    verdicts = judge(scenario.workload, scenario.topology, tampered.apply(history)).verdicts
    assert all(isinstance(verdicts[name], Violated) for name in tampered.invariants)
