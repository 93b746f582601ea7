"""Faults during a cancel, a resume, and the refusal of an incompatible snapshot.

Each of these takes only a few messages, so hardly one in fifty of the faults that are placed amid the data hits one.
Here the command is drawn first, and a fault is placed at it: at the user's request, at the cancelling of the tasks, or
at a step of the deployment that follows.
"""

from __future__ import annotations

import msgspec

from ....faults import plan
from ....faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime, InPhase, kind_of
from ...scenario.forecast import Forecast, forecast
from ...scenario.layout import topologies_of
from ...scenario.model import AnyCommand, Cancel, Engine, Resume, Scenario
from ...scenario.upgrades import is_refused
from ..choices import Choices
from ..coverage.target_groups import UPSETTING
from .draw_faults import draw_fault, possible

CANCELS_PERCENT = 40
RESUMES_PERCENT = 45
INCOMPATIBLE_PERCENT = 90
ASKED = "savepoint-requested"
"""the point at which the coordinator receives a command, whatever the command is"""


def with_hits(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with faults during its cancels and resumes; it gets no more than `most` faults in all.

    In real time the faults are triggered only by points, since times are not predictable there.  A refusal passes no
    point, so it gets no fault in real time.
    """
    found: list[AnyFault] = []
    target: Forecast | None = None
    for number, command in enumerate(scenario.commands):
        percent = _percent(command, scenario, real_time)
        if not percent or not choices.percent(percent):
            continue
        target = target or forecast(scenario.workload, scenario.topology, scenario.engine)
        if isinstance(command, Cancel):
            found.append(_amid_cancel(choices, scenario, target, number, real_time))
        elif is_refused(command, scenario.workload):
            found.extend(_amid_refusal(choices, scenario, number))
        else:
            found.append(_amid_resume(choices, scenario, number))
    faults = (*scenario.faults, *found)
    return msgspec.structs.replace(scenario, faults=faults[: max(most, len(scenario.faults))])


def _percent(command: AnyCommand, scenario: Scenario, real_time: bool) -> int:
    if is_refused(command, scenario.workload):
        return 0 if real_time else INCOMPATIBLE_PERCENT
    if isinstance(command, Resume):
        return RESUMES_PERCENT
    return CANCELS_PERCENT if isinstance(command, Cancel) else 0


# -- cancel --------------------------------------------------------------------------


def _amid_cancel(choices: Choices, scenario: Scenario, target: Forecast, number: int, real_time: bool) -> AnyFault:
    """A fault before the coordinator receives the cancel, as it does, or when the tasks are notified.  In virtual time
    it may also be while the coordinator stores its decision, or while the transactions are settled."""
    asked = scenario.commands[number].trigger
    if choices.percent(30):
        return _wayward(choices, "cancel", _as_asked(scenario, number, "before"), target.layout.tasks)
    if isinstance(asked, AtTime) and not real_time and choices.percent(40):
        later: AnyTrigger = AtTime(at_us=asked.at_us + _amid_closing(choices, scenario.engine))
        kind = choices.pick(("kill-coordinator", "kill-coordinator", "kill-task"))
        return draw_fault(choices, target, kind, later)
    kind = choices.pick(("kill-task", "kill-coordinator", "pause-task", "kill-node", "cut-channel"))
    return draw_fault(choices, target, kind, _as_asked(scenario, number, choices.pick(("after", "before"))))


def _as_asked(scenario: Scenario, number: int, side: str) -> AtPoint:
    """The point at which the coordinator receives a command: the n-th command, if all earlier ones were received."""
    asked = sum(not isinstance(command, Resume) for command in scenario.commands[: number + 1])
    return AtPoint(point=ASKED, occurrence=max(1, asked), side=side)


def _amid_closing(choices: Choices, engine: Engine) -> int:
    """A delay after a job began to close, in µs.  Its record is not stored yet, or it is stored and the job's sinks are
    being settled one after the other."""
    stored_us = engine.control_latency_us // 2
    settled_us = engine.transaction_us if engine.sink == "transactional" else 0
    return max(1, choices.pick((stored_us // 2, stored_us + settled_us, stored_us, stored_us + settled_us * 5 // 2)))


# -- resume --------------------------------------------------------------------------


def _amid_resume(choices: Choices, scenario: Scenario, number: int) -> AnyFault:
    """A fault while the tasks of the next job start: a starting task dies, another task dies, a message is lost, or a
    read fails."""
    resumes = [index for index, command in enumerate(scenario.commands) if isinstance(command, Resume)]
    job = resumes.index(number) + 1
    target = forecast(scenario.workload, topologies_of(scenario)[job], scenario.engine)
    if number and choices.percent(30):
        before = _as_asked(scenario, number - 1, "after")
        if choices.percent(30) and possible("fail-read", target):
            return plan.FailRead(trigger=before, task=choices.pick(target.layout.tasks))
        return _wayward(choices, choices.pick(("deploy", "running")), before, target.layout.tasks)
    return _as_one_comes_up(choices, scenario, number, target)


def _as_one_comes_up(choices: Choices, scenario: Scenario, number: int, target: Forecast) -> AnyFault:
    """At a step of a task's start in the job's first attempt, if no earlier attempt failed."""
    task = choices.pick(target.layout.tasks)
    point = choices.pick(("state-loaded", "task-deployed", "task-running"))
    ran = sum(isinstance(one, Resume) and not is_refused(one, scenario.workload) for one in scenario.commands[:number])
    ran += point != "state-loaded"  # the first job loads no state
    failed = choices.between(0, _upsets(scenario))
    trigger = AtPoint(point=point, occurrence=1 + ran + failed, task=task, side=choices.pick(("after", "before")))
    kind = choices.pick(("kill-task", "kill-task", "kill-node", "kill-coordinator", "pause-task"))
    blow = draw_fault(choices, target, kind, trigger)
    if not isinstance(blow, plan.KillTask | plan.PauseTask) or choices.percent(30):
        return blow
    # the fault hits this task itself, which exists by then; another may not exist yet
    return msgspec.structs.replace(blow, trigger=msgspec.structs.replace(trigger, side="after"), task=task)


def _upsets(scenario: Scenario) -> int:
    """How many attempts the faults of the scenario may end."""
    return sum(kind_of(fault) in UPSETTING for fault in scenario.faults)


# -- the refusal of an incompatible job ----------------------------------------------


def _amid_refusal(choices: Choices, scenario: Scenario, number: int) -> tuple[AnyFault, ...]:
    """The coordinator dies before or after the end of the job is durable; the next coordinator may at first fail to
    read its records.  No task of the job ever starts, so no other process can die."""
    failed, pause = _upsets(scenario), scenario.commands[number].trigger
    pause_us = pause.at_us if isinstance(pause, AtTime) else 0
    later_us = _amid_closing(choices, scenario.engine) + (pause_us if failed else 0)
    # If no attempt failed, the phase "recovering" first begins with the next coordinator; else with the job's end.
    trigger = InPhase(phase="recovering", occurrence=1 + failed, after_us=later_us)
    dies = plan.KillCoordinator(trigger=trigger, down_us=choices.pick((1_000, 5_000)))
    if number == 0 or scenario.engine.snapshot_store != "files" or not choices.percent(30):
        return (dies,)
    return dies, plan.FailRead(trigger=_as_asked(scenario, number - 1, "after"), task=None)


# -- shared ---------------------------------------------------------------------------


def _wayward(choices: Choices, message: str, trigger: AnyTrigger, tasks: tuple[str, ...]) -> AnyFault:
    """The next message of a kind is lost, late or repeated."""
    task = choices.pick((None, *tasks))
    sort = choices.between(0, 2)
    if sort == 0:
        return plan.LoseMessage(trigger=trigger, message=message, task=task)
    if sort == 1:
        return plan.LateMessage(trigger=trigger, message=message, task=task, by_us=choices.pick((2_000, 15_000)))
    return plan.RepeatMessage(trigger=trigger, message=message, task=task, after_us=choices.pick((1_000, 5_000)))
