"""Of the processes of a node some may have ended by themselves just before it is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenarios import chain
from stage import Stage, planned

from cutproof.faults import plan
from cutproof.faults.plan import AtTime
from cutproof.harness.conducting.disturbing import Disturbances
from cutproof.reference_impl.processes import entries as e

EVER = AtTime(at_us=1_000_000)


@pytest.mark.parametrize("survivors_run", [True, False])
def test_only_those_are_told_as_killed_that_were(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, survivors_run: bool
) -> None:
    node, apart = plan.KillNode(trigger=EVER, node=1), plan.KillTask(trigger=EVER, task="map-0")
    stage = Stage(monkeypatch, tmp_path, planned(chain(), node, apart))
    stage.comes_up()
    replaced: list[str] = []
    environment = Disturbances(stage.scene, lambda member, down_us: replaced.append(member.name))
    rest = ["map-1", "count-1", "sink-1"]
    if not survivors_run:
        for name in rest:
            stage.member(name).attempts.clear()
    kill_now = stage.crew.kill
    stage.crew.kill = lambda members: kill_now(members[1:])  # type: ignore[method-assign]
    assert environment.kill_node(0, 1) is survivors_run
    assert [entry.fault for entry in stage.entries(e.FaultFired)] == ([0] if survivors_run else [])
    assert [(entry.process, entry.fault) for entry in stage.entries(e.Died)] == [(name, 0) for name in rest]
    assert replaced == rest
