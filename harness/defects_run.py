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
from .run import run
from .scenario import Scenario
from .shrink import shrink, size_of
from .strategies import Drawing, scenario_of
from .subject import Subject
from .subjects.simulated import SimulatedSubject

FORMAT = "cutproof-defects/1"


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
    draw = scenario_of(Drawing(capabilities=faulty.capabilities))
    began = time.monotonic()
    reached = False
    instead: set[str] = set()
    for index in range(scenarios):
        scenario = msgspec.structs.replace(draw(seed, index), defect=defect.id)
        result = run(faulty, scenario)
        reached = reached or result.history.defect_reached
        instead.update(result.judgement.violated if result.history.defect_reached else ())
        verdict = result.judgement.verdicts.get(defect.invariant)
        if isinstance(verdict, Violated) and caught(faulty, sound, scenario, defect.invariant, verdict.difference):
            found_s = time.monotonic() - began
            return _shrunk(defect, faulty, sound, scenario, verdict.difference, index + 1, found_s)
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


def caught(faulty: Subject, sound: Subject, scenario: Scenario, invariant: str, difference: str) -> bool:
    """Whether the scenario catches the defect: violated where it ran, exercised and held without it."""
    result = run(faulty, scenario)
    verdict = result.judgement.verdicts.get(invariant)
    if not (result.history.defect_reached and isinstance(verdict, Violated) and verdict.difference == difference):
        return False
    without = run(sound, scenario).judgement
    return not without.violated and isinstance(without.verdicts.get(invariant), Holds)


def _shrunk(
    defect: Named, faulty: Subject, sound: Subject, scenario: Scenario, difference: str, tried: int, found_s: float
) -> DefectRun:
    began = time.monotonic()
    smallest = shrink(scenario, lambda smaller: caught(faulty, sound, smaller, defect.invariant, difference)).scenario
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
        difference=difference,
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
