"""A run's summary, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...properties.model.history import History
from ...properties.model.verdict import Verdict, Violated
from ...properties.model.workload import Row
from ...reports.model import Summary
from ...reports.overview import by_reason
from ...reports.rows import side_by_side
from ..counterexamples.story_text import rows_text
from ..counterexamples.words import verdict_in_words
from ..subject.not_run import REASONS, in_sentences
from .output import Output

if TYPE_CHECKING:
    from ..self_check.tamper import TamperReport


def tell_summary(summary: Summary, folder: Path | None, output: Output) -> None:
    """What held, what was really tried, and where to read on; the quiet are told what failed, and no more."""
    from ...reports.text import render_text

    output.say(render_text(summary, report=str(folder / "report.html") if folder is not None else "").rstrip())
    for failure in summary.failures if output.quiet else ():
        output.complain(failure)
    if summary.interrupted:
        output.complain("interrupted; what was done so far is kept")


def tell_verdicts(verdicts: dict[str, Verdict], output: Output) -> None:
    """A line an invariant, and what a violated one points at."""
    output.table(
        ("invariant", "verdict", ""), [(name, *verdict_in_words(verdict)) for name, verdict in verdicts.items()]
    )
    for name, verdict in verdicts.items():
        if isinstance(verdict, Violated):
            output.say()
            output.say(f"{name}: {verdict.message}")
            for line in (*verdict.records, *verdict.events):
                output.say(f"  {line}")


def tell_rows(expected: Iterable[Row], committed: Iterable[Row], output: Output) -> None:
    """Expected beside committed, where they differ; nothing when all rows are equal."""
    pairs = side_by_side(expected, committed)
    if any(pair.status != "ok" for pair in pairs):
        output.say()
        for line in rows_text(pairs):
            output.say(line)


def tell_events(history: History, output: Output) -> None:
    """The time line, a line an event."""
    from ...reports.words import with_task

    for event in sorted(history.timeline, key=lambda event: event.order):
        output.say(f"{event.at_us / 1000:10.3f} ms  {with_task(event)}")
    output.say()


def tell_tampering(report: TamperReport, output: Output) -> None:
    """A line a lie: how often it was told, and seen."""
    output.table(
        ("lie", "told", "seen", "by"),
        [(lie.name, lie.tried, lie.caught, ", ".join(lie.by_invariant)) for lie in report.tamperings],
    )
    for lie in report.tamperings:
        for drawn_from in lie.missed:
            output.say(f"not seen: {lie.name}, in the scenario {drawn_from}")
    for name in report.not_reached:
        output.say(f"not told: {name}; no history had a place for it")
    for drawn_from in report.accused:
        output.say(f"violated without a lie, in the scenario {drawn_from}")
    for sentence in in_sentences(report.not_run):
        output.say(sentence)
    for alike in list(by_reason(report.not_run).values())[:REASONS]:
        output.say(f"  {alike[0].replay}")
    told = ", ".join(f"{name} {count:,}" for name, count in report.held.items())
    output.say(f"as they were, {len(report.accused)} histories were accused; held: {told}")
    if report.has_teeth:
        histories = report.scenarios - sum(one.number < report.scenarios for one in report.not_run)
        output.say(f"all {report.caught:,} lies were seen, in {histories:,} histories")
