"""What a worker process of a search does: draw, run, judge, shrink.

Workers are spawned, so everything that reaches them is data: the subject by its
name, the drawing by its parameters.  Results go back as bytes, since decoding
them where they are needed costs less than unpickling.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...properties.model.verdict import Violated
from ...properties.semantics.user_functions import CounterpartFailed
from ..generate.strategies import Drawing, scenario_of
from ..runtime import cancellation
from ..runtime.exit_codes import CutproofError, HarnessFailed, one_line
from ..scenario.model import Scenario
from ..scenario.slices import first_slice, sliced
from ..shrink.on_subject import shrink_in_real_time, shrink_on
from ..shrink.shrink import Shrunk
from ..subject.names import stand_in_for, subject_called
from ..subject.needs import demand_given
from ..subject.port import Capabilities, Subject, SubjectFailed, close, saved_by
from ..subject.run import run
from ..workloads.inputs import LoadedWorkload
from ..workloads.user_functions import known
from .companions import AnyCompanion, Companion, companions_of
from .oracle import put
from .outcome import Outcome, outcome_of


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a search runs: whose scenarios, on which subject."""

    subject: str = "simulated"
    defect: str | None = None
    drawing: Drawing = Drawing()
    loaded: LoadedWorkload | None = None
    """a workload in place of drawn ones; a large one is run in slices"""
    seed: int = 0
    keep_histories: bool = False
    functions: tuple[str, ...] = ()
    """package.module:NAME of the user's own operators"""
    companions: bool = False
    """companion runs too: systems of processes, and jobs as a stream and as a batch"""


