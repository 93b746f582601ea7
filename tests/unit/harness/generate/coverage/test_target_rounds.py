"""Whose turn it is among the cells: a round leaves none out, and a scenario is had again by its seed and number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from cutproof.faults.plan import AtPoint
from cutproof.harness.generate.coverage import target_scenarios as target_shares
from cutproof.harness.generate.coverage.target_faults import fault_on_target
from cutproof.harness.generate.coverage.target_groups import (
    UPSETTING,
    TargetGroup,
    needs_of,
    sink_for,
    snapshot_targets_of,
)
from cutproof.harness.generate.coverage.target_rounds import group_of, groups_in_a_round, number_of_group
from cutproof.harness.generate.coverage.target_scenarios import TARGETS
from cutproof.harness.generate.situations.templates import SHARES
from cutproof.harness.generate.stage import Frame
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.forecast import forecast
from cutproof.harness.scenario.model import Engine
from cutproof.harness.search.coverage import ENDINGS, MODES, CoverageTarget, possible_targets, targets_hit
from cutproof.harness.search.fault_cells import cells_of, kind_in
from cutproof.harness.search.profiles import PROFILES
from cutproof.harness.search.snapshot_targets import possible_snapshot_targets
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.workload import Count, Edge, Input, Node, Topology, Workload

FORMAT_PAGE = Path(__file__).parents[5] / "docs" / "format.md"
CAPABILITIES = SimulatedSubject().capabilities
GUARANTEES = {alignment: guarantee for alignment, (guarantee, _) in MODES.items()}


def targets_of(group: TargetGroup) -> set[CoverageTarget]:
    return {
        CoverageTarget(alignment=group.alignment, ending=group.ending, point=point, fault=fault)
        for point, fault in group.pairs
    }


def a_round(frame: Frame, number: int) -> list[TargetGroup]:
    number_of_groups = groups_in_a_round(frame)
    return [group_of(frame, number * number_of_groups + group_number) for group_number in range(number_of_groups)]


@pytest.mark.parametrize("most", [1, 4, 6])
@pytest.mark.parametrize("number", [0, 3_000_000])
def test_a_round_has_every_possible_target_once(most: int, number: int) -> None:
    groups = a_round(Frame(capabilities=CAPABILITIES, max_faults=most), number)
    targeted = Counter(target for group in groups if group.use is None for target in targets_of(group))
    assert set(targeted) == set(possible_targets(CAPABILITIES))
    assert set(targeted.values()) == {1}
    snapshots = {target for group in groups for target in snapshot_targets_of(group)}
    assert snapshots == set(possible_snapshot_targets(CAPABILITIES))
    assert all(1 <= len(group.pairs) <= most for group in groups)


def test_a_write_is_looked_for_at_the_end_of_the_last_source_too() -> None:
    """Where the first source has nothing to read, nothing is being written when it ends."""
    greatest = SimpleNamespace(pick=lambda options: options[0], between=lambda low, high: high, percent=lambda _: False)
    pair = ("end-of-data-sent", "lose-unsynced")
    source = Input(name="source", splits=((), (), tuple((1, 1, tag) for tag in range(9))))
    node = Node(name="count", operator=Count(), inputs=("source",))
    edges = tuple(
        Edge(sender=sender, receiver=receiver, partitioning="hash")
        for sender, receiver in (("source", "count"), ("count", "sink"))
    )
    topology = Topology(parallelism={"source": 3, "count": 1, "sink": 1}, edges=edges)
    target = forecast(Workload(name="apart", inputs=(source,), nodes=(node,)), topology, Engine())
    for ending, occurrence in (("finished", 3), ("cancelled", 1)):
        needs = frozenset({"slow writes"})
        group = TargetGroup(alignment="aligned", sink="transactional", ending=ending, pairs=(pair,), needs=needs)
        fault = fault_on_target(greatest, target, group, pair)  # type: ignore[arg-type]
        assert isinstance(fault.trigger, AtPoint)
        assert (fault.trigger.point, fault.trigger.occurrence) == (pair[0], occurrence)


def test_the_next_round_mixes_them_again() -> None:
    frame = Frame(capabilities=CAPABILITIES, max_faults=6)
    one, two = ({group.pairs for group in a_round(frame, number) if len(group.pairs) > 3} for number in (0, 1))
    assert len(one & two) < len(one) // 10


def test_the_page_reports_how_many_rounds_a_nightly_run_has() -> None:
    nightly = PROFILES["nightly"]
    number_of_groups = groups_in_a_round(Frame(capabilities=CAPABILITIES, max_faults=nightly.max_faults))
    targeted = nightly.target_shares * SHARES[TARGETS]
    others = sum(share for name, share in SHARES.items() if name != TARGETS)
    rounds = nightly.scenarios * targeted / (targeted + others) / number_of_groups
    page = " ".join(FORMAT_PAGE.read_text().split())
    assert f"in `nightly` {number_of_groups:,} of them go through all that are possible once" in page
    assert f"there are {rounds:.1f} such rounds" in page


def test_the_beginning_of_a_round_is_a_fair_sample() -> None:
    groups = a_round(Frame(capabilities=CAPABILITIES, max_faults=4), 0)[:60]
    assert {group.ending for group in groups} == set(ENDINGS)
    assert {group.alignment for group in groups} == set(MODES)


def test_where_the_first_blow_ends_the_job_it_strikes_alone() -> None:
    failing = [group for group in a_round(Frame(max_faults=6), 0) if group.ending == "failed"]
    for group in failing:
        assert len(set(group.pairs)) == 1 or not UPSETTING.intersection(kind_in(cell) for _, cell in group.pairs)
    assert any(len(group.pairs) > 3 for group in failing), "what does not strike goes together"


def test_no_two_restarting_faults_strike_at_one_point() -> None:
    """The first would be felt, and the others find nothing that is alive."""
    for group in a_round(Frame(max_faults=6), 0):
        blows = Counter(point for point, kind in set(group.pairs) if kind in UPSETTING)
        assert set(blows.values()) <= {1}
        assert not blows or len(blows) == len(set(group.pairs)), "nothing waits beside them"


def test_what_is_not_possible_is_no_target() -> None:
    modest = Capabilities(faults=frozenset({"kill-task", "tear-write"}), sinks=frozenset({"plain"}))
    frame = Frame(capabilities=modest)
    assert {target for group in a_round(frame, 0) for target in targets_of(group)} == set(possible_targets(modest))
    assert {group.sink for group in a_round(frame, 0)} == {"plain"}
    nothing = Frame(capabilities=msgspec.structs.replace(modest, faults=frozenset({"pause-node"})))
    assert [group.pairs for group in a_round(nothing, 5)] == [()], "a fault that only machines suffer"


# -- by number -----------------------------------------------------------------------


def test_target_groups_follow_one_another_in_their_share_of_the_numbers() -> None:
    frame = Frame(capabilities=CAPABILITIES)
    number_of_groups = [number_of_group(frame, 7, index, 10, 105) for index in range(1_050)]
    taken = [group_number for group_number in number_of_groups if group_number is not None]
    assert len(taken) == 100
    assert taken == list(range(taken[0], taken[0] + 100))
    assert all(number_of_group(frame, 7, index, 3, 3) is not None for index in range(5))
    assert all(number_of_group(frame, 7, index, 0, 3) is None for index in range(5))


def test_each_seed_begins_with_a_round_of_its_own() -> None:
    frame = Frame(capabilities=CAPABILITIES)
    begin = [number_of_group(frame, seed, 0, 1, 1) or 0 for seed in range(20)]
    assert len(set(begin)) == 20
    assert {group_number % groups_in_a_round(frame) for group_number in begin} == {0}


def test_a_scenario_is_had_again_by_its_seed_and_number_alone() -> None:
    drawing = Drawing(templates=(*SHARES, *[TARGETS] * 7), max_records=30, capabilities=CAPABILITIES)
    there = scenario_of(drawing)
    run = [there(4, index) for index in range(12)]
    for index in (11, 3, 8, 4):
        assert scenario_of(drawing)(4, index) == run[index]
    share = 8 * SHARES[TARGETS]
    of = sum(SHARES.values()) + 7 * SHARES[TARGETS]
    number_of_groups = [number_of_group(Frame(capabilities=CAPABILITIES), 4, index, share, of) for index in range(12)]
    assert [one.name == TARGETS for one in run] == [group_number is not None for group_number in number_of_groups]
    assert {one.name == TARGETS for one in run} == {True, False}


def test_a_scenario_has_the_faults_of_its_targets() -> None:
    draw = scenario_of(Drawing(templates=(TARGETS,), max_records=30, max_faults=5, capabilities=CAPABILITIES))
    frame = Frame(capabilities=CAPABILITIES, max_faults=5)
    for index in range(40):
        group_number = number_of_group(frame, 4, index, 1, 1)
        assert group_number is not None
        faults = draw(4, index).faults
        planned = {
            (fault.trigger.point, cell)
            for fault in faults
            for cell in cells_of(fault)
            if isinstance(fault.trigger, AtPoint)
        }
        assert set(group_of(frame, group_number).pairs) <= planned


# -- the hard ones -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alignment", "ending", "point", "fault"),
    [
        ("aligned", "failed", "state-loaded", "kill-coordinator"),
        ("aligned", "finished", "state-loaded", "lose-unsynced"),
        ("unblocked", "drained", "task-running", "lose-unsynced"),
        ("aligned", "cancelled", "row-written", "lose-unsynced"),
        ("aligned", "finished", "end-of-partition-sent", "raise-in-operator"),
        ("unblocked", "finished", "end-of-partition-sent", "late-message"),
        ("aligned", "stopped", "savepoint-requested", "fail-commit"),
        ("unblocked", "finished", "checkpoint-completed", "fail-read"),
        ("aligned", "drained", "commit-requested", "raise-in-operator"),
        ("aligned", "drained", "checkpoint-triggered", "tear-write"),
        ("aligned", "finished", "transaction-begun", "kill-coordinator"),
        ("none", "failed", "end-of-data-sent", "delay-channel"),
        ("unaligned", "stopped", "barrier-received", "cut-channel"),
        ("timeout", "failed", "state-loaded", "kill-coordinator"),
        ("in-turn", "drained", "snapshot-taken", "tear-write"),
    ],
)
def test_a_target_that_is_hard_to_hit_is_hit_in_few_tries(
    alignment: str, ending: str, point: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = CoverageTarget(alignment=alignment, ending=ending, point=point, fault=fault)

    def that_one(frame: Frame, group_number: int) -> TargetGroup:
        guarantee, pair = GUARANTEES[alignment], (point, fault)
        sink, needs = sink_for(pair, guarantee, frame.sinks), needs_of(pair, guarantee)
        return TargetGroup(alignment=alignment, sink=sink, ending=ending, pairs=(pair,), needs=needs)

    monkeypatch.setattr(target_shares, "group_of", that_one)
    subject = SimulatedSubject()
    draw = scenario_of(Drawing(templates=(TARGETS,), max_records=60, max_faults=6, capabilities=CAPABILITIES))
    scenarios = [draw(2, index) for index in range(6)]
    assert sum(wanted in targets_hit(one, subject.run(one)) for one in scenarios) >= 2
