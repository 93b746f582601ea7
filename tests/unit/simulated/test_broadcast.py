"""Broadcast state in whole runs (OPS-1, OPS-2): under failures, rescaled, and refused where it makes no sense."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, AtPoint, AtTime, KillTask, StallChannel
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import AnyCommand, Cancel, Engine, Resume, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import Result, run
from cutproof.properties.model.history import JobEnded
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import Input, Node, Rules, Workload
from unit.simulated.worlds import QUICK, journal

NAMES = ("data", "changes", "rules", "sink")
STOP = StopWithSavepoint(trigger=AtTime(at_us=6_000))
CANCEL = Cancel(trigger=AtTime(at_us=8_000))


def ruled(
    wide: int, *commands: AnyCommand, faults: tuple[AnyFault, ...] = (), records: int = 60, **engine: object
) -> Scenario:
    """Rows of twelve keys, changed by rules that come in two splits, key by key again and again."""
    data = Input(name="data", splits=tuple(tuple((n % 12, n, 1000 * at + n) for n in range(records)) for at in (1, 2)))
    changes = tuple(tuple((n % 12, 100 * n, 10_000 * at + n) for n in range(records // 2)) for at in (1, 2))
    workload = Workload(
        name="ruled",
        inputs=(data, Input(name="changes", splits=changes)),
        nodes=(Node(name="rules", operator=Rules(), inputs=("data", "changes")),),
    )
    return Scenario(
        workload=workload,
        topology=lay_out(workload, dict.fromkeys(NAMES, wide)),
        engine=Engine(**{**QUICK, **engine}),  # type: ignore[arg-type]
        commands=commands,
        faults=faults,
    )


def resume(wide: int) -> Resume:
    return Resume(trigger=AtTime(at_us=700), parallelism=dict.fromkeys(NAMES, wide))


def sound(scenario: Scenario) -> Result:
    result = run(SimulatedSubject(), scenario)
    assert [entry.status for entry in journal(JobEnded, result.history)][-1] == "finished"
    assert not result.judgement.violated
    return result


def copies(result: Result, job: int) -> list[Counter[tuple[str, str]]]:
    """What the subtasks with rules loaded in a job."""
    loads = [run.loaded for run in result.history.runs if run.operator == "rules" and run.job == job]
    states = [msgspec.json.decode(load.state) for load in loads if load is not None and load.state]
    return [Counter((name, text) for name, text in state.get("broadcast", ())) for state in states]


@pytest.mark.parametrize("end", [STOP, CANCEL], ids=["stopped", "cancelled"])
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (7, 2), (2, 7)])
def test_a_job_goes_on_at_another_width_and_everybody_has_all_rules(end: AnyCommand, before: int, after: int) -> None:
    result = sound(ruled(before, end, resume(after)))
    held = copies(result, 2)
    assert len(held) == after
    assert held == [held[0]] * after
    assert sum(held[0].values()) > 4
    for name in ("exactly-once", "consistent-cut", "restored-state"):
        assert isinstance(result.judgement.verdicts[name], Holds), name


@pytest.mark.parametrize("store", ["files", "memory"])
def test_a_failure_gives_each_its_copy_again(store: str) -> None:
    kill = KillTask(trigger=AtPoint(point="checkpoint-completed", occurrence=3), task="rules-1")
    result = sound(ruled(3, faults=(kill,), snapshot_store=store))
    again = [load for load in copies(result, 1) if load]
    assert len(again) == 3
    assert again == [again[0]] * 3
    assert isinstance(result.judgement.verdicts["exactly-once"], Holds)


def test_without_alignment_copies_may_differ_and_nothing_is_lost() -> None:
    """In at-least-once mode a new subtask may take any of the copies, which need not be equal."""
    differing = 0
    for at_us in range(3_000, 9_000, 500):
        stall = StallChannel(trigger=AtTime(at_us=at_us), sender="data-0", receiver="rules-0", for_us=2_000)
        end = Cancel(trigger=AtTime(at_us=at_us + 3_700))
        result = sound(ruled(3, end, resume(2), faults=(stall,), guarantee="at-least-once"))
        restored = {run.loaded.checkpoint for run in result.history.runs if run.job == 2 and run.loaded is not None}
        states = [one for checkpoint in restored for one in result.case.states(checkpoint).items()]
        held = [state.broadcast for task, state in states if task.startswith("rules")]
        differing += any(Counter(one) != Counter(held[0]) for one in held)
    assert differing > 0


def test_every_subtask_takes_every_rule_and_each_row_one_of_them() -> None:
    scenario = ruled(3)
    result = sound(scenario)
    runs = [one for one in result.history.runs if one.operator == "rules"]
    taken = [Counter(one.inputs[channel].split("-")[0] for channel, _ in one.applies) for one in runs]
    assert [one["changes"] for one in taken] == [60] * 3
    assert sum(one["data"] for one in taken) == 120
    assert len(result.history.committed) == 120
    assert sum(row[3] > 0 for row in result.history.committed) > 20
