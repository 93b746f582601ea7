"""What a worker process of a search does: draw, run, judge, shrink.

Workers are spawned, so everything that reaches them is data: the subject as a name, the drawing as parameters.  Results
go back as bytes, since decoding them where they are needed costs less than unpickling.
"""

from __future__ import annotations

import atexit
import functools
import gc
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from ...properties.semantics.user_functions import CounterpartFailed
from ..generate.strategies import Drawing, scenario_of
from ..generate.swarm import Batches, Swarm
from ..runtime import cancellation
from ..runtime.exit_codes import CutproofError, HarnessFailed, one_line
from ..scenario.model import Scenario
from ..scenario.slices import first_slice, sliced
from ..shrink.on_subject import REAL_TIME_S, Seen, shrink_in_real_time, shrink_on
from ..shrink.shrink import Shrunk
from ..subject.names import stand_in_for, subject_called
from ..subject.needs import demand_given
from ..subject.port import Capabilities, DrawingItself, Subject, SubjectFailed, close, saved_by
from ..workloads.inputs import LoadedWorkload
from ..workloads.user_functions import known
from .batches import CompanionBatches
from .kind import Drawn, Kind, Ran
from .scenarios import Scenarios
from .systems import CompanionSystems


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a search runs: on which subject, and the parameters of the drawing."""

    subject: str = "simulated"
    defect: str | None = None
    drawing: Drawing = Drawing()
    loaded: LoadedWorkload | None = None
    """a workload that replaces the drawn ones; a large one is run in slices"""
    seed: int = 0
    keep_histories: bool = False
    functions: tuple[str, ...] = ()
    """package.module:NAME of the user's own operators"""
    shrink_s: float = REAL_TIME_S
    """how long scenarios are run again for one cause, if a run costs seconds"""
    companions: bool = False
    """companion runs too: systems of processes, and jobs as a stream and as a batch"""
    swarm: Swarm | None = None
    """scenarios are drawn in batches, each without some features; a subject that draws its scenarios itself has none"""


class Undriven(msgspec.Struct, frozen=True, kw_only=True):
    """A run without a verdict, and the reason, in one line."""

    kind: str
    """the kind, as that of outcomes"""
    number: int
    """its own number among the runs of its kind"""
    index: int
    """the number of the scenario with which it was run"""
    scenario: Scenario
    reason: str


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Some scenarios and their companions, judged by the quick checker, and the questions about them for PySpark."""

    ran: list[Ran] = []
    """in the order in which they were run"""
    undriven: list[Undriven] = []
    wrong: str = ""
    """the error in the user's own code, in one line: it makes judging impossible"""
    ended: str = ""
    """why no more scenarios can be run, in one line: the environment failed"""

    def up_to_first_violation(self) -> Chunk:
        """The chunk up to the first scenario that is violated, or whose companion run is."""
        wrong = [one.outcome.index for one in self.ran if one.outcome.violations]
        if not wrong:
            return self
        return Chunk(
            ran=[one for one in self.ran if one.outcome.index <= wrong[0]],
            undriven=[one for one in self.undriven if one.index <= wrong[0]],
        )


class Worker:
    """A subject and a generator, ready to run scenarios by their numbers."""

    def __init__(self, plan: Plan, subject: Subject | None = None) -> None:
        """`subject` replaces the one that the plan names, if it exists only in this process."""
        known(plan.functions)
        self._plan = plan
        self.subject = subject or subject_called(plan.subject, plan.defect)
        self._draw = drawer(plan, self.subject)
        self._kinds: tuple[Kind, ...] = (
            Scenarios(self.subject, keep_histories=plan.keep_histories),
            *((CompanionSystems(plan.seed), CompanionBatches()) if plan.companions else ()),
        )
        self._ended = ""
        self._wrong = ""

    def chunk(self, first: int, end: int) -> Chunk:
        """Scenarios `first` to `end` - 1 of the plan's seed, each with its companions."""
        chunk = Chunk(ran=[], undriven=[])
        for index in range(first, end):
            drawn = self._drawn(index)
            for kind in self._kinds:
                number = kind.number_at(index)
                if number is not None and not (self._ended or self._wrong):
                    self._run(chunk, kind, number, index, drawn)
            if self._ended or self._wrong:
                break
        return msgspec.structs.replace(chunk, wrong=self._wrong, ended=self._ended)

    def _drawn(self, index: int) -> Drawn:
        began = time.perf_counter()
        scenario = self._draw(self._plan.seed, index)
        if self._plan.defect:
            scenario = msgspec.structs.replace(scenario, defect=self._plan.defect)
        return Drawn(scenario=scenario, draw_s=time.perf_counter() - began)

    def _run(self, chunk: Chunk, kind: Kind, number: int, index: int, drawn: Drawn) -> None:
        try:
            chunk.ran.append(kind.run(number, drawn))
            return
        except CutproofError as error:  # of the environment: the next scenario would fail in the same way
            self._ended = one_line(error)
            return
        except CounterpartFailed as error:
            self._wrong = " ".join(str(error).split())
            return
        except SubjectFailed as error:
            reason = " ".join(str(error).split())
        except (Exception, SystemExit) as error:  # the subject or a checker broke: reported as the harness's failure
            reason = where(error) + self._saved()
        chunk.undriven.append(
            Undriven(kind=kind.name, number=number, index=index, scenario=drawn.scenario, reason=reason)
        )

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Shrunk:
        """The scenario made smaller, as long as it fails in the same way; `seen` in a run of it."""
        if not self.subject.capabilities.real_time:
            return shrink_on(self.subject, scenario, invariant, difference)
        stand_in = stand_in_for(self.subject, self._plan.defect)
        limit_s = self._plan.shrink_s
        return shrink_in_real_time(self.subject, stand_in, scenario, invariant, difference, seen=seen, limit_s=limit_s)

    def _saved(self) -> str:
        """Where a run without a verdict is kept, if it is."""
        folder = saved_by(self.subject)
        return f"; the run is kept: `cutproof judge {folder}`" if folder is not None else ""


