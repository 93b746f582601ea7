"""The scenarios that aim at snapshot targets: every action is aimed at, and nearly each aim is met."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from cutproof.harness.generate.coverage.snapshot_uses import SEQUENCES, snapshot_uses
from cutproof.harness.generate.coverage.target_groups import TargetGroup, snapshot_targets_of
from cutproof.harness.generate.coverage.target_rounds import group_of, groups_in_a_round
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.generate.swarm import Batches, Swarm
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.actions import ACTIONS, NONE
from cutproof.harness.scenario.model import Resume, format_of
from cutproof.harness.search.coverage import MODES, every_target, in_words
from cutproof.harness.search.fault_cells import OF_DELETIONS
from cutproof.harness.search.snapshot_targets import (
    RESCALING,
    SnapshotTarget,
    possible_snapshot_targets,
    snapshot_targets_hit,
)

CAPABILITIES = SimulatedSubject().capabilities
DRAWING = Drawing(templates=("cells",), max_records=60, max_faults=6, capabilities=CAPABILITIES)


def groups_by_number() -> dict[int, TargetGroup]:
    """The groups of a round that aim at snapshot targets, by number."""
    frame = scenario_of(DRAWING).frame
    found = {number: group_of(frame, number) for number in range(groups_in_a_round(frame))}
    return {number: group for number, group in found.items() if group.use is not None}


def test_the_sequences_have_every_action() -> None:
    """A command that is new in the model is a sequence of its own."""
    assert {action for actions in SEQUENCES for action in actions} | {NONE} == set(ACTIONS)


def test_a_subject_is_asked_only_for_what_it_can_do() -> None:
    modest = replace(CAPABILITIES, commands=frozenset({"cancel"}), snapshot_formats=frozenset({"native"}))
    found = [use for use, *_ in snapshot_uses(modest)]
    assert {use.actions for use in found} == {(), ("cancel",)}
    assert {use.format for use in found} == {"native"}


def test_each_sequence_is_played_with_every_alignment_that_takes_checkpoints() -> None:
    modes: dict[tuple[str, ...], set[str]] = {}
    for use, alignment, _, _ in snapshot_uses(CAPABILITIES):
        modes.setdefault(use.actions, set()).add(alignment)
    assert all(found == set(MODES) - {"none"} for found in modes.values()), modes


def test_a_scenario_has_the_format_and_the_backend_of_its_life() -> None:
    draw = scenario_of(DRAWING)
    for number, group in list(groups_by_number().items())[::9]:
        one = draw.aimed(5, number, number)
        assert group.use is not None
        assert (one.engine.snapshot_format, one.engine.state_backend) == (group.use.format, group.use.backend)
        assert {format_of(command) for command in one.commands} <= {"", group.use.format}


def test_nearly_each_aim_is_met() -> None:
    subject, draw = SimulatedSubject(), scenario_of(DRAWING)
    aimed, met = Counter[str](), Counter[str]()
    for number, group in list(groups_by_number().items())[::4]:
        one = draw.aimed(7, number, number)
        found = set(snapshot_targets_hit(one, subject.run(one)))
        for target in snapshot_targets_of(group):
            aimed[target.action] += 1
            met[target.action] += target in found
    assert set(aimed) == set(ACTIONS)
    assert sum(met.values()) > 0.9 * sum(aimed.values())
    assert all(met[action] > 0.8 * aimed[action] for action in aimed), (aimed, met)


def test_each_death_amid_a_deletion_and_each_rescaled_job_is_hit_in_few_tries() -> None:
    subject, draw = SimulatedSubject(), scenario_of(DRAWING)
    aimed: dict[SnapshotTarget, int] = {}
    for number, group in groups_by_number().items():
        mine = [one for one in snapshot_targets_of(group) if one.fault in OF_DELETIONS or one.action in RESCALING]
        for one in (
            draw.aimed(seed, number, number) for seed in (7, 8, 9, 10) if mine and not all(map(aimed.get, mine))
        ):
            found = snapshot_targets_hit(one, subject.run(one))
            for target in mine:
                aimed[target] = aimed.get(target, 0) + (target in found)
    possible = possible_snapshot_targets(CAPABILITIES)
    assert set(aimed) == {one for one in possible if one.fault in OF_DELETIONS or one.action in RESCALING}
    assert [in_words(target) for target, hits in aimed.items() if not hits] == []


def test_the_nights_aim_at_what_was_hit_least() -> None:
    missing = SnapshotTarget(format="incremental", backend="lsm", action="resume oldest", fault="kill-node")
    hits = {in_words(one): 1_000 for one in every_target(CAPABILITIES) if one != missing}
    batches = Batches(DRAWING, Swarm(hits=hits))
    engines = [batches(3, index) for index in range(0, 1_000, 10)]
    aims = sum(
        isinstance(command, Resume) and command.snapshot == "oldest" and one.engine.snapshot_format == "incremental"
        for one in engines
        for command in one.commands
    )
    assert aims > 5, "one of some five thousand groups"
