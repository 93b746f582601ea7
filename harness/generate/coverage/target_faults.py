"""The faults of the template `cells`.  Each is triggered at the protocol point of its coverage target, early enough to
hit something live, and before the event for which it waits."""

from __future__ import annotations

from collections.abc import Callable

from ....faults import plan
from ....faults.plan import AnyFault, AnyTrigger, AtPoint
from ....faults.points import COORDINATOR_POINTS, STATE_POINTS
from ...scenario.forecast import Forecast
from ...search.coverage import TRANSACTION_POINTS
from ...search.fault_cells import DEATHS, kind_in, mode_in
from ..choices import Choices
from ..faults.draw_faults import draw_fault, possible
from .target_groups import ENDS, MESSAGES, RECOVERY, Pair, TargetGroup

WAITING = frozenset(
    {"delay-channel", "stall-channel", "fail-write", "tear-write", "fail-commit", "raise-in-operator", *MESSAGES}
)
"""kinds that wait for a later event"""

_MILD = frozenset({"delay-channel", "stall-channel", "late-message", "repeat-message"})
AMID_A_COMMAND: dict[str, frozenset[str]] = {
    "stopped": _MILD,
    "drained": _MILD,
    "cancelled": frozenset({"kill-task", "kill-node", "pause-task", "cut-channel"}),
}
"""for each way of ending: the kinds that can hit the command which ends the job without undoing it"""


def fault_on_target(choices: Choices, target: Forecast, group: TargetGroup, pair: Pair) -> AnyFault:
    kind = kind_in(pair[1])
    if pair[1] in DEATHS:
        return _death_amid_a_command(choices, pair[1])
    trigger = _at(choices, target, group, pair)
    if mode := mode_in(pair[1]):
        return _in_mode(choices, target, group, trigger, mode)
    if not possible(kind, target):  # a workload of the user's may have no operator
        kind = "kill-task"
    make = _MAKERS.get(kind)
    return make(choices, target, group, trigger) if make else draw_fault(choices, target, kind, trigger)


def _death_amid_a_command(choices: Choices, cell: str) -> AnyFault:
    """At one of the first files; a snapshot has several, but only one record."""
    at = DEATHS[cell]
    occurrence = choices.between(1, 2) if at.point in ("file-copied", "file-deleted") else 1
    return plan.KillCoordinator(trigger=AtPoint(point=at.point, occurrence=occurrence, side=at.side), down_us=1_000)


def _in_mode(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger, mode: str) -> AnyFault:
    """A fault on files: the next of its kind fails, or is torn."""
    if mode == "lost-link":
        return plan.TearWrite(trigger=trigger, task=choices.pick(lasting(target, group)), how=mode)
    if mode == "copy":
        return plan.TearWrite(trigger=trigger, task=None, how=mode)
    return plan.FailWrite(trigger=trigger, task=None, what=mode)


def _at(choices: Choices, target: Forecast, group: TargetGroup, pair: Pair) -> AtPoint:
    """A trigger at an early occurrence of the point, in any task, after which much of the run is still to come."""
    side = "after" if pair[0] in RECOVERY else choices.pick(("after", "before"))
    pick = _amid_writes if "slow writes" in group.needs else _soon
    return AtPoint(point=pair[0], occurrence=max(1, pick(choices, target, group, pair)), side=side)


def _soon(choices: Choices, target: Forecast, group: TargetGroup, pair: Pair) -> int:
    point, kind = pair[0], kind_in(pair[1])
    many = len(target.layout.tasks)
    if point in ("record-read", "record-applied"):
        return choices.between(1, 8)
    if point == "state-loaded":
        return choices.between(1, max(1, many - 2))
    if point in RECOVERY:  # the last occurrence: a fault cannot hit a task that has not started
        return many
    if point == "savepoint-requested" and kind in AMID_A_COMMAND.get(group.ending, ()) and choices.percent(40):
        return 2  # the occurrence for the command that ends the job; the first is for a savepoint
    if point in ENDS or point in ("checkpoint-aborted", "snapshot-deleted", "savepoint-requested") or kind in WAITING:
        return 1
    return choices.between(1, 2)


