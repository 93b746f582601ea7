"""The summary as plain text of at most 80 columns, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from .coverage import WAYS, coverage_lead, snapshot_lead, stops_shown
from .model import Counterexample, CounterexampleView, RowPair, StopCounts, Summary
from .overview import (
    aims_lead,
    asked_lead,
    by_reason,
    companion_lead,
    companions_in_short,
    headline,
    invariant_lines,
    lead,
    never,
    not_exercised_lead,
    oracle_lead,
    out_of_sight_lead,
    restarts_lead,
)
from .words import STATUS_WORDS, foreign_in_words, judges_in_words, plural, row_cells, row_columns

WIDTH = 80
MOST_ROWS = 20
COMMANDS = 5
"""commands for scenarios that could not be run, one for each reason"""
FOUND = 4
"""counterexamples on the screen; of the first one the story too"""
REASONS = 3
"""failures of the harness on the screen, and as many shortfalls"""


def render_text(summary: Summary, *, report: str = "", verbose: bool = False) -> str:
    """One screen: the verdicts, the counterexamples, what fell short, the outcome, and the file of the `report`.

    With `verbose` also all other texts of the report: ways to end, coverage, what never fired, each story.
    """
    parts = [list(_table(summary))]
    if verbose:
        parts += [list(_stops(summary)), list(_tried(summary))]
        parts += [list(_counterexample(one)) for one in summary.counterexamples]
        parts.append([*_why(summary, len(summary.failures) + len(summary.shortfalls)), *_outcome_in_full(summary)])
    else:
        parts += [_found(summary), [*_why(summary, REASONS), *_outcome(summary)]]
    parts[-1] += _last(summary, report, verbose=verbose)
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def render_rows(view: CounterexampleView) -> str:
    """Expected and committed rows side by side, as text; if there are many, those that differ come first."""
    rows = view.rows
    if len(rows) > MOST_ROWS:
        rows = tuple(row for row in rows if row.status != "ok")[:MOST_ROWS]
    columns = row_columns(view.history)
    cells = [("", "expected", "committed"), *(_row(row, columns) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    hidden = len(view.rows) - len(rows)
    return "\n".join([*lines, f"({plural(hidden, 'row')} not shown)"] if hidden else lines)


def _row(row: RowPair, columns: Sequence[str]) -> tuple[str, str, str]:
    sign, word = STATUS_WORDS[row.status]
    expected, committed = (", ".join(row_cells(side, columns)) or "-" for side in (row.expected, row.committed))
    return f"{sign} {word}", expected, committed


def _table(summary: Summary) -> Iterator[str]:
    lines = invariant_lines(summary)
    if not lines:
        return
    width = max(len("invariant"), *(len(line.name) for line in lines))
    heads = " ".join(f"{head:>9}" for head in ("held", "violated", "unknown", "can show", "by both"))
    yield f"{'invariant':<{width}}  {'verdict':<13} {heads}"
    for line in lines:
        counts = line.counts
        verdict = "known failure" if line.verdict == "known" else line.verdict
        numbers = " ".join(f"{n:>9,}" for n in (counts.holds, counts.violated, counts.unknown))
        can_show, by_both = ("-" if n is None else f"{n:,}" for n in (line.can_show, line.by_both))
        yield f"{line.name:<{width}}  {verdict:<13} {numbers} {can_show:>9} {by_both:>9}"
    yield from _wrapped(out_of_sight_lead(summary))


def _stops(summary: Summary) -> Iterator[str]:
    """Every way to end a job or to resume it: how many were planned, were completed, and were hit meanwhile."""
    shown = stops_shown(summary)
    if not shown:
        return
    names = {kind: WAYS.get(kind, kind) for kind in shown}
    width = max(map(len, names.values()))
    yield f"{'way to end':<{width}}  {'planned':>9} {'finished':>9} {'hit':>9}  most by"
    for kind in (*(kind for kind in WAYS if kind in names), *sorted(set(names) - set(WAYS))):
        counts = summary.stops[kind]
        numbers = " ".join(f"{n:>9,}" for n in (counts.planned, counts.finished, counts.hit))
        yield f"{names[kind]:<{width}}  {numbers}  {_most_by(counts)}".rstrip()


def _most_by(counts: StopCounts) -> str:
    """The kind of fault that hit most often."""
    totals = {fault: sum(phases.values()) for fault, phases in counts.faults.items()}
    return max(totals, key=lambda fault: (totals[fault], fault)) if totals else ""


def _fired(summary: Summary) -> str:
    """How many faults fired, in one sentence; empty if no fault was planned."""
    if not summary.faults:
        return ""
    fired = sum(counts.fired for counts in summary.faults.values())
    kinds = sum(bool(counts.fired) for counts in summary.faults.values())
    completed = f"{plural(summary.checkpoints.completed, 'checkpoint')} completed, "
    return (
        f"{plural(fired, 'fault')} of {plural(kinds, 'kind')} fired, {'' if summary.pipeline else completed}"
        f"{plural(summary.recoveries, 'recovery')}."
    )


def _tried(summary: Summary) -> Iterator[str]:
    for sentence in (
        f"{_fired(summary)} {restarts_lead(summary)}".strip(),
        "" if summary.pipeline else coverage_lead(summary.coverage),
        "" if summary.pipeline else snapshot_lead(summary.coverage),
        aims_lead(summary),
        *never(summary),
    ):
        yield from _wrapped(sentence)


def _counterexample(one: Counterexample) -> Iterator[str]:
    yield _difference(one)
    yield from _wrapped(one.story, "  ")
    yield from _wrapped(one.kept, "  ")
    yield from _wrapped(judges_in_words(one.judges, one.not_asked), "  ")
    yield f"  {one.replay}"


def _difference(one: Counterexample) -> str:
    return f"{one.invariant}: {one.difference or 'violated'}{' (known failure)' if one.known else ''}"


def _found(summary: Summary) -> list[str]:
    """The first counterexample in full; of the next ones the difference and the command; the number of the rest."""
    lines: list[str] = []
    for one in summary.counterexamples[:FOUND]:
        lines += _counterexample(one) if not lines else (_difference(one), f"  {one.replay}")
    more = len(summary.counterexamples) - FOUND
    return [*lines, f"and {plural(more, 'counterexample')} more, in the report"] if more > 0 else lines


def _why(summary: Summary, most: int) -> Iterator[str]:
    """The first failures of the harness, the first scenarios that could not be run, and the first shortfalls."""
    yield from _first("failure", summary.failures, most)
    firsts = [alike[0] for alike in by_reason(summary.not_run).values()]
    yield from (f"  {one.replay}" for one in firsts[:COMMANDS] if one.replay)
    yield from _first("shortfall", summary.shortfalls if not summary.failures else [], most)  # failures are why, then


def _first(what: str, sentences: Sequence[str], most: int) -> Iterator[str]:
    for sentence in sentences[:most]:
        yield from _wrapped(f"{what}: {sentence}")
    if len(sentences) > most:
        yield f"and {plural(len(sentences) - most, what)} more, in the report"


def _outcome(summary: Summary) -> Iterator[str]:
    yield from _wrapped(
        " ".join(filter(None, (_fired(summary), "" if summary.shortfalls else not_exercised_lead(summary))))
    )
    counted = (lead(summary), asked_lead(summary), companions_in_short(summary))
    yield from _wrapped(" ".join(filter(None, (*counted, foreign_in_words(summary.foreign_connections)))))


def _outcome_in_full(summary: Summary) -> Iterator[str]:
    yield from _wrapped(" ".join(filter(None, (lead(summary), oracle_lead(summary), companion_lead(summary)))))


def _last(summary: Summary, report: str, *, verbose: bool) -> Iterator[str]:
    yield from _wrapped(summary.not_judged_by_shares)
    yield f"{headline(summary)} {_speed(summary.scenarios_per_second)}."
    if report and not verbose:
        rest = "What never fired" if summary.pipeline else "Ways to end, coverage and what never fired"
        yield f"{rest}: in the report, and with --verbose."
    if report:
        yield f"report: {report}"


def _speed(per_second: float) -> str:
    return f"{per_second:.1f} scenarios a second" if per_second >= 1 else f"{60 * per_second:.1f} scenarios a minute"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent or "  ", break_on_hyphens=False)
