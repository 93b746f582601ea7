"""The report as one HTML file that needs no network, no script and no other file.

The page's content security policy allows only its own styles.  The template engine escapes
every text in it.  Only `diagram` and `plots` build markup, and they escape their texts
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from . import coverage, overview, palette, words
from .charts.plots import histogram
from .diagrams.diagram import SHEET, diagram_of
from .diagrams.lives import time_line_of
from .model import CounterexampleView, ReportView, RowPair, Seconds, Value

MOST_ROWS = 60
FEW_VIOLATED = 20
"""up to this number of violated scenarios are shown unfolded"""
MOST_SCENARIO_CHARACTERS = 40_000


class Gap(Value, kw_only=True):
    """Rows that are as expected and are not shown."""

    hidden: int


def render_html(view: ReportView) -> str:
    """The whole report; the same view gives the same text."""
    summary = view.summary
    diagrams = [
        time_line_of(one.id, one.history, one.rows, f"c{number}-") or diagram_of(one, f"c{number}-")
        for number, one in enumerate(view.counterexamples, 1)
    ]
    shown = view.shown
    held = None if shown is None else time_line_of(f"scenario {shown.index}", shown.history, shown.rows, "held-")
    page = _template().render(
        summary=summary,
        headline=overview.headline(summary),
        outcome=overview.outcome(summary),
        lead=overview.lead(summary),
        companion_lead=overview.companion_lead(summary),
        oracle_lead=overview.oracle_lead(summary),
        restarts=overview.restarts_lead(summary),
        not_run=overview.by_reason(summary.not_run),
        invariants=overview.invariant_lines(summary),
        heat=overview.heat_map(summary),
        never=overview.never(summary),
        stops=coverage.stop_lines(summary),
        out_of_sight=overview.out_of_sight_lead(summary),
        coverage_lead="" if summary.pipeline else coverage.coverage_lead(summary.coverage),
        coverage_maps=coverage.coverage_maps(summary.coverage),
        targets_not_hit=coverage.targets_not_hit(summary.coverage),
        snapshot_lead="" if summary.pipeline else coverage.snapshot_lead(summary.coverage),
        snapshot_maps=coverage.snapshot_maps(summary.coverage),
        snapshots_not_hit=coverage.snapshots_not_hit(summary.coverage),
        counterexamples=[
            (one, diagram, shortened(one.rows)) for one, diagram in zip(view.counterexamples, diagrams, strict=True)
        ],
        keys={diagram.key for diagram in diagrams if diagram is not None},
        shown=shown,
        held=held,
        found={one.id: one for one in summary.counterexamples},
        violated=view.violated,
        few_violated=FEW_VIOLATED,
        seconds=_time_spent(summary.seconds),
        plots=[
            ("Checkpoints", histogram(view.samples.checkpoint_durations_us, "checkpoint")),
            ("Recoveries", histogram(view.samples.recovery_times_us, "recovery")),
        ],
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def shortened(rows: Sequence[RowPair]) -> list[RowPair | Gap]:
    """The rows; if there are too many, those that differ, with one neighbour on each side."""
    if len(rows) <= MOST_ROWS:
        return list(rows)
    wrong = [at for at, row in enumerate(rows) if row.status != "ok"][: MOST_ROWS // 2]
    shown = {near for at in wrong for near in (at - 1, at, at + 1)}
    found: list[RowPair | Gap] = []
    for at, row in enumerate(rows):
        if at in shown:
            found.append(row)
        elif found and isinstance(found[-1], Gap):
            found[-1] = Gap(hidden=found[-1].hidden + 1)
        else:
            found.append(Gap(hidden=1))
    return found


def scenario_text(view: CounterexampleView) -> str:
    """The scenario's text, cut off if it is too long for the page."""
    if len(view.scenario) <= MOST_SCENARIO_CHARACTERS:
        return view.scenario
    return view.scenario[:MOST_SCENARIO_CHARACTERS] + "\n… the file has the rest"


def _time_spent(seconds: Seconds) -> list[tuple[str, float, float]]:
    """By activity: its name, its seconds, and their share of the longest."""
    parts = [
        ("starting Python and Spark", seconds.start),
        ("drawing scenarios", seconds.draw),
        ("running them", seconds.run),
        ("expected results", seconds.oracle),
        ("judging", seconds.judge),
        ("writing the report", seconds.report),
    ]
    longest = max(spent for _, spent in parts) or 1.0
    return [(what, spent, spent / longest) for what, spent in parts]


@cache
def environment() -> Environment:
    """The environment of all pages' templates, which escapes every text."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        markup=Markup,
        plural=words.plural,
        judges=lambda view: words.judges_in_words(view.judges, view.not_asked),
        reasons=overview.reasons,
        cells=words.row_cells,
        columns=lambda view: words.row_columns(view.history),
        status=lambda status: words.STATUS_WORDS[status],
        scenario=scenario_text,
    )
    found.tests["gap"] = lambda row: isinstance(row, Gap)
    found.globals.update(light=palette.LIGHT, dark=palette.DARK, heat_most=palette.HEAT_MOST, sheet=SHEET)
    return found


@cache
def _template() -> Template:
    return environment().get_template("report.html.j2")
