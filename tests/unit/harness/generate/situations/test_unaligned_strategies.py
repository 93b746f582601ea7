"""S3, S4, S5: every kind of state is drawn beside data in flight; one snapshot is now and then restored twice."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from cutproof.faults.plan import AnyFault, InPhase
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Batch, Rules, Tally

DRAWN = 200
RUNS = 40


@cache
def drawn(template: str) -> list[Scenario]:
    draw = scenario_of(Drawing(templates=(template,)))
    return [draw(3, index) for index in range(DRAWN)]


@pytest.mark.parametrize("template", ["S3", "S4", "S5"])
def test_unions_are_drawn_about_as_often_as_lists_and_broadcast_state(template: str) -> None:
    held = Counter(kind for one in drawn(template) for kind in {type(node.operator) for node in one.workload.nodes})
    others = (held[Batch], held[Rules])
    assert min(others) <= 2 * held[Tally]
    assert min(held[Tally], *others) > DRAWN // 25


@pytest.mark.parametrize("template", ["S3", "S4"])
def test_one_snapshot_with_data_in_flight_is_now_and_then_restored_twice(template: str) -> None:
    """Where a fault waits for an attempt that comes up from one."""
    targeted = [one for one in drawn(template) if any(is_amid_recovery(fault) for fault in one.faults)]
    assert len(targeted) > DRAWN // 25
    again = 0
    for scenario in targeted[:RUNS]:
        result = run(SimulatedSubject(), scenario)
        assert not result.judgement.violated
        again += bool(restored_twice(result.history))
    assert again > 1


def is_amid_recovery(fault: AnyFault) -> bool:
    return isinstance(fault.trigger, InPhase) and fault.trigger.phase == "recovering"


def restored_twice(history: History) -> set[int]:
    """The checkpoints with data in flight from which two attempts of one job came up."""
    attempts: dict[tuple[int, int], set[int]] = {}
    for one in history.runs:
        if one.loaded is not None and '"queued"' in one.loaded.state:
            attempts.setdefault((one.job, one.loaded.checkpoint), set()).add(one.attempt)
    return {checkpoint for (_, checkpoint), several in attempts.items() if len(several) > 1}
