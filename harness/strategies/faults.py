"""Faults aimed so that they fire, and while data are in flight.

A fault drawn at random mostly hits nothing.  So each is aimed by what the
scenario alone tells (`Target`): a time within the reading of the input, an
occurrence of a point that the run will reach, a phase that it will enter; and
a fault that waits for something rare brings along what makes it happen (a
failing read needs a restart, a lost abort an acknowledgement that never came).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...faults import plan
from ...faults.plan import AnyFault, AnyTrigger, AtPoint, AtTime, InPhase
from ...properties.workload import Topology, Workload
from ..layout import Layout, layout_of, reads_by_source
from ..scenario import Engine
from .choices import Choices

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
"""kinds after which an attempt restores, so that exactly-once is put to the test"""

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


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault can hit, and when it is worth while."""

    layout: Layout
    engine: Engine
    span_us: int
    """how long the sources read"""
    reads: int
    """records read in one undisturbed run"""
    checkpoints: int
    """about how many checkpoints one undisturbed run sees"""
    bounded: bool


def target_of(workload: Workload, topology: Topology, engine: Engine) -> Target:
    reads = reads_by_source(workload, topology)
    span_us = max([1, *reads.values()]) * engine.read_interval_us
    return Target(
        layout=layout_of(workload, topology),
        engine=engine,
        span_us=span_us,
        reads=sum(reads.values()),
        checkpoints=max(1, span_us // engine.checkpoint_interval_us),
        bounded=all(source.bounded for source in workload.inputs),
    )


def at_some_time(choices: Choices, target: Target, *, share: tuple[int, int] = (10, 95)) -> AtTime:
    """A time within a share (per cent) of the reading of the input."""
    return AtTime(at_us=target.span_us * choices.between(share[0] * 10, share[1] * 10) // 1000)


def at_some_record(choices: Choices, target: Target) -> AtPoint:
    reads = max(1, target.reads)
    point = choices.pick(("record-applied", "record-read"))
    return AtPoint(point=point, occurrence=choices.between(max(1, reads // 5), reads), side=_side(choices))


def at_some_step(choices: Choices, target: Target, *, steps: tuple[str, ...] = ()) -> AtPoint:
    """At a step of one of the run's checkpoints."""
    engine = target.engine
    point = choices.pick(steps or CHECKPOINT_STEPS + (COMMIT_STEPS if engine.sink == "transactional" else ()))
    occurrence = choices.between(1, max(1, target.checkpoints - 1))
    task: str | None = None
    if point in COORDINATOR_STEPS:
        if point == "ack-received":
            occurrence = (occurrence - 1) * len(target.layout.tasks) + choices.between(1, len(target.layout.tasks))
    elif point in COMMIT_STEPS:
        task = choices.pick(target.layout.sinks)
    elif point == "barrier-received":
        task = choices.pick(target.layout.operators + target.layout.sinks)
    elif point == "barrier-sent":
        task = choices.pick(target.layout.sources + target.layout.operators)
    else:
        task = choices.pick(target.layout.tasks)
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


def in_some_phase(choices: Choices, target: Target) -> InPhase:
    phases = ["checkpointing", "running"]
    if target.engine.sink == "transactional":
        phases.append("committing")
    if len(target.layout.channels) > len(target.layout.tasks) - len(target.layout.sources):
        phases.append("aligning")
    occurrence = choices.between(1, max(1, min(4, target.checkpoints - 1)))
    return InPhase(phase=choices.pick(phases), occurrence=occurrence, after_us=choices.pick((0, 100, 700)))


def amid_data(choices: Choices, target: Target) -> AnyTrigger:
    """A trigger of any sort that goes off while records flow."""
    sort = choices.between(0, 9)
    if sort < 4:
        return at_some_time(choices, target)
    if sort < 6:
        return at_some_record(choices, target)
    if sort < 9:
        return at_some_step(choices, target)
    return in_some_phase(choices, target)


def early(choices: Choices, target: Target) -> AnyTrigger:
    """Soon enough that what it waits for still comes."""
    return at_some_time(choices, target, share=(0, 60))


def during_recovery(choices: Choices, target: Target) -> AnyTrigger:
    """While a second attempt comes up: the second failure that is often the real one."""
    if choices.percent(50):
        tasks = target.layout.tasks
        point = choices.pick(("state-loaded", "task-deployed", "task-running"))
        return AtPoint(point=point, occurrence=len(tasks) + choices.between(1, len(tasks)), side=_side(choices))
    return InPhase(phase="recovering", after_us=choices.pick((0, 200, 1_000, 2_000)))


def draw_fault(choices: Choices, target: Target, kind: str, trigger: AnyTrigger) -> AnyFault:
    """A fault of one kind on some part of the job; sinks are hit as often as the rest together."""
    return _MAKERS[kind](choices, target, trigger)


def some_task(choices: Choices, target: Target) -> str:
    return choices.pick(target.layout.tasks)


def _side(choices: Choices) -> str:
    return choices.pick(("after", "before"))


def _channel(choices: Choices, target: Target) -> tuple[str, str]:
    return choices.pick(target.layout.channels)


def _kill_task(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.KillTask(trigger=trigger, task=some_task(choices, target))


def _kill_node(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.KillNode(trigger=trigger, node=choices.between(0, target.engine.nodes - 1))


def _kill_coordinator(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.KillCoordinator(trigger=trigger, down_us=choices.pick((5_000, 500, 30_000)))


def _pause_task(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.PauseTask(
        trigger=trigger, task=some_task(choices, target), for_us=choices.pick((15_000, 3_000, 40_000))
    )


def _delay_channel(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    by_us, for_us = choices.pick(((3_000, 6_000), (500, 10_000), (10_000, 3_000)))
    return plan.DelayChannel(trigger=trigger, sender=sender, receiver=receiver, by_us=by_us, for_us=for_us)


def _stall_channel(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    for_us = choices.pick((6_000, 1_500, 20_000))
    return plan.StallChannel(trigger=trigger, sender=sender, receiver=receiver, for_us=for_us)


def _cut_channel(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    sender, receiver = _channel(choices, target)
    return plan.CutChannel(trigger=trigger, sender=sender, receiver=receiver)


COMMON_MESSAGES = ("ack", "complete", "trigger", "ack", "complete")
"""the control messages that every checkpoint brings"""


def _message(choices: Choices, target: Target) -> tuple[str, str | None]:
    message = choices.pick(COMMON_MESSAGES)
    tasks = target.layout.sources if message == "trigger" else target.layout.tasks
    return message, choices.pick((None, *tasks))


def _lose_message(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    return plan.LoseMessage(trigger=trigger, message=message, task=task)


def _late_message(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    by_us = choices.pick((2_000, 600, 8_000, 25_000))
    return plan.LateMessage(trigger=trigger, message=message, task=task, by_us=by_us)


def _repeat_message(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    message, task = _message(choices, target)
    after_us = choices.pick((1_000, 100, 12_000))
    return plan.RepeatMessage(trigger=trigger, message=message, task=task, after_us=after_us)


def _writer(choices: Choices, target: Target) -> str | None:
    return choices.pick((*target.layout.tasks, None))


def _fail_write(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.FailWrite(trigger=trigger, task=_writer(choices, target))


def _fail_read(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.FailRead(trigger=trigger, task=choices.pick((None, *target.layout.tasks)))


def _tear_write(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.TearWrite(trigger=trigger, task=_writer(choices, target))


def _lose_unsynced(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.LoseUnsynced(trigger=trigger, node=choices.between(0, target.engine.nodes - 1))


def _fail_commit(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    return plan.FailCommit(
        trigger=trigger,
        task=choices.pick((None, *target.layout.sinks)),
        how=choices.pick(("lost-response", "refused", "unavailable")),
        times=choices.pick((1, 1, 2, 5)),
    )


def _raise_in_operator(choices: Choices, target: Target, trigger: AnyTrigger) -> AnyFault:
    always = choices.percent(8)
    return plan.RaiseInOperator(trigger=trigger, task=choices.pick(target.layout.operators), always=always)


_Maker = Callable[[Choices, Target, AnyTrigger], AnyFault]

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


def possible(kind: str, target: Target) -> bool:
    """Whether the job has what a kind of fault hits."""
    if kind == "raise-in-operator":
        return bool(target.layout.operators)
    if kind == "fail-commit":
        return target.engine.sink == "transactional"
    return True
