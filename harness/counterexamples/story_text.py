"""A counterexample for a terminal: its story, its rows side by side, and the command that replays it."""

from __future__ import annotations

from collections.abc import Sequence

from ...properties.model.words import COLUMNS
from ...properties.model.workload import Row
from ...reports.model import CounterexampleView, RowPair
from ...reports.words import judges_in_words, row_cells, row_columns

ROWS_AT_MOST = 12


def story_text(view: CounterexampleView) -> str:
    lines = [f"{view.invariant} violated ({view.difference}): {view.story}", ""]
    for paragraph in view.paragraphs:
        lines += [paragraph, ""]
    if any(pair.status != "ok" for pair in view.rows):
        lines += [*rows_text(view.rows, row_columns(view.history)), ""]
    if view.neighbour:
        lines.append(view.neighbour)
    lines += [*filter(None, (judges_in_words(view.judges, view.not_asked),)), f"replay: {view.replay}"]
    return "\n".join(lines)


def rows_text(pairs: Sequence[RowPair], columns: Sequence[str] = COLUMNS, *, at_most: int = ROWS_AT_MOST) -> list[str]:
    """Expected and committed rows side by side (key, value, tag), the rows that differ first.

    Columns with other names than these are named; those without a name are left out.
    """
    wrong = [pair for pair in pairs if pair.status != "ok"]
    shown = (wrong + [pair for pair in pairs if pair.status == "ok"])[:at_most]
    names = "" if tuple(columns[:3]) == COLUMNS[:3] else f": {'  '.join(filter(None, columns[:3]))}"
    cells = [("", f"expected{names}", f"committed{names}"), *(_cells(pair, columns) for pair in shown)]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    if len(pairs) > len(shown):
        lines.append(f"and {len(pairs) - len(shown):,} more rows; {len(wrong):,} differ in all")
    return lines


def _cells(pair: RowPair, columns: Sequence[str]) -> tuple[str, str, str]:
    status = "" if pair.status == "ok" else pair.status
    return status, _words(pair.expected, columns), _words(pair.committed, columns)


def _words(row: Row | None, columns: Sequence[str]) -> str:
    return "  ".join(row_cells(row, columns)) if row is not None else "-"
