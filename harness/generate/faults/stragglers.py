"""Messages that are still in flight when their job has ended and another has followed it.

A resume comes some time after the end of the previous job, so the last messages have mostly arrived by then.  Here one
message of the previous job is delayed until the next job, with as many tasks or fewer, starts or runs.  Or the message
arrives in time, and is repeated when the next job starts or runs.
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
"""the share of those jobs that end and are followed by another"""
AT_FIRST = ("deploy", "running")
"""messages of a job's start: a delay keeps the job from running until it is cancelled"""
AMID = ("complete", "ack", "trigger", "abort")
LATE = ("cancel", "deploy", "cancel", "running")
"""messages that may be late.  A stop waits for every other message, which then arrives before the stop's end"""
AGAIN_BEHIND_A_CANCEL = ("cancel", "deploy", *AMID, "running")
AGAIN_BEHIND_A_STOP = ("terminate", "complete", "finished", "deploy", "ack", "ended", "trigger")
"""messages that may be repeated; a repeated message delays nothing"""
BEYOND = (2, 1, 4, 6)
"""when the message arrives after the resume, in eighths of the time for which the sources read"""
STOP_TAKES = 3
"""the rough duration of a stop in durations of a checkpoint: its savepoint, and then the end of all tasks"""
LONGEST_US = 30_000
"""the longest delay in real time, as for every fault there"""


def with_stragglers(choices: Choices, scenario: Scenario, most: int, *, real_time: bool = False) -> Scenario:
    """The scenario, at times with a message that outlives its job.  It is late by a fault if one more is allowed, else
    by a schedule perturbation, which other engines may not have."""
    ends = [index for index in range(len(scenario.commands) - 1) if _is_followed(scenario, index)]
    if not ends or not choices.percent(PERCENT):
        return scenario
    index = choices.pick(ends)
    is_cancel = isinstance(scenario.commands[index], Cancel)
    has_room = len(scenario.faults) < most
    if has_room and (not is_cancel or choices.percent(50)):
        again = _again(choices, scenario, index, AGAIN_BEHIND_A_CANCEL if is_cancel else AGAIN_BEHIND_A_STOP, real_time)
        return replace(scenario, faults=(*scenario.faults, again))
    message = choices.pick(LATE) if is_cancel else "terminate"  # sent to the task again until it has ended
    task, by_us = _whose(choices, scenario, index), _lateness(choices, scenario, index, message in AT_FIRST)
    if has_room and (real_time or choices.percent(40)):
        trigger = AtTime(at_us=0) if message in AT_FIRST else scenario.commands[index].trigger
        late = LateMessage(trigger=trigger, message=message, task=task, by_us=_at_most(by_us, real_time))
        return replace(scenario, faults=(*scenario.faults, late))
    departure = Perturbation(what=f"control {message} {task}", occurrence=choices.pick((1, 1, 2)), by_us=by_us)
    return replace(scenario, deviations=(*scenario.deviations, departure))


def _again(choices: Choices, scenario: Scenario, index: int, kinds: tuple[str, ...], real_time: bool) -> RepeatMessage:
    """A message of the job's start, of its end, or from shortly before its end is repeated when the next job runs."""
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
    """A job is cancelled and resumed, and the order to stop reaches one of its tasks when the next job runs.  If
    possible the job takes no checkpoints: the timeout of one would restart a task that was stopped by mistake."""
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
    """The task that sends or receives the message: mostly a task that the next job no longer has, if there is one."""
    number = sum(isinstance(command, Resume) for command in scenario.commands[:index])
    here, there = (
        layout_of(scenario.workload, topology, scenario.engine.committing).tasks
        for topology in topologies_of(scenario)[number : number + 2]
    )
    removed = tuple(task for task in here if task not in there)
    return choices.pick(removed if removed and choices.percent(60) else here)


def _lateness(choices: Choices, scenario: Scenario, index: int, at_first: bool) -> int:
    """A delay by which the message arrives some time after the resume; longer for a message of the job's start."""
    again, asked = scenario.commands[index + 1].trigger, scenario.commands[index].trigger
    pause_us = again.at_us if isinstance(again, AtTime) else 0
    before_us = asked.at_us if at_first and isinstance(asked, AtTime) else 0
    target = forecast(scenario.workload, scenario.topology, scenario.engine)
    if not isinstance(scenario.commands[index], Cancel):
        before_us += STOP_TAKES * target.checkpoint_us
    return before_us + pause_us + max(target.start_us, target.span_us * choices.pick(BEYOND) // 8)


def _at_most(us: int, real_time: bool) -> int:
    return min(us, LONGEST_US) if real_time else us
