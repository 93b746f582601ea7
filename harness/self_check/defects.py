"""`defects run`: are the planted defects reached, and caught?

A defect is caught if the invariant named beforehand is violated, the defective code itself
ran, and the same scenario holds and is exercised on the unmodified engine.  Shrinking keeps
all of that, and the kind of difference.

A hunt is always in virtual time.  For another subject of the reference engine, the scenario
that was found, or one from a folder, is run on that subject several times.  The defect is
caught if it shows at least once, and its rate is reported.

A hunt that raises an error is a failure of the harness: it is reported, and the other hunts
go on.  A scenario that cannot be run is counted, and the hunt goes on.
"""

from __future__ import annotations

import multiprocessing
import os
import textwrap
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from ...properties.model.verdict import Violated
from ...reports.model import Size
from ..generate.strategies import Drawing, scenario_of
from ..reference_engine.subjects.simulated import SimulatedSubject
from ..runtime import cancellation
from ..runtime.exit_codes import CutproofError, UsageError, one_line
from ..runtime.interruption import signals_blocked
from ..runtime.progress import Progress, Silent
from ..scenario.files import as_written, read_scenario
from ..scenario.model import Scenario
from ..search.oracle import question_of
from ..shrink.on_subject import for_smaller
from ..shrink.repetition import Rate, repeat
from ..shrink.shrink import shrink, size_of
from ..subject.names import subject_called
from ..subject.port import Subject, SubjectFailed, closing
from ..subject.run import Result, holds_on, run, violates_like
from .hunts import templates_for

PATIENCE = 20
"""how many more scenarios are drawn for one whose run comes to rest"""
LINE = 240
"""the most characters of an unforeseen exception"""
replace = msgspec.structs.replace


class DefectRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one defect; `reached`: the defective code itself ran in at least one scenario."""

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
    """if the defect was missed: other invariants that were violated where it ran"""
    rate: Rate | None = None
    """on a subject other than the simulated one: in how many runs of its scenario the defect showed"""
    error: str = ""
    """the error of the hunt, in one line"""
    refused: int = 0
    """scenarios among those tried that could not be run"""
    refusal: str = ""
    """the last of them, and why it could not be run, in one line"""
    scenario: Scenario | None = None
    """the scenario that caught the defect, shrunk if that was requested; the caller stores it"""
    questions: tuple[bytes, ...] = ()
    """the questions for PySpark: about the run that caught the defect, and the run without it"""
    trace: str = ""
    """the traceback of an error"""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """How defects are hunted, and the subject on which a found defect must show."""

    seed: int = 0
    scenarios: int = 400
    """the most scenarios that are drawn for each defect"""
    subject: str = "simulated"
    runs: int = 10
    """runs of each scenario, on a subject other than the simulated one"""
    folder: Path | None = None
    """scenario files by defect (ID.json), instead of a hunt"""
    shrinks: bool = True
    asks: bool = False
    """whether PySpark will be asked about the runs that caught a defect"""

    @property
    def elsewhere(self) -> bool:
        return self.subject != "simulated"


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A defect: its id, the bug that it is modelled on, and the invariant that it must violate."""

    id: str
    upstream: str
    invariant: str


def run_defects(
    wanted: Sequence[Named], field: Field, *, workers: int | None = None, progress: Progress | None = None
) -> Iterator[DefectRun]:
    """Hunt every defect, several at a time, and yield each result as soon as it is there.

    The result of a hunt that raised an error has an `error`.  Raises CutproofError if the environment
    failed or a file is wrong, because the other hunts would fail too.
    """
    progress = progress or Silent()
    progress.step("running defects" if field.elsewhere or field.folder else "hunting defects", len(wanted))
    cores = os.cpu_count() or 1
    workers = min(workers or (min(2, cores) if field.elsewhere else cores), len(wanted))
    if workers <= 1:
        for done, defect in enumerate(wanted, start=1):
            yield attempted(defect, field)
            progress.advance(done, defect.id)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=cancellation.obey)
    try:
        with signals_blocked():
            futures = [pool.submit(cancellation.cancellable, attempted, defect, field) for defect in wanted]
        for done, future in enumerate(as_completed(futures), start=1):
            result = future.result()
            progress.advance(done, result.id)
            yield result
    except cancellation.WorkCancelled:  # by a signal to the whole process group
        raise KeyboardInterrupt from None
    finally:  # if this ends early, the user must not wait for the hunts that still run
        cancellation.Cancellation(pool).wait()


