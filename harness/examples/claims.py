"""What an example claims, and how it is looked up in a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from ...properties.model.history import Channel, Completed, History, StoredState, TaskRun, Timed
from ...properties.model.verdict import Verdict, Violated
from ...properties.model.workload import InputRecord
from ..reference_engine.pipelines.run import NotConserved
from ..scenario.model import Scenario

Described = TypeVar("Described")
"""What is run: a scenario, a system of processes and channels, or a pipeline of bytes."""
Outcome = TypeVar("Outcome")
"""What happened, as its judge reads it."""


class NotShown(Exception):
    """The history does not show what the text says; the message has what it shows instead."""


class Claim(msgspec.Struct, Generic[Described, Outcome], frozen=True, kw_only=True):
    """A sentence of the text, and the function that finds it in a history.

    The function returns its evidence in words, or raises NotShown.
    """

    text: str
    look: Callable[[Described, Outcome], str]
    assumes: str = ""
    """why no run could show otherwise; the claim is reported as an assumption then"""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario of a companion run: it runs on the same engine as the example's own and is judged in the same
    way."""

    name: str
    """what is different, in words"""
    scenario: Scenario
    violates: tuple[str, ...] = ()
    """the invariants that the text says this way of doing it violates; any other one that is violated is the
    engine's own"""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was run and judged; the history has its time line."""

    scenario: Scenario
    history: History
    verdicts: dict[str, Verdict]

    @property
    def violated(self) -> dict[str, Violated]:
        """The invariants that are violated, with their witnesses."""
        return {name: verdict for name, verdict in self.verdicts.items() if isinstance(verdict, Violated)}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the text about more runs than one, and the function that finds it in them.

    The function is given the example's own run and those of the variants, in their order; it returns its evidence in
    words, or raises NotShown.
    """

    text: str
    companions: tuple[Variant, ...]
    look: Callable[[Ran, Sequence[Ran]], str]


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example: its scenario, what it is about, and what the text says of it."""

    about: str
    document: str
    """which text, in words"""
    scenario: Scenario
    claims: tuple[Claim[Scenario, History] | Comparison, ...]

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def variants(self) -> tuple[Variant, ...]:
        """What its comparisons run, each once, in the order in which they name them."""
        named = (variant for claim in self.claims if isinstance(claim, Comparison) for variant in claim.companions)
        return tuple({variant.name: variant for variant in named}.values())


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one claim showed, and the evidence, or what was there instead."""

    text: str = msgspec.field(name="says")
    shown: bool
    evidence: str
    assumed: bool = False
    """nothing that the run could do would show otherwise: the claim is an assumption of what was built, and the
    evidence says which"""


def show(example: Example, own: Ran, companions: Mapping[str, Ran]) -> list[Shown]:
    """Look every claim of an example up in its own run and, by name, those of its variants.

    A comparison does not show where one of its variants did not run.
    """
    return [
        _compared(claim, own, companions) if isinstance(claim, Comparison) else _look(claim, own.scenario, own.history)
        for claim in example.claims
    ]


def look_up(claims: Iterable[Claim[Described, Outcome]], described: Described, outcome: Outcome) -> list[Shown]:
    """Look each claim up in the outcome of a run."""
    return [_look(claim, described, outcome) for claim in claims]


def _look(claim: Claim[Described, Outcome], described: Described, outcome: Outcome) -> Shown:
    return _found(claim.text, lambda: claim.look(described, outcome), claim.assumes)


def _compared(claim: Comparison, own: Ran, companions: Mapping[str, Ran]) -> Shown:
    missing = [variant.name for variant in claim.companions if variant.name not in companions]
    if missing:
        return Shown(text=claim.text, shown=False, evidence=f"these could not be run: {', '.join(missing)}")
    return _found(claim.text, lambda: claim.look(own, [companions[variant.name] for variant in claim.companions]))


def _found(text: str, look: Callable[[], str], assumes: str = "") -> Shown:
    try:
        evidence = look()
        if assumes:
            return Shown(text=text, shown=False, assumed=True, evidence=f"{evidence}: {assumes}")
        return Shown(text=text, shown=True, evidence=evidence)
    except (NotShown, NotConserved) as instead:
        return Shown(text=text, shown=False, evidence=str(instead))
    except (LookupError, ValueError) as missing:  # another engine's history may lack a task, a split, a mark
        return Shown(text=text, shown=False, evidence=f"the history lacks what the claim is looked up in: {missing}")


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
