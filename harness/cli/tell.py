"""A run's summary, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...properties.history import History
from ...properties.verdict import Holds, Unknown, Verdict, Violated
from ...properties.workload import Row
from ...reports.model import Counterexample, Summary
from ...reports.rows import side_by_side
from ..story_text import rows_text
from .output import Output

if TYPE_CHECKING:
    from ..tamper import TamperReport


def tell_summary(summary: Summary, folder: Path | None, output: Output) -> None:
    """What held, what was really tried, and where to read on."""
    counts = summary.scenarios
    output.say(
        f"{counts.run:,} scenarios: {counts.held:,} held, {counts.violated:,} violated, {counts.unknown:,} unknown "
        f"({summary.seconds.total:.1f} s, {summary.scenarios_per_second:.0f} a second once Spark was up)"
    )
    output.say()
    output.table(
        ("invariant", "holds", "violated", "unknown", "can show"),
        [
            (name, count.holds, count.violated, count.unknown, count.can_show)
            for name, count in summary.invariants.items()
        ],
    )
    output.say()
    output.table(
        ("fault", "planned", "fired", "when"),
        [
            (kind, count.planned, count.fired, ", ".join(f"{phase} {times}" for phase, times in count.phases.items()))
            for kind, count in summary.faults.items()
        ],
    )
    output.say()
    for counterexample in summary.counterexamples:
        _tell_counterexample(counterexample, output)
    for shortfall in summary.shortfalls:
        output.say(f"fell short: {shortfall}")
    for failure in summary.failures:
        output.complain(failure)
    if summary.interrupted:
        output.complain("interrupted; what was done so far is kept")
    if folder is not None:
        output.say(f"report: {folder / 'report.html'}")


def _tell_counterexample(found: Counterexample, output: Output) -> None:
    known = f" [known: {found.known}]" if found.known else ""
    output.say(f"{found.invariant} violated{known}: {found.story}")
    output.say(
        f"  {found.size.tasks} tasks, {found.size.records} records, {found.size.faults} faults; "
        f"{found.scenarios} scenarios failed for this cause"
    )
    output.say(f"  {found.replay}")


def tell_verdicts(verdicts: dict[str, Verdict], output: Output) -> None:
    """A line an invariant, and what a violated one points at."""
    output.table(("invariant", "verdict", ""), [(name, *_words(verdict)) for name, verdict in verdicts.items()])
    for name, verdict in verdicts.items():
        if isinstance(verdict, Violated):
            output.say()
            output.say(f"{name}: {verdict.message}")
            for line in (*verdict.records, *verdict.events):
                output.say(f"  {line}")


def _words(verdict: Verdict) -> tuple[str, str]:
    match verdict:
        case Holds(exercised=exercised):
            return "holds", f"exercised {exercised} times"
        case Violated(difference=difference):
            return "VIOLATED", difference
        case Unknown(reason=reason, detail=detail):
            return "unknown", f"{reason}: {detail}" if detail else reason


def tell_rows(expected: Iterable[Row], committed: Iterable[Row], output: Output) -> None:
    """Expected beside committed, where they differ; nothing when all rows are equal."""
    pairs = side_by_side(expected, committed)
    if any(pair.status != "ok" for pair in pairs):
        output.say()
        for line in rows_text(pairs):
            output.say(line)


def tell_events(history: History, output: Output) -> None:
    """The time line, a line an event."""
    from ...reports.words import sentence

    for event in sorted(history.timeline, key=lambda event: event.order):
        output.say(f"{event.at_us / 1000:10.3f} ms  {sentence(event)}")
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
    if report.has_teeth:
        output.say(f"all {report.caught:,} lies were seen, in {report.scenarios:,} histories")
