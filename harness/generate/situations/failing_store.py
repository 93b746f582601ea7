"""A store of snapshots whose writes are torn or lose their names, and whose deletes fail; then something dies.

Only hunts draw it: `verify` draws these faults in every template.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint
from ...scenario.forecast import Forecast
from ...scenario.model import Scenario
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_time, some_task
from ..faults.file_faults import some_delete
from ..stage import Frame, stage_of
from .local import with_engine
from .unaligned import Crowd, crowded_stage


def failing_store(choices: Choices, frame: Frame) -> Scenario:
    """One fault on the files of a snapshot, and mostly a crash of a task or of the coordinator behind it."""
    recipe = frame.recipe(most_records=40, least_records=12, most_operators=1, parallelism=(1, 1, 2), splits=(1, 2))
    guarantees = tuple(one for one in ("exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(guarantees=guarantees or ("at-most-once",), checkpoints=(4, 9), memory_percent=0)
    stage = stage_of(choices, frame, recipe, tuning, retained_checkpoints=choices.pick((1, 1, 2)), restart_attempts=4)
    target = stage.target
    faults: tuple[AnyFault, ...] = (_on_files(choices, target),)
    if choices.percent(70):
        faults = (*faults, _crash(choices, target))
    return stage.scenario("failing-store", faults=faults[: frame.max_faults])


def undeleted_record(choices: Choices, frame: Frame) -> Scenario:
    """The record of a checkpoint with data in flight cannot be deleted, and the coordinator dies about then.  The next
    one finds the record, and may have nothing newer to restore."""
    recipe = frame.recipe(most_records=40, least_records=12, most_operators=1, parallelism=(1, 1, 2), splits=(1, 2))
    crowd = Crowd(capacities=(3, 4, 8), alignments=("in-turn", "timeout", "unaligned"))
    stage = crowded_stage(choices, frame, recipe, Tuning(checkpoints=(4, 9), memory_percent=0), crowd=crowd)
    stage = with_engine(stage, msgspec.structs.replace(stage.engine, retained_checkpoints=1, restart_attempts=4))
    number = choices.pick((1, 1, 2))
    undeleted = plan.FailWrite(
        trigger=AtPoint(point="checkpoint-triggered", occurrence=number), task=None, what="delete-record"
    )
    lost = plan.KillCoordinator(
        trigger=AtPoint(point="checkpoint-completed", occurrence=number + choices.pick((0, 0, 1))),
        down_us=choices.pick((2_000, 5_000)),
    )
    return stage.scenario("undeleted-record", faults=(undeleted, lost)[: frame.max_faults])


def _on_files(choices: Choices, target: Forecast) -> AnyFault:
    number = choices.between(1, max(1, target.checkpoints))
    if choices.percent(50):
        when = AtPoint(point="checkpoint-triggered", occurrence=number)
        return plan.FailWrite(trigger=when, task=None, what=some_delete(choices))
    task = some_task(choices, target)
    when = AtPoint(point="snapshot-taken", task=task, occurrence=number)
    return plan.TearWrite(trigger=when, task=task, how=choices.pick(("lost-link", "torn")))


def _crash(choices: Choices, target: Forecast) -> AnyFault:
    if choices.percent(50):
        return plan.KillTask(trigger=at_some_time(choices, target, share=(40, 95)), task=some_task(choices, target))
    number = choices.between(2, max(2, target.checkpoints))
    return plan.KillCoordinator(
        trigger=AtPoint(point="checkpoint-completed", occurrence=number), down_us=choices.pick((2_000, 5_000))
    )


HUNTED: dict[str, Callable[[Choices, Frame], Scenario]] = {
    "failing-store": failing_store,
    "undeleted-record": undeleted_record,
}
