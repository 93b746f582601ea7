"""The figures of an example in bytes, which are measured when its page is written."""

from __future__ import annotations

from collections.abc import Callable

from ....reports.example_report import Figures, Picture
from ...reference_engine.pipelines.crashing import circle, comparisons, rounds
from ...reference_engine.pipelines.measures import PRESSURES, WAYS, durations, recoveries, steadiness, stores
from ...reference_engine.pipelines.plan import MB
from ...reference_engine.pipelines.run import measured
from . import tables
from .arithmetic import SPILLING_ARITHMETIC
from .overtaking import VICIOUS_CIRCLE

TIMES = "Times are virtual, bytes are simulated"


def measured_for(name: str, progress: Callable[[str], None]) -> tuple[tuple[Figures, ...], tuple[Picture, ...]]:
    """The tables and pictures of an example's page; `progress` is called with the name of the next measurement."""
    if name == SPILLING_ARITHMETIC.name:
        return _arithmetic(progress)
    if name == VICIOUS_CIRCLE.name:
        by_way = {way: rounds(measured(circle(WAYS[way]))) for way in WAYS}
        return (tables.figures_of_rounds(by_way),), (tables.chart_of_rounds(by_way),)
    return (), ()


def _arithmetic(progress: Callable[[str], None]) -> tuple[tuple[Figures, ...], tuple[Picture, ...]]:
    """The figures of docs/spilling.md, without the vicious circle, which is an example of its own."""
    progress("measuring checkpoints and recoveries")
    took, back = durations(), recoveries(10 * MB)
    progress("measuring how steady each way is")
    even = {about: steadiness(plan) for about, plan in PRESSURES.items()}
    store_keeps_up, store_is_slower, _ = PRESSURES
    won = list(comparisons(progress))
    found = (
        tables.figures_of_the_document(),
        tables.figures_of_durations(took),
        tables.figures_of_stores(stores(20 * MB), 20 * MB),
        tables.figures_of_recoveries(back, 10 * MB),
        *(tables.figures_of_steadiness(rows, about) for about, rows in even.items()),
        tables.figures_of_comparisons(won),
    )
    pictures = (
        tables.chart_of_durations(took),
        tables.chart_of_writing(
            [one for one in even[store_keeps_up] if one.way in ("at once", "continuous")], store_keeps_up
        ),
        tables.chart_of_throughput(even[store_is_slower], store_is_slower),
        tables.bars_of_recoveries(back),
        tables.bars_of_stored(back),
        tables.grid_of_winners(won),
    )
    return found, pictures
