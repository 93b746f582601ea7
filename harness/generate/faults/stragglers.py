"""Messages that are still under way when their job has ended and another has followed it.

A resume comes some time after the end of the job before, so what was sent last has mostly arrived by then.  Here one
message of the former job is held back until the next one comes up, or runs, with as many tasks or with fewer; or it
comes once in time, and once more then.
"""

from __future__ import annotations

from msgspec.structs import replace

from ....faults.plan import AtTime, LateMessage, RepeatMessage
from ...scenario.forecast import forecast
from ...scenario.layout import layout_of, topologies_of
from ...scenario.model import Cancel, Perturbation, Resume, Scenario, StopWithSavepoint
from ..choices import Choices
from ..engines import Tuning
from ..stage import Frame, stage_of
from .draw_faults import at_some_time

PERCENT = 40
"""of the jobs that are ended and followed by another"""
AT_FIRST = ("deploy", "running")
"""sent as a job begins: held back they keep it from running until it is cancelled"""
AMID = ("complete", "ack", "trigger", "abort")
LATE = ("cancel", "deploy", "cancel", "running")
"""what may come late: a stop waits for all else, so that what is late comes before its end"""
AGAIN_BEHIND_A_CANCEL = ("cancel", "deploy", *AMID, "running")
AGAIN_BEHIND_A_STOP = ("terminate", "complete", "finished", "deploy", "ack", "ended", "trigger")
"""what may come again: that holds nothing up"""
BEYOND = (2, 1, 4, 6)
"""after so many eighths of the time that the sources read, counted from the resume, it comes"""
STOP_TAKES = 3
"""times as long as a checkpoint, about: its savepoint, and then all tasks finish"""
LONGEST_US = 30_000
"""in real time, as for any fault there"""


def with_stragglers(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with a message that outlives its job: as a fault where one more is allowed, or as a
    schedule perturbation, which other engines may not know."""
    ends = [index for index in range(len(scenario.commands) - 1) if _is_followed(scenario, index)]
    if not ends or not choices.percent(PERCENT):
        return scenario
    index = choices.pick(ends)
    is_cancel = isinstance(scenario.commands[index], Cancel)
    has_room = len(scenario.faults) < most
    if has_room and (not is_cancel or choices.percent(50)):
        again = _again(choices, scenario, index, AGAIN_BEHIND_A_CANCEL if is_cancel else AGAIN_BEHIND_A_STOP, real_time)
        return replace(scenario, faults=(*scenario.faults, again))
    message = choices.pick(LATE) if is_cancel else "terminate"  # the task is notified of it until it has ended
    task, by_us = _whose(choices, scenario, index), _lateness(choices, scenario, index, message in AT_FIRST)
    if has_room and (real_time or choices.percent(40)):
        trigger = AtTime(at_us=0) if message in AT_FIRST else scenario.commands[index].trigger
        late = LateMessage(trigger=trigger, message=message, task=task, by_us=_at_most(by_us, real_time))
        return replace(scenario, faults=(*scenario.faults, late))
    departure = Perturbation(what=f"control {message} {task}", occurrence=choices.pick((1, 1, 2)), by_us=by_us)
    return replace(scenario, deviations=(*scenario.deviations, departure))


def _again(choices: Choices, scenario: Scenario, index: int, kinds: tuple[str, ...], real_time: bool) -> RepeatMessage:
    """One that is sent while the job ends, a little before, or as it begins comes again when the next one runs."""
    message, asked = choices.pick(kinds), scenario.commands[index].trigger
    trigger, after_us = asked, _lateness(choices, scenario, index, message in AT_FIRST)
    if message in AT_FIRST:
        trigger = AtTime(at_us=0)
    elif message in AMID and isinstance(asked, AtTime):
        earlier_us = min(asked.at_us, 2 * scenario.engine.checkpoint_interval_us)
        trigger, after_us = AtTime(at_us=asked.at_us - earlier_us), after_us + earlier_us
    task = choices.pick((None, _whose(choices, scenario, index)))
    return RepeatMessage(trigger=trigger, message=message, task=task, after_us=_at_most(after_us, real_time))


def late_cancel(choices: Choices, frame: Frame) -> Scenario:
    """A job is cancelled and resumed, and the order to stop reaches one of its tasks when the next job runs; in a mode
    that takes no checkpoints, if there is one: no time-out of theirs would bring a task back that was stopped."""
    modest = "at-most-once" if "at-most-once" in frame.guarantees else min(frame.guarantees)
    sink = "plain" if "plain" in frame.sinks else min(frame.sinks)
    tuning = Tuning(guarantees=(modest,), sinks=(sink,))
    stage = stage_of(choices, frame, frame.recipe(most_records=60, least_records=20, enumerated_percent=0), tuning)
    target = stage.target
    asked = at_some_time(choices, target, share=(10, 40))
    pause_us = choices.pick((1_000, 0))
    again = Resume(trigger=AtTime(at_us=pause_us))
    by_us = pause_us + target.start_us + target.span_us * choices.between(1, 5) // 10
    what = f"control cancel {choices.pick(target.layout.tasks)}"
    late = Perturbation(what=what, occurrence=1, by_us=by_us)
    return stage.scenario("late-cancel", commands=(Cancel(trigger=asked), again), deviations=(late,))


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
    removed = tuple(task for task in here if task not in there)
    return choices.pick(removed if removed and choices.percent(60) else here)


def _lateness(choices: Choices, scenario: Scenario, index: int, at_first: bool) -> int:
    """By so much that it comes some way behind the resume; one that is sent as the job begins, by so much more."""
    again, asked = scenario.commands[index + 1].trigger, scenario.commands[index].trigger
    pause_us = again.at_us if isinstance(again, AtTime) else 0
    before_us = asked.at_us if at_first and isinstance(asked, AtTime) else 0
    target = forecast(scenario.workload, scenario.topology, scenario.engine)
    if not isinstance(scenario.commands[index], Cancel):
        before_us += STOP_TAKES * target.checkpoint_us
    return before_us + pause_us + max(target.start_us, target.span_us * choices.pick(BEYOND) // 8)


def _at_most(us: int, real_time: bool) -> int:
    return min(us, LONGEST_US) if real_time else us
