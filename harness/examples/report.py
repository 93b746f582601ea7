"""The page that is kept of an example of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...properties.model.verdict import Violated
from ...reports.figures import Figures, Picture
from ..counterexamples.story import what_ran
from ..scenario.model import Scenario
from ..subject.port import SubjectFailed
from . import example_report
from .claims import NotShown
from .example_report import Measured
from .figures import measured_for
from .run import CompanionRun, ExampleRun
from .trials import Trials

REAL_TIMES = "Times are the machine's"
VIRTUAL_TIMES = "Times are virtual"


def keep_report(folder: Path, run: ExampleRun, scenario: Scenario, trials: Trials, *, replay: str = "") -> None:
    """Write the example's page: `scenario` is what ran, `trials` the engine on which its figures are measured."""
    ran = what_ran(scenario)
    tables: tuple[Figures, ...] = ()
    charts: tuple[Picture, ...] = ()
    try:
        tables, charts = measured_for(run.name, trials)
    except (SubjectFailed, NotShown) as missing:
        ran = (*ran, f"The figures could not be measured: {missing}.")
    if run.companions:
        tables = (_of_variants(run.companions), *tables)
    times = REAL_TIMES if trials.subject.capabilities.real_time else VIRTUAL_TIMES
    measured = Measured(tables=tables, charts=charts, ran=ran, times=times)
    example_report.keep(folder, run, measured, replay=replay)


def _of_variants(companions: Sequence[CompanionRun]) -> Figures:
    return Figures(
        caption="What the claims compare the run with: the same engine, another way, each run judged alike",
        head=("run", "outcome", "violated", "which the text says"),
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
