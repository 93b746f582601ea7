"""Jobs whose checkpoints share files: several at a time, aborted, subsumed and taken over, in chains without an end.

Only hunts draw them.  The jobs are small, have state by key, and few restarts.
"""

from __future__ import annotations

from msgspec.structs import replace

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtRest, AtTime
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_time, some_task
from ..stage import Frame, Stage, stage_of

KEYED = frozenset({"count", "sum", "greater", "dedup", "join", "tumbling"})


def shared_files(choices: Choices, frame: Frame) -> Scenario:
    """Incremental checkpoints, some of which are aborted, and then a crash of a task or of the coordinator."""
    stage = _incremental(choices, frame, concurrent=(2, 3, 1))
    target = stage.target
    trouble = (_aborted(choices, target), _crash(choices, target), _aborted(choices, target))
    faults = trouble[: max(1, min(frame.max_faults, choices.between(1, 3)))]
    return stage.scenario("shared-files", faults=faults)


def inherited_files(choices: Choices, frame: Frame) -> Scenario:
    """A job with incremental checkpoints and an incremental savepoint is stopped, and another job goes on from it."""
    stage = _incremental(choices, frame, concurrent=(1, 2))
    target = stage.target
    own: tuple[AnyCommand, ...] = (
        Savepoint(trigger=at_some_time(choices, target, share=(20, 50)), format="incremental"),
        StopWithSavepoint(
            trigger=at_some_time(choices, target, share=(40, 80)), format=choices.pick(("incremental", "native"))
        ),
    )
    commands = own if choices.percent(70) else own[1:]
    resume = Resume(trigger=AtTime(at_us=choices.pick((1_000, 0))))
    faults = (_crash(choices, target),) if choices.percent(30) else ()
    return stage.scenario("inherited-files", faults=faults, commands=(*commands, resume))


def forked_increments(choices: Choices, frame: Frame) -> Scenario:
    """Newer incremental checkpoints subsume older ones, whose files they share.  Nothing fails, and nothing restarts.
    At rest a job is forked from each retained checkpoint, and shows whether this can be restored."""
    stage = _incremental(choices, frame, concurrent=(1, 1, 2))
    stage = replace(stage, engine=replace(stage.engine, retained_checkpoints=choices.pick((2, 1, 3))))
    commands = (Fork(trigger=AtRest()),) if frame.knows_forks else ()
    return stage.scenario("forked-increments", commands=commands)


def _incremental(choices: Choices, frame: Frame, *, concurrent: tuple[int, ...]) -> Stage:
    recipe = frame.recipe(
        operators=KEYED if frame.operators is None else KEYED & frame.operators or frame.operators,
        least_records=16,
        most_records=48,
        shapes=("chain", "chain", "join"),
        splits=(1, 2),
        least_operators=1,
        most_operators=1,
        unbounded_percent=0,
        two_phase_percent=0,
        enumerated_percent=0,
        parallelism=(1, 1, 2),
    )
    tuning = Tuning(checkpoints=(5, 10), concurrent=concurrent, memory_percent=0)
    return stage_of(
        choices,
        frame,
        recipe,
        tuning,
        snapshot_format="incremental",
        full_every=choices.pick((8, 16, 4)),
        retained_checkpoints=choices.pick((1, 1, 2)),
        tolerated_failures=4,
        restart_attempts=4,
    )


def _aborted(choices: Choices, target: Forecast) -> AnyFault:
    """A checkpoint after the first is aborted: a task cannot write its snapshot, or an acknowledgement is lost."""
    number = choices.between(2, max(2, target.checkpoints))
    when = AtPoint(point="snapshot-taken", task=(task := some_task(choices, target)), occurrence=number)
    if choices.percent(70):
        return plan.FailWrite(trigger=when, task=task)
    return plan.LoseMessage(trigger=when, message="ack", task=task)


def _crash(choices: Choices, target: Forecast) -> AnyFault:
    """A task dies, or the coordinator does when a checkpoint is complete."""
    if choices.percent(50):
        return plan.KillTask(trigger=at_some_time(choices, target, share=(40, 95)), task=some_task(choices, target))
    number = choices.between(2, max(2, target.checkpoints))
    point = choices.pick(("checkpoint-completed", "completion-notified", "checkpoint-triggered"))
    return plan.KillCoordinator(
        trigger=AtPoint(point=point, occurrence=number), down_us=target.engine.checkpoint_interval_us
    )
