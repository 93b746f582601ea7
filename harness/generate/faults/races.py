"""Narrow races: two events within a step or two of each other, which random drawing seldom has.

Each is a situation in which some engine once failed (the planted defects are modelled on them).  One event is drawn,
and the other is placed close to it.
"""

from __future__ import annotations

from collections.abc import Callable

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime
from ...scenario.forecast import Forecast
from ...scenario.model import Perturbation, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning, strongest
from ..stage import Frame, stage_of
from .draw_faults import at_some_time


def late_acknowledgement(choices: Choices, frame: Frame) -> Scenario:
    """An acknowledgement so late that it arrives after the next checkpoints, or in another attempt."""
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(concurrent=(2, 3), checkpoints=(5, 10)))
    target = stage.target
    number = choices.between(1, max(1, target.checkpoints - 1))
    late = Perturbation(
        what=f"control ack {choices.pick(target.layout.tasks)}",
        occurrence=number,
        by_us=target.engine.checkpoint_interval_us * choices.pick((1, 2, 4, 10)),
    )
    blow = _blow(choices, target, "checkpoint-acknowledged", choices.between(number, number + 1))
    return stage.scenario("late-acknowledgement", faults=(blow,), deviations=(late,))


def unreadable_record(choices: Choices, frame: Frame) -> Scenario:
    """A coordinator dies with two retained checkpoints, and a read of the next coordinator fails at first."""
    tuning = Tuning(checkpoints=(4, 8), memory_percent=0)
    stage = stage_of(choices, frame, frame.recipe(most_records=60), tuning, retained_checkpoints=2)
    target = stage.target
    number = choices.between(2, max(2, target.checkpoints - 1))
    lost = AtPoint(point="completion-notified", occurrence=number, task=choices.pick(target.layout.sinks))
    faults = (plan.FailRead(trigger=AtTime(at_us=0), task=None), plan.KillCoordinator(trigger=lost))
    return stage.scenario("unreadable-record", faults=faults)


def crash_after_savepoint(choices: Choices, frame: Frame) -> Scenario:
    """A savepoint and a crash soon after it; or a stop with a savepoint, after which the order to terminate is late for
    a task."""
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(checkpoints=(1, 4)))
    target = stage.target
    asked = at_some_time(choices, target, share=(10, 70))
    later_us = target.checkpoint_us + choices.pick((0, 1, 2, 4)) * target.checkpoint_us // 2
    blow = plan.KillTask(trigger=AtTime(at_us=asked.at_us + later_us), task=choices.pick(target.layout.tasks))
    if choices.percent(60):
        return stage.scenario("crash-after-savepoint", faults=(blow,), commands=(Savepoint(trigger=asked),))
    late = plan.LateMessage(trigger=asked, message="terminate", by_us=10_000)
    stop = StopWithSavepoint(trigger=asked, drain=choices.percent(50))
    return stage.scenario("crash-after-savepoint", faults=(late,), commands=(stop,))


def zombie_upsert(choices: Choices, frame: Frame) -> Scenario:
    """A sink is paused and declared lost.  It comes back as a zombie, to a table that its replacement has changed."""
    idempotent = "idempotent" in frame.sinks
    recipe = frame.recipe(most_records=60, idempotent=idempotent, unbounded_percent=70)
    stage = stage_of(
        choices, frame, recipe, Tuning(sinks=("idempotent",) if idempotent else (min(frame.sinks),), checkpoints=(3, 6))
    )
    target = stage.target
    pause = plan.PauseTask(
        trigger=at_some_time(choices, target, share=(20, 95)),
        task=choices.pick(target.layout.sinks),
        for_us=choices.pick((40_000, 15_000, 80_000)),
    )
    return stage.scenario("zombie-upsert", faults=(pause,))


def crash_before_commit(choices: Choices, frame: Frame) -> Scenario:
    """A task that commits dies when a checkpoint completes, or when it requests a commit.  Mostly an acknowledgement of
    an earlier checkpoint is lost too, so that two transactions await their commit."""
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(concurrent=(2, 3), checkpoints=(4, 8)))
    target = stage.target
    number = choices.between(1, max(1, target.checkpoints - 2))
    lost = plan.LoseMessage(
        trigger=AtPoint(point="checkpoint-triggered", occurrence=number),
        message="ack",
        task=choices.pick(target.layout.tasks),
    )
    point = choices.pick(("checkpoint-completed", "commit-requested"))
    task = None if point == "checkpoint-completed" else choices.pick(target.layout.committing)
    when = AtPoint(point=point, occurrence=choices.between(1, number + 1), task=task)
    blow = plan.KillTask(trigger=when, task=choices.pick(target.layout.committing))
    faults: tuple[AnyFault, ...] = (blow, lost) if choices.percent(60) else (blow,)
    return stage.scenario("crash-before-commit", faults=faults)


