"""Who is hit by a kill, and told as hit.

Of the processes of a node some may have ended by themselves just before it is
killed; the database is killed where a sink would miss it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cutproof.faults import plan
from cutproof.faults.plan import AtPoint, AtTime
from cutproof.harness.reference_engine.orchestrator.jobs import Jobs
from cutproof.harness.reference_engine.orchestrator.process_faults import Disturbances
from cutproof.harness.reference_engine.orchestrator.steering import Steering
from cutproof.reference_impl.processes import entries as e
from unit.harness.scenarios import chain
from unit.harness.stage import Stage, planned

EVER = AtTime(at_us=1_000_000)


@pytest.mark.parametrize("survivors_run", [True, False])
def test_only_those_are_reported_as_killed_that_were(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, survivors_run: bool
) -> None:
    node, apart = plan.KillNode(trigger=EVER, node=1), plan.KillTask(trigger=EVER, task="map-0")
    stage = Stage(monkeypatch, tmp_path, planned(chain(), node, apart))
    stage.comes_up()
    replaced: list[str] = []
    environment = Disturbances(stage.context, lambda member, down_us: replaced.append(member.name))
    rest = ["map-1", "count-1", "sink-1"]
    if not survivors_run:
        for name in rest:
            stage.member(name).attempts.clear()
    kill_now = stage.processes.kill
    stage.processes.kill = lambda members: kill_now(members[1:])  # type: ignore[method-assign]
    assert environment.kill_node(0, 1) is survivors_run
    assert [entry.fault for entry in stage.entries(e.FaultFired)] == ([0] if survivors_run else [])
    assert [(entry.process, entry.fault) for entry in stage.entries(e.Died)] == [(name, 0) for name in rest]
    assert replaced == rest


class FakeDatabase:
    """A server that notes whether it is up."""

    pid = 1

    def __init__(self) -> None:
        self.is_up = True

    def kill(self) -> None:
        self.is_up = False

    def start(self) -> None:
        self.is_up = True

    def answers(self) -> bool:
        return self.is_up


@pytest.mark.parametrize("up", [("sink-0",), ("source-0", "count-0")])
def test_a_database_dies_at_the_first_row_of_a_sink_that_is_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, up: tuple[str, ...]
) -> None:
    """Who writes a row has come up before; that the others have not been heard of yet is of no account."""
    fault = plan.KillDatabase(trigger=AtPoint(point="row-written", task="sink-0"), down_us=5_000)
    scenario = planned(chain(), fault, guarantee="at-least-once", sink="plain")
    stage = Stage(monkeypatch, tmp_path, scenario, store="database")
    database: Any = FakeDatabase()
    stage.context.services.database = database
    jobs = Jobs(stage.context, scenario, lambda: None)
    steering = Steering(stage.context, scenario, Disturbances(stage.context, lambda member, down_us: None), jobs)
    jobs.submit()
    steering.set_out()
    for task in up:
        stage.context.facts.up(task, 1)

    steering.triggers.reached("row-written", "sink-1", "after")
    assert database.is_up, "another sink's row"
    steering.triggers.reached("row-written", "sink-0", "after")

    is_hit = up == ("sink-0",)
    assert database.is_up is not is_hit
    assert [entry.detail for entry in stage.entries(e.FaultFired)] == ["the database is killed"] * is_hit
    assert steering.unapplied() == ([] if is_hit else ["fault 0: kill-database"])
    stage.pass_virtual(5_000)
    assert database.is_up
    assert [entry.began for entry in stage.entries(e.Outage)] == [True, False] * is_hit
    assert [entry.fault for entry in stage.entries(e.FaultHealed)] == [0] * is_hit
