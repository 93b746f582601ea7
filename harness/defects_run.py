"""`defects run`: are the planted defects reached, and caught?

A defect is caught when the invariant named beforehand is violated, the wrong code
itself ran, and the same scenario holds and is exercised on the unmodified engine.
Shrinking keeps all of that, and the kind of difference.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed

import msgspec

from ..properties.verdict import Holds, Violated
from ..reports.model import Size
from .progress import Progress, Silent
from .run import Result, run
from .scenario import Scenario
from .shrink import shrink, size_of
from .strategies import Drawing, scenario_of
from .strategies.templates import SHARES
from .subject import Subject
from .subjects.simulated import SimulatedSubject

FORMAT = "cutproof-defects/1"


HINTS: dict[str, tuple[str, ...]] = {
    "A05": ("slow-restore",),
    "A14": ("late-acknowledgement",),
    "E05": ("slow-record",),
    "E09": ("slow-record",),
    "F01": ("unreadable-record",),
    "F03": ("crash-after-savepoint",),
    "I12": ("crash-before-commit",),
    "I32": ("slow-record",),
    "I35": ("zombie-upsert",),
}
"""By defect: the templates that have what its bug needs, where the others seldom do."""


def templates_for(defect: str) -> tuple[str, ...]:
    return HINTS.get(defect, tuple(SHARES))


class DefectRun(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one defect; `reached`: the wrong code itself ran in at least one scenario."""

    id: str
    upstream: str
    reached: bool
    caught: bool
    invariant: str
    scenarios_tried: int
    seconds_to_find: float
    seconds_to_shrink: float = 0.0
    size: Size = Size()
    difference: str = ""
    violated_instead: list[str] = []
    """of one that was missed: other invariants that were violated where it ran"""
    scenario: Scenario | None = None
    """shrunk; kept by whoever asked, not part of the JSON"""


class DefectsReport(msgspec.Struct, kw_only=True):
    """What `defects run --json` prints."""

    format: str = FORMAT
    defects: list[dict[str, object]] = []
    caught: int = 0
    missed: int = 0
    interrupted: bool = False


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A defect as the hunt needs it: its id, the bug it is modelled on, what it must violate."""

    id: str
    upstream: str
    invariant: str


def run_defects(
    wanted: Sequence[Named], *, seed: int, scenarios: int, workers: int | None = None, progress: Progress | None = None
) -> Iterator[DefectRun]:
    """Hunt every defect, some at a time; results come as they are found."""
    progress = progress or Silent()
    progress.step("hunting defects", len(wanted))
    workers = min(workers or os.cpu_count() or 1, len(wanted))
    if workers <= 1:
        for done, defect in enumerate(wanted, start=1):
            yield hunt(defect, seed, scenarios)
            progress.advance(done, defect.id)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts)
    try:
        futures: list[Future[DefectRun]] = [pool.submit(hunt, defect, seed, scenarios) for defect in wanted]
        for done, future in enumerate(as_completed(futures), start=1):
            result = future.result()
            progress.advance(done, result.id)
            yield result
    except KeyboardInterrupt:  # what is under way would keep the user waiting
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def hunt(defect: Named, seed: int, scenarios: int) -> DefectRun:
    """Draw scenarios until one catches the defect, then shrink it."""
    faulty, sound = SimulatedSubject(defect.id), SimulatedSubject()
    draw = scenario_of(Drawing(capabilities=faulty.capabilities, templates=templates_for(defect.id)))
    began = time.monotonic()
    reached = False
    instead: set[str] = set()
    for index in range(scenarios):
        scenario = msgspec.structs.replace(draw(seed, index), defect=defect.id)
        result = run(faulty, scenario)
        reached = reached or result.history.defect_reached
        instead.update(result.judgement.violated if result.history.defect_reached else ())
        catch = Catch.of(result, defect.invariant)
        if catch is not None and catch.holds_without(sound, scenario):
            return _shrunk(defect, Hunter(faulty, sound, catch), scenario, index + 1, time.monotonic() - began)
    return DefectRun(
        id=defect.id,
        upstream=defect.upstream,
        reached=reached,
        caught=False,
        invariant=defect.invariant,
        scenarios_tried=scenarios,
        seconds_to_find=round(time.monotonic() - began, 3),
        violated_instead=sorted(instead),
    )


class Catch(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario catches a defect; while it is shrunk it has to go on doing so."""

    invariant: str
    difference: str
    violated: frozenset[str]
    """all that is violated: nothing else may come to be, which would be another failure"""

    @classmethod
    def of(cls, result: Result, invariant: str) -> Catch | None:
        """What a run of the defective engine shows, if the wrong code ran and violated the invariant."""
        verdict = result.judgement.verdicts.get(invariant)
        if not (result.history.defect_reached and isinstance(verdict, Violated)):
            return None
        return cls(invariant=invariant, difference=verdict.difference, violated=frozenset(result.judgement.violated))

    def again(self, result: Result) -> bool:
        """Whether a run shows the same."""
        other = Catch.of(result, self.invariant)
        return other is not None and other.difference == self.difference and other.violated <= self.violated

    def holds_without(self, sound: Subject, scenario: Scenario) -> bool:
        """Whether the unmodified engine violates nothing, and exercises the invariant."""
        judgement = run(sound, scenario).judgement
        return not judgement.violated and isinstance(judgement.verdicts.get(self.invariant), Holds)


class Hunter:
    """Tells whether a scenario still catches the defect in the same way."""

    def __init__(self, faulty: Subject, sound: Subject, catch: Catch) -> None:
        self._faulty = faulty
        self._sound = sound
        self.catch = catch

    def __call__(self, scenario: Scenario) -> bool:
        return self.catch.again(run(self._faulty, scenario)) and self.catch.holds_without(self._sound, scenario)


def _shrunk(defect: Named, hunter: Hunter, scenario: Scenario, tried: int, found_s: float) -> DefectRun:
    began = time.monotonic()
    smallest = shrink(scenario, hunter).scenario
    tasks, records, faults = size_of(smallest)
    return DefectRun(
        id=defect.id,
        upstream=defect.upstream,
        reached=True,
        caught=True,
        invariant=defect.invariant,
        scenarios_tried=tried,
        seconds_to_find=round(found_s, 3),
        seconds_to_shrink=round(time.monotonic() - began, 3),
        size=Size(tasks=tasks, records=records, faults=faults),
        difference=hunter.catch.difference,
        scenario=msgspec.structs.replace(smallest, expects=defect.invariant),
    )


def report_of(runs: Sequence[DefectRun], *, interrupted: bool = False) -> DefectsReport:
    """The JSON of interface: in the order of their ids, without the scenarios."""
    ordered = sorted(runs, key=lambda run: run.id)
    rows = [{name: getattr(run, name) for name in run.__struct_fields__ if name != "scenario"} for run in ordered]
    count = sum(run.caught for run in runs)
    return DefectsReport(defects=rows, caught=count, missed=len(runs) - count, interrupted=interrupted)


def _ignore_interrupts() -> None:
    """Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
