"""A run's summary, in words for a terminal."""

from __future__ import annotations

from pathlib import Path

from ...reports.model import Counterexample, Summary
from .output import Output


def tell_summary(summary: Summary, folder: Path | None, output: Output) -> None:
    """What held, what was really tried, and where to read on."""
    counts = summary.scenarios
    output.say(
        f"{counts.run:,} scenarios: {counts.held:,} held, {counts.violated:,} violated, {counts.unknown:,} unknown "
        f"({summary.seconds.total:.1f} s, {summary.scenarios_per_second:.0f} a second once Spark was up)"
    )
    output.say()
    output.table(
        ("invariant", "holds", "violated", "unknown", "shown"),
        [
            (name, count.holds, count.violated, count.unknown, _share(count.holds + count.violated, count.can_show))
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
    for title, lines in (("fell short", summary.shortfalls), ("harness", summary.failures)):
        for line in lines:
            output.say(f"{title}: {line}")
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


def _share(shown: int, possible: int) -> str:
    return f"{shown} of {possible} that can" if possible else "-"
