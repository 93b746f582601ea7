"""Whether an operator in processing time received the right times, and its timers fired.

What a burst holds follows from the times that its operator received (`TaskRun.ticks`).
The world recorded these times, not the engine.  They may not go back, and time ends only
after the network's log of the operator's inputs has ended.  A timer fires exactly once,
in the first tick at or after its time: the replay of the ticks yields those rows.

No timer may be forgotten.  If all faults have healed, and a snapshot taken long after a
timer was due still holds the timer, the task has not registered for the time.  This is
checked where one clock gives all times of a history (in virtual time).  On processes the
tasks' time is scaled, and a machine may be slow.  There a task with a pending timer is
not idle, and a job whose timer never fires does not come to rest: progress finds that
(`progress`, "no rest").
"""

from __future__ import annotations

from ...model.history import TaskRun
from ...model.verdict import Violated
from ...model.words import journal_until, plural
from ...model.workload import BEGINNING, END_OF_TIME, Burst, is_clocked
from ...quick_checker.case import Case

OVERDUE_US = 100_000
"""How late a timer of a stalled or slow task may fire."""


def misclocked(case: Case) -> Violated | None:
    """A tick on the lineage that contradicts the world's record."""
    node = case.window
    if node is None or not is_clocked(node.operator):
        return None
    for segment in case.lineage.of_operator(node.name):
        found = _went_back(case, segment.run) or _ended_early(case, segment.run)
        if found is not None:
            return found
    return None


def _went_back(case: Case, run: TaskRun) -> Violated | None:
    last = BEGINNING
    for count, time in run.ticks:
        if time < last:
            return _belied(case, run, f"received the time {time} after {plural(count, 'record')}, and {last} before")
        last = time
    return None


def _ended_early(case: Case, run: TaskRun) -> Violated | None:
    """Time ended while records were still to come."""
    count = next((count for count, time in run.ticks if time >= END_OF_TIME), None)
    if count is None:
        return None
    logs = [case.inbound(run, name) for name in run.inputs]
    sent = sum(len(log.content) for log in logs if log is not None)
    if run.end_of_data and (count == sent or None in logs):
        return None
    return _belied(case, run, f"took its input as ended after {plural(count, 'record')} of {sent}")


def overdue(case: Case) -> Violated | None:
    """A timer that a living task still held in a snapshot, long after it was due."""
    node, healed = case.window, case.history.healed
    if node is None or not isinstance(node.operator, Burst) or case.history.lasting or not case.history.one_clock:
        return None
    for segment in case.lineage.of_operator(node.name):
        run = segment.run
        kept = case.expected.replay.run(run.task, run.attempt).kept
        for mark in segment.marks:
            since = _since(case, run, healed)
            if since is None or mark.order < since[0]:
                continue
            late = [one for one in kept[mark.checkpoint].timers() if max(one[0], since[1]) + OVERDUE_US < mark.at_us]
            if late:
                time, key, _ = late[0]
                overdue_us = mark.at_us - time
                clause = f"held a timer of key {key} in checkpoint {mark.checkpoint}, {overdue_us} µs after it was due"
                return _belied(case, run, clause, "timer overdue")
    return None


def _since(case: Case, run: TaskRun, healed: int | None) -> tuple[int, int] | None:
    """(order, time) from which no fault disturbs a task any more; None if that is unknown."""
    order = max(healed or 0, run.started)
    return next(((entry.order, entry.at_us) for entry in case.history.completed if entry.order > order), None)


def _belied(case: Case, run: TaskRun, clause: str, difference: str = "clock differs") -> Violated:
    return Violated(
        difference=difference,
        message=f"{run.task} of attempt {run.attempt} {clause}",
        tasks=(run.task,),
        events=journal_until(case.history, run.ended),
    )
