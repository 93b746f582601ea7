"""docs/spilling.md against the world: the tables' figures are measured again."""

from __future__ import annotations

from pathlib import Path

from cutproof.harness.pipelines.crashing import cell, circle, rounds
from cutproof.harness.pipelines.measures import MINUTE, WAYS, durations
from cutproof.harness.pipelines.run import measured
from cutproof.harness.pipelines.tables import (
    figures_of_cells,
    figures_of_durations,
    figures_of_rounds,
    figures_of_the_document,
)
from cutproof.reference_impl.simulated.pipeline_plan import MB
from cutproof.reports.figures import Figures

PAGE = Path(__file__).parents[3] / "docs" / "spilling.md"
ROWS = {
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
}


def _missing(table: Figures) -> list[tuple[str, ...]]:
    """Rows that the page has otherwise, its head included."""
    return [row for row in (table.head, *table.rows) if row not in ROWS]


def test_the_figures_are_those_of_a_fresh_measurement() -> None:
    assert _missing(figures_of_the_document()) == []


def test_the_durations_are() -> None:
    assert _missing(figures_of_durations(durations((19 * MB, 2 * MB)))) == []


def test_the_vicious_circle_is() -> None:
    short = {name: rounds(measured(circle(way, for_us=7 * MINUTE))) for name, way in WAYS.items()}
    assert _missing(figures_of_rounds(short)) == []


def test_winners_are() -> None:
    found = [cell(10 * MB, MINUTE, 2 * MINUTE), cell(100 * MB, MINUTE, 2 * MINUTE)]
    assert _missing(figures_of_cells(found)) == []
    assert [one.winner for one in found] == ["continuous", "aligned"]  # on either side of the spilling rate


def test_a_row_that_differs_is_found() -> None:
    assert _missing(Figures(caption="", head=("figure", "text", "here"), rows=(("x", "y", "z"),))) == [("x", "y", "z")]
