"""Local recovery: only the lost tasks restart, their channels stay, and they replay their input (UNA-4).

Most jobs have tasks with several inputs, whose order only the determinants record, and surviving tasks behind them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime
from ....properties.model.workload import SINK, Topology, Workload
from ...scenario.checks import SPILL_STORES
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Engine, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_step, at_some_time, draw_fault, during_recovery, some_task
from ..stage import Frame, Stage, stage_of
from ..workloads.draw_workloads import draw_topology, draw_workload
from . import extras
from .rescaling import with_rescaling
from .unaligned import crowded, seasoned


def local(choices: Choices, frame: Frame) -> Scenario:
    """A task or a node is lost; then often another task, or the same one during its replay.  The job may be stopped or
    cancelled and resumed, and a checkpoint may fail."""
    stage = local_stage(choices, frame)
    target = stage.target
    faults: list[AnyFault] = [_blow(choices, target)]
    if choices.percent(55):
        faults.append(_next_blow(choices, target, faults[0]))
    if choices.percent(25):
        faults.extend(_trouble(choices, target))
    commands: tuple[AnyCommand, ...] = ()
    if choices.percent(15):
        commands = (Savepoint(trigger=at_some_time(choices, target, share=(10, 90))),)
    elif choices.percent(20):
        asked = at_some_time(choices, target, share=(30, 90))
        stop: AnyCommand = Cancel(trigger=asked)
        if choices.percent(70):
            stop = StopWithSavepoint(trigger=asked, drain=choices.percent(40))
        commands = (stop, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0)))))
    late = extras.perturbations(choices, target) if choices.percent(35) else ()
    faults = faults[: max(1, frame.max_faults)]
    scenario = stage.scenario("local", faults=tuple(faults), commands=commands, deviations=late)
    return with_rescaling(choices, scenario, percent=20)


_OWN = "at-once"
"""the way of spilling with which local recovery keeps a log of its own for a channel"""
TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"local": local}


def local_stage(choices: Choices, frame: Frame) -> Stage:
    """A job with local recovery, if the subject has it and no workload is given."""
    logged = choices.percent(50) or (frame.capabilities is not None and _OWN not in frame.capabilities.local_spilling)
    recipe = frame.recipe(
        least_records=60 if logged else 16,
        most_records=100 if logged else 80,
        shapes=("join", "union", "join", "chain"),
        least_operators=1,
        splits=(1, 2, 2),
        parallelism=(1, 2, 2, 3),
        windows_percent=20,
        clocked_percent=0,
        rules_percent=0,
        enumerated_percent=0,
        two_phase_percent=0,
    )
    can = frame.workload is None  # a workload of the user's may use processing time, or have other edges
    if frame.workload is None:
        workload = awake(draw_workload(choices, recipe))
        topology = by_key_or_forward(draw_topology(choices, workload, recipe))
        frame = msgspec.structs.replace(frame, workload=workload, topology=topology)
    tuning = Tuning(checkpoints=(6, 16) if logged else (2, 6), memory_percent=10, nodes=(2, 3, 4))
    can = can and (frame.capabilities is None or frame.capabilities.local_recovery)
    can = can and "exactly-once" in frame.guarantees and "transactional" in frame.sinks
    spilling = "continuous" if logged else _OWN
    settings = {"failover": "local", "committing": "writer", "spilling": spilling} if can else {}
    stage = stage_of(choices, frame, recipe, tuning, None, **settings)
    if can and logged:
        return from_logs(choices, crowded(choices, stage) if choices.percent(75) else stage)
    capacity = choices.pick((stage.engine.channel_capacity, 3, 8))
    return with_engine(stage, msgspec.structs.replace(stage.engine, channel_capacity=capacity))


def with_engine(stage: Stage, engine: Engine) -> Stage:
    target = msgspec.structs.replace(stage.target, engine=engine)
    return msgspec.structs.replace(stage, engine=engine, target=target)


def from_logs(choices: Choices, stage: Stage) -> Stage:
    """The stage with continuous spilling: a recovering task reads its input again from the logs."""
    engine = msgspec.structs.replace(
        stage.engine,
        spilling="continuous",
        spill_store=choices.pick(SPILL_STORES),
        spill_flush_us=stage.engine.read_interval_us * choices.pick((1, 2, 8)) // 2,
    )
    return with_engine(stage, engine)


def awake(workload: Workload) -> Workload:
    """The workload without idle splits: the clock decides when a split is idle, and in a replay decides differently."""
    inputs = tuple(msgspec.structs.replace(source, idle_after_us=0) for source in workload.inputs)
    return msgspec.structs.replace(workload, inputs=inputs)


def by_key_or_forward(topology: Topology) -> Topology:
    """The layout with hash edges instead of rebalance edges."""
    edges = tuple(
        msgspec.structs.replace(edge, partitioning="hash") if edge.partitioning == "rebalance" else edge
        for edge in topology.edges
    )
    return msgspec.structs.replace(topology, edges=edges, key_groups=max(topology.key_groups, 16))


def _blow(choices: Choices, target: Forecast) -> AnyFault:
    merging = [task for task in target.layout.tasks if _inputs(target, task) > 1 and not task.startswith(f"{SINK}-")]
    if target.engine.spilling == "continuous" and choices.percent(60):
        task = choices.pick(merging) if merging and choices.percent(60) else some_task(choices, target)
        complete = AtPoint(point="checkpoint-completed", occurrence=choices.between(1, 2))
        return plan.KillTask(trigger=seasoned(choices, target, later=2) if choices.percent(50) else complete, task=task)
    if merging and choices.percent(50):
        return plan.KillTask(trigger=at_some_time(choices, target, share=(25, 95)), task=choices.pick(merging))
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-node", "pause-task"))
    trigger = at_some_step(choices, target) if choices.percent(25) else at_some_time(choices, target)
    return draw_fault(choices, target, kind, trigger)


def _inputs(target: Forecast, task: str) -> int:
    return sum(receiver == task for _, receiver in target.layout.channels)


def _next_blow(choices: Choices, target: Forecast, first: AnyFault) -> AnyFault:
    """A second failure: of the same task during its replay, of any task during the recovery or later, or of the
    coordinator."""
    if isinstance(first, plan.KillTask) and choices.percent(35):
        point = choices.pick(("state-loaded", "record-applied", "task-running", "record-read"))
        soon = choices.between(1, 40) if point in ("record-applied", "record-read") else 1
        return plan.KillTask(trigger=AtPoint(point=point, occurrence=soon, task=first.task), task=first.task)
    if choices.percent(40):
        kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator"))
        return draw_fault(choices, target, kind, during_recovery(choices, target))
    if choices.percent(80):
        return plan.KillTask(trigger=at_some_time(choices, target), task=some_task(choices, target))
    return draw_fault(choices, target, "kill-coordinator", at_some_time(choices, target))


def _trouble(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    kind = choices.pick(("stall-channel", "delay-channel", "fail-write", "tear-write", "fail-commit", "rare-message"))
    if kind == "rare-message":
        return extras.rare_message(choices, target)
    return (draw_fault(choices, target, kind, at_some_time(choices, target)),)
