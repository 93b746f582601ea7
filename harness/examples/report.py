"""The page of an example of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...properties.model.verdict import Violated
from ...reports.example_report import Figures, Picture
from ..counterexamples.story import what_ran
from ..scenario.model import Scenario
from ..subject.port import SubjectFailed
from . import example_report
from .claims import NotShown
from .example_report import Measured
from .finishing import figures as figures_of_finishing
from .pipelines import figures as figures_of_bytes
from .run import CompanionRun, Done, ExampleRun
from .snapshots import figures as figures_of_snapshots
from .trials import Trials

REAL_TIMES = "Times are the machine's"
VIRTUAL_TIMES = "Times are virtual"


def keep_report(
    folder: Path, done: Done, trials: Trials, *, progress: Callable[[str], None] = lambda _: None, replay: str = ""
) -> None:
    """Measure the figures of an example and write its page.

    The figures of a scenario are measured on the engine of `trials`; `replay` is the command that runs the example
    again.
    """
    if done.result is None:
        measured = _of_bytes(done.run, progress)
    else:
        measured = _of_stream(done.run, done.result.scenario, trials)
    example_report.keep(folder, done.run, measured, replay=replay)


def _of_stream(run: ExampleRun, scenario: Scenario, trials: Trials) -> Measured:
    ran = what_ran(scenario)
    tables: tuple[Figures, ...] = ()
    charts: tuple[Picture, ...] = ()
    try:
        of_snapshots = figures_of_snapshots.measured_for(run.name, trials)
        tables, charts = of_snapshots or figures_of_finishing.measured_for(run.name, trials)
    except (SubjectFailed, NotShown) as missing:
        ran = (*ran, f"The figures could not be measured: {missing}.")
    if run.companions:
        tables = (_of_variants(run.companions), *tables)
    times = REAL_TIMES if trials.subject.capabilities.real_time else VIRTUAL_TIMES
    return Measured(tables=tables, charts=charts, ran=ran, times=times)


def _of_bytes(run: ExampleRun, progress: Callable[[str], None]) -> Measured:
    """The figures of a pipeline of bytes; a system of processes has none."""
    tables, charts = figures_of_bytes.measured_for(run.name, progress)
    return Measured(tables=tables, charts=charts, times=figures_of_bytes.TIMES if tables else VIRTUAL_TIMES)


def _of_variants(companions: Sequence[CompanionRun]) -> Figures:
    return Figures(
        caption="The runs with which the claims compare this one: the same engine with another "
        "configuration, each run judged in the same way",
        head=("run", "outcome", "violated", "expected by the text"),
        rows=tuple(
            (
                one.name,
                one.problem or one.outcome,
                ", ".join(name for name, verdict in one.verdicts.items() if isinstance(verdict, Violated)) or "nothing",
                ", ".join(one.expected) or "nothing",
            )
            for one in companions
        ),
    )
