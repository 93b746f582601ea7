"""Messages that are still under way when their job has ended and another has followed it.

A resume comes some time after the end of the job before, so what was sent last has mostly arrived by then.  Here one
message of the former job is held back until the next one comes up, or runs, with as many tasks or with fewer.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...faults.plan import AtTime, LateMessage
from ..layout import layout_of, topologies_of
from ..scenario import Cancel, Deviation, Resume, Scenario, StopWithSavepoint
from .choices import Choices
from .engines import Tuning
from .faults import at_some_time
from .stage import Frame, stage_of

PERCENT = 40
"""of the jobs that are ended and followed by another"""
BEHIND_A_CANCEL = ("cancel", "deploy", "complete", "ack", "trigger", "running", "abort")
BEHIND_A_STOP = ("terminate", "complete", "ack", "finished", "deploy", "ended")
BEYOND = (8, 4, 16, 32, 64)
"""how many times the way of a control message it comes after the resume"""
LONGEST_US = 30_000
"""in real time, as for any fault there"""


def with_stragglers(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with a message that outlives its job; as a fault where one more is allowed, or as a
    deviation, which other engines may not know."""
    ends = [index for index in range(len(scenario.commands) - 1) if _is_followed(scenario, index)]
    if not ends or not choices.percent(PERCENT):
        return scenario
    index = choices.pick(ends)
    is_cancel = isinstance(scenario.commands[index], Cancel)
    message = choices.pick(BEHIND_A_CANCEL if is_cancel else BEHIND_A_STOP)
    task = _whose(choices, scenario, index)
    by_us = _late(choices, scenario, index, message)
    if len(scenario.faults) < most and choices.percent(100 if real_time else 40):
        trigger = AtTime(at_us=0) if message == "deploy" else scenario.commands[index].trigger
        by_us = min(by_us, LONGEST_US) if real_time else by_us
        late = LateMessage(trigger=trigger, message=message, task=task, by_us=by_us)
        return replace(scenario, faults=(*scenario.faults, late))
    number = choices.pick((1, 1, 2)) if message in ("cancel", "deploy", "terminate") else choices.between(1, 6)
    departure = Deviation(what=f"control {message} {task}", occurrence=number, by_us=by_us)
    return replace(scenario, deviations=(*scenario.deviations, departure))


def late_cancel(choices: Choices, frame: Frame) -> Scenario:
    """A job is cancelled and resumed, and the order to stop reaches one of its tasks when the next job runs; in a mode
    that takes no checkpoints, if there is one: no time-out of theirs would bring a task back that was stopped."""
    modest = "at-most-once" if "at-most-once" in frame.guarantees else min(frame.guarantees)
    sink = "plain" if "plain" in frame.sinks else min(frame.sinks)
    tuning = Tuning(guarantees=(modest,), sinks=(sink,))
    stage = stage_of(choices, frame, frame.recipe(most_records=60, least_records=20, enumerated_percent=0), tuning)
    target = stage.target
    asked = at_some_time(choices, target, share=(10, 40))
    again = Resume(trigger=AtTime(at_us=choices.pick((1_000, 0))))
    by_us = again.trigger.at_us + target.start_us + target.span_us * choices.between(1, 5) // 10
    what = f"control cancel {choices.pick(target.layout.tasks)}"
    late = Deviation(what=what, occurrence=1, by_us=by_us)
    return stage.scenario("late-cancel", commands=(Cancel(trigger=asked), again), deviations=(late,))


TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"late-cancel": late_cancel}
"""drawn where they are asked for by name: `with_stragglers` has the same happen to all others"""


def _is_followed(scenario: Scenario, index: int) -> bool:
    ends = isinstance(scenario.commands[index], Cancel | StopWithSavepoint)
    return ends and isinstance(scenario.commands[index + 1], Resume)


def _whose(choices: Choices, scenario: Scenario, index: int) -> str:
    """Mostly that of a task which the next job has no more, if there is one."""
    number = sum(isinstance(command, Resume) for command in scenario.commands[:index])
    here, there = (
        layout_of(scenario.workload, topology, scenario.engine.committing).tasks
        for topology in topologies_of(scenario)[number : number + 2]
    )
    gone = tuple(task for task in here if task not in there)
    return choices.pick(gone if gone and choices.percent(60) else here)


def _late(choices: Choices, scenario: Scenario, index: int, message: str) -> int:
    """By so much that it comes some way behind the resume; one that was sent as the job began, by so much more."""
    again, asked = scenario.commands[index + 1].trigger, scenario.commands[index].trigger
    pause_us = again.at_us if isinstance(again, AtTime) else 0
    before_us = asked.at_us if message == "deploy" and isinstance(asked, AtTime) else 0
    return before_us + pause_us + choices.pick(BEYOND) * max(100, scenario.engine.control_latency_us)
