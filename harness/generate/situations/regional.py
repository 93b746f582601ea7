"""Failover by region: jobs with only forward edges, of which one region restarts while the others go on.

Operators with keyed state stand behind a hash edge, which joins all tasks into one region.
So a region only restores the positions of its splits, the transactions of its sinks, and
the alignment of its unions.
"""

from __future__ import annotations

from collections.abc import Callable

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime
from ....properties.model.workload import SINK, Edge, Topology, Workload
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning, draw_guarantee
from ..faults.draw_faults import at_some_step, at_some_time, draw_fault, some_task
from ..stage import Frame, Stage, stage_of
from ..workloads.draw_workloads import draw_workload
from . import extras

KINDS = frozenset({"map", "filter", "flat-map", "union", "batch"})
"""operators that may stand behind a forward edge whatever the parallelism"""

GUARANTEES = (
    ("exactly-once", "transactional"),
    ("exactly-once", "transactional"),
    ("exactly-once", "transactional"),
    ("at-least-once", "plain"),
)


def regional(choices: Choices, frame: Frame) -> Scenario:
    """One region is lost amid the data, or at a step of the protocol.  Then another region or the coordinator is lost,
    or the job is stopped, at times after parts of it have ended."""
    stage = _stage(choices, frame)
    target = stage.target
    faults: list[AnyFault] = [_blow(choices, target)]
    if choices.percent(50):
        faults.append(_next_blow(choices, target))
    if choices.percent(25):
        faults.extend(extras.rare_message(choices, target))
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(20):
        commands = (Savepoint(trigger=at_some_time(choices, target, share=(10, 90))),)
    elif choices.percent(30):
        faults, commands = _stopped(choices, target, faults)
    late = extras.perturbations(choices, target) if choices.percent(30) else ()
    return stage.scenario(
        "regional", faults=tuple(faults[: max(1, frame.max_faults)]), commands=commands, deviations=late
    )


def partly_stopped(choices: Choices, frame: Frame) -> Scenario:
    """A stop: its savepoint is complete, most tasks have finished or are about to, and a task dies that was notified
    late.

    From then on no region may restart by itself.
    """
    stage = _stage(choices, frame, unbounded_percent=0)
    target = stage.target
    asked = at_some_time(choices, target, share=(10, 60))
    task = some_task(choices, target)
    late = plan.LateMessage(trigger=asked, message="terminate", task=task, by_us=20_000)
    later_us = target.checkpoint_us * choices.between(4, 8) // 4
    blow = plan.KillTask(trigger=AtTime(at_us=asked.at_us + later_us), task=task)
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(trigger=asked, drain=choices.percent(25)),)
    if choices.percent(30):
        commands = (*commands, Resume(trigger=AtTime(at_us=1_000)))
    return stage.scenario("partly-stopped", faults=(blow, late)[: max(1, frame.max_faults)], commands=commands)


def _stage(choices: Choices, frame: Frame, unbounded_percent: int = 20) -> Stage:
    guarantee, sink = draw_guarantee(choices, guarantees=frame.guarantees, sinks=frame.sinks, among=GUARANTEES)
    recipe = frame.recipe(
        most_records=60,
        shapes=("chain", "chain", "union"),
        splits=(2, 3, 2),
        operators=KINDS if frame.operators is None else KINDS & frame.operators,
        windows_percent=0,
        two_phase_percent=50,
        enumerated_percent=0,  # the tasks behind the readers of an enumerator are one region
        unbounded_percent=unbounded_percent,
        most_operators=2,
        apart=choices.percent(35),
    )
    own = None
    if frame.workload is None:
        workload = draw_workload(choices, recipe)
        own = (workload, forward_only(workload, 2 if frame.real_time else choices.pick((2, 2, 3))))
    tuning = Tuning(guarantees=(guarantee,), sinks=(sink,), checkpoints=(3, 8), memory_percent=10)
    return stage_of(choices, frame, recipe, tuning, own, failover="region")


def forward_only(workload: Workload, parallelism: int) -> Topology:
    """A layout with one region for each subtask."""
    readers = {name: node.name for node in workload.nodes for name in node.inputs} | {workload.output: SINK}
    names = [source.name for source in workload.inputs] + [node.name for node in workload.nodes]
    edges = tuple(Edge(sender=name, receiver=readers[name], partitioning="forward") for name in names)
    return Topology(parallelism=dict.fromkeys((*names, SINK), parallelism), edges=edges)


def _blow(choices: Choices, target: Forecast) -> AnyFault:
    kind = choices.pick(("kill-task", "kill-task", "kill-task", "pause-task", "kill-node"))
    trigger = at_some_step(choices, target) if choices.percent(40) else at_some_time(choices, target)
    return draw_fault(choices, target, kind, trigger)


def _next_blow(choices: Choices, target: Forecast) -> AnyFault:
    """The loss of another region, of the same, or of the coordinator, at times while the first region restarts."""
    if choices.percent(50):
        return extras.second_failure(choices, target)
    kind = choices.pick(("kill-task", "kill-task", "kill-coordinator", "fail-commit", "fail-write"))
    return draw_fault(choices, target, kind, at_some_time(choices, target))


def _stopped(
    choices: Choices, target: Forecast, faults: list[AnyFault]
) -> tuple[list[AnyFault], tuple[AnyCommand, ...]]:
    """A stop or a drain amid the data, and a failure when its savepoint is complete or about to complete."""
    asked = at_some_time(choices, target, share=(10, 80))
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(trigger=asked, drain=choices.percent(40)),)
    if choices.percent(60):
        commands = (*commands, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0)))))
    if choices.percent(60):
        engine = target.engine
        later_us = engine.control_latency_us + engine.snapshot_write_us
        when = AtTime(at_us=asked.at_us + later_us * choices.between(0, 24) // 4)
        faults = [plan.KillTask(trigger=when, task=some_task(choices, target)), *faults[:1]]
    else:
        when_done = AtPoint(point="commit-requested", occurrence=choices.between(1, 2 * target.checkpoints))
        faults = [*faults, plan.KillTask(trigger=when_done, task=some_task(choices, target))]
    return faults, commands


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"regional": regional, "partly-stopped": partly_stopped}