def attempted(defect: Named, field: Field) -> DefectRun:
    """The result for a defect, also if the hunt raises an error."""
    try:
        return run_defect(defect, field)
    except CutproofError:
        raise
    except Exception as error:  # the other hunts can go on
        return DefectRun(
            id=defect.id,
            upstream=defect.upstream,
            reached=False,
            caught=False,
            invariant=defect.invariant,
            scenarios_tried=0,
            seconds_to_find=0.0,
            error=_short(error),
            trace=traceback.format_exc(),
        )


def run_defect(defect: Named, field: Field) -> DefectRun:
    """Hunt a defect or read its scenario, and run this on the subject on which the defect must show."""
    if field.folder is None:
        found = hunt(defect, field.seed, field.scenarios, shrinks=field.shrinks)
    else:
        found = read(defect, field.folder)
    if found.scenario is None:
        return found
    if not field.elsewhere:
        return _with_questions(found, found.scenario) if field.asks and found.caught else found
    with (
        closing(subject_called(field.subject, defect.id)) as faulty,
        closing(subject_called(field.subject)) as sound,
    ):
        return reproduce(found, found.scenario, faulty, sound, field.runs)


def _with_questions(found: DefectRun, scenario: Scenario) -> DefectRun:
    results = [run(subject, scenario) for subject in (SimulatedSubject(found.id), SimulatedSubject())]
    return replace(found, questions=tuple(question_of(result) for result in results))


def read(defect: Named, folder: Path) -> DefectRun:
    """Run a defect's scenario file in virtual time; without a file the defect is missed.

    Raises UsageError if the file cannot be read, or was found with another defect.
    """
    path = folder / f"{defect.id}.json"
    began = time.monotonic()
    missed = DefectRun(
        id=defect.id,
        upstream=defect.upstream,
        reached=False,
        caught=False,
        invariant=defect.invariant,
        scenarios_tried=0,
        seconds_to_find=0.0,
    )
    if not path.is_file():
        return missed
    scenario = read_scenario(path)
    if scenario.defect not in ("", defect.id):
        raise UsageError(f"{path} was found with the defect {scenario.defect}, not with {defect.id}")
    with as_written(path):
        result = run(SimulatedSubject(defect.id), scenario)
    catch = Catch.of(result, defect.invariant)
    tasks, records, faults = size_of(scenario)
    return replace(
        missed,
        reached=result.history.defect_reached,
        caught=catch is not None and catch.holds_without(SimulatedSubject(), scenario),
        scenarios_tried=1,
        seconds_to_find=round(time.monotonic() - began, 3),
        size=Size(tasks=tasks, records=records, faults=faults),
        difference=catch.difference if catch is not None else "",
        violated_instead=[] if catch is not None else sorted(result.judgement.violated),
        scenario=scenario,
    )


def reproduce(found: DefectRun, scenario: Scenario, faulty: Subject, sound: Subject, runs: int) -> DefectRun:
    """Run a defect's scenario several times on a subject with the defect, and once on one without.

    The defect is caught if at least once its code ran and the invariant was violated, and
    nothing is violated without the defect.
    """
    reached = False
    instead: dict[str, None] = {}

    def shows(result: Result) -> bool:
        nonlocal reached
        reached = reached or result.history.defect_reached
        instead.update(dict.fromkeys(result.judgement.violated))
        return Catch.of(result, found.invariant) is not None

    repeated = repeat(faulty, scenario, runs, shows)
    catch = Catch.of(repeated.result, found.invariant)
    without = run(sound, scenario) if catch is not None else None
    accused = without.judgement.violated if without is not None else {}
    caught = catch is not None and not accused
    return replace(
        found,
        reached=reached,
        caught=caught,
        difference=catch.difference if catch is not None else found.difference,
        violated_instead=[] if caught else sorted(accused or instead),
        rate=repeated.rate,
        questions=tuple(question_of(result) for result in (repeated.result, without) if result and caught),
    )


