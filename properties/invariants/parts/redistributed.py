"""The state that a task has to begin with: its own snapshot or, in a rescaled job, its part of the redistributed state.

From the states of all old subtasks of its operator, a new subtask takes the keys that it
owns, the splits that it reads, the sealed transactions whose writer's number maps to
it, and its share of the lists' items.  It keeps the items of a union that its operator's
rule selects, also in a job that is not rescaled.  It takes the whole copy of broadcast
state of one old subtask.  Watermarks of channels cannot be mapped one to one: each
channel of an input begins with the least watermark of that input's old channels, and the
task itself with the least watermark of its operator's old subtasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...model.history import StoredState, TaskRun
from ...model.stages import width
from ...model.workload import BEGINNING
from ...quick_checker.case import Case
from ...reconstruct.buffered_rows import is_tally
from ...reconstruct.layouts import owner_of_key, splits_of_task
from ...reconstruct.snapshots import decode_state


def before(case: Case, run: TaskRun) -> StoredState:
    """The state with which a run began, according to the store."""
    checkpoint = case.lineages.restored(run.task, run.attempt)
    if checkpoint is not None and case.rescaled(run.attempt, checkpoint):
        return redistributed_state(case, run, checkpoint)
    parent = case.lineages.parent(run.task, run.attempt)
    return case.states(parent[1]).get(run.task, StoredState()) if parent else StoredState()


def redistributed_state(case: Case, run: TaskRun, checkpoint: int) -> StoredState:
    """A task's part of a snapshot that a job of another topology took."""
    topology = case.layout_of(run)
    wide, subtask = width(topology, run.operator), run.subtask
    old = case.states_of(run.operator, checkpoint)
    states = list(old.values())

    def is_mine(key: int | None) -> bool:
        return owner_of_key(key, topology, run.operator) == subtask

    sources = {source.name for source in case.workload.inputs}
    splits = splits_of_task(case.workload, topology, run.operator, subtask) if run.operator in sources else ()
    writers = {
        one.name: int(one.task.rpartition("-")[2]) for one in (*case.history.transactions, *case.history.passing)
    }
    watermark = min((state.watermark for state in states), default=BEGINNING)
    times = list(_least_times(case, run, checkpoint, old))
    return StoredState(
        positions=_of(splits, *(state.positions for state in states)),
        entries=[entry for state in states for entry in state.entries if is_mine(entry[1])],
        transactions=[
            (name, sealed)
            for state in states
            for name, sealed in state.transactions
            if writers.get(name, subtask) % wide == subtask
        ],
        watermark=watermark,
        times=times if any(state.times for state in states) and max([watermark, *times]) > BEGINNING else [],
        idle=[split for state in states for split in state.idle if split in splits],
        maxima=_of(splits, *(state.maxima for state in states)),
        held=[one for state in states for one in state.held if is_mine(one[0])],
        timers=[timer for state in states for timer in state.timers if is_mine(timer[1])],
        alarms=[timer for state in states for timer in state.alarms if is_mine(timer[1])],
        broadcast=_copy(run, states),
    )


def _copy(run: TaskRun, states: Sequence[StoredState]) -> list[tuple[str, str]]:
    """The copy of broadcast state that a run loaded, if it is an old subtask's copy; else the first of these copies."""
    held = decode_state(run.loaded.state) if run.loaded is not None else None
    loaded = Counter(held.broadcast) if held is not None else None
    copies = [state.broadcast for state in states]
    return next((copy for copy in copies if Counter(copy) == loaded), next(iter(copies), []))


def kept_of_union(case: Case, run: TaskRun, checkpoint: int) -> list[tuple[str, str]] | None:
    """The items of a snapshot's union that a subtask of a tally keeps: the counts of the keys that it owns.

    None for any other operator: a user's operator has a rule of its own.
    """
    if not is_tally(case.workload, run.operator):
        return None
    topology = case.layout_of(run)
    return [
        item
        for item in union_of(case, run.operator, checkpoint)
        if owner_of_key(msgspec.json.decode(item[1])[0], topology, run.operator) == run.subtask
    ]


def union_of(case: Case, operator: str, checkpoint: int) -> list[tuple[str, str]]:
    """The union of an operator in a snapshot: the items of all its subtasks."""
    return [item for state in case.states_of(operator, checkpoint).values() for item in state.shared]


def wrongly_redistributed(case: Case, operator: str, attempt: int, checkpoint: int) -> tuple[str, ...]:
    """The items of lists that an operator's subtasks loaded too often or not often enough, as phrases.

    The lists are redistributed as one multiset; it does not matter which subtask has which item.
    """
    stored = Counter(item for state in case.states_of(operator, checkpoint).values() for item in state.listed)
    runs = [run for run in case.history.runs if run.operator == operator and run.attempt == attempt]
    loads = [run.loaded.state for run in runs if run.loaded is not None and run.loaded.checkpoint == checkpoint]
    held = [decode_state(text) for text in loads if text]
    loaded = Counter(item for state in held if state is not None for item in state.listed)
    phrases = [f"{name} {text} loaded, not stored" for name, text in (loaded - stored).elements()]
    if len(held) == width(case.jobs.layouts[runs[0].job], operator):
        phrases += [f"{name} {text} stored, not loaded" for name, text in (stored - loaded).elements()]
    return tuple(phrases)


def _of(splits: tuple[int, ...], *maps: Mapping[int, int]) -> dict[int, int]:
    """The entries of some splits in several maps by split."""
    every = {split: number for one in maps for split, number in one.items()}
    return {split: every[split] for split in splits if split in every}


def _least_times(case: Case, run: TaskRun, checkpoint: int, old: Mapping[str, StoredState]) -> Iterator[int]:
    """For each input channel of a run, the least watermark of the old channels from the same operator."""
    least: dict[str, int] = {}
    stored = case.lineages.snapshots.stored(checkpoint)
    for task, state in old.items():
        wrote = case.lineages.runs.get((task, stored[task].attempt))
        for index, channel in enumerate(wrote.inputs if wrote is not None else ()):
            time = state.times[index] if index < len(state.times) else BEGINNING
            sender = _sender(channel)
            least[sender] = min(time, least.get(sender, time))
    for channel in run.inputs:
        yield least.get(_sender(channel), BEGINNING)


def _sender(channel: str) -> str:
    """The operator that sends into a channel."""
    return channel.partition(">")[0].rpartition("-")[0]
