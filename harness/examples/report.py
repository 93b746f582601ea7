"""The page that is kept of an example of a stream."""

from __future__ import annotations

from pathlib import Path

from .. import example_report
from ..example_report import Measured
from ..example_run import ExampleRun
from ..scenario import Scenario
from ..story import what_ran
from .figures import measured_for

REAL_TIMES = "Times of this run are the machine's, those of figures and of what claims are set beside virtual"
VIRTUAL_TIMES = "Times are virtual"


def keep_report(folder: Path, told: ExampleRun, scenario: Scenario, *, real_time: bool, replay: str = "") -> None:
    """Write the example's page: `scenario` is what ran; in `real_time`, or in virtual time as the figures."""
    tables, charts = measured_for(told.name)
    times = REAL_TIMES if real_time else VIRTUAL_TIMES
    measured = Measured(tables=tables, charts=charts, ran=what_ran(scenario), times=times)
    example_report.keep(folder, told, measured, replay=replay)