def hunt(defect: Named, seed: int, scenarios: int, *, shrinks: bool = True) -> DefectRun:
    """Draw scenarios until one catches the defect, then shrink it.

    If its run does not come to rest, though another invariant than progress is violated, up to `PATIENCE` more are
    drawn for one that does: each smaller scenario would run as long.  If none does, the first is taken.

    A scenario that cannot be run is counted.  Raises SubjectFailed if none can be run.
    """
    faulty, sound = SimulatedSubject(defect.id), SimulatedSubject()
    draw = scenario_of(Drawing(capabilities=faulty.capabilities, templates=templates_for(defect.id)))
    began = time.monotonic()
    reached = False
    instead: set[str] = set()
    refused, refusal = 0, ""
    found: tuple[Catch, Hunter, Scenario] | None = None
    most = scenarios
    for index in range(scenarios):
        if index == most:
            break
        scenario = msgspec.structs.replace(draw(seed, index), defect=defect.id)
        try:
            result = run(faulty, scenario)
            reached = reached or result.history.defect_reached
            instead.update(result.judgement.violated if result.history.defect_reached else ())
            catch = Catch.of(result, defect.invariant)
            holds = catch is not None and catch.holds_without(sound, scenario)
        except SubjectFailed as error:
            refused += 1
            refusal = f"scenario {index} of seed {seed}: {_short(error)}"
            if refused == scenarios:
                raise
            continue
        if catch is None or not holds:
            continue
        rests = result.history.quiet or defect.invariant == "progress"
        if rests or found is None:
            found = catch, Hunter(for_smaller(faulty), sound, catch), scenario
            most = index + 1 if rests else min(scenarios, index + 1 + PATIENCE)
    if found is not None:
        catch, hunter, scenario = found
        caught = _caught(defect, catch, hunter if shrinks else None, scenario, most, time.monotonic() - began)
        return replace(caught, refused=refused, refusal=refusal)
    return DefectRun(
        id=defect.id,
        upstream=defect.upstream,
        reached=reached,
        caught=False,
        invariant=defect.invariant,
        scenarios_tried=scenarios,
        seconds_to_find=round(time.monotonic() - began, 3),
        violated_instead=sorted(instead),
        refused=refused,
        refusal=refusal,
    )


def _short(error: BaseException) -> str:
    return textwrap.shorten(one_line(error), LINE, placeholder=" ...")


class Catch(msgspec.Struct, frozen=True, kw_only=True):
    """How a scenario catches a defect; the shrunk scenario must catch it in the same way."""

    invariant: str
    difference: str
    violated: frozenset[str]
    """all violated invariants: a violation of another one would be another failure"""

    @classmethod
    def of(cls, result: Result, invariant: str) -> Catch | None:
        """How a run of the defective engine catches the defect; None unless its code ran and violated the invariant."""
        verdict = result.judgement.verdicts.get(invariant)
        if not (result.history.defect_reached and isinstance(verdict, Violated)):
            return None
        return cls(invariant=invariant, difference=verdict.difference, violated=frozenset(result.judgement.violated))

    def again(self, faulty: Subject, scenario: Scenario) -> bool:
        """Whether a run of the scenario on the defective engine catches the defect in the same way."""
        return violates_like(faulty, scenario, self.invariant, self.difference, among=self.violated, reached=True)

    def holds_without(self, sound: Subject, scenario: Scenario) -> bool:
        """Whether the unmodified engine violates nothing, and exercises the invariant."""
        return holds_on(sound, scenario, self.invariant)


class Hunter:
    """Returns whether a scenario still catches the defect in the same way."""

    def __init__(self, faulty: Subject, sound: Subject, catch: Catch) -> None:
        self._faulty = faulty
        self._sound = sound
        self.catch = catch

    def __call__(self, scenario: Scenario) -> bool:
        try:
            return self.catch.again(self._faulty, scenario) and self.catch.holds_without(self._sound, scenario)
        except CutproofError:
            raise
        except Exception:  # a smaller scenario that makes the subject raise an error does not catch the defect
            return False


def _caught(
    defect: Named, catch: Catch, hunter: Hunter | None, scenario: Scenario, tried: int, found_s: float
) -> DefectRun:
    """The result for a scenario that catches the defect, which is shrunk if there is a hunter."""
    began = time.monotonic()
    smallest = shrink(scenario, hunter).scenario if hunter is not None else scenario
    tasks, records, faults = size_of(smallest)
    return DefectRun(
        id=defect.id,
        upstream=defect.upstream,
        reached=True,
        caught=True,
        invariant=defect.invariant,
        scenarios_tried=tried,
        seconds_to_find=round(found_s, 3),
        seconds_to_shrink=round(time.monotonic() - began, 3) if hunter is not None else 0.0,
        size=Size(tasks=tasks, records=records, faults=faults),
        difference=catch.difference,
        scenario=msgspec.structs.replace(smallest, expects=defect.invariant),
    )