def check_given(plan: Plan, capabilities: Capabilities) -> None:
    """Raise UsageError, in one line, if the plan's workload needs what the subject has not declared."""
    drawing = plan.drawing
    if plan.loaded is not None:
        demand_given(plan.loaded.workload, plan.loaded.topology, capabilities, plan.subject)
    elif drawing.workload is not None:
        demand_given(drawing.workload, drawing.topology, capabilities, plan.subject)


def drawer(plan: Plan, subject: Subject) -> Callable[[int, int], Scenario]:
    """The function from seed and index to a scenario of the plan."""
    capabilities = subject.capabilities
    if isinstance(subject, DrawingItself):
        sizes = {"max_records": plan.drawing.max_records, "max_faults": plan.drawing.max_faults}
        return functools.partial(subject.draw, **sizes)
    drawing = full_drawing(plan, capabilities)
    draw = scenario_of(drawing) if plan.swarm is None else Batches(drawing, plan.swarm)
    return draw if plan.loaded is None else sliced(draw, plan.loaded)


def full_drawing(plan: Plan, capabilities: Capabilities) -> Drawing:
    """The plan's drawing, with the subject's capabilities and the workload that is given, if one is."""
    drawing = msgspec.structs.replace(plan.drawing, capabilities=plan.drawing.capabilities or capabilities)
    if plan.loaded is None:
        return drawing
    first = first_slice(plan.loaded)
    return msgspec.structs.replace(drawing, workload=first.workload, topology=first.topology)


def where(error: BaseException) -> str:
    """The exception in one line, with the place that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    if not frames:
        return f"{type(error).__name__}: {text}"
    last = frames[-1]
    return f"{type(error).__name__}: {text} ({last.name}, line {last.lineno} of {Path(last.filename).name})"


GARBAGE = 10_000
"""objects that are made, and not freed, until garbage is collected (Python: 700): a few runs' histories"""
_worker: Worker | None = None
_unready = ""
"""why there is no worker in this process: the environment failed at the start"""
_encoder = msgspec.msgpack.Encoder()


def start(plan: Plan) -> None:
    """Make this process a worker; it lives no longer than its parent, and closes its subject at its end."""
    global _worker, _unready
    cancellation.obey()
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    try:
        _worker = Worker(plan)
    except CutproofError as error:  # reported when work is given: a worker that ended here could report nothing
        _unready = one_line(error)
        return
    atexit.register(close, _worker.subject)
    collect_seldom()


def collect_seldom() -> None:
    """Have garbage collected less often, and what exists now never: it stays for good, and each collection would visit
    all modules as well.  Runs leave hardly any garbage in cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)


def _die_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def chunk(first: int, end: int) -> bytes:
    if _worker is None:
        return _encoder.encode(Chunk(ended=_unready))
    return _encoder.encode(_worker.chunk(first, end))


def shrunk(scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Shrunk:
    """Shrink; an error goes back as one that any process can decode."""
    if _worker is None:
        raise HarnessFailed(_unready)
    try:
        return _worker.shrink(scenario, invariant, difference, seen)
    except CutproofError as error:
        raise HarnessFailed(one_line(error)) from None