def crash_after_reuse(choices: Choices, frame: Frame) -> Scenario:
    """A checkpoint does not complete because an acknowledgement is lost.  The sink goes on to reuse a transactional id,
    and a task dies at some time."""
    tuning = Tuning(concurrent=(1,), checkpoints=(3, 5), guarantees=(strongest(frame.guarantees),))
    stage = stage_of(choices, frame, frame.recipe(least_records=30), tuning, committing="writer", pooled_ids=True)
    target = stage.target
    number = choices.between(2, max(2, target.checkpoints))
    lost = plan.LoseMessage(
        trigger=AtPoint(point="checkpoint-triggered", occurrence=number),
        message="ack",
        task=choices.pick(target.layout.tasks),
    )
    blow = plan.KillTask(trigger=at_some_time(choices, target), task=choices.pick(target.layout.tasks))
    return stage.scenario("crash-after-reuse", faults=(blow, lost)[: max(1, frame.max_faults)])


def slow_restore(choices: Choices, frame: Frame) -> Scenario:
    """After a crash one task takes long to read its snapshot, while the others are ready."""
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(checkpoints=(3, 7)))
    target = stage.target
    slow = Perturbation(
        what=f"read {choices.pick(target.layout.tasks)}",
        occurrence=1,
        by_us=target.checkpoint_us * choices.pick((1, 2, 6)),
    )
    number = choices.between(1, max(1, target.checkpoints - 1))
    blow = _blow(choices, target, "completion-notified", number * len(target.layout.tasks))
    return stage.scenario("slow-restore", faults=(blow,), deviations=(slow,))


def slow_record(choices: Choices, frame: Frame) -> Scenario:
    """The write of a checkpoint's record is slow.  A task dies meanwhile; or an acknowledgement is repeated meanwhile,
    and a task dies after the checkpoint."""
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(checkpoints=(3, 7), memory_percent=0))
    target = stage.target
    number = choices.between(1, target.checkpoints)
    slow = Perturbation(
        what="write coordinator", occurrence=number, by_us=target.checkpoint_us * choices.pick((1, 2, 6))
    )
    blow = _blow(choices, target, "checkpoint-acknowledged", number)
    faults: tuple[AnyFault, ...] = (blow,)
    if choices.percent(50):
        again = plan.RepeatMessage(
            trigger=AtPoint(point="checkpoint-triggered", occurrence=number),
            message="ack",
            task=choices.pick(target.layout.tasks),
            after_us=max(10, target.checkpoint_us * choices.pick((1, 2, 4)) // 4),
        )
        faults = (_blow(choices, target, "completion-notified", number * len(target.layout.tasks)), again)
    return stage.scenario("slow-record", faults=faults, deviations=(slow,))


def crash_while_waiting(choices: Choices, frame: Frame) -> Scenario:
    """A crash when all input is read and timers in processing time are pending: no record follows that wakes a task."""
    recipe = frame.recipe(shapes=("chain", "union"), most_records=40, clocked_percent=100, unbounded_percent=100)
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 7)))
    target = stage.target
    waited_us = target.checkpoint_us * choices.between(1, 6)
    trigger = AtTime(at_us=target.start_us + target.span_us + waited_us)
    blow = plan.KillTask(trigger=trigger, task=choices.pick(target.layout.tasks))
    return stage.scenario("crash-while-waiting", faults=(blow,))


def last_restart(choices: Choices, frame: Frame) -> Scenario:
    """One or two nodes die, and the job has as many restarts: the last restart must succeed, also if several tasks die
    at once or the second node dies during the first restart."""
    times = choices.pick((1, 2))
    stage = stage_of(choices, frame, frame.recipe(most_records=60), Tuning(checkpoints=(3, 7)), restart_attempts=times)
    target = stage.target
    faults: list[AnyFault] = []
    for _ in range(times):
        node = choices.between(0, target.engine.nodes - 1)
        faults.append(plan.KillNode(trigger=at_some_time(choices, target, share=(20, 90)), node=node))
    return stage.scenario("last-restart", faults=tuple(faults[: max(1, frame.max_faults)]))


def _blow(choices: Choices, target: Forecast, point: str, occurrence: int) -> AnyFault:
    return plan.KillTask(
        trigger=AtPoint(point=point, occurrence=max(1, occurrence)), task=choices.pick(target.layout.tasks)
    )


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {
    "late-acknowledgement": late_acknowledgement,
    "unreadable-record": unreadable_record,
    "crash-after-savepoint": crash_after_savepoint,
    "zombie-upsert": zombie_upsert,
    "crash-before-commit": crash_before_commit,
    "crash-after-reuse": crash_after_reuse,
    "slow-restore": slow_restore,
    "slow-record": slow_record,
    "last-restart": last_restart,
    "crash-while-waiting": crash_while_waiting,
}
