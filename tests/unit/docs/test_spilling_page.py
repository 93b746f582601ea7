"""docs/spilling.md against the world: every figure of its tables is measured again, and none stands there beside."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.examples.pipelines.tables import (
    figures_of_comparisons,
    figures_of_durations,
    figures_of_recoveries,
    figures_of_rounds,
    figures_of_steadiness,
    figures_of_stores,
)
from cutproof.harness.reference_engine.pipelines.crashing import EVERY_US, INTERVALS_US, RATES, circle, compared, rounds
from cutproof.harness.reference_engine.pipelines.measures import PRESSURES, WAYS
from cutproof.harness.reference_engine.pipelines.run import measured
from cutproof.reference_impl.simulated.pipelines.plan import MB
from cutproof.reports.example_report import Figures
from unit.harness.examples.pipelines.measured import MEASURED, THE_DOCUMENTS

PAGE = (Path(__file__).parents[3] / "docs" / "spilling.md").read_text(encoding="utf-8")
OURS = "| Way | Barrier overtakes"
"""the one table that has no figures"""

Row = tuple[str, ...]


def _tables() -> list[list[Row]]:
    """The page's tables of figures, each without its rule, its head first."""
    blocks = (block for block in PAGE.split("\n\n") if block.startswith("| ") and not block.startswith(OURS))
    return [
        [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in block.splitlines() if line[1] != "-"]
        for block in blocks
    ]


DOCUMENT, DURATIONS, STORES, RECOVERIES, *STEADINESS, ROUNDS, WINNERS = _tables()


def _rows(table: Figures) -> list[Row]:
    return [table.head, *table.rows]


def test_the_figures_are_those_of_a_fresh_measurement() -> None:
    assert _rows(THE_DOCUMENTS()) == DOCUMENT


def test_the_durations_are() -> None:
    assert _rows(figures_of_durations(MEASURED["durations"]())) == DURATIONS


def test_the_stores_are() -> None:
    assert _rows(figures_of_stores(MEASURED["stores"](20 * MB), 20 * MB)) == STORES


def test_what_a_crash_costs_is() -> None:
    assert _rows(figures_of_recoveries(MEASURED["recoveries"](10 * MB), 10 * MB)) == RECOVERIES


@pytest.mark.parametrize(("number", "about"), list(enumerate(PRESSURES)))
def test_the_steadiness_is(number: int, about: str) -> None:
    assert _rows(figures_of_steadiness(MEASURED["steadiness"](PRESSURES[about]), about)) == STEADINESS[number]
    assert len(STEADINESS) == len(PRESSURES)


def test_the_vicious_circle_is() -> None:
    assert _rows(figures_of_rounds({name: rounds(measured(circle(way))) for name, way in WAYS.items()})) == ROUNDS


@pytest.mark.parametrize(("number", "every_us"), list(enumerate(EVERY_US)))
def test_the_winners_are(number: int, every_us: int | None) -> None:
    """A third of the table a turn."""
    third = len(INTERVALS_US) * len(RATES)
    head, *rows = WINNERS
    found = [compared(rate, interval_us, every_us) for interval_us in INTERVALS_US for rate in RATES]
    assert _rows(figures_of_comparisons(found)) == [head, *rows[number * third : (number + 1) * third]]
    assert len(rows) == third * len(EVERY_US)
