"""Template `cells`: every possible cell of the coverage in turn, each fault brought to its point.

A free draw comes to a few cells often and to most never.  Here the cell is
drawn first (`coverage.possible_cells`), and the scenario built so that the
fault fires there: an engine that waits for it, an input that ends early where
the point is the end of one, and company where the point or the fault needs it
(a failing read needs a restart, the end of a job by failure a last blow).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...faults import plan
from ...faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime
from ...properties.workload import Workload
from ..forecast import Forecast
from ..scenario import AnyCommand, Cancel, Resume, Savepoint, Scenario, StopWithSavepoint
from .aimed import aimed_at, lasting, share_of
from .aims import Aim, draw_aim
from .choices import Choices
from .engines import Tuning
from .stage import Frame, Stage, stage_of
from .workloads import draw_workload

CELLS = "cells"


def every_cell(choices: Choices, frame: Frame) -> Scenario:
    """One cell that is drawn from all that are possible, and others beside it that need no more than it."""
    aim = draw_aim(choices, frame)
    stage = _stage(choices, frame, aim)
    end_us = _end_of(stage.target)
    company = _company(choices, stage.target, aim, end_us)
    aimed = tuple(aimed_at(choices, stage.target, aim, pair) for pair in aim.pairs)
    commands = _commands(choices, stage.target, aim, end_us)
    return stage.scenario(CELLS, faults=(*aimed, *company)[: max(1, frame.max_faults)], commands=commands)


def _stage(choices: Choices, frame: Frame, aim: Aim) -> Stage:
    """Inputs that do not end where something else ends the job; one that ends early where that is the point."""
    endless = aim.ending != "finished" and not aim.whole
    recipe = frame.recipe(
        most_records=48,
        least_records=24,
        shapes=("union",) if aim.apart else ("chain", "chain", "union"),
        splits=(1,) if aim.apart else (1, 2),
        idempotent=aim.sink == "idempotent",
        unbounded_percent=100 if endless and not aim.apart else 0,
        mixed_percent=100 if endless and aim.apart else 0,
        windows_percent=0,
        least_operators=1,
        most_operators=2,
        parallelism=(1, 1, 2),
    )
    tuning = Tuning(
        guarantees=(aim.guarantee,), sinks=(aim.sink,), concurrent=(1, 1, 2), checkpoints=(5, 7), memory_percent=0
    )
    settings: dict[str, object] = {}
    if aim.ending == "failed":
        settings["restart_attempts"] = len(aim.needs & {"restart before", "restart after"})
    if "slow writes" in aim.needs:
        settings |= _SLOW_WRITES
    if aim.apart and frame.workload is None:
        frame = msgspec.structs.replace(frame, workload=_cut_short(draw_workload(choices, recipe), aim))
    return stage_of(choices, frame, recipe, tuning, **settings)


def _cut_short(workload: Workload, aim: Aim) -> Workload:
    """The first input ends long before the others; not before the first writes where those are needed."""
    share = 75 if "slow writes" in aim.needs else 33
    first, *others = workload.inputs
    splits = tuple(records[: -(-len(records) * share // 100)] for records in first.splits)
    return msgspec.structs.replace(workload, inputs=(msgspec.structs.replace(first, splits=splits), *others))


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
"""some write is under way at any time, on the one node that there is"""


def _end_of(target: Forecast) -> int:
    """When a job that does not end by itself is ended: all that was aimed has come by then."""
    return target.start_us + target.span_us + 4 * target.checkpoint_us + 12_000


def _commands(choices: Choices, target: Forecast, aim: Aim, end_us: int) -> tuple[AnyCommand, ...]:
    commands: list[AnyCommand] = []
    if "savepoint" in aim.needs:
        commands.append(Savepoint(trigger=AtTime(at_us=share_of(target, choices.between(45, 65)))))
    when = _when_it_ends(target, aim, end_us)
    if aim.ending in ("stopped", "drained"):
        commands.append(StopWithSavepoint(trigger=when, drain=aim.ending == "drained"))
    elif aim.ending == "cancelled":
        commands.append(Cancel(trigger=when))
    if aim.ending != "finished":
        commands.append(Resume(trigger=AtTime(at_us=1_000)))
    return tuple(commands)


def _company(choices: Choices, target: Forecast, aim: Aim, end_us: int) -> tuple[AnyFault, ...]:
    """What the cells need beside the faults that are counted in them."""
    found: list[AnyFault] = []
    tasks = lasting(target, aim)
    if "abort" in aim.needs:
        found.append(plan.FailWrite(trigger=AtTime(at_us=0), task=choices.pick(tasks)))
    if "restart before" in aim.needs:
        found.append(_restart_before(choices, aim, tasks))
    if "restart after" in aim.needs:
        late_us = share_of(target, 85) if aim.ending == "finished" else (target.start_us + target.span_us + end_us) // 2
        found.append(plan.KillTask(trigger=AtTime(at_us=late_us), task=choices.pick(tasks)))
    if aim.ending == "failed":
        found.append(plan.KillTask(trigger=_when_it_ends(target, aim, end_us), task=choices.pick(tasks)))
    return tuple(found)


def _when_it_ends(target: Forecast, aim: Aim, end_us: int) -> AnyTrigger:
    """When the last blow or command comes."""
    if aim.whole:
        again = any(kind == "kill-coordinator" for _, kind in aim.pairs)  # then another attempt ends once more
        return AtPoint(point="end-of-partition-sent", occurrence=len(target.layout.channels) + again)
    return AtTime(at_us=end_us)


def _restart_before(choices: Choices, aim: Aim, tasks: tuple[str, ...]) -> AnyFault:
    """A restart with something to restore; where a write must outlive it, its writer stands still meanwhile."""
    seasoned = AtPoint(point="checkpoint-completed", occurrence=1)
    if "slow writes" in aim.needs:
        return plan.PauseTask(trigger=seasoned, task=choices.pick(tasks), for_us=60_000)
    return plan.KillTask(trigger=seasoned, task=choices.pick(tasks))


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {CELLS: every_cell}