def _amid_writes(choices: Choices, target: Forecast, group: TargetGroup, pair: Pair) -> int:
    """An occurrence late enough that some write is in progress."""
    point = pair[0]
    many = len(target.layout.tasks)
    if point == "record-read":
        return choices.between(target.reads * 2 // 3, target.reads * 5 // 6)
    if point == "record-applied":
        return target.depth * choices.between(target.reads // 2, target.reads * 3 // 4)
    if point == "row-written":  # behind a filter there are few rows
        return choices.between(2, max(2, target.reads // 3))
    if point == "transaction-written":
        return choices.between(target.reads // 5, target.reads // 4)
    if point in STATE_POINTS:  # of each operator's task, for about each record, and a compaction for every second
        return choices.between(target.reads // 4, target.reads // 3)
    if point in TRANSACTION_POINTS:
        return choices.between(3, 4)
    if point in RECOVERY:
        return 1 if point == "state-loaded" else 2 * many
    # a source with few records ends before any write
    if point == "end-of-data-sent" and group.ending == "finished":
        return choices.between(1, len(target.layout.sources))
    if point in ENDS or point in ("checkpoint-aborted", "savepoint-requested"):
        return 1
    return choices.between(3, 4) if point in COORDINATOR_POINTS else choices.between(2 * many, 3 * many)


def share_of(target: Forecast, percent: int) -> int:
    return target.start_us + target.span_us * percent // 100


def lasting(target: Forecast, group: TargetGroup) -> tuple[str, ...]:
    """The tasks that run to the end of the job: not those of an input that ends early."""
    layout = target.layout
    if group.whole:
        return layout.sinks
    if not group.apart:
        return layout.tasks
    ending = layout.sources[0].rpartition("-")[0]
    return tuple(task for task in layout.tasks if task.rpartition("-")[0] != ending)


_Maker = Callable[[Choices, Forecast, TargetGroup, AnyTrigger], AnyFault]


def _kill_task(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.KillTask(trigger=trigger, task=choices.pick(lasting(target, group)))


def _pause_task(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.PauseTask(
        trigger=trigger, task=choices.pick(lasting(target, group)), for_us=choices.pick((3_000, 15_000))
    )


def _channel(choices: Choices, target: Forecast, group: TargetGroup) -> dict[str, str]:
    tasks = lasting(target, group)
    end = 1 if group.whole else 0  # channels to a sink are in use to the end
    channels = [channel for channel in target.layout.channels if channel[end] in tasks]
    sender, receiver = choices.pick(channels or target.layout.channels)
    return {"sender": sender, "receiver": receiver}


def _until_something_passes(target: Forecast) -> int:
    """A duration in which some element passes: a barrier at the latest, or without barriers a record."""
    engine = target.engine
    if engine.guarantee == "at-most-once":
        return 8 * engine.read_interval_us
    return engine.checkpoint_interval_us * 3 // 2


def _delay_channel(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    by_us = target.checkpoint_us * choices.pick((1, 2)) // 2
    for_us = max(10_000, _until_something_passes(target))
    return plan.DelayChannel(trigger=trigger, by_us=by_us, for_us=for_us, **_channel(choices, target, group))


def _stall_channel(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    for_us = max(choices.pick((5_000, 2_000)), _until_something_passes(target))
    return plan.StallChannel(trigger=trigger, for_us=for_us, **_channel(choices, target, group))


def _cut_channel(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    channel = _channel(choices, target, group)
    return plan.CutChannel(trigger=trigger, sender=channel["sender"], receiver=channel["receiver"])


def _message(choices: Choices, group: TargetGroup) -> str:
    if group.whole:
        return "finished"
    return choices.pick(("running", "deploy") if group.guarantee == "at-most-once" else ("ack", "complete", "trigger"))


def _lose_message(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.LoseMessage(trigger=trigger, message=_message(choices, group))


def _late_message(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    by_us = target.checkpoint_us * choices.pick((1, 2)) // 2
    return plan.LateMessage(trigger=trigger, message=_message(choices, group), by_us=by_us)


def _repeat_message(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.RepeatMessage(trigger=trigger, message=_message(choices, group), after_us=choices.pick((1_000, 100)))


def _fail_write(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.FailWrite(trigger=trigger, task=choices.pick((*lasting(target, group), None)))


def _fail_read(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.FailRead(trigger=trigger, task=choices.pick(lasting(target, group)))


def _tear_write(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.TearWrite(trigger=trigger, task=choices.pick(lasting(target, group)))


def _raise_in_operator(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.RaiseInOperator(trigger=trigger, task=choices.pick(target.layout.operators))


def _fail_commit(choices: Choices, target: Forecast, group: TargetGroup, trigger: AnyTrigger) -> AnyFault:
    return plan.FailCommit(trigger=trigger, how=choices.pick(("refused", "lost-response", "unavailable")))


_MAKERS: dict[str, _Maker] = {
    "kill-task": _kill_task,
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
    "fail-commit": _fail_commit,
    "raise-in-operator": _raise_in_operator,
}
