"""S10: an enumerator and its readers; an assignment or its answer is lost, a reader fails.

The interesting moments are short: a split is assigned between the cuts of the enumerator
and of the reader, or it is taken back and not yet assigned again when the next checkpoint
begins.  So splits are many and short, triggers arrive late at one reader, and a second
failure follows the first.
"""

from __future__ import annotations

from ....faults import plan
from ....faults.plan import AnyFault, AtTime
from ...scenario.forecast import Forecast
from ...scenario.model import Perturbation, Scenario
from ..choices import Choices
from ..engines import Tuning
from ..faults.draw_faults import at_some_step, at_some_time, draw_fault, early
from ..stage import Frame, Template, stage_of
from . import extras

ASSIGNING = ("assign", "assigned", "ask", "assign", "running", "trigger", "ack")
"""the messages by which a split is assigned to its reader"""


def splits_given_out(choices: Choices, frame: Frame) -> Scenario:
    recipe = frame.recipe(
        most_records=60,
        shapes=("chain", "chain", "union"),
        splits=(4, 3, 5, 2),
        windows_percent=0,
        enumerated_percent=100,
        parallelism=(2, 2, 1, 3),
        most_operators=2,
        unbounded_percent=20,
    )
    tuning = Tuning(guarantees=_guarantees(frame), checkpoints=(4, 9), concurrent=(1, 1, 2), memory_percent=5)
    stage = stage_of(choices, frame, recipe, tuning)
    target = stage.target
    faults: tuple[AnyFault, ...] = (_blow(choices, target),)
    if choices.percent(50):
        faults = (*faults, _lost_on_the_way(choices, target))
    if choices.percent(40):
        faults = (*faults, extras.kill(choices, target))
    late = (_late_order(choices, target),) if choices.percent(60) else ()
    commands = extras.mixed_commands(choices, target) if choices.percent(20) else ()
    return stage.scenario("S10", faults=faults[: max(1, frame.max_faults)], commands=commands, deviations=late)


def _guarantees(frame: Frame) -> tuple[str, ...]:
    known = [name for name in ("exactly-once", "exactly-once", "at-least-once") if name in frame.guarantees]
    return tuple(known) or tuple(sorted(frame.guarantees))


def _blow(choices: Choices, target: Forecast) -> AnyFault:
    """A reader or another task dies: during a checkpoint, amid its records, or soon after its start."""
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator"))
    if kind == "kill-task" and choices.percent(70):
        when = at_some_time(choices, target) if choices.percent(50) else at_some_step(choices, target)
        return plan.KillTask(trigger=when, task=choices.pick(target.layout.sources))
    return draw_fault(choices, target, kind, at_some_step(choices, target))


def _lost_on_the_way(choices: Choices, target: Forecast) -> AnyFault:
    message = choices.pick(ASSIGNING)
    task = choices.pick((None, *target.layout.sources))
    when = AtTime(at_us=0) if choices.percent(30) else early(choices, target)
    wrong = choices.between(0, 2)
    if wrong == 0:
        by_us = choices.pick((target.checkpoint_us, 4 * target.checkpoint_us, 20_000))
        return plan.LateMessage(trigger=when, message=message, task=task, by_us=by_us)
    if wrong == 1:
        return plan.RepeatMessage(trigger=when, message=message, task=task, after_us=target.checkpoint_us)
    return plan.LoseMessage(trigger=when, message=message, task=task)


def _late_order(choices: Choices, target: Forecast) -> Perturbation:
    """A late trigger to one reader, to which a split may be assigned meanwhile; or a late assignment."""
    kind = choices.pick(("trigger", "trigger", "assign"))
    most = target.checkpoints if kind == "trigger" else 4
    by_us = target.engine.checkpoint_interval_us * choices.pick((2, 1, 4)) // 2
    what = f"control {kind} {choices.pick(target.layout.sources)}"
    return Perturbation(what=what, occurrence=choices.between(1, most), by_us=by_us)


TEMPLATES: dict[str, Template] = {"S10": splits_given_out}
