"""Jobs that are resumed with an upgrade: other uids, and the mapping by which their states are found (SNAP-5)."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AtPoint, AtRest, AtTime, KillCoordinator, KillTask
from cutproof.harness.counterexamples.words import command_in_words
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.actions import action_of
from cutproof.harness.scenario.checks import problems_of
from cutproof.harness.scenario.model import Cancel, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from cutproof.harness.scenario.upgrades import is_refused, uids_of
from cutproof.harness.search.stops import stops_of
from cutproof.properties.invariants.judge import judge
from cutproof.properties.invariants.parts.incompatible import unmapped
from cutproof.properties.model.history import AttemptStarted, CommandIssued, History, JobEnded, StoredState
from cutproof.properties.model.upgrade import Upgrade
from cutproof.properties.model.verdict import Holds, Violated
from cutproof.properties.model.workload import Count, Row, Sum
from cutproof.properties.mutations.tampering import UPGRADE_MUTATIONS, tamperings
from cutproof.properties.quick_checker.case import Case
from cutproof.properties.reconstruct.snapshots import decode_state
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import parts_for
from unit.simulated.worlds import counted, job, journal

BEHIND = AtPoint(point="checkpoint-completed", occurrence=3, side="after")
STOP = StopWithSavepoint(trigger=BEHIND, name="last")
RENAMED = {"op0": "total"}
WHOLE = Upgrade(renamed=RENAMED, moves=RENAMED)


def resume(upgrade: Upgrade | None = None, snapshot: str = "newest", **more: object) -> Resume:
    given = {"upgrade": upgrade} if upgrade is not None else {}
    return Resume(trigger=AtTime(at_us=700), snapshot=snapshot, **given, **more)  # type: ignore[arg-type]


def scenario_of(*commands: object, faults: tuple[object, ...] = (), **engine: object) -> Scenario:
    scenario = job(90, Count(), commands=commands, faults=faults, **engine)  # type: ignore[arg-type]
    assert list(problems_of(scenario)) == []
    return scenario


def ran(scenario: Scenario, defect: str | None = None) -> History:
    return Run(scenario, parts_for(defect) if defect else Parts(), False).history()


def violated(scenario: Scenario, history: History) -> list[tuple[str, str]]:
    verdicts = judge(scenario.workload, scenario.topology, history).verdicts
    return [(name, one.difference) for name, one in verdicts.items() if isinstance(one, Violated)]


def statuses(history: History) -> list[str]:
    return [end.status for end in journal(JobEnded, history)]


def goes_on(*commands: object, faults: tuple[object, ...] = (), **engine: object) -> History:
    """The history of jobs that end well in the end: nothing is violated, and each row is there once."""
    scenario = scenario_of(*commands, faults=faults, **engine)
    history = ran(scenario)
    assert violated(scenario, history) == []
    assert isinstance(judge(scenario.workload, scenario.topology, history).verdicts["restored-state"], Holds)
    assert Counter(history.committed) == counted(scenario)
    assert statuses(history)[-1] == "finished"
    return history


@pytest.mark.parametrize("failover", ["full", "region", "local"])
@pytest.mark.parametrize("name", ["source", "op0", "sink"])
def test_who_moves_all_goes_on_without_a_gap_or_a_repeat(name: str, failover: str) -> None:
    other = {name: "other"}
    dies = KillTask(trigger=AtPoint(point="task-running", occurrence=2, task="op0-0"), task="op0-0")
    history = goes_on(STOP, resume(Upgrade(renamed=other, moves=other)), faults=(dies,), failover=failover)
    assert statuses(history) == ["stopped", "finished"]
    assert [start.restores for start in journal(AttemptStarted, history) if start.job == 2][:2] == [4, 4]


@pytest.mark.parametrize(
    "after",
    [Upgrade(moves=RENAMED), WHOLE, Upgrade(renamed={"op0": "op0"})],
    ids=["the move added", "all said again", "the old uid again"],
)
def test_who_lacks_a_move_is_refused_by_name_and_goes_on_once_it_is_there(after: Upgrade) -> None:
    history = goes_on(STOP, resume(Upgrade(renamed=RENAMED)), resume(after))
    assert statuses(history) == ["stopped", "failed", "finished"]
    reason = journal(JobEnded, history)[1].reason
    assert reason == (
        "checkpoint 4 holds the state of op0 under the uid op0, and the job has another: its mapping needs the moves"
        " op0 -> total"
    )


def test_only_a_savepoint_is_restored_under_other_uids() -> None:
    scenario = scenario_of(Cancel(trigger=BEHIND), resume(WHOLE), resume(Upgrade(renamed={"op0": "op0"})))
    history = ran(scenario)
    assert violated(scenario, history) == []
    assert statuses(history) == ["cancelled", "failed", "finished"]
    assert "is no savepoint" in journal(JobEnded, history)[1].reason


def test_a_coordinator_that_takes_over_has_the_mapping() -> None:
    dies = KillCoordinator(trigger=AtPoint(point="task-running", occurrence=5), down_us=2_000)
    history = goes_on(STOP, resume(WHOLE), faults=(dies,))
    assert len({start.attempt for start in journal(AttemptStarted, history) if start.job == 2}) > 1


def test_the_uids_stay_and_an_older_savepoint_needs_its_moves_again() -> None:
    again = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=6))
    early = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
    history = goes_on(early, STOP, resume(WHOLE), again, resume())
    assert statuses(history) == ["stopped", "stopped", "finished"]
    scenario = scenario_of(early, STOP, resume(WHOLE), again, resume(snapshot="early"), resume(WHOLE, "early"))
    history = ran(scenario)
    assert violated(scenario, history) == []
    assert statuses(history) == ["stopped", "stopped", "failed", "finished"]
    assert uids_of(scenario) == ({}, RENAMED, RENAMED, RENAMED)


HUNDREDTHS = Upgrade(retyped={"op0": "hundredths"}, converts={"op0": "whole-to-hundredths"})


def summed(
    *commands: object, faults: tuple[object, ...] = (), defect: str = "", **engine: object
) -> tuple[Scenario, History]:
    scenario = job(90, Sum(), commands=commands, faults=faults, **engine)  # type: ignore[arg-type]
    assert list(problems_of(scenario)) == []
    return scenario, ran(scenario, defect or None)


def totals(scenario: Scenario, up_to: int | None = None) -> list[Row]:
    """The rows of a running sum of the first records, or of all."""
    found: dict[int | None, tuple[int, int]] = {}
    rows: list[Row] = []
    for key, value, tag in scenario.workload.inputs[0].splits[0][:up_to]:
        total, tags = found.get(key, (0, 0))
        found[key] = (total + (value or 0), tags + tag)
        rows.append((key, *found[key], 0))
    return rows


@pytest.mark.parametrize(
    "settings", [{}, {"state_backend": "lsm", "memtable_entries": 1, "snapshot_format": "incremental"}]
)
@pytest.mark.parametrize("others", [{}, {"op0": "total"}])
def test_a_sum_goes_on_in_hundredths(others: dict[str, str], settings: dict[str, object]) -> None:
    upgrade = msgspec.structs.replace(HUNDREDTHS, renamed=others, moves=others)
    scenario, history = summed(STOP, resume(upgrade), **settings)
    assert violated(scenario, history) == []
    assert isinstance(judge(scenario.workload, scenario.topology, history).verdicts["exactly-once"], Holds)
    taken = sum(len(state.positions) and sum(state.positions.values()) for state in [stored_positions(history, 4)])
    rows = totals(scenario)
    expected = rows[:taken] + [(key, total * 100, tags, 0) for key, total, tags, _ in rows[taken:]]
    assert Counter(history.committed) == Counter(expected)


def stored_positions(history: History, checkpoint: int) -> StoredState:
    """The state of the source in a checkpoint."""
    done = next(one for one in history.completed if one.checkpoint == checkpoint)
    text = next(one.state for one in history.stored if one.handle == done.handles["source-0"])
    state = decode_state(text)
    assert state is not None
    return state


def test_a_state_is_converted_once_however_often_it_is_restored() -> None:
    dies = [
        KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=number), task="op0-0") for number in (5, 7)
    ]
    scenario, history = summed(STOP, resume(HUNDREDTHS), faults=tuple(dies))
    assert violated(scenario, history) == []
    assert len([start for start in journal(AttemptStarted, history) if start.job == 2]) == 3
    assert history.committed[-1][1] == totals(scenario)[-1][1] * 100


@pytest.mark.parametrize(("defect", "occurrence"), [("P43", 6), ("P44", 99)])
def test_a_state_that_is_not_converted_once_is_seen(defect: str, occurrence: int) -> None:
    dies = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=occurrence), task="op0-0")
    scenario, history = summed(STOP, resume(HUNDREDTHS), faults=(dies,), defect=defect)
    assert ("restored-state", "loaded state differs") in violated(scenario, history)


@pytest.mark.parametrize(
    "after",
    [Upgrade(converts=HUNDREDTHS.converts), Upgrade(retyped={"op0": "whole"})],
    ids=["the conversion added", "the old type again"],
)
def test_who_lacks_a_conversion_is_refused_by_name(after: Upgrade) -> None:
    scenario, history = summed(STOP, resume(Upgrade(retyped=HUNDREDTHS.retyped)), resume(after))
    assert violated(scenario, history) == []
    assert statuses(history) == ["stopped", "failed", "finished"]
    assert journal(JobEnded, history)[1].reason == (
        "checkpoint 4 holds states of op0 that are of another type than the job's: its mapping needs the conversions"
        " op0: whole-to-hundredths"
    )


def test_nothing_makes_whole_sums_of_hundredths() -> None:
    again = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=6))
    whole = resume(Upgrade(retyped={"op0": "whole"}, converts={"op0": "whole-to-hundredths"}))
    scenario, history = summed(STOP, resume(HUNDREDTHS), again, whole, resume(Upgrade(retyped=HUNDREDTHS.retyped)))
    assert violated(scenario, history) == []
    assert statuses(history) == ["stopped", "stopped", "failed", "finished"]
    assert journal(JobEnded, history)[2].reason.endswith(
        ": nothing converts op0 (hundredths-to-whole), so the job has to keep the type that the snapshot has"
    )


def test_every_retained_snapshot_is_forked_with_the_uids_of_its_job() -> None:
    early = Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="early")
    history = goes_on(early, STOP, resume(WHOLE), Fork(trigger=AtRest()), retained_checkpoints=2)
    assert not isinstance(history.forks, type(None))
    jobs = {one.checkpoint: one.job for one in history.completed}
    assert {jobs[forked.checkpoint] for forked in history.forks} == {1, 2}  # type: ignore[union-attr]
    assert {end.status for forked in history.forks for end in journal(JobEnded, forked.history)[-1:]} == {"finished"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("upgrade", "problem"),
    [
        (Upgrade(renamed={"op9": "x"}), "upgrade.renamed: there is no operator 'op9'"),
        (Upgrade(renamed={"op0": "a/b"}), "upgrade.renamed: 'a/b' cannot be a uid (letters, digits, - and _)"),
        (
            Upgrade(renamed={"op0": "sink"}),
            "upgrade.renamed: op0 cannot have the uid 'sink', which is or was that of sink",
        ),
        (
            Upgrade(renamed={"op0": "x", "sink": "x"}),
            "upgrade.renamed: sink cannot have the uid 'x', which is or was that of op0",
        ),
        (Upgrade(retyped={"op0": "hundredths"}), "upgrade.retyped: 'op0' is no sum, or one that takes rows back"),
        (Upgrade(converts={"op0": "whole-to-hundredths"}), "upgrade.converts: no sum has or had the uid 'op0'"),
        (Upgrade(moves={"op0": "x"}), "upgrade.moves: no operator has or had the uid 'x'"),
        (Upgrade(moves={"op0": "sink"}), "upgrade.moves: 'op0' is a uid of op0, and 'sink' one of sink"),
    ],
)
def test_an_upgrade_that_cannot_be_is_reported_in_a_line(upgrade: Upgrade, problem: str) -> None:
    scenario = job(9, Count(), commands=(STOP, resume(upgrade)))
    assert list(problems_of(scenario)) == [f"command 1 (resume): {problem}"]


@pytest.mark.parametrize("together", [False, True])
def test_a_new_operator_never_has_the_uid_of_another(together: bool) -> None:
    renamed = Upgrade(renamed={"op0": "x"}, moves={"op0": "x"})
    inserts = Resume(trigger=AtTime(at_us=700), inserted={"x": "sink"})
    both = msgspec.structs.replace(inserts, upgrade=renamed)
    commands = (STOP, both) if together else (STOP, resume(renamed), STOP, inserts)
    assert list(problems_of(job(9, Count(), commands=commands))) == [
        f"command {len(commands) - 1} (resume): a new operator cannot have the uid 'x', which is or was that of op0"
    ]


def test_no_operator_is_renamed_to_one_that_was_inserted() -> None:
    inserts = Resume(trigger=AtTime(at_us=700), inserted={"x": "sink"})
    scenario = job(9, Count(), commands=(STOP, inserts, inserts, resume(Upgrade(renamed={"op0": "x"}))))
    assert list(problems_of(scenario)) == [
        "command 3 (resume): upgrade.renamed: op0 cannot have the uid 'x', which is or was that of x"
    ]


def test_an_at_most_once_job_cannot_be_upgraded() -> None:
    scenario = job(9, Count(), commands=(Cancel(trigger=BEHIND), resume(WHOLE)), guarantee="at-most-once", sink="plain")
    assert list(problems_of(scenario)) == [
        "command 1 (resume): an at-most-once job restores no snapshot, so an upgrade has no states to find"
    ]


@pytest.mark.parametrize(
    ("defect", "commands", "found"),
    [
        ("P41", (STOP, resume(Upgrade(renamed=RENAMED)), resume(WHOLE)), "begun though it does not fit"),
        ("P41", (Cancel(trigger=BEHIND), resume(WHOLE)), "begun though it does not fit"),
    ],
)
def test_a_job_that_begins_though_states_are_left_over_is_seen(
    defect: str, commands: tuple[object, ...], found: str
) -> None:
    scenario = scenario_of(*commands)
    assert ("restored-state", found) in violated(scenario, ran(scenario, defect))


def test_who_is_refused_is_notified_of_every_operator() -> None:
    """By an engine that names no causes."""
    both = {"op0": "total", "sink": "out"}
    scenario = scenario_of(STOP, resume(Upgrade(renamed=both)), resume(Upgrade(moves=both)))
    for reason, is_enough in (("op0 and sink are lost", True), ("op0 is lost", False), ("", False)):
        history = ran(scenario)
        ended = journal(JobEnded, history)[1]
        ended.reason, ended.cause = reason, None
        assert (violated(scenario, history) == []) is is_enough


def test_a_job_that_needed_no_move_has_no_excuse_for_its_failure() -> None:
    scenario = scenario_of(STOP, resume(Upgrade(renamed=RENAMED)), resume(WHOLE))
    history = ran(scenario)
    issued = [one for one in journal(CommandIssued, history) if one.kind == "resume"]
    issued[0].upgrade = WHOLE
    assert ("progress", "job failed") in violated(scenario, history)
    assert unmapped(Case(scenario.workload, scenario.topology, history), 2, 4) == ()


def test_a_history_whose_mapping_lost_a_move_is_refused() -> None:
    scenario = scenario_of(STOP, resume(WHOLE))
    case = Case(scenario.workload, scenario.topology, ran(scenario))
    (tampered,) = [one for one in tamperings(case) if one.name in UPGRADE_MUTATIONS]
    assert "restored-state" in judge(scenario.workload, scenario.topology, tampered.apply(case.history)).violated


def test_what_is_planned_and_what_came_of_it_are_counted() -> None:
    refused, whole = resume(Upgrade(renamed=RENAMED)), resume(WHOLE)
    assert [is_refused(one, job().workload) for one in (refused, whole, resume())] == [True, False, False]
    assert [action_of(one) for one in (whole, resume())] == ["resume upgraded", "resume newest"]
    scenario = scenario_of(STOP, refused, whole)
    found = {stop.kind: stop.finished for stop in stops_of(scenario, ran(scenario))}
    assert found == {"stop": True, "unfit-resume": True, "resume": True, "natural-end": True}
    assert (
        command_in_words(whole) == "the job is started again; op0 has the uid total, and the mapping moves op0 to total"
    )
    assert command_in_words(refused) == "the job is started again; op0 has the uid total, and the mapping moves nothing"
