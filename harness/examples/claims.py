"""The claims of an example, and how they are looked up in a history."""

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
"""what an example runs: a scenario, a system of processes and channels, or a pipeline of bytes"""
Outcome = TypeVar("Outcome")
"""what a run returns, in the form that its judge reads"""


class NotShown(Exception):
    """The history does not show what the text says.  The message says what it shows instead."""


class Claim(msgspec.Struct, Generic[Described, Outcome], frozen=True, kw_only=True):
    """A sentence of the text, and the function that finds it in a history.

    The function returns its evidence in words, or raises NotShown.
    """

    text: str
    find: Callable[[Described, Outcome], str]
    assumes: str = ""
    """if no run could show otherwise: why.  The claim is then reported as an assumption"""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario of a companion run: it runs on the same engine as the example's own and is judged in the same
    way."""

    name: str
    """what is different, in words"""
    scenario: Scenario
    violates: tuple[str, ...] = ()
    """the invariants that this way of doing it violates according to the text; the violation of any other invariant is
    a fault of the engine"""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was run and judged, and its history with the time line."""

    scenario: Scenario
    history: History
    verdicts: dict[str, Verdict]

    @property
    def violated(self) -> dict[str, Violated]:
        """The invariants that are violated, with their witnesses."""
        return {name: verdict for name, verdict in self.verdicts.items() if isinstance(verdict, Violated)}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the text about several runs, and the function that finds it in them.

    The function receives the example's own run and the runs of the variants, in order.  It returns its evidence in
    words, or raises NotShown.
    """

    text: str
    companions: tuple[Variant, ...]
    find: Callable[[Ran, Sequence[Ran]], str]


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A worked example: its scenario, its topic, and the claims of its text."""

    about: str
    document: str
    """the name of the text"""
    scenario: Scenario
    claims: tuple[Claim[Scenario, History] | Comparison, ...]

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that the comparisons need, each once, in the order of the comparisons."""
        named = (variant for claim in self.claims if isinstance(claim, Comparison) for variant in claim.companions)
        return tuple({variant.name: variant for variant in named}.values())


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one claim showed, and the evidence, or what the history shows instead."""

    text: str = msgspec.field(name="says")
    shown: bool
    evidence: str
    assumed: bool = False
    """no run could show otherwise: the claim is an assumption of the implementation, which the evidence names"""


def show(example: Example, own: Ran, companions: Mapping[str, Ran]) -> list[Shown]:
    """Look up every claim of an example in its own run and in the runs of its variants (`companions`, by name).

    A comparison does not show if one of its variants did not run.
    """
    return [
        _compared(claim, own, companions)
        if isinstance(claim, Comparison)
        else _checked(claim, own.scenario, own.history)
        for claim in example.claims
    ]


def look_up(claims: Iterable[Claim[Described, Outcome]], described: Described, outcome: Outcome) -> list[Shown]:
    """Look up each claim in the outcome of a run."""
    return [_checked(claim, described, outcome) for claim in claims]


def _checked(claim: Claim[Described, Outcome], described: Described, outcome: Outcome) -> Shown:
    return _found(claim.text, lambda: claim.find(described, outcome), claim.assumes)


def _compared(claim: Comparison, own: Ran, companions: Mapping[str, Ran]) -> Shown:
    missing = [variant.name for variant in claim.companions if variant.name not in companions]
    if missing:
        return Shown(text=claim.text, shown=False, evidence=f"these could not be run: {', '.join(missing)}")
    return _found(claim.text, lambda: claim.find(own, [companions[variant.name] for variant in claim.companions]))


def _found(text: str, find: Callable[[], str], assumes: str = "") -> Shown:
    try:
        evidence = find()
        if assumes:
            return Shown(text=text, shown=False, assumed=True, evidence=f"{evidence}: {assumes}")
        return Shown(text=text, shown=True, evidence=evidence)
    except (NotShown, NotConserved) as instead:
        return Shown(text=text, shown=False, evidence=str(instead))
    except (LookupError, ValueError) as missing:  # another engine's history may lack a task, a split, a mark
        return Shown(text=text, shown=False, evidence=f"the history lacks what the claim is looked up in: {missing}")


def require(condition: bool, instead: str) -> None:
    """Raise NotShown with the text `instead`, unless the condition is true."""
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
    """The runs of an operator's subtasks in one attempt."""
    return (run for run in history.runs if run.operator == operator and run.attempt == attempt)


def channel(history: History, name: str, attempt: int) -> Channel:
    for candidate in history.channels:
        if candidate.name == name and candidate.attempt == attempt:
            return candidate
    raise NotShown(f"there is no channel {name} in attempt {attempt}")


def before_barrier(found: Channel, checkpoint: int) -> int:
    """How many records were sent before a checkpoint's barrier in a channel."""
    for number, records in found.barriers:
        if number == checkpoint:
            return records
    raise NotShown(f"barrier {checkpoint} never entered {found.name}")


def stored_state(history: History, checkpoint: int, task: str) -> StoredState:
    """The decoded snapshot of a task for a checkpoint, as the store has it."""
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
    """Records of an example, with keys in turn, values 1, 2, 3 ..., and unmistakable tags."""
    return tuple((index % keys, index + 1, 1_000_003 * (index + 1)) for index in range(records))
