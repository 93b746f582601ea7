"""Commands, schedule perturbations, and faults that need an accompanying fault."""

from __future__ import annotations

from ....faults import plan
from ....faults.plan import AnyFault, AtPoint, AtTime, InPhase
from ...scenario.forecast import Forecast
from ...scenario.model import AnyCommand, Cancel, Perturbation, Resume, Savepoint, StopWithSavepoint
from ..choices import Choices
from ..faults.draw_faults import (
    DISTURBING,
    RESTARTING,
    amid_data,
    at_some_step,
    at_some_time,
    draw_fault,
    during_recovery,
    early,
    possible,
    some_task,
)
from ..faults.stop_races import racing_stops

RARE_MESSAGES = ("deploy", "running", "cancel", "decline", "abort", "terminate", "finished")


def restart(choices: Choices, target: Forecast) -> AnyFault:
    """A fault amid the data after which the job restores a snapshot."""
    kind = choices.pick([kind for kind in RESTARTING if possible(kind, target)])
    if kind == "lose-unsynced":
        return power_loss(choices, target)
    return draw_fault(choices, target, kind, amid_data(choices, target))


def power_loss(choices: Choices, target: Forecast) -> AnyFault:
    """A node loses power while a source on it writes its snapshot; most engines assign tasks to nodes round-robin."""
    engine, number = target.engine, choices.between(0, len(target.layout.sources) - 1)
    trigger = InPhase(
        phase="checkpointing",
        occurrence=min(choices.pick((1, 1, 2)), target.checkpoints),
        after_us=engine.control_latency_us + engine.snapshot_write_us * choices.pick((4, 3, 5)) // 4,
    )
    return plan.LoseUnsynced(trigger=trigger, node=number % engine.nodes)


def kill(choices: Choices, target: Forecast) -> AnyFault:
    """A task dies amid the data, which surely causes a restart."""
    return plan.KillTask(trigger=at_some_time(choices, target), task=some_task(choices, target))


def disturbance(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """A fault that an attempt mostly survives; a failing read comes with a restart that reads."""
    kind = choices.pick([kind for kind in DISTURBING if possible(kind, target)])
    if kind == "fail-read":
        return unreadable(choices, target)
    return (draw_fault(choices, target, kind, early(choices, target)),)


def unreadable(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """A read fails once: of a task's snapshot in a restart, or of the records by a new coordinator."""
    if choices.percent(40):
        coordinator_kill = draw_fault(choices, target, "kill-coordinator", at_some_time(choices, target))
        return plan.FailRead(trigger=early(choices, target), task=None), coordinator_kill
    return draw_fault(choices, target, "fail-read", early(choices, target)), kill(choices, target)


def second_failure(choices: Choices, target: Forecast) -> AnyFault:
    """A failure while the job recovers from another."""
    kinds = ("kill-task", "kill-node", "kill-coordinator", "fail-read")
    kind = choices.pick([kind for kind in kinds if possible(kind, target)])
    # a failing read waits for a read of the first restart, so it is triggered long before
    trigger = early(choices, target) if kind == "fail-read" else during_recovery(choices, target)
    return draw_fault(choices, target, kind, trigger)


def rare_message(choices: Choices, target: Forecast) -> tuple[AnyFault, ...]:
    """A fault on a control message that only a restart, a decline or the end causes, and a fault that causes it."""
    message = choices.pick(RARE_MESSAGES)
    soon = early(choices, target)
    company: tuple[AnyFault, ...] = ()
    task: str | None = None
    if message in ("deploy", "running", "cancel"):
        company = (kill(choices, target),)
        if message != "cancel" and choices.percent(30):
            soon = AtTime(at_us=0)
    elif message in ("decline", "abort"):
        company = (plan.FailWrite(trigger=soon, task=some_task(choices, target)),)
    elif not target.bounded:
        message = "complete"
    else:
        task = choices.pick((None, *target.layout.tasks))
    wrong = choices.between(0, 2)
    if wrong == 0:
        return (
            plan.LateMessage(trigger=soon, message=message, task=task, by_us=choices.pick((2_000, 15_000))),
            *company,
        )
    if wrong == 1:
        return (plan.RepeatMessage(trigger=soon, message=message, task=task), *company)
    return (plan.LoseMessage(trigger=soon, message=message, task=task), *company)


def mixed_faults(choices: Choices, target: Forecast, most: int) -> tuple[AnyFault, ...]:
    """One to `most` faults of all kinds, mostly with one that makes the job restore."""
    faults: list[AnyFault] = [restart(choices, target)]
    if most > 1 and choices.percent(50):
        faults.append(kill(choices, target))
    for _ in range(choices.between(0, most - len(faults))):
        sort = choices.between(0, 9)
        if sort < 4:
            faults.extend(disturbance(choices, target))
        elif sort < 6:
            faults.append(restart(choices, target))
        elif sort < 8:
            faults.append(second_failure(choices, target))
        else:
            faults.extend(rare_message(choices, target))
    return tuple(faults[:most]) if most > 1 else tuple(faults)


def mixed_commands(choices: Choices, target: Forecast) -> tuple[AnyCommand, ...]:
    """Commands of a user during the run; mostly a stopped job is resumed."""
    trigger = at_some_step(choices, target) if choices.percent(30) else at_some_time(choices, target, share=(20, 90))
    again = Resume(trigger=AtTime(at_us=choices.pick((1_000, 0, 5_000))))
    sort = choices.between(0, 11)
    if sort < 4:
        return (Savepoint(trigger=trigger),)
    if sort < 7:
        stop = StopWithSavepoint(trigger=trigger)
        return (stop, again) if choices.percent(70) else (stop,)
    if sort < 8:
        return (StopWithSavepoint(trigger=trigger, drain=True),)
    if sort < 9:
        return (Cancel(trigger=trigger), again)
    if sort < 11:
        return (*racing_stops(choices, target, trigger), again)
    return (Savepoint(trigger=trigger), StopWithSavepoint(trigger=AtPoint(point="savepoint-requested")), again)


def perturbations(choices: Choices, target: Forecast, most: int = 2) -> tuple[Perturbation, ...]:
    """Delays of a few messages, writes or steps."""
    return tuple(_perturbation(choices, target) for _ in range(choices.between(1, most)))


def _perturbation(choices: Choices, target: Forecast) -> Perturbation:
    sort = choices.pick(("message", "control", "write", "step", "transaction", "read"))
    by_us = target.checkpoint_us * choices.pick((1, 2, 6)) // 2
    if sort == "message":
        sender, receiver = choices.pick(target.layout.channels)
        what, most = f"message {sender}>{receiver}", max(1, target.reads // len(target.layout.channels))
    elif sort == "control":
        kind, task = choices.pick(("ack", "complete", "trigger", "running")), some_task(choices, target)
        if kind == "trigger":
            task = choices.pick(target.layout.sources)
        what, most = f"control {kind} {task}", 1 if kind == "running" else target.checkpoints
    elif sort == "read":
        what, most = f"read {some_task(choices, target)}", 2
    elif sort == "write" and choices.percent(30):
        what, most = "write coordinator", target.checkpoints
    elif sort == "transaction":
        what, most = (
            f"transaction {choices.pick(target.layout.sinks + target.layout.committers)}",
            3 * target.checkpoints,
        )
        if target.engine.sink != "transactional":
            what, most = f"write {some_task(choices, target)}", target.checkpoints
    else:
        most = target.checkpoints if sort == "write" else max(1, target.reads // len(target.layout.tasks))
        what = f"{sort} {some_task(choices, target)}"
    return Perturbation(what=what, occurrence=choices.between(1, max(1, most)), by_us=by_us)
