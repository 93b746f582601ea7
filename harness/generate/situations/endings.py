"""Templates around the end of a job: in S8 its input ends piece by piece, in S9 its user stops it.

Many conditions meet only at the end of a job: finished tasks, a checkpoint that must be the
last, and a notification that is sent once and must not be lost.
"""

from __future__ import annotations

from collections.abc import Callable

from ....faults import plan
from ....faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime, InPhase
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Perturbation, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import draw_fault, possible
from ..faults.stop_races import as_another, racing_stops
from ..stage import Frame, stage_of
from . import extras

LAST_WORDS = ("complete", "terminate", "finished", "ended", "trigger", "ack")
"""the control messages on which the end of a job depends"""

ENDS = ("end-of-data-sent", "end-of-partition-sent")


def inputs_end_apart(choices: Choices, frame: Frame) -> Scenario:
    """S8: inputs, or subtasks of one, end long before others, some of which may never end.  A message of the end is
    lost, late or repeated; or a task, a node or the coordinator dies at a step of the end; or both."""
    recipe = frame.recipe(
        most_records=60,
        shapes=("chain", "union", "union", "join"),
        splits=(2, 2, 3),
        apart=True,
        unbounded_percent=10,
        mixed_percent=35,
        parallelism=(1, 2, 2, 3),
        most_operators=2,
    )
    stage = stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 8), concurrent=(1, 1, 2), memory_percent=6))
    target = stage.target
    faults: tuple[AnyFault, ...] = _lost_words(choices, target) if choices.percent(65) else ()
    if not faults or choices.percent(65):
        faults = (*faults, _blow(choices, target, amid_the_end(choices, target)))
    if choices.percent(25):
        faults = (*faults, extras.kill(choices, target))
    late = (_late_word(choices, target),) if choices.percent(35) else ()
    return stage.scenario("S8", faults=faults[: max(1, frame.max_faults)], deviations=late)


def stopped(choices: Choices, frame: Frame) -> Scenario:
    """S9: a stop or a drain, at times while the input ends by itself, at times in a race with another command.  Its
    savepoint may fail, and a task, a node or the coordinator may die while it commits.  Mostly the job is then resumed.
    Half of these jobs are first resumed with an additional operator, which is refused."""
    race = choices.percent(35)
    sink = choices.pick(("transactional", "transactional", "transactional", "idempotent"))
    sink = sink if sink in frame.sinks else min(frame.sinks)
    recipe = frame.recipe(
        most_records=60,
        shapes=("chain", "union", "union", "join") if race else ("chain", "union", "join"),
        idempotent=sink == "idempotent",
        apart=choices.percent(40),
        unbounded_percent=25,
        mixed_percent=60 if race else 30,
        windows_percent=50 if race else 25,
        batches_percent=25,
        parallelism=(1, 1, 2),
        most_operators=2,
    )
    stage = stage_of(choices, frame, recipe, Tuning(sinks=(sink,), checkpoints=(2, 6), memory_percent=6))
    target = stage.target
    asked = _at_the_natural_end(choices, target) if choices.percent(40) else _amid_reading(choices, target)
    commands: tuple[AnyCommand, ...] = (StopWithSavepoint(trigger=asked, drain=choices.percent(45)),)
    if race:
        commands = racing_stops(choices, target, asked)
    elif choices.percent(10):  # the user does not wait for the stop
        commands = (*commands, Cancel(trigger=AtPoint(point=choices.pick(_LAST_STEPS), occurrence=target.checkpoints)))
    faults: tuple[AnyFault, ...] = ()
    if choices.percent(45):
        faults = (_aborted(choices, target),)
    if choices.percent(50):
        faults = (*faults, _blow(choices, target, _amid_commit(choices, target)))
    if choices.percent(25):
        faults = (*faults, *_lost_words(choices, target))
    if choices.percent(65):
        incompatible = as_another(choices, target) if choices.percent(50) else ()
        commands = (*commands, *incompatible, Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000)))))
        faults = (*faults, extras.kill(choices, target)) if choices.percent(30) else faults
    return stage.scenario("S9", faults=faults[: frame.max_faults], commands=commands)


# -- what goes wrong -----------------------------------------------------------------


