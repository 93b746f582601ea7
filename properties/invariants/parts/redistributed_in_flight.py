"""The in-flight data that a task of a rescaled job has to begin with.

On a hash edge these are the records whose keys the task owns.  The records of one old
sender are in one channel, in that sender's order.  On a rebalance edge any subtask may
have a record, and all subtasks together have each record once.  A watermark follows the
records: the least among the last watermarks of the old senders.  The new senders do not
send the records again.  Records that had been restored before come first.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from ...model.history import Passing, StoredState, TaskRun
from ...model.workload import BEGINNING
from ...quick_checker.case import Case
from ...reconstruct.in_flight import NOTHING, InFlight
from ...reconstruct.layouts import owner_of_key
from ...reconstruct.snapshots import decode_state

Lane = list[tuple[int, Passing]]
"""Elements, each with the number of times that a restore had put it back."""


def queued(case: Case, run: TaskRun, checkpoint: int) -> dict[int, list[Passing]]:
    """The in-flight data that a run has to find in its inputs; for a rebalanced input only the watermarks."""
    topology = case.layout_of(run)
    found: dict[int, list[Passing]] = {}
    for operator in dict.fromkeys(_operator(channel) for channel in run.inputs):
        channels = [number for number, channel in enumerate(run.inputs) if _operator(channel) == operator]
        lanes = list(_lanes(case, run.operator, operator, checkpoint))
        if not any(lane for lane, _ in lanes):
            continue
        by_key = is_by_key(case, operator, run)
        often = sorted({times for lane, _ in lanes for times, _ in lane}, reverse=True)
        for times, (number, (lane, _)) in itertools.product(often, enumerate(lanes)):
            rows = _rows(one for replayed, one in lane if replayed == times)
            mine = [one for one in rows if owner_of_key(one[0], topology, run.operator) == run.subtask]
            found.setdefault(channels[number % len(channels)], []).extend(mine if by_key else ())
        time = min(last_times for _, last_times in lanes)
        for channel in channels if time > BEGINNING else ():
            found.setdefault(channel, []).append((time,))
    return {channel: passing for channel, passing in found.items() if passing}


def comparable(case: Case, run: TaskRun, passing: dict[int, list[Passing]]) -> dict[int, list[Passing]]:
    """The in-flight data that a run was restored with, without the records of rebalanced edges."""
    kept: dict[int, list[Passing]] = {
        channel: held
        if is_by_key(case, _operator(run.inputs[channel]), run)
        else [one for one in held if len(one) == 1]
        for channel, held in passing.items()
    }
    return {channel: held for channel, held in kept.items() if held}


def rebalanced_differently(case: Case, run: TaskRun, checkpoint: int) -> tuple[str, ...]:
    """The records of rebalanced edges that all subtasks of a run's operator together have too often or not often
    enough, as phrases."""
    senders = [name for name in dict.fromkeys(map(_operator, run.inputs)) if not is_by_key(case, name, run)]
    runs = [one for one in case.history.runs if one.operator == run.operator and one.attempt == run.attempt]
    loads = [(one, decode_state(one.loaded.state)) for one in runs if one.loaded is not None]
    if not senders or len(loads) < case.layout_of(run).parallelism[run.operator]:
        return ()
    stored = Counter(
        one
        for sender in senders
        for lane, _ in _lanes(case, run.operator, sender, checkpoint)
        for one in _rows(it for _, it in lane)
    )
    loaded: Counter[Passing] = Counter()
    for one, state in loads:
        for channel, passing in state.queued.items() if state is not None else ():
            if _operator(one.inputs[channel]) in senders:
                loaded.update(_rows(passing))
    phrases = [f"in flight {one} stored, not loaded" for one in (stored - loaded).elements()]
    return (*phrases, *(f"in flight {one} loaded, not stored" for one in (loaded - stored).elements()))


def is_by_key(case: Case, sender: str, run: TaskRun) -> bool:
    return case.layout_of(run).edge(sender, run.operator).partitioning == "hash"


def _rows(passing: Iterable[Passing]) -> Iterator[Passing]:
    return (one for one in passing if len(one) > 1)


def _operator(channel: str) -> str:
    """The operator that sends into a channel."""
    return channel.partition(">")[0].rpartition("-")[0]


def _lanes(case: Case, receiver: str, sender: str, checkpoint: int) -> Iterator[tuple[Lane, int]]:
    """For each old sender: its in-flight elements to an operator, in order, and the last watermark that it sent."""
    stored, states = case.lineages.snapshots.stored(checkpoint), case.states(checkpoint)
    receivers = [
        (run, states[task])
        for task, entry in stored.items()
        if task.rpartition("-")[0] == receiver
        and task in states
        and (run := case.runs.get((task, entry.attempt))) is not None
    ]
    receivers.sort(key=lambda one: one[0].subtask)
    for name in receivers[0][0].inputs if receivers else ():
        if _operator(name) == sender:
            yield _lane(case, receivers, name.partition(">")[0], checkpoint)


def _lane(case: Case, receivers: list[tuple[TaskRun, StoredState]], sender: str, checkpoint: int) -> tuple[Lane, int]:
    lane: Lane = []
    last_times: list[int] = []
    for run, state in receivers:
        channel = f"{sender}>{run.task}"
        if channel not in run.inputs:
            continue  # a forward edge joins the sender to another receiver
        held: InFlight = case.lineages.snapshots.in_flight(checkpoint).get(channel, NOTHING)
        under_way = [*held.queued, *held.unsent]
        lane += zip(itertools.chain(held.replays, itertools.repeat(0)), under_way, strict=False)
        received_time = state.times[run.inputs.index(channel)] if state.times else BEGINNING
        last_times.append(max([received_time, *(one[0] for one in under_way if len(one) == 1 and one[0] is not None)]))
    return lane, min(last_times, default=BEGINNING)
