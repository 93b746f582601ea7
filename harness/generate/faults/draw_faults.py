"""Draws faults that fire while data is in flight.

A fault drawn at random mostly hits nothing.  So each is placed by the forecast of the scenario (`Forecast`): at a time
within the reading of the input, at an occurrence of a point that the run will reach, in a phase that it will enter.  A
fault that waits for a rare event comes with a fault that causes this event: a failing read with a restart, a lost abort
with an acknowledgement that never comes.
"""

from __future__ import annotations

from collections.abc import Callable

from ....faults import plan
from ....faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime, InPhase
from ...scenario.forecast import Forecast
from ..choices import Choices

RESTARTING = (
    "kill-task",
    "kill-task",
    "kill-node",
    "cut-channel",
    "lose-unsynced",
    "raise-in-operator",
    "pause-task",
    "kill-coordinator",
    "tear-write",
)
"""kinds after which an attempt restores a snapshot, which tests exactly-once"""

DISTURBING = (
    "delay-channel",
    "stall-channel",
    "lose-message",
    "late-message",
    "repeat-message",
    "fail-write",
    "fail-read",
    "fail-commit",
)
"""kinds that an attempt mostly survives"""


def at_some_time(choices: Choices, target: Forecast, *, share: tuple[int, int] | None = None) -> AtTime:
    """A time within a share (per cent) of the reading of the input.  By default it is after the first checkpoint, if
    that leaves time."""
    low, high = share or (_seasoned(target), 95)
    return AtTime(at_us=target.start_us + target.span_us * choices.between(low * 10, high * 10) // 1000)


def _seasoned(target: Forecast) -> int:
    """The share of the reading from which there is a snapshot to restore, in per cent."""
    return min(60, 10 + 100 * (target.first_completion_us - target.start_us) // target.span_us)


def at_some_record(choices: Choices, target: Forecast) -> AtPoint:
    """At the read or the application of a record that surely occurs: each record read is applied at least once."""
    point = choices.pick(("record-applied", "record-read"))
    most = max(1, target.reads)
    occurrence = choices.between(max(1, most * _seasoned(target) // 100), most)
    return AtPoint(point=point, occurrence=occurrence, side=_side(choices))


def at_some_step(choices: Choices, target: Forecast, *, steps: tuple[str, ...] = ()) -> AtPoint:
    """At a step of a checkpoint of the run, mostly not of the first."""
    engine = target.engine
    point = choices.pick(steps or CHECKPOINT_STEPS + (COMMIT_STEPS if engine.sink == "transactional" else ()))
    layout = target.layout
    most = max(1, target.checkpoints - 1)
    occurrence = choices.between(2 if most > 2 and choices.percent(75) else 1, most)
    task: str | None = None
    if point in COORDINATOR_STEPS:
        if point == "ack-received":
            occurrence = (occurrence - 1) * len(layout.tasks) + choices.between(1, len(layout.tasks))
    elif point in COMMIT_STEPS:
        task = choices.pick(layout.committing if point.startswith("commit-") else layout.sinks)
    elif point == "barrier-received":
        task = choices.pick(layout.operators + layout.sinks + layout.committers)
    elif point == "barrier-sent":
        task = choices.pick(layout.sources + layout.operators)
    else:
        task = choices.pick(layout.tasks)
    return AtPoint(point=point, occurrence=occurrence, task=task, side=_side(choices))


COORDINATOR_STEPS = (
    "checkpoint-completed",
    "checkpoint-triggered",
    "checkpoint-acknowledged",
    "ack-received",
)
CHECKPOINT_STEPS = (
    *COORDINATOR_STEPS,
    "barrier-sent",
    "barrier-received",
    "snapshot-taken",
    "snapshot-persisted",
    "ack-sent",
    "completion-notified",
)
COMMIT_STEPS = ("transaction-pre-committed", "commit-requested", "commit-answered", "transaction-written")


def in_some_phase(choices: Choices, target: Forecast) -> InPhase:
    phases = ["checkpointing", "running"]
    if target.engine.sink == "transactional":
        phases.append("committing")
    if len(target.layout.channels) > len(target.layout.tasks) - len(target.layout.sources):
        phases.append("aligning")
    occurrence = choices.between(1, max(1, min(4, target.checkpoints - 1)))
    return InPhase(phase=choices.pick(phases), occurrence=occurrence, after_us=choices.pick((0, 100, 700)))


def amid_data(choices: Choices, target: Forecast) -> AnyTrigger:
    """A trigger of any sort that takes effect while records flow."""
    sort = choices.between(0, 9)
    if sort < 4:
        return at_some_time(choices, target)
    if sort < 6:
        return at_some_record(choices, target)
    if sort < 9:
        return at_some_step(choices, target)
    return in_some_phase(choices, target)


def early(choices: Choices, target: Forecast) -> AnyTrigger:
    """Early enough that the event for which the fault waits is still to come."""
    return at_some_time(choices, target, share=(0, 60))


def during_recovery(choices: Choices, target: Forecast) -> AnyTrigger:
    """While a second attempt starts: a second failure during recovery finds many bugs."""
    if choices.percent(50):
        tasks = target.layout.tasks
        point = choices.pick(("state-loaded", "task-deployed", "task-running"))
        return AtPoint(point=point, occurrence=len(tasks) + choices.between(1, len(tasks)), side=_side(choices))
    return InPhase(phase="recovering", after_us=choices.pick((0, 200, 1_000, 2_000)))


def draw_fault(choices: Choices, target: Forecast, kind: str, trigger: AnyTrigger) -> AnyFault:
    """A fault of one kind, on a part of the job that is drawn; the job must have such a part (`possible`)."""
    return _MAKERS[kind](choices, target, trigger)


def some_task(choices: Choices, target: Forecast) -> str:
    return choices.pick(target.layout.tasks)


def _while(choices: Choices, target: Forecast) -> int:
    """A duration or a delay, short or long compared with a checkpoint."""
    share = choices.pick((4, 1, 2, 10))
    return max(100, target.checkpoint_us * share // 400 * 100)


def _side(choices: Choices) -> str:
    return choices.pick(("after", "before"))


def _channel(choices: Choices, target: Forecast) -> tuple[str, str]:
    return choices.pick(target.layout.channels)


def _kill_task(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.KillTask(trigger=trigger, task=some_task(choices, target))


def _kill_node(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.KillNode(trigger=trigger, node=choices.between(0, target.engine.nodes - 1))


def _kill_coordinator(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.KillCoordinator(trigger=trigger, down_us=_while(choices, target))


def _pause_task(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.PauseTask(
        trigger=trigger, task=some_task(choices, target), for_us=choices.pick((15_000, 3_000, 40_000))
    )


def _delay_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    by_us, for_us = _while(choices, target), _while(choices, target)
    return plan.DelayChannel(trigger=trigger, sender=sender, receiver=receiver, by_us=by_us, for_us=for_us)


def _stall_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    for_us = _while(choices, target)
    return plan.StallChannel(trigger=trigger, sender=sender, receiver=receiver, for_us=for_us)


def _cut_channel(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    return plan.CutChannel(trigger=trigger, sender=sender, receiver=receiver)


COMMON_MESSAGES = ("ack", "complete", "trigger", "ack", "complete")
"""the control messages of every checkpoint"""


def _message(choices: Choices, target: Forecast) -> tuple[str, str | None]:
    message = choices.pick(COMMON_MESSAGES)
    tasks = target.layout.sources if message == "trigger" else target.layout.tasks
    return message, choices.pick((None, *tasks))


def _lose_message(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    return plan.LoseMessage(trigger=trigger, message=message, task=task)


def _late_message(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    return plan.LateMessage(trigger=trigger, message=message, task=task, by_us=_while(choices, target))


def _repeat_message(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    return plan.RepeatMessage(trigger=trigger, message=message, task=task, after_us=_while(choices, target))


def _writer(choices: Choices, target: Forecast) -> str | None:
    return choices.pick((*target.layout.tasks, None))


def _fail_write(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.FailWrite(trigger=trigger, task=_writer(choices, target))


def _fail_read(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    """A failing read of a task's snapshot.  A coordinator reads its records at its start (`extras.unreadable`)."""
    return plan.FailRead(trigger=trigger, task=some_task(choices, target))


def _tear_write(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.TearWrite(trigger=trigger, task=_writer(choices, target))


def _lose_unsynced(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.LoseUnsynced(trigger=trigger, node=choices.between(0, target.engine.nodes - 1))


def _fail_commit(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    return plan.FailCommit(
        trigger=trigger,
        task=choices.pick((None, *target.layout.committing)),
        how=choices.pick(("lost-response", "refused", "unavailable")),
        times=choices.pick((1, 1, 2, 5)),
    )


def _raise_in_operator(choices: Choices, target: Forecast, trigger: AnyTrigger) -> AnyFault:
    always = choices.percent(8)
    return plan.RaiseInOperator(trigger=trigger, task=choices.pick(target.layout.operators), always=always)


_Maker = Callable[[Choices, Forecast, AnyTrigger], AnyFault]

_MAKERS: dict[str, _Maker] = {
    "kill-task": _kill_task,
    "kill-node": _kill_node,
    "kill-coordinator": _kill_coordinator,
    "pause-task": _pause_task,
    "delay-channel": _delay_channel,
    "stall-channel": _stall_channel,
    "cut-channel": _cut_channel,
    "lose-message": _lose_message,
    "late-message": _late_message,
    "repeat-message": _repeat_message,
    "fail-write": _fail_write,
    "fail-read": _fail_read,
    "tear-write": _tear_write,
    "lose-unsynced": _lose_unsynced,
    "fail-commit": _fail_commit,
    "raise-in-operator": _raise_in_operator,
}


def possible(kind: str, target: Forecast) -> bool:
    """Whether the job has a part that a kind of fault can hit."""
    if kind == "raise-in-operator":
        return bool(target.layout.operators)
    if kind == "fail-commit":
        return target.engine.sink == "transactional"
    if kind in ("lose-unsynced", "tear-write", "fail-read"):
        return target.engine.snapshot_store == "files"
    return True