def _lost_words(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """One of the messages of the end is lost, late or repeated: the first of its kind, or one near the end."""
    message = choices.pick(LAST_WORDS)
    tasks = target.layout.tasks
    task = choices.pick((None, *tasks))
    trigger: AnyTrigger = AtTime(at_us=0)
    if message in ("complete", "trigger", "ack") or choices.percent(30):
        trigger = amid_the_end(choices, target)
    sort = choices.between(0, 3)
    if sort == 1:
        by_us = target.checkpoint_us * choices.pick((1, 2, 6))
        return (plan.LateMessage(trigger=trigger, message=message, task=task, by_us=by_us),)
    if sort == 2:
        after_us = choices.pick((100, target.checkpoint_us, 4 * target.checkpoint_us))
        return (plan.RepeatMessage(trigger=trigger, message=message, task=task, after_us=after_us),)
    return (plan.LoseMessage(trigger=trigger, message=message, task=task),)


def _late_word(choices: Choices, target: Forecast) -> Perturbation:
    """A message on which the end depends is late: the first or the second of its kind from or to one task."""
    what = f"control {choices.pick(LAST_WORDS)} {choices.pick(target.layout.tasks)}"
    by_us = target.checkpoint_us * choices.pick((1, 2, 6)) // 2
    return Perturbation(what=what, occurrence=choices.between(1, 2), by_us=by_us)


def _blow(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator", "pause-task"))
    return draw_fault(choices, target, kind, trigger)


def _aborted(choices: Choices, target: Forecast) -> AnyFault:
    """A fault that makes the savepoint of a stop fail: a failing write, or an acknowledgement that arrives
    about when the checkpoint times out, or later."""
    asked = AtPoint(point="savepoint-requested")
    if choices.percent(50):
        return plan.FailWrite(trigger=asked, task=choices.pick((*target.layout.tasks, None)))
    by_us = target.engine.checkpoint_timeout_us + choices.pick((1_000, -1_000, 20_000))
    return plan.LateMessage(trigger=asked, message="ack", task=choices.pick(target.layout.tasks), by_us=by_us)


# -- when ----------------------------------------------------------------------------


def amid_the_end(choices: Choices, target: Forecast) -> AnyTrigger:
    """At a step of the job's end: of data, of a partition, of one of its last checkpoints."""
    sort, side = choices.between(0, 9), choices.pick(("after", "before"))
    if sort < 4:
        task = choices.pick(target.layout.sources + target.layout.operators)
        return AtPoint(point=choices.pick(ENDS), occurrence=choices.between(1, 2), task=task, side=side)
    if sort < 6:
        return InPhase(phase="finishing", after_us=target.checkpoint_us * choices.between(0, 8) // 4)
    if sort < 9:
        return AtTime(at_us=target.start_us + target.span_us * choices.between(40, 105) // 100)
    return AtPoint(point=choices.pick(_LAST_STEPS), occurrence=_one_of_the_last(choices, target), side=side)


_LAST_STEPS = ("checkpoint-completed", "checkpoint-triggered", "checkpoint-acknowledged")


def _one_of_the_last(choices: Choices, target: Forecast) -> int:
    return max(1, target.checkpoints + choices.between(-2, 2))


def _amid_commit(choices: Choices, target: Forecast) -> AnyTrigger:
    commits = ("commit-requested", "commit-answered") if possible("fail-commit", target) else ()
    point = choices.pick(("checkpoint-completed", "checkpoint-acknowledged", *commits))
    task = choices.pick(target.layout.committing) if point.startswith("commit-") else None
    occurrence = choices.between(1, target.checkpoints + 1)
    return AtPoint(point=point, occurrence=occurrence, task=task, side=choices.pick(("after", "before")))


def _at_the_natural_end(choices: Choices, target: Forecast) -> AnyTrigger:
    """When the input ends by itself, or shortly before."""
    if choices.percent(50):
        return amid_the_end(choices, target)
    by_us = target.checkpoint_us * choices.pick((0, -1, 1, 2)) // 2
    return AtTime(at_us=max(0, target.start_us + target.span_us + by_us))


def _amid_reading(choices: Choices, target: Forecast) -> AnyTrigger:
    if choices.percent(30):
        return AtPoint(point="checkpoint-triggered", occurrence=choices.between(1, target.checkpoints))
    return AtTime(at_us=target.start_us + target.span_us * choices.between(10, 95) // 100)


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"S8": inputs_end_apart, "S9": stopped}
