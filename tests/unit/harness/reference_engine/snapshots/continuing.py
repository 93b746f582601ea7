"""Runs that leave their snapshots in a directory, and runs that begin there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cutproof.faults.plan import AtPoint
from cutproof.harness.scenario.model import Savepoint, Scenario, StopWithSavepoint
from cutproof.harness.subject.port import Continuing
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Count, Tumbling
from unit.simulated.worlds import job

STOP = (
    Savepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=1), name="kept"),
    StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=2), drain=False, name="end"),
)


def stopped(**engine: Any) -> Scenario:
    """A job that counts, and has windows with their timers, which its user stops amid its input."""
    return replace(unstopped(**engine), commands=STOP)


def unstopped(**engine: Any) -> Scenario:
    """The same job, to its end."""
    scenario = job(60, Tumbling(size=50), Count(), **{"retained_checkpoints": 3, **engine})
    (source,) = scenario.workload.inputs
    timed = replace(source, times=tuple(tuple(3 * at for at in range(len(split))) for split in source.splits))
    return replace(scenario, workload=replace(scenario.workload, inputs=(timed,)))


def left(folder: Path, subject: Any, scenario: Scenario) -> Result:
    """Run a scenario that leaves its snapshots in a new directory."""
    assert isinstance(subject, Continuing)
    subject.leave_in(folder)
    return run(subject, scenario)


def begun(folder: Path, subject: Any, scenario: Scenario, snapshot: str = "newest") -> Result:
    """Run a scenario from a snapshot in a directory."""
    assert isinstance(subject, Continuing)
    return run(subject, subject.begin_from(folder, snapshot, scenario))


def assert_it_holds(result: Result) -> None:
    """Both jobs together have committed each row once, and the second one has really restored something."""
    verdicts = result.judgement.verdicts
    assert result.judgement.violated == {}
    for name in ("exactly-once", "restored-state", "progress", "no-leaks"):
        assert isinstance(verdicts[name], Holds), (name, verdicts[name])
