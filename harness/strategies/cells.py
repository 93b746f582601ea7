"""Template `cells`: every possible cell of the coverage in turn, each fault brought to its point.

A free draw comes to a few cells often and to most never.  Here the cell is
drawn first (`coverage.possible_cells`), and the scenario built so that the
fault fires there: an engine that waits for it, an input that ends early where
the point is the end of one, and company where the point or the fault needs it
(a failing read needs a restart, the end of a job by failure a last blow).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from ...faults import plan
from ...faults.plan import COMMON_KINDS, AnyFault, AnyTrigger, AtPoint, AtTime
from ..coverage import ALIGNMENTS, TRANSACTION_POINTS, possible_cells
from ..forecast import Forecast
from ..scenario import AnyCommand, Cancel, Resume, Savepoint, Scenario, StopWithSavepoint
from ..subject import Capabilities
from .choices import Choices
from .engines import Tuning
from .faults import draw_fault
from .stage import ALL_GUARANTEES, ALL_SINKS, Frame, Stage, stage_of

Pair = tuple[str, str]
"""a point, and the kind of fault that it sets off"""

ENDS = frozenset({"end-of-data-sent", "end-of-partition-sent"})
RECOVERY = frozenset({"task-deployed", "state-loaded", "task-running"})
MESSAGES = frozenset({"lose-message", "late-message", "repeat-message"})
RESTARTING = frozenset({"kill-task", "kill-node", "cut-channel", "tear-write", "lose-unsynced", "raise-in-operator"})
"""kinds after which the job starts another attempt, or fails when it has no more"""

_ALL = Capabilities(
    faults=frozenset(COMMON_KINDS),
    commands=frozenset({"savepoint", "stop-with-savepoint", "cancel", "resume"}),
    guarantees=ALL_GUARANTEES,
    sinks=ALL_SINKS,
)


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """What one scenario is after, and what it needs for that."""

    guarantee: str
    sink: str
    ending: str
    pairs: tuple[Pair, ...]
    needs: frozenset[str]

    @property
    def apart(self) -> bool:
        return "apart" in self.needs


def every_cell(choices: Choices, frame: Frame) -> Scenario:
    """One cell that is drawn from all that are possible, and others beside it that need no more than it."""
    aim = _draw_aim(choices, frame)
    stage = _stage(choices, frame, aim)
    end_us = _end_of(stage.target)
    company = _company(choices, stage.target, aim, end_us)
    aimed = tuple(_aimed(choices, stage.target, aim, pair) for pair in aim.pairs)
    commands = _commands(choices, stage.target, aim, end_us)
    return stage.scenario("cells", faults=(*aimed, *company)[: max(1, frame.max_faults)], commands=commands)


# -- what is aimed at ----------------------------------------------------------------


@cache
def _table(capabilities: Capabilities) -> dict[tuple[str, str], tuple[Pair, ...]]:
    """By guarantee and ending: the points and kinds that are possible there."""
    guarantees = {alignment: guarantee for guarantee, alignment in ALIGNMENTS.items()}
    table: dict[tuple[str, str], list[Pair]] = {}
    for cell in possible_cells(capabilities):
        if cell.fault in COMMON_KINDS:
            table.setdefault((guarantees[cell.alignment], cell.ending), []).append((cell.point, cell.fault))
    return {key: tuple(pairs) for key, pairs in table.items()}


def _draw_aim(choices: Choices, frame: Frame) -> Aim:
    table = _table(frame.capabilities or _ALL)
    keys = [key for key in table for _ in range(1 if key[0] == "at-most-once" else 4)]
    guarantee, ending = choices.pick(keys)
    sink = _draw_sink(choices, frame, guarantee)
    pairs = [pair for pair in table[guarantee, ending] if _fits(pair, sink)]
    needy = [pair for pair in pairs if _needs(pair, guarantee, ending)]
    first = choices.pick(needy if needy and choices.percent(NEEDY_PERCENT) else pairs)
    needs = _needs(first, guarantee, ending)
    room = frame.max_faults - 1 - len(needs & COSTING) - (ending == "failed")
    chosen = [first]
    for _ in range(min(room, MOST_BESIDE)):
        other = choices.pick(pairs)
        restarts_twice = ending == "failed" and other[1] in RESTARTING
        if _needs(other, guarantee, ending) <= needs and other not in chosen and not restarts_twice:
            chosen.append(other)
    return Aim(guarantee=guarantee, sink=sink, ending=ending, pairs=tuple(chosen), needs=needs)


NEEDY_PERCENT = 60
"""how often the cell is one that needs something: those that need nothing are hit beside others"""
MOST_BESIDE = 3
ROWS_PERCENT = 6
"""how often the sink writes rows at once, to reach the one point that no transactional sink has"""


def _draw_sink(choices: Choices, frame: Frame, guarantee: str) -> str:
    at_once = "idempotent" if guarantee == "exactly-once" else "plain"
    wanted = at_once if guarantee == "at-most-once" or choices.percent(ROWS_PERCENT) else "transactional"
    return wanted if wanted in frame.sinks else min(frame.sinks)


def _fits(pair: Pair, sink: str) -> bool:
    point, fault = pair
    if sink == "transactional":
        return point != "row-written"
    return point not in TRANSACTION_POINTS and fault != "fail-commit"


COSTING = frozenset({"abort", "restart before", "restart after"})
"""needs that take a fault of their own"""


def _needs(pair: Pair, guarantee: str, ending: str) -> frozenset[str]:
    point, fault = pair
    needs = set()
    if point in ENDS:
        needs.add("apart")
    if point == "checkpoint-aborted":
        needs.add("abort")
    if point == "savepoint-requested":
        needs.add("savepoint")
    if point == "state-loaded" or (point in RECOVERY and fault == "lose-unsynced"):
        needs.add("restart before")
    if fault == "fail-read" or (fault in MESSAGES and guarantee == "at-most-once"):
        needs.add("restart after")
    if fault == "lose-unsynced":
        needs.add("slow writes")
    if fault == "raise-in-operator":
        needs.add("operator")
    return frozenset(needs)


# -- the stage -----------------------------------------------------------------------


def _stage(choices: Choices, frame: Frame, aim: Aim) -> Stage:
    """Inputs that do not end where something else ends the job; one that ends early where that is the point."""
    endless = aim.ending != "finished"
    recipe = frame.recipe(
        most_records=48,
        least_records=24,
        shapes=("union",) if aim.apart else ("chain", "chain", "union"),
        splits=(1,) if aim.apart else (1, 2),
        apart=aim.apart,
        idempotent=aim.sink == "idempotent",
        unbounded_percent=100 if endless and not aim.apart else 0,
        mixed_percent=100 if endless and aim.apart else 0,
        windows_percent=0,
        least_operators=1,
        most_operators=2,
        parallelism=(1, 1, 2),
    )
    tuning = Tuning(
        guarantees=(aim.guarantee,), sinks=(aim.sink,), concurrent=(1, 1, 2), checkpoints=(3, 4), memory_percent=0
    )
    settings: dict[str, object] = {}
    if aim.ending == "failed":
        settings["restart_attempts"] = len(aim.needs & {"restart before", "restart after"})
    if "slow writes" in aim.needs:
        settings |= _SLOW_WRITES
    return stage_of(choices, frame, recipe, tuning, **settings)


_SLOW_WRITES: dict[str, object] = {
    "nodes": 1,
    "read_interval_us": 400,
    "checkpoint_interval_us": 1_500,
    "snapshot_write_us": 3_500,
    "snapshot_mode": "asynchronous",
    "concurrent_checkpoints": 3,
    "minimum_pause_us": 0,
    "checkpoint_timeout_us": 40_000,
}
"""some write is under way at any time, on the one node that there is"""


def _end_of(target: Forecast) -> int:
    """When a job that does not end by itself is ended: all that was aimed has come by then."""
    return target.start_us + target.span_us + 4 * target.checkpoint_us + 12_000


def _commands(choices: Choices, target: Forecast, aim: Aim, end_us: int) -> tuple[AnyCommand, ...]:
    commands: list[AnyCommand] = []
    if "savepoint" in aim.needs:
        commands.append(Savepoint(trigger=AtTime(at_us=_share(target, choices.between(45, 65)))))
    when = AtTime(at_us=end_us)
    if aim.ending in ("stopped", "drained"):
        commands.append(StopWithSavepoint(trigger=when, drain=aim.ending == "drained"))
    elif aim.ending == "cancelled":
        commands.append(Cancel(trigger=when))
    if aim.ending != "finished":
        commands.append(Resume(trigger=AtTime(at_us=1_000)))
    return tuple(commands)


def _company(choices: Choices, target: Forecast, aim: Aim, end_us: int) -> tuple[AnyFault, ...]:
    """What the cells need beside the faults that are counted in them."""
    found: list[AnyFault] = []
    tasks = _lasting(target, aim)
    if "abort" in aim.needs:
        found.append(plan.FailWrite(trigger=AtTime(at_us=0), task=choices.pick(tasks)))
    if "restart before" in aim.needs:
        seasoned = AtPoint(point="checkpoint-completed", occurrence=1)
        found.append(plan.KillTask(trigger=seasoned, task=choices.pick(tasks)))
    if "restart after" in aim.needs:
        late_us = _share(target, 85) if aim.ending == "finished" else (target.start_us + target.span_us + end_us) // 2
        found.append(plan.KillTask(trigger=AtTime(at_us=late_us), task=choices.pick(tasks)))
    if aim.ending == "failed" and aim.pairs[0][1] not in RESTARTING:
        found.append(plan.KillTask(trigger=AtTime(at_us=end_us), task=choices.pick(tasks)))
    return tuple(found)


# -- each fault at its point ---------------------------------------------------------


def _aimed(choices: Choices, target: Forecast, aim: Aim, pair: Pair) -> AnyFault:
    point, kind = pair
    trigger = _at(choices, target, aim, pair)
    make = _MAKERS.get(kind)
    return make(choices, target, aim, trigger) if make else draw_fault(choices, target, kind, trigger)


def _at(choices: Choices, target: Forecast, aim: Aim, pair: Pair) -> AtPoint:
    """An early occurrence, after which there is still much to come; of any task."""
    point, kind = pair
    many = len(target.layout.tasks)
    later = "slow writes" in aim.needs
    side = choices.pick(("after", "before"))
    if point in ("record-read", "record-applied"):
        occurrence = choices.between(target.reads // 3, target.reads // 2) if later else choices.between(1, 8)
    elif point in ("row-written", "transaction-written"):
        occurrence = target.reads // 4 if later else choices.between(1, 3)
    elif point in RECOVERY:
        # all are up; a task that has yet to come can suffer nothing
        occurrence, side = many * (2 if "restart before" in aim.needs and point != "state-loaded" else 1), "after"
        if point == "state-loaded":
            occurrence = choices.between(1, max(1, many - 2))
    elif point in ENDS or point in ("checkpoint-aborted", "savepoint-requested"):
        occurrence = 1
    else:
        occurrence = choices.between(1, 2)
    return AtPoint(point=point, occurrence=max(1, occurrence), side=side)


def _share(target: Forecast, percent: int) -> int:
    return target.start_us + target.span_us * percent // 100


def _lasting(target: Forecast, aim: Aim) -> tuple[str, ...]:
    """The tasks that are there to the end: where one input ends early, not its own."""
    layout = target.layout
    if not aim.apart:
        return layout.tasks
    ending = layout.sources[0].rpartition("-")[0]
    return tuple(task for task in layout.tasks if task.rpartition("-")[0] != ending)


_Maker = Callable[[Choices, Forecast, Aim, AnyTrigger], AnyFault]


def _kill_task(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.KillTask(trigger=trigger, task=choices.pick(_lasting(target, aim)))


def _pause_task(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.PauseTask(
        trigger=trigger, task=choices.pick(_lasting(target, aim)), for_us=choices.pick((3_000, 15_000))
    )


def _channel(choices: Choices, target: Forecast, aim: Aim) -> dict[str, str]:
    tasks = _lasting(target, aim)
    sender, receiver = choices.pick([channel for channel in target.layout.channels if channel[0] in tasks])
    return {"sender": sender, "receiver": receiver}


def _delay_channel(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    by_us = target.checkpoint_us * choices.pick((1, 2)) // 2
    return plan.DelayChannel(trigger=trigger, by_us=by_us, for_us=10_000, **_channel(choices, target, aim))


def _stall_channel(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    for_us = choices.pick((5_000, 2_000))
    return plan.StallChannel(trigger=trigger, for_us=for_us, **_channel(choices, target, aim))


def _cut_channel(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.CutChannel(trigger=trigger, **_channel(choices, target, aim))


def _message(choices: Choices, aim: Aim) -> str:
    menu = ("running", "deploy") if aim.guarantee == "at-most-once" else ("ack", "complete", "trigger")
    return choices.pick(menu)


def _lose_message(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.LoseMessage(trigger=trigger, message=_message(choices, aim))


def _late_message(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    by_us = target.checkpoint_us * choices.pick((1, 2)) // 2
    return plan.LateMessage(trigger=trigger, message=_message(choices, aim), by_us=by_us)


def _repeat_message(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.RepeatMessage(trigger=trigger, message=_message(choices, aim), after_us=choices.pick((1_000, 100)))


def _fail_write(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.FailWrite(trigger=trigger, task=choices.pick((*_lasting(target, aim), None)))


def _fail_read(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.FailRead(trigger=trigger, task=choices.pick(_lasting(target, aim)))


def _tear_write(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
    return plan.TearWrite(trigger=trigger, task=choices.pick(_lasting(target, aim)))


def _fail_commit(choices: Choices, target: Forecast, aim: Aim, trigger: AnyTrigger) -> AnyFault:
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
}

TEMPLATES: dict[str, Callable[[Choices, Frame], Scenario]] = {"cells": every_cell}
