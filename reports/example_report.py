"""The report on an example, in one HTML file: claims of the text, what showed, verdicts, tables and curves."""

from __future__ import annotations

from .charts import bars, curves, grid, timelines
from .charts.bars import Bars
from .charts.curves import Chart
from .charts.grid import Grid
from .charts.plots import Plot
from .charts.timelines import Timelines
from .model import Value
from .render import environment

Picture = Chart | Bars | Grid | Timelines


class Statement(Value, kw_only=True):
    """A sentence of the text, and the evidence."""

    text: str
    shown: bool
    evidence: str
    assumed: bool = False
    """no run could show otherwise"""


class Judged(Value, kw_only=True):
    """An invariant's verdict (holds, violated or unknown), and what it rests on."""

    invariant: str
    verdict: str
    evidence: str


class Figures(Value, kw_only=True):
    """A table: the first column of each row is its name."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class ExampleView(Value, kw_only=True):
    """The content of the page."""

    name: str
    about: str
    document: str
    claims: tuple[Statement, ...]
    ran: tuple[str, ...] = ()
    """what was run, in words; a paragraph each"""
    replay: str = ""
    """the command that runs it again"""
    verdicts: tuple[Judged, ...] = ()
    violated_in_companion: bool = False
    """whether an invariant that the text does not name is violated in a companion run"""
    disagreements: tuple[str, ...] = ()
    """where the two judges disagree"""
    tables: tuple[Figures, ...] = ()
    charts: tuple[Picture, ...] = ()
    times: str = "Times are virtual"
    """the kind of the page's times, as the beginning of a sentence"""
    version: str = ""

    @property
    def outcome(self) -> str:
        """failed (the judges disagree), violated, short (a claim did not show) or held."""
        if self.disagreements:
            return "failed"
        if self.violated_in_companion or any(one.verdict == "violated" for one in self.verdicts):
            return "violated"
        return "held" if all(claim.shown or claim.assumed for claim in self.claims) else "short"


def render_example(view: ExampleView) -> str:
    """The whole page; the same view gives the same text."""
    charts = [(chart.title, _drawn(chart)) for chart in view.charts]
    return environment().get_template("example_report.html.j2").render(view=view, charts=charts)


def _drawn(picture: Picture) -> Plot:
    match picture:
        case Chart():
            return curves.drawn(picture)
        case Bars():
            return bars.drawn(picture)
        case Grid():
            return grid.drawn(picture)
        case Timelines():
            return timelines.drawn(picture)
