"""What `--out` keeps of an example in bytes: its claims and figures as one page, and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ... import __version__
from ...reference_impl.simulated.pipeline_plan import MB
from ...reports.curves import Chart
from ...reports.figures import Figures, FiguresView, Said, render_figures
from ..files import write_whole
from . import tables
from .arithmetic import SPILLING_ARITHMETIC
from .crashing import circle, rounds
from .measures import WAYS, durations, pressed, recoveries, steadiness
from .overtaking import VICIOUS_CIRCLE
from .run import measured

if TYPE_CHECKING:
    from ..example_run import ExampleRun

REPORT, KEPT = "report.html", "example.json"


def keep_report(folder: Path, told: ExampleRun) -> None:
    """Write report.html and example.json; the figures are measured for it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / REPORT, render_figures(view_of(told)).encode())
    write_whole(folder / KEPT, msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")


def view_of(told: ExampleRun) -> FiguresView:
    """What the page shows of an example."""
    tabled, charts = _measured_for(told.name)
    return FiguresView(
        name=told.name,
        about=told.about,
        document=told.document,
        claims=tuple(Said(says=one.says, shown=one.shown, evidence=one.evidence) for one in told.claims),
        tables=tabled,
        charts=charts,
        version=__version__,
    )


def _measured_for(name: str) -> tuple[tuple[Figures, ...], tuple[Chart, ...]]:
    if name == SPILLING_ARITHMETIC.name:
        took, even = durations(), steadiness(lambda way: pressed(20 * MB, way))
        found = (
            tables.figures_of_durations(took),
            tables.figures_of_recoveries(recoveries(10 * MB), 10 * MB),
            tables.figures_of_steadiness(even, "20 MB/s under backpressure"),
        )
        shown = [one for one in even if one.way in ("at once", "continuous")]
        return found, (tables.chart_of_durations(took), tables.chart_of_steadiness(shown))
    if name == VICIOUS_CIRCLE.name:
        by_way = {way: rounds(measured(circle(WAYS[way]))) for way in WAYS}
        return (tables.figures_of_rounds(by_way),), (tables.chart_of_rounds(by_way),)
    return (), ()
