"""What an example claims, and how it is looked up in a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from ...properties.history import Channel, Completed, History, StoredState, TaskRun, Timed
from ...properties.workload import InputRecord
from ..scenario import Scenario

Described = TypeVar("Described")
"""What is run: a scenario, or a system of processes and channels."""
Told = TypeVar("Told")
"""What happened, as its judge reads it."""


class NotShown(Exception):
    """The history does not show what the text says; its text says what it shows instead."""


class Claim(msgspec.Struct, Generic[Described, Told], frozen=True, kw_only=True):
    """A sentence of the text, and the function that finds it in a history.

    The function returns its evidence in words, or raises NotShown.
    """

    says: str
    look: Callable[[Described, Told], str]


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example: its scenario, what it is about, and what the text says of it."""

    about: str
    document: str
    """which text, in words"""
    scenario: Scenario
    claims: tuple[Claim[Scenario, History], ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one claim showed, and the evidence, or what was there instead."""

    says: str
    shown: bool
    evidence: str


def show(example: Example, history: History) -> list[Shown]:
    """Look every claim of an example up in the history of its run (kept with its time line)."""
    return look_up(example.claims, example.scenario, history)


def look_up(claims: Iterable[Claim[Described, Told]], described: Described, told: Told) -> list[Shown]:
    """Look each claim up in what a run tells."""
    return [_look(claim, described, told) for claim in claims]


def _look(claim: Claim[Described, Told], described: Described, told: Told) -> Shown:
    try:
        return Shown(says=claim.says, shown=True, evidence=claim.look(described, told))
    except NotShown as instead:
        return Shown(says=claim.says, shown=False, evidence=str(instead))
    except (LookupError, ValueError) as missing:  # another engine's history may lack a task, a split, a mark
        return Shown(says=claim.says, shown=False, evidence=f"the history has not what it is looked for in: {missing}")


def require(condition: bool, instead: str) -> None:
    """Raise NotShown, saying what is there instead, unless the condition is met."""
    if not condition:
        raise NotShown(instead)


def first_completed(history: History) -> Completed:
    """The first checkpoint that completed."""
    require(bool(history.completed), "no checkpoint completed")
    return min(history.completed, key=lambda completed: completed.order)


def attempts(history: History) -> list[int]:
    return sorted({run.attempt for run in history.runs})


def task_run(history: History, task: str, attempt: int) -> TaskRun:
    for run in history.runs:
        if run.task == task and run.attempt == attempt:
            return run
    raise NotShown(f"{task} had no attempt {attempt}")


def runs_of(history: History, operator: str, attempt: int) -> Iterator[TaskRun]:
    """An operator's subtasks in one attempt."""
    return (run for run in history.runs if run.operator == operator and run.attempt == attempt)


def channel(history: History, name: str, attempt: int) -> Channel:
    for candidate in history.channels:
        if candidate.name == name and candidate.attempt == attempt:
            return candidate
    raise NotShown(f"there is no channel {name} in attempt {attempt}")


def before_barrier(found: Channel, checkpoint: int) -> int:
    """How many records stand before a checkpoint's barrier in a channel."""
    for number, records in found.barriers:
        if number == checkpoint:
            return records
    raise NotShown(f"barrier {checkpoint} never entered {found.name}")


def stored_state(history: History, checkpoint: int, task: str) -> StoredState:
    """What the store holds of a task for a checkpoint, decoded."""
    for stored in history.stored:
        if stored.checkpoint == checkpoint and stored.task == task:
            return msgspec.json.decode(stored.state, type=StoredState)
    raise NotShown(f"the store holds nothing of {task} for checkpoint {checkpoint}")


def happenings(history: History, what: str, attempt: int, channel_name: str) -> list[Timed]:
    """The events of one kind on one channel, in order."""
    found = [
        event
        for event in history.timeline
        if event.what == what and event.attempt == attempt and event.channel == channel_name
    ]
    return sorted(found, key=lambda event: event.order)


def numbered(records: int, keys: int) -> tuple[InputRecord, ...]:
    """Records of an example: keys in turn, values 1, 2, 3 ..., tags that cannot be mistaken."""
    return tuple((index % keys, index + 1, 1_000_003 * (index + 1)) for index in range(records))


def simulated(scenario: Scenario) -> History:
    """The history of another scenario, run on the simulated engine with its time line: what a claim sets its own
    run beside."""
    from ..subjects.simulated import SimulatedSubject

    return SimulatedSubject().run(scenario, timeline=True)
