"""A run's summary, in words for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ....properties.model.history import History
from ....properties.model.verdict import Verdict, Violated
from ....reports.model import RowPair, Summary
from ....reports.overview import by_reason
from ....reports.text import WIDTH, render_text
from ....reports.words import plural
from ...counterexamples.story_text import rows_text
from ...counterexamples.words import verdict_in_words
from ...subject.not_run import REASONS, in_sentences
from .output import Output

if TYPE_CHECKING:
    from ...self_check.tamper import TamperReport


def print_summary(summary: Summary, folder: Path | None, output: Output, *, verbose: bool = False) -> None:
    """Print what held, what was found, what fell short and where to read on; with --quiet only what failed."""
    report = str(folder / "report.html") if folder is not None else ""
    output.say(render_text(summary, report=report, verbose=verbose).rstrip())
    for failure in summary.failures if output.quiet else ():
        output.complain(failure)
    if summary.interrupted:
        output.complain("interrupted; what was done so far is kept")


def print_verdicts(verdicts: dict[str, Verdict], output: Output) -> None:
    """Print a line for each invariant, and the witnesses of a violated one."""
    output.table(
        ("invariant", "verdict", ""), [(name, *verdict_in_words(verdict)) for name, verdict in verdicts.items()]
    )
    for name, verdict in verdicts.items():
        if isinstance(verdict, Violated):
            output.say()
            output.say(f"{name}: {verdict.message}")
            for line in (*verdict.records, *verdict.events):
                output.say(f"  {line}")


def print_rows(pairs: Sequence[RowPair], columns: Sequence[str], output: Output) -> None:
    """Print expected and committed rows where they differ; nothing if all rows are equal."""
    if any(pair.status != "ok" for pair in pairs):
        output.say()
        for line in rows_text(pairs, columns):
            output.say(line)


def print_events(history: History, output: Output) -> None:
    """Print the timeline, a line for each event."""
    from ....reports.words import with_task

    for event in sorted(history.timeline, key=lambda event: event.order):
        output.say(f"{event.at_us / 1000:10.3f} ms  {with_task(event)}")
    output.say()


def print_tampering(report: TamperReport, output: Output, *, verbose: bool = False) -> None:
    """Print the mutations that no invariant saw, and those for which there was no place; with `verbose` a line for
    each mutation."""
    if verbose:
        output.table(
            ("mutation", "made", "seen", "by"),
            [(one.name, one.tried, one.caught, ", ".join(one.by_invariant)) for one in report.tamperings],
        )
    for one in report.tamperings:
        for drawn_from in one.missed:
            output.say(f"not seen: {one.name}, in the scenario {drawn_from}")
    if report.not_reached:
        sentence = f"not made, because no history had a place for it: {', '.join(report.not_reached)}"
        output.say("\n".join(wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)))
    for drawn_from in report.accused:
        output.say(f"violated without any mutation, in the scenario {drawn_from}")
    for sentence in in_sentences(report.not_run):
        output.say(sentence)
    for alike in list(by_reason(report.not_run).values())[:REASONS]:
        output.say(f"  {alike[0].replay}")
    held = ", ".join(f"{name} {count:,}" for name, count in report.held.items())
    sentence = f"without a mutation {plural(len(report.accused), 'history')} violated an invariant; held: {held}"
    output.say("\n".join(wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)))
    if report.has_teeth:
        histories = report.scenarios - sum(one.number < report.scenarios for one in report.not_run)
        kinds = sum(bool(one.tried) for one in report.tamperings)
        output.say(f"all {report.caught:,} mutations, of {kinds} kinds, were seen, in {histories:,} histories")
