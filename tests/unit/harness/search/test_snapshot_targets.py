"""Snapshot targets: a run hits one only if it really did all four of its parts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from cutproof.faults.plan import (
    COMMON_KINDS,
    AnyFault,
    AtPoint,
    AtRest,
    AtTime,
    FailWrite,
    KillCoordinator,
    KillTask,
    TearWrite,
)
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.actions import ACTIONS
from cutproof.harness.scenario.checks import SNAPSHOT_FORMATS, STATE_BACKENDS
from cutproof.harness.scenario.model import (
    AnyCommand,
    Cancel,
    DeleteSnapshot,
    Engine,
    Fork,
    MoveSnapshot,
    Resume,
    Savepoint,
    Scenario,
    StopWithSavepoint,
)
from cutproof.harness.search.coverage import CoverageTally, in_a_table, in_words, targets_by_words
from cutproof.harness.search.fault_cells import DEATHS, FAULT_CELLS, OF_COPIES, OF_DELETIONS, cells_of
from cutproof.harness.search.snapshot_targets import (
    SNAPSHOT_RULES,
    SnapshotTarget,
    all_snapshot_targets,
    keeps_state,
    possible_snapshot_targets,
    snapshot_rule_against,
    snapshot_targets_hit,
)
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import (
    AttemptRunning,
    CommandIssued,
    CommandReturned,
    FaultFired,
    History,
    JobEnded,
)
from unit.harness.scenarios import chain

replace = msgspec.structs.replace

CAPABILITIES = SimulatedSubject().capabilities
EARLY = KillTask(trigger=AtPoint(point="record-applied", occurrence=3), task="count-0")
KILLED = SnapshotTarget(format="native", backend="lsm", action="none", fault="kill-task")


def at(us: int) -> AtTime:
    return AtTime(at_us=us)


def scenario(*commands: AnyCommand, faults: tuple[AnyFault, ...] = (EARLY,), **engine: object) -> Scenario:
    settings: dict[str, object] = {"snapshot_format": "native", "state_backend": "lsm", "checkpoint_interval_us": 800}
    one = replace(chain(80), faults=faults, commands=commands, deviations=())
    return replace(one, engine=Engine(**{"retained_checkpoints": 3, **settings, **engine}))  # type: ignore[arg-type]


def hit(one: Scenario) -> tuple[SnapshotTarget, ...]:
    return snapshot_targets_hit(one, run(one))


def run(one: Scenario) -> History:
    return SimulatedSubject().run(one)


def actions(targets: Iterable[SnapshotTarget]) -> dict[str, list[str]]:
    """The formats by action."""
    found: dict[str, list[str]] = {}
    for target in targets:
        found.setdefault(target.action, []).append(target.format)
    return found


def test_a_fault_without_a_command_counts_for_the_format_and_the_backend_of_the_job() -> None:
    assert hit(scenario()) == (KILLED,)
    assert hit(scenario(state_backend="heap")) == (replace(KILLED, backend="heap"),)
    assert hit(scenario(snapshot_format="incremental")) == (replace(KILLED, format="incremental"),)


def test_without_a_fault_or_a_complete_snapshot_nothing_is_hit() -> None:
    assert hit(scenario(faults=())) == ()
    assert hit(scenario(checkpoint_interval_us=900_000, checkpoints_after_finish=False)) != (), "the final checkpoint"
    history = run(scenario())
    assert snapshot_targets_hit(scenario(), replace(history, completed=[])) == ()


def test_without_state_by_key_there_is_no_backend() -> None:
    one = scenario()
    assert keeps_state(one.workload)
    stateless = replace(one, workload=replace(one.workload, nodes=()))
    assert not keeps_state(stateless.workload)
    assert snapshot_targets_hit(stateless, run(one)) == ()


def test_the_format_is_that_of_the_snapshot_that_the_command_took() -> None:
    save = Savepoint(trigger=at(6_000), format="canonical")
    assert actions(hit(scenario(save))) == {"savepoint": ["canonical"]}
    assert actions(hit(scenario(Savepoint(trigger=at(6_000))))) == {"savepoint": ["native"]}
    stop = StopWithSavepoint(trigger=at(7_000), format="incremental")
    assert actions(hit(scenario(stop))) == {"stop": ["incremental"]}
    assert actions(hit(scenario(replace(stop, drain=True)))) == {"drain": ["incremental"]}


def test_a_resume_has_the_format_of_what_it_restored_and_concerns_both_jobs() -> None:
    stop = StopWithSavepoint(trigger=at(7_000), format="canonical", name="mine")
    again = Resume(trigger=at(1_000))
    assert actions(hit(scenario(stop, again))) == {"stop": ["canonical"], "resume newest": ["canonical"]}
    oldest, named = replace(again, snapshot="oldest"), replace(again, snapshot="mine")
    assert actions(hit(scenario(stop, oldest)))["resume oldest"] == ["native"], "a checkpoint"
    assert actions(hit(scenario(stop, named)))["resume named"] == ["canonical"]
    late = KillTask(trigger=AtPoint(point="state-loaded"), task="count-0")
    found = hit(scenario(stop, named, faults=(late,)))
    assert [one.action for one in found] == ["resume named"], "it fired only in the job behind"


def test_a_job_that_was_resumed_and_never_ran_hits_nothing() -> None:
    one = scenario(StopWithSavepoint(trigger=at(7_000)), Resume(trigger=at(1_000)))
    history = run(one)
    ended = next(number for number, entry in enumerate(history.journal) if isinstance(entry, JobEnded))
    behind = [entry for entry in history.journal[ended:] if not isinstance(entry, AttemptRunning)]
    cut = replace(history, journal=[*history.journal[:ended], *behind])
    assert "resume newest" in actions(snapshot_targets_hit(one, history))
    assert "resume newest" not in actions(snapshot_targets_hit(one, cut))


def test_a_cancel_is_about_every_snapshot_of_its_job() -> None:
    save = Savepoint(trigger=at(5_000), format="canonical")
    found = actions(hit(scenario(save, Cancel(trigger=at(8_000)))))
    assert found["cancel"] == ["canonical", "native"]


def test_a_deletion_has_the_format_of_what_it_deleted() -> None:
    save = Savepoint(trigger=at(4_000), format="canonical", name="unwanted")
    wish = DeleteSnapshot(trigger=at(9_000), snapshot="unwanted")
    assert actions(hit(scenario(save, wish)))["delete-snapshot"] == ["canonical"]
    oldest = DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=3))
    assert actions(hit(scenario(oldest))) == {"delete-snapshot": ["native"]}


def test_a_fork_has_the_format_of_what_it_restored_and_needs_a_fault_in_the_job_before_it() -> None:
    fork = Fork(trigger=AtRest())
    assert actions(hit(scenario(fork))) == {"fork": ["native"]}
    assert hit(scenario(fork, faults=())) == ()


def test_a_resume_and_a_fork_are_rescaled_if_their_parallelism_is_another_one_than_that_of_the_job_before() -> None:
    one = scenario(StopWithSavepoint(trigger=at(7_000)), Resume(trigger=at(1_000)), Fork(trigger=AtRest()))
    width = one.topology.parallelism["count"]

    def begun(resumed: int, forked: int) -> set[str]:
        stop, resume, fork = one.commands
        resume = replace(resume, parallelism={"count": resumed})
        found = actions(hit(replace(one, commands=(stop, resume, replace(fork, parallelism={"count": forked})))))
        return {action for action in found if action != "stop"}

    assert begun(width, width) == {"resume newest", "fork"}
    assert begun(width + 1, width) == {"resume rescaled", "fork"}, "the faults are in the first job, and it was forked"
    assert begun(width, width + 1) == {"resume newest", "fork rescaled"}


def test_a_command_that_was_refused_was_not_carried_out() -> None:
    one = scenario(Savepoint(trigger=at(6_000), format="canonical"))
    history = run(one)
    refused = [
        replace(entry, error="no", checkpoint=None) if isinstance(entry, CommandReturned) else entry
        for entry in history.journal
    ]
    found = actions(snapshot_targets_hit(one, replace(history, journal=refused)))
    assert found == {"none": ["native"]}, "nor is the format of a savepoint known that had no answer"


# -- faults on files, on copies and on deletions ---------------------------------------


BEHIND = {number: AtPoint(point="checkpoint-completed", occurrence=number, side="after") for number in (2, 4)}


@pytest.mark.parametrize(
    ("fault", "cells"),
    [
        (FailWrite(trigger=at(1), task="count-0"), ("fail-write",)),
        (FailWrite(trigger=at(1), task=None, what="delete-record"), ("fail-write:delete-record",)),
        (TearWrite(trigger=at(1), task="count-0"), ("tear-write",)),
        (TearWrite(trigger=at(1), task="count-0", how="lost-link"), ("tear-write:lost-link",)),
        (KillCoordinator(trigger=at(1)), ("kill-coordinator",)),
        (KillCoordinator(trigger=AtPoint(point="ack-received")), ("kill-coordinator",)),
        (
            KillCoordinator(trigger=AtPoint(point="file-copied", side="before")),
            ("kill-coordinator", "kill-coordinator:before-file-copied"),
        ),
        (
            KillCoordinator(trigger=AtPoint(point="snapshot-deleted")),
            ("kill-coordinator", "kill-coordinator:after-snapshot-deleted"),
        ),
        (KillTask(trigger=AtPoint(point="file-copied"), task="count-0"), ("kill-task",)),
    ],
)
def test_a_fault_counts_in_the_cells_of_its_mode_and_of_the_point_of_a_copy_or_a_deletion(
    fault: AnyFault, cells: tuple[str, ...]
) -> None:
    assert cells_of(fault) == cells
    assert set(cells) <= set(FAULT_CELLS)


@pytest.mark.parametrize("struck", [cell for cell in FAULT_CELLS if cell in OF_COPIES])
def test_a_copy_that_was_struck_and_made_again_hits_its_cell(struck: str) -> None:
    kind, _, mode = struck.partition(":")
    side, _, point = mode.partition("-")
    armed = AtPoint(point="checkpoint-completed")
    fault: AnyFault = {
        "fail-write": lambda: FailWrite(trigger=armed, task=None, what=mode),
        "tear-write": lambda: TearWrite(trigger=armed, task=None, how=mode),
        "kill-coordinator": lambda: KillCoordinator(trigger=AtPoint(point=point, side=side), down_us=300),  # type: ignore[arg-type]
    }[kind]()
    wish = MoveSnapshot(trigger=BEHIND[2], snapshot="newest")
    once = hit(scenario(wish, faults=(fault,)))
    assert [one for one in once if one.action == "move-snapshot"] == [], "it was not carried out"
    twice = hit(scenario(wish, replace(wish, trigger=BEHIND[4]), faults=(fault,)))
    assert {one.fault for one in twice} == set(cells_of(fault))
    assert {(one.action, one.format) for one in twice} == {("move-snapshot", "native")}


@pytest.mark.parametrize("struck", [cell for cell in FAULT_CELLS if cell in OF_DELETIONS])
@pytest.mark.parametrize("kind", [DeleteSnapshot, MoveSnapshot])
def test_a_deletion_that_was_struck_and_made_again_hits_its_cell(
    kind: type[DeleteSnapshot | MoveSnapshot], struck: str
) -> None:
    fault = KillCoordinator(trigger=DEATHS[struck], down_us=300)
    wish = kind(trigger=BEHIND[2], snapshot="oldest")
    action = str(kind.__struct_config__.tag)
    once = hit(scenario(wish, faults=(fault,)))
    assert [one for one in once if one.action == action] == [], "it was not carried out"
    twice = hit(scenario(wish, replace(wish, trigger=BEHIND[4]), faults=(fault,)))
    assert {one.fault for one in twice} == set(cells_of(fault))
    assert {(one.action, one.format) for one in twice} == {(action, "native")}


@pytest.mark.parametrize("struck", [cell for cell in FAULT_CELLS if cell in OF_DELETIONS])
def test_a_coordinator_that_dies_while_it_deletes_what_is_subsumed_strikes_no_command(struck: str) -> None:
    dies = KillCoordinator(trigger=DEATHS[struck], down_us=300)
    wish = DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=4, side="after"), snapshot="oldest")
    one = scenario(wish, faults=(dies,), retained_checkpoints=2)
    history = run(one)
    deleted = next(entry.order for entry in history.journal if isinstance(entry, CommandIssued))
    assert next(entry.order for entry in history.journal if isinstance(entry, FaultFired)) < deleted
    found = snapshot_targets_hit(one, history)
    assert {(target.action, target.fault) for target in found} == {("delete-snapshot", "kill-coordinator")}


@pytest.mark.parametrize("struck", [cell for cell in FAULT_CELLS if cell in OF_DELETIONS])
def test_a_deletion_that_waits_meanwhile_is_not_struck_either(struck: str) -> None:
    """In real time a command may be on its way while the coordinator deletes something else."""
    dies = KillCoordinator(trigger=DEATHS[struck], down_us=300)
    wish = DeleteSnapshot(trigger=AtPoint(point="checkpoint-completed", occurrence=4, side="after"), snapshot="oldest")
    one = scenario(wish, replace(wish, snapshot="newest"), faults=(dies,), retained_checkpoints=2)
    history = run(one)
    up = next(place for place, entry in enumerate(history.journal) if isinstance(entry, AttemptRunning))
    issued = CommandIssued(order=0, at_us=0, command=1, kind="delete-snapshot", checkpoint=2)
    waiting = replace(history, journal=[*history.journal[: up + 1], issued, *history.journal[up + 1 :]])
    assert [target.fault for target in snapshot_targets_hit(one, waiting)] == ["kill-coordinator"]


# -- what is possible ----------------------------------------------------------------


def test_the_simulated_engine_can_hit_every_combination() -> None:
    """Of faults on files, copies and deletions too: three modes with any action, seven cells with a copy, four with a
    deletion, and thirteen with a move, which does both and alone marks a record."""
    possible = possible_snapshot_targets(CAPABILITIES)
    by_row = len(ACTIONS) * (len(COMMON_KINDS) + 3) + 7 + 4 + 13
    assert len(possible) == len(SNAPSHOT_FORMATS) * len(STATE_BACKENDS) * by_row
    assert len(set(possible)) == len(possible)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("no snapshots", {"guarantees": frozenset({"at-most-once"}), "sinks": frozenset({"plain"})}),
        ("no state by key", {"operators": frozenset({"map", "filter"})}),
        ("unknown format", {"snapshot_formats": frozenset({"canonical"})}),
        ("unknown backend", {"state_backends": frozenset({"heap"})}),
        ("unknown command", {"commands": CAPABILITIES.commands - {"fork"}}),
        ("no end to resume from", {"commands": frozenset({"savepoint", "resume"})}),
        ("no choice of a snapshot", {"resumes_older": False}),
        ("no choice of a snapshot", {"commands": frozenset({"cancel", "resume"})}),
        ("no claims", {"claims_snapshots": False}),
        ("no rescaling", {"rescales": False}),
        ("no other operators", {"changes_operators": False}),
        ("no other operators", {"operators": frozenset({"join", "map"})}),
        ("no other operators", {"sinks": frozenset({"idempotent"})}),
        ("no commits", {"sinks": frozenset({"plain"})}),
        ("no file faults", {"file_faults": False}),
        ("no copy", {}),
        ("no deletion", {}),
        ("no mark", {}),
    ],
)
def test_each_rule_excludes_what_a_subject_cannot_do(rule: str, changes: dict[str, object]) -> None:
    modest = replace(CAPABILITIES, **changes)  # type: ignore[arg-type]
    blamed = {
        found.name
        for target in all_snapshot_targets(modest.faults)
        if (found := snapshot_rule_against(target, modest)) is not None
    }
    assert rule in blamed
    rest = set(all_snapshot_targets(modest.faults)) - set(possible_snapshot_targets(modest))
    counted = CoverageTally().coverage(modest).snapshots.impossible
    assert sum(one.cells for one in counted) == len(rest) > 0
    assert rule in {one.rule for one in counted}


def test_every_rule_has_a_reason_and_a_subject_without_abilities_is_asked_for_nothing() -> None:
    assert all(rule.reason for rule in SNAPSHOT_RULES)
    assert len({rule.name for rule in SNAPSHOT_RULES}) == len(SNAPSHOT_RULES)
    assert possible_snapshot_targets(Capabilities(faults=frozenset({"kill-task"}))) == ()


# -- counting up ---------------------------------------------------------------------


def test_the_tally_counts_them_beside_the_others() -> None:
    one, two = CoverageTally(), CoverageTally()
    one.add([], 2, [KILLED])
    two.add([], 1, [KILLED, replace(KILLED, action="resume oldest")])
    one.add_all(two)
    coverage = one.coverage(CAPABILITIES)
    assert (coverage.snapshots.hit, coverage.snapshots.possible) == (2, len(possible_snapshot_targets(CAPABILITIES)))
    rows = dict(coverage.snapshots.table.by_row())
    assert (rows["native lsm none"]["kill-task"], rows["native lsm resume oldest"]["kill-task"]) == (2, 1)
    assert sum(len(fired) for fired in rows.values()) == coverage.snapshots.possible
    assert KILLED not in one.empty(CAPABILITIES)
    assert (coverage.hit, coverage.fired) == (0, 0)


def test_a_summary_with_every_target_is_small() -> None:
    """It had 570 KB when each count had its name."""
    assert len(msgspec.json.encode(CoverageTally().coverage(CAPABILITIES))) < 90_000


def test_a_bank_holds_them_in_the_table_of_the_other_targets() -> None:
    later = replace(KILLED, action="resume oldest")
    table = in_a_table({KILLED: 3, later: 1})
    assert table.rows == {"native lsm none": "3", "native lsm resume oldest": "1"}
    known = targets_by_words()
    assert all(known[in_words(one)] == one for one in possible_snapshot_targets(CAPABILITIES))
    assert in_words(later) == "kill-task and resume oldest with native snapshots of state on lsm"
