"""The timers, watermarks and split maxima of a completed checkpoint, compared with those expected.

Timers in processing time are compared too.
"""

from __future__ import annotations

from collections import Counter

from ...model.verdict import Violated
from ...model.words import LIMIT
from ...model.workload import BEGINNING, END_OF_TIME, Burst, Node, Window, is_clocked
from ...quick_checker.case import Case
from ...semantics.classes import FOLLOWING
from ...semantics.event_time import Clock, splits_before
from ...semantics.windows import Timer


def stored_times(case: Case, checkpoint: int) -> Violated | None:
    """A difference in event time, or in timers of either kind, as decoded from the store's bytes."""
    window = case.window
    if window is not None and isinstance(window.operator, Burst):
        found = _timers(case, checkpoint, window)
        if found is not None:
            return found
    if not case.workload.times():
        return None
    found = _sources(case, checkpoint)
    if found is None and window is not None and not is_clocked(window.operator):
        mine = _timers(case, checkpoint, window) if isinstance(window.operator, Window) else None
        found = mine or _watermarks(case, checkpoint, window)
    return found


def _sources(case: Case, checkpoint: int) -> Violated | None:
    """A difference at a source: its positions determine the greatest time of each split, and its watermark."""
    clock = Clock(case.workload)
    for source in case.workload.inputs:
        if not source.times:
            continue
        for task, state in case.states_of(source.name, checkpoint).items():
            greatest = {split: clock.greatest(split, position) for split, position in state.positions.items()}
            expected = {split: time for split, time in greatest.items() if time is not None}
            if state.maxima != expected:
                return _wrong(checkpoint, task, f"the greatest times {state.maxima}", f"{expected}", "time differs")
            time = clock.watermark(state.positions, state.positions) if state.positions else None
            if checkpoint in case.drained:
                time = END_OF_TIME
            if _went_on(case, checkpoint):
                time = None  # the watermark was at the end of time before the job began, and stays there
            if time is not None and not source.idle_after_us and state.watermark != time:
                return _wrong(
                    checkpoint, task, f"watermark {_moment(state.watermark)}", _moment(time), "watermark differs"
                )
    return None


def _went_on(case: Case, checkpoint: int) -> bool:
    """Whether a checkpoint belongs to a job that continued after a drain."""
    last = case.last_with_windows
    return last is not None and case.lineages.completed[checkpoint].job > last


def _watermarks(case: Case, checkpoint: int, window: Node) -> Violated | None:
    """A difference in a window's watermark: if no record is late, the positions of all its inputs determine it."""
    if case.classes[window.name] in FOLLOWING or case.lineages.snapshots.in_flight(checkpoint):
        return None  # a watermark may be in flight to the window
    clock, positions = Clock(case.workload), case.positions(checkpoint)
    time = clock.watermark(splits_before(case.workload, window.name), positions)
    if checkpoint in case.drained:
        time = END_OF_TIME
    for task, state in case.states_of(window.name, checkpoint).items():
        if state.watermark != time:
            return _wrong(checkpoint, task, f"watermark {_moment(state.watermark)}", _moment(time), "watermark differs")
        received = [one for channel, one in enumerate(state.times) if channel not in state.idle]
        if time > BEGINNING and min(received, default=None if not state.idle else time) != time:
            times = ", ".join(_moment(one) for one in state.times) or "nothing"
            return _wrong(checkpoint, task, f"as the channels' watermarks {times}", _moment(time), "watermark differs")
    return None


def _timers(case: Case, checkpoint: int, window: Node) -> Violated | None:
    if case.follows_order and not case.is_determined(at_sink=False):
        return None
    held: Counter[Timer] = Counter()
    for state in case.states_of(window.name, checkpoint).values():
        held.update(state.alarms if is_clocked(window.operator) else state.timers)
    expected = case.expected.timers(checkpoint)
    if held == expected:
        return None
    missing, extra = list((expected - held).elements()), list((held - expected).elements())
    return _wrong(checkpoint, window.name, f"timers {_in_words(extra)}", _in_words(missing), "timer differs")


def _moment(time: int) -> str:
    """An event time as text."""
    if time >= END_OF_TIME:
        return "the end of time"
    return str(time) if time > BEGINNING else "the beginning of time"


def _in_words(timers: list[Timer]) -> str:
    phrases = [f"{time} of key {key} from {start}" for time, key, start in timers[:LIMIT]]
    return "; ".join(phrases) or "nothing"


def _wrong(checkpoint: int, task: str, stored: str, expected: str, difference: str) -> Violated:
    return Violated(
        difference=difference,
        message=f"{task} stored {stored} in checkpoint {checkpoint} instead of {expected}",
        checkpoint=checkpoint,
        tasks=(task,),
    )