class Undriven(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that the subject could not be driven through, and why, in one line."""

    index: int
    scenario: Scenario
    reason: str


class Unrun(msgspec.Struct, frozen=True, kw_only=True):
    """A companion that could not be run beside scenario `index`, and why, in one sentence."""

    index: int
    reason: str


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Some scenarios, judged by the quick checker, and what PySpark is asked about them."""

    outcomes: list[Outcome] = []
    questions: list[bytes] = []
    """one for each outcome"""
    companions: list[AnyCompanion] = []
    failures: list[Unrun] = []
    undriven: list[Undriven] = []
    wrong: str = ""
    """what is wrong with the user's own code, in one line: nothing can be judged by it"""
    ended: str = ""
    """why no more can be run, in one line: the environment failed"""

    def up_to_first_violation(self) -> Chunk:
        """The chunk up to the first scenario that is violated, or whose companion run is."""
        wrong = [one.index for one in self.outcomes if one.violations]
        wrong += [one.index for one in self.companions if isinstance(one.verdict, Violated)]
        if not wrong:
            return self
        last = min(wrong)
        outcomes = [one for one in self.outcomes if one.index <= last]
        return Chunk(
            outcomes=outcomes,
            questions=self.questions[: len(outcomes)],
            companions=[one for one in self.companions if one.index <= last],
            failures=[one for one in self.failures if one.index <= last],
            undriven=[one for one in self.undriven if one.index <= last],
        )


class Worker:
    """A subject and a strategy, ready to run scenarios by their numbers."""

    def __init__(self, plan: Plan, subject: Subject | None = None) -> None:
        """`subject` in place of the plan's name, for one that lives in this process."""
        known(plan.functions)
        self._plan = plan
        self.subject = subject or subject_called(plan.subject, plan.defect)
        self._draw = drawer(plan, self.subject.capabilities)
        self._companions = companions_of(plan.seed) if plan.companions else ()
        self._ended = ""
        self._wrong = ""

    def chunk(self, first: int, end: int) -> Chunk:
        """Scenarios `first` to `end` - 1 of the plan's seed."""
        chunk = Chunk(outcomes=[], questions=[], undriven=[], companions=[], failures=[])
        for index in range(first, end):
            if self._ended or self._wrong:
                break
            began = time.perf_counter()
            scenario = self._draw(self._plan.seed, index)
            if self._plan.defect:
                scenario = msgspec.structs.replace(scenario, defect=self._plan.defect)
            self._one(chunk, index, scenario, time.perf_counter() - began)
            for companion in self._companions:
                self._run_companion(chunk, companion, index, scenario)
        return msgspec.structs.replace(chunk, wrong=self._wrong, ended=self._ended)

    def _one(self, chunk: Chunk, index: int, scenario: Scenario, draw_s: float) -> None:
        try:
            result = run(self.subject, scenario, keep="everything" if self._plan.keep_histories else "violated")
            asked = put(result)
            outcome = outcome_of(
                index,
                scenario,
                result.history,
                result.judgement.verdicts,
                not_asked=asked.unasked,
                keep_history=self._plan.keep_histories,
                seconds=(draw_s, result.run_s, result.judge_s),
            )
        except CutproofError as error:  # of the environment: the next scenario would fare no better
            self._ended = one_line(error)
            return
        except CounterpartFailed as error:
            self._wrong = " ".join(str(error).split())
            return
        except SubjectFailed as error:
            chunk.undriven.append(Undriven(index=index, scenario=scenario, reason=" ".join(str(error).split())))
            return
        except (Exception, SystemExit) as error:  # the subject or a checker broke: reported as the harness's failure
            chunk.undriven.append(Undriven(index=index, scenario=scenario, reason=where(error) + self._saved()))
            return
        chunk.outcomes.append(outcome)
        chunk.questions.append(asked.question)

    def _run_companion(self, chunk: Chunk, companion: Companion, index: int, scenario: Scenario) -> None:
        number = companion.number_at(index)
        if number is None:
            return
        try:
            chunk.companions.append(companion.run(number, scenario))
        except Exception as error:  # of the engine or its judge: reported as the harness's failure
            reason = f"{companion.name_of(number)} could not be run: {where(error)}"
            chunk.failures.append(Unrun(index=index, reason=reason))

    def shrink(self, scenario: Scenario, invariant: str, difference: str) -> Shrunk:
        """The scenario made smaller, for as long as it fails in the same way."""
        if not self.subject.capabilities.real_time:
            return shrink_on(self.subject, scenario, invariant, difference)
        stand_in = stand_in_for(self.subject, self._plan.defect)
        return shrink_in_real_time(self.subject, stand_in, scenario, invariant, difference)

    def _saved(self) -> str:
        """Where the run is that came to no verdict, if it is anywhere."""
        folder = saved_by(self.subject)
        return f"; the run is kept: `cutproof judge {folder}`" if folder is not None else ""


def check_given(plan: Plan, capabilities: Capabilities) -> None:
    """Raise UsageError, in one line, where the plan's workload takes what the subject has not declared."""
    drawing = plan.drawing
    if plan.loaded is not None:
        demand_given(plan.loaded.workload, plan.loaded.topology, capabilities, plan.subject)
    elif drawing.workload is not None:
        demand_given(drawing.workload, drawing.topology, capabilities, plan.subject)


def drawer(plan: Plan, capabilities: Capabilities) -> Callable[[int, int], Scenario]:
    """The function from seed and index to the plan's scenario."""
    drawing = msgspec.structs.replace(plan.drawing, capabilities=plan.drawing.capabilities or capabilities)
    if plan.loaded is None:
        return scenario_of(drawing)
    first = first_slice(plan.loaded)
    drawing = msgspec.structs.replace(drawing, workload=first.workload, topology=first.topology)
    return sliced(scenario_of(drawing), plan.loaded)


def where(error: BaseException) -> str:
    """The exception in one line, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    if not frames:
        return f"{type(error).__name__}: {text}"
    last = frames[-1]
    return f"{type(error).__name__}: {text} ({last.name}, line {last.lineno} of {Path(last.filename).name})"


_worker: Worker | None = None
_unready = ""
"""why there is no worker here: the environment failed at once"""
_encoder = msgspec.msgpack.Encoder()


def start(plan: Plan) -> None:
    """Make this process a worker; it lives no longer than its parent, and closes its subject when it ends."""
    global _worker, _unready
    cancellation.obey()
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    try:
        _worker = Worker(plan)
    except CutproofError as error:  # reported when work is given: a worker that dies here reports nothing
        _unready = one_line(error)
        return
    atexit.register(close, _worker.subject)


def _die_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def chunk(first: int, end: int) -> bytes:
    if _worker is None:
        return _encoder.encode(Chunk(ended=_unready))
    return _encoder.encode(_worker.chunk(first, end))


def shrunk(scenario: Scenario, invariant: str, difference: str) -> Shrunk:
    """What goes wrong goes back as an error that any process can read."""
    if _worker is None:
        raise HarnessFailed(_unready)
    try:
        return _worker.shrink(scenario, invariant, difference)
    except CutproofError as error:
        raise HarnessFailed(one_line(error)) from None
