"""Template `cells`: scenarios for every possible coverage target and every possible snapshot target, in turn.

Random drawing hits a few targets often and most of them never.  Here the targets are
chosen first (`target_rounds`), and the scenario is built so that their faults fire:
the engine reads slowly enough, an input ends early where the point is the end of an
input, and accompanying faults are added where the point or the fault needs them (a
failing read needs a restart; a job that ends by failure needs a last kill).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime
from ....faults.points import DELETION_POINTS
from ....properties.model.workload import Count, Sum, Union, Workload
from ...scenario.forecast import Forecast, forecast
from ...scenario.model import AnyCommand, Cancel, Resume, Savepoint, Scenario, StopWithSavepoint
from ...search.coverage import MODES
from ...subject.abilities import names_of
from ..choices import Choices
from ..engines import Tuning
from ..stage import Frame, Stage, stage_of
from ..workloads.draw_workloads import Recipe, draw_workload
from .snapshot_uses import (
    changes_operators,
    commands_of,
    rescales,
    settings_of,
    with_other_parallelism,
    with_state_by_key,
    without_one,
)
from .target_faults import fault_on_target, lasting, share_of
from .target_groups import TargetGroup, is_upsetting
from .target_rounds import group_of, groups_in_a_round

TARGETS = "cells"


def every_target(choices: Choices, frame: Frame) -> Scenario:
    """A scenario for the group of its number; where scenarios have no numbers, the group is drawn."""
    group = group_of(
        frame, choices.between(0, groups_in_a_round(frame) - 1) if frame.group_number is None else frame.group_number
    )
    stage = _stage(choices, frame, group)
    end_us = _end_of(stage.target, group)
    company = _company(choices, stage.target, group, end_us)
    faults = tuple(fault_on_target(choices, stage.target, group, pair) for pair in group.pairs)
    commands = _commands(choices, stage.target, group, end_us)
    scenario = stage.scenario(TARGETS, faults=(*faults, *company)[: max(1, frame.max_faults)], commands=commands)
    if group.use is not None and rescales(group.use):
        return with_other_parallelism(choices, scenario)
    return without_one(scenario) if group.use is not None and changes_operators(group.use) else scenario


def _stage(choices: Choices, frame: Frame, group: TargetGroup) -> Stage:
    """The job: its inputs do not end if a command ends the job; one input ends early if the point needs that."""
    endless = group.ending != "finished" and not group.whole
    recipe = frame.recipe(
        most_records=48,
        least_records=24,
        shapes=("union",) if group.apart else ("chain", "chain", "union"),
        splits=(1,) if group.apart else (1, 2),
        idempotent=group.sink == "idempotent",
        unbounded_percent=100 if endless and not group.apart else 0,
        mixed_percent=100 if endless and group.apart else 0,
        enumerated_percent=0 if group.apart else Recipe().enumerated_percent,  # a late split would end its input late
        windows_percent=0,
        least_operators=1,
        most_operators=2,
        parallelism=(1, 1, 2),
    )
    tuning = Tuning(
        guarantees=(group.guarantee,), sinks=(group.sink,), concurrent=(1, 1, 2), checkpoints=(5, 7), memory_percent=0
    )
    settings: dict[str, object] = {"alignment": MODES[group.alignment][1]}
    if group.ending == "failed":
        restarts = group.needs & ({"restart after"} if group.kills_coordinator else {"restart before", "restart after"})
        settings["restart_attempts"] = len(restarts)
    if "slow writes" in group.needs:
        settings |= _SLOW_WRITES
    if "restart after" in group.needs:  # a fault that waits for the restart is in a region that restarts
        settings["failover"] = "full"
    if "state in files" in group.needs:
        recipe = _with_state(recipe)
        settings |= _STATE_IN_FILES
    if any(point in DELETION_POINTS for point, _ in group.pairs):  # each checkpoint takes the place of another
        settings["retained_checkpoints"] = 1
    if group.use is not None:
        recipe = with_state_by_key(recipe, group.use)
        settings |= settings_of(choices, group.use)
        if "files" in group.needs:  # some are deleted early
            settings["retained_checkpoints"] = 2
    own = (_cut_short(draw_workload(choices, recipe)), None) if group.apart and frame.workload is None else None
    return _unhurried(stage_of(choices, frame, recipe, tuning, own, **settings), group)


def _cut_short(workload: Workload) -> Workload:
    """The workload with a first input that ends long before the others, if there are several."""
    first, *others = workload.inputs
    if not others:
        return workload
    most = max(1, max(len(records) for other in others for records in other.splits) // 4)
    splits = tuple(records[:most] for records in first.splits)
    return msgspec.structs.replace(workload, inputs=(msgspec.structs.replace(first, splits=splits), *others))


CHECKPOINTS_IN_A_SPAN = 5
SLOW_CHECKPOINTS_IN_A_SPAN = 3
"""in each of their intervals as many again begin, so more would only cost time"""
_SHORT_TIMEOUT_US = 10_000
"""a checkpoint that lost a message is aborted within the run"""


def _unhurried(stage: Stage, group: TargetGroup) -> Stage:
    """Slow reading down so that it lasts several checkpoints: after an early fault, all events that it needs follow."""
    engine, target = stage.engine, stage.target
    whole_us = target.checkpoint_us + 2 * engine.transaction_us
    many = SLOW_CHECKPOINTS_IN_A_SPAN if "slow writes" in group.needs else CHECKPOINTS_IN_A_SPAN
    many += 2 * ("again" in group.needs)  # the command is given again
    times = max(1, -(-many * whole_us * (2 if group.apart else 1) // target.span_us))
    changes = {"read_interval_us": times * engine.read_interval_us}
    if any(kind == "lose-message" for _, kind in group.pairs):  # while a checkpoint waits for it, no other begins
        changes["checkpoint_timeout_us"] = min(engine.checkpoint_timeout_us, max(_SHORT_TIMEOUT_US, 4 * whole_us))
    if "slow writes" not in group.needs:
        changes["checkpoint_interval_us"] = times * engine.checkpoint_interval_us
        changes["minimum_pause_us"] = times * engine.minimum_pause_us
    engine = msgspec.structs.replace(engine, **changes)
    target = forecast(stage.workload, stage.topology, engine)
    return msgspec.structs.replace(stage, engine=engine, target=target)


_SLOW_WRITES: dict[str, object] = {
    "nodes": 1,
    "read_interval_us": 400,
    "checkpoint_interval_us": 1_500,
    "snapshot_write_us": 3_500,
    "snapshot_mode": "asynchronous",
    "concurrent_checkpoints": 8,
    "minimum_pause_us": 0,
    "checkpoint_timeout_us": 40_000,
}
"""settings with which some write is in progress at any time, on the only node"""


_STATE_IN_FILES: dict[str, object] = {
    "state_backend": "lsm",
    "memtable_entries": 1,
    "compaction_files": 2,
    "compaction_us": 100,
}
"""settings with which nearly each record makes a file, and each file a compaction"""


def _with_state(recipe: Recipe) -> Recipe:
    """The recipe with operators only that put a value for each record, besides those in which inputs meet."""
    names = frozenset(name for kind in (Count(), Count(tagged=True), Sum(), Union()) for name in names_of(kind))
    known = names if recipe.operators is None else names & recipe.operators
    return msgspec.structs.replace(recipe, operators=known, tallies_percent=0)


RECOVERY_US = 3_000
"""about what a restart of the job takes"""


def _end_of(target: Forecast, group: TargetGroup) -> int:
    """When a job that does not end by itself is ended, after all its faults have fired and it has recovered from them:
    a coordinator that is down answers no command."""
    blows = sum(map(is_upsetting, group.pairs))
    return target.start_us + target.span_us + 4 * target.checkpoint_us + 12_000 + blows * RECOVERY_US


def _commands(choices: Choices, target: Forecast, group: TargetGroup, end_us: int) -> tuple[AnyCommand, ...]:
    when = _when_it_ends(target, group, end_us)
    if group.use is not None:
        return commands_of(choices, target, group.use, when, frozenset(cell for _, cell in group.pairs))
    commands: list[AnyCommand] = []
    if "savepoint" in group.needs:
        commands.append(Savepoint(trigger=AtTime(at_us=share_of(target, choices.between(45, 65)))))
    if group.ending in ("stopped", "drained"):
        commands.append(StopWithSavepoint(trigger=when, drain=group.ending == "drained"))
    elif group.ending == "cancelled":
        commands.append(Cancel(trigger=when))
    if group.ending != "finished":
        commands.append(Resume(trigger=AtTime(at_us=1_000)))
    return tuple(commands)


def _company(choices: Choices, target: Forecast, group: TargetGroup, end_us: int) -> tuple[AnyFault, ...]:
    """The accompanying faults that the targets need."""
    found: list[AnyFault] = []
    tasks = lasting(target, group)
    if "abort" in group.needs:
        found.append(plan.FailWrite(trigger=AtTime(at_us=0), task=choices.pick(tasks)))
    if "restart before" in group.needs:
        found.append(_restart_before(choices, group, tasks))
    if "restart after" in group.needs:
        late_us = (
            share_of(target, 85) if group.ending == "finished" else (target.start_us + target.span_us + end_us) // 2
        )
        found.append(plan.KillTask(trigger=AtTime(at_us=late_us), task=choices.pick(tasks)))
    if group.ending == "failed":
        found.append(plan.KillTask(trigger=_when_it_ends(target, group, end_us), task=choices.pick(tasks)))
    return tuple(found)


def _when_it_ends(target: Forecast, group: TargetGroup, end_us: int) -> AnyTrigger:
    """The trigger of the last fault or command, which ends the job."""
    if group.whole:
        again = group.kills_coordinator  # then another attempt reaches this point once more
        return AtPoint(point="end-of-partition-sent", occurrence=len(target.layout.channels) + again)
    return AtTime(at_us=end_us)


def _restart_before(choices: Choices, group: TargetGroup, tasks: tuple[str, ...]) -> AnyFault:
    """A restart with a snapshot to restore.  If a write must outlive it, the writer is paused meanwhile."""
    seasoned = AtPoint(point="checkpoint-completed", occurrence=1)
    if "slow writes" in group.needs:
        task = choices.pick(tasks)
        # the task's first snapshot is stored by then
        writing = AtPoint(point="snapshot-taken", occurrence=4, task=task)
        return plan.PauseTask(trigger=writing, task=task, for_us=60_000)
    if group.ending == "failed" and group.kills_coordinator:  # a new coordinator counts restarts from 0
        return plan.KillCoordinator(trigger=seasoned, down_us=1_000)
    return plan.KillTask(trigger=seasoned, task=choices.pick(tasks))


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {TARGETS: every_target}
