"""Jobs whose checkpoints share files: several at a time, aborted, subsumed and taken over, in chains without an end.

`verify` draws S6.  Only hunts draw the others: these jobs are small, and have few restarts.
"""

from __future__ import annotations

from msgspec.structs import replace

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtRest, AtTime
from ...scenario.forecast import Forecast, forecast
from ...scenario.model import AnyCommand, Fork, Resume, Savepoint, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_time, draw_fault, some_task
from ..stage import Frame, Stage, Template, stage_of

KEYED = frozenset({"count", "sum", "greater", "dedup", "join", "tumbling"})
KEYED_OR_MERGED = KEYED | {"union"}
LEAST_CHECKPOINTS = 8
"""in S6: as many as its sequence needs, and two more, since a forecast is rough"""


def one_retained(choices: Choices, frame: Frame) -> Scenario:
    """S6: incremental checkpoints, of which the newest alone is retained.  After the first or the second, one is
    aborted.  Then come a savepoint, a checkpoint, a crash, a checkpoint, and a crash."""
    recipe = frame.recipe(
        operators=_among(KEYED_OR_MERGED, frame),
        least_records=24,
        most_records=80,
        splits=(1, 2, 3),
        least_operators=1,
        most_operators=2,
        parallelism=(1, 2, 2, 3),
    )
    guarantees = tuple(one for one in ("exactly-once", "exactly-once", "at-least-once") if one in frame.guarantees)
    tuning = Tuning(
        guarantees=guarantees or ("at-most-once",), checkpoints=(7, 12), concurrent=(1, 1, 1, 2), memory_percent=0
    )
    stage = stage_of(
        choices,
        frame,
        recipe,
        tuning,
        snapshot_format="incremental",
        full_every=choices.pick((8, 16, 4, 2)),
        retained_checkpoints=1,
    )
    stage = _lasting(stage, LEAST_CHECKPOINTS)
    target, before = stage.target, choices.pick((1, 1, 2))
    faults = (
        _crash_behind(choices, target, before + 2),
        _next_aborted(choices, target, before),
        _crash_behind(choices, target, before + 3),
    )
    behind_the_abort = AtPoint(point="checkpoint-aborted", occurrence=1)
    when = behind_the_abort if choices.percent(80) else at_some_time(choices, target, share=(20, 60))
    return stage.scenario("S6", faults=faults[: max(1, frame.max_faults)], commands=(Savepoint(trigger=when),))


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
        operators=_among(KEYED, frame),
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


def _among(wanted: frozenset[str], frame: Frame) -> frozenset[str]:
    """The wanted operators that the subject knows; if it knows none of them, all that it knows."""
    return wanted if frame.operators is None else wanted & frame.operators or frame.operators


def _lasting(stage: Stage, checkpoints: int) -> Stage:
    """The stage with sources that read slowly enough for so many checkpoints, one after the other."""
    target = stage.target
    apart_us = max(target.checkpoint_us, stage.engine.checkpoint_interval_us) + stage.engine.minimum_pause_us
    times = max(1, -(-checkpoints * apart_us // target.span_us))
    engine = replace(stage.engine, read_interval_us=times * stage.engine.read_interval_us)
    return replace(stage, engine=engine, target=forecast(stage.workload, stage.topology, engine))


def _next_aborted(choices: Choices, target: Forecast, completed: int) -> AnyFault:
    """The checkpoint after so many complete ones is aborted: a task cannot write its snapshot.  If a newer checkpoint
    can complete before it, an acknowledgement may be lost instead."""
    when = AtPoint(point="checkpoint-completed", occurrence=completed)
    task = some_task(choices, target)
    if target.engine.concurrent_checkpoints > 1 and choices.percent(25):
        return plan.LoseMessage(trigger=when, message="ack", task=task)
    return plan.FailWrite(trigger=when, task=task)


def _crash_behind(choices: Choices, target: Forecast, completed: int) -> AnyFault:
    """A crash when so many snapshots are complete, a moment later, or while the next checkpoint is under way."""
    kind = choices.pick(("kill-task", "kill-task", "kill-coordinator", "kill-node"))
    point = choices.pick(("checkpoint-completed", "checkpoint-completed", "completion-notified", "snapshot-taken"))
    if point == "checkpoint-completed":
        when = AtPoint(point=point, occurrence=completed, side=choices.pick(("after", "after", "after", "before")))
    else:
        # a task has taken the snapshot of the aborted one too, and here takes one for the next
        occurrence = completed + 2 if point == "snapshot-taken" else completed
        when = AtPoint(point=point, task=some_task(choices, target), occurrence=occurrence)
    return draw_fault(choices, target, kind, when)


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


TEMPLATES: dict[str, Template] = {"S6": one_retained}
