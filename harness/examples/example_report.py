"""The output of an example in a folder: a page with its claims, verdicts and figures, and its result as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...properties.model.verdict import Verdict, Violated
from ...reports.example_report import ExampleView, Figures, Judged, Picture, Statement, render_example
from ..counterexamples.words import verdict_in_words
from ..runtime.version import package_version
from ..scenario.files import write_whole

if TYPE_CHECKING:
    from .run import ExampleRun

REPORT, KEPT = "report.html", "example.json"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The measured parts of an example's page."""

    tables: tuple[Figures, ...] = ()
    charts: tuple[Picture, ...] = ()
    ran: tuple[str, ...] = ()
    """the job in words, in paragraphs"""
    times: str
    """the kind of the page's times, as the beginning of a sentence"""


def keep(folder: Path, run: ExampleRun, measured: Measured, *, replay: str = "") -> None:
    """Write report.html and example.json into a folder; `replay` is the command that runs the example again."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / REPORT, render_example(view_of(run, measured, replay=replay)).encode())
    write_whole(folder / KEPT, msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def view_of(run: ExampleRun, measured: Measured, *, replay: str = "") -> ExampleView:
    """The content of an example's page."""
    return ExampleView(
        name=run.name,
        about=run.about,
        document=run.document,
        claims=tuple(
            Statement(text=one.text, shown=one.shown, evidence=one.evidence, assumed=one.assumed) for one in run.claims
        ),
        ran=measured.ran,
        replay=replay,
        verdicts=tuple(_judged(invariant, verdict) for invariant, verdict in run.verdicts.items()),
        violated_in_companion=any(one.against for one in run.companions),
        disagreements=tuple(run.disagreements),
        tables=measured.tables,
        charts=measured.charts,
        times=measured.times,
        version=package_version(),
    )


def _judged(invariant: str, verdict: Verdict) -> Judged:
    word, evidence = verdict_in_words(verdict)
    if isinstance(verdict, Violated):
        evidence = f"{evidence}: {verdict.message}"
    return Judged(invariant=invariant, verdict=word.lower(), evidence=evidence)
