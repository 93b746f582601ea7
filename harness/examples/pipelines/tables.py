"""The measured figures as tables and curves, for a terminal, a page and the documents."""

from __future__ import annotations

from ....reports.charts import grid
from ....reports.charts.bars import Bar, Bars
from ....reports.charts.curves import Chart, Curve
from ....reports.charts.grid import Grid
from ....reports.example_report import Figures
from ...reference_engine.pipelines.crashing import Comparison, Round
from ...reference_engine.pipelines.measures import (
    MINUTE,
    SECOND,
    WAYS,
    Duration,
    Recovered,
    Steadiness,
    Stored,
    cost_of,
    crossover,
    pressed,
    times_as_long,
    written_between,
)
from ...reference_engine.pipelines.plan import AT_ONCE, CONTINUOUS, MB
from .arithmetic import GB

NAMES = tuple(WAYS)
ALIGNED_NAME, NOBODY = NAMES[0], "none"


def figures_of_the_document() -> Figures:
    """The figures of FLIP-76, and the measured ones."""
    pairs = (
        ("spilling at once against alignment, 100 MB/s", "3.3 times as long", f"{times_as_long(100 * MB):.2f}"),
        ("spilling at once against alignment, 10 MB/s", "shorter", f"{times_as_long(10 * MB):.2f}"),
        ("data rate at which they are equal", "30 MB/s, the spilling rate", f"{crossover() / MB:.1f} MB/s"),
        (
            "throughput that continuous spilling costs, 10 MB/s (assumed)",
            "relatively low",
            f"{cost_of(CONTINUOUS, 10 * MB):.1%}",
        ),
        ("the same at 30 MB/s", "", f"{cost_of(CONTINUOUS, 30 * MB):.1%}"),
        ("the same at 100 MB/s", "not helping", f"{cost_of(CONTINUOUS, 100 * MB):.1%}"),
        ("written between checkpoints, 30 MB/s, a minute", "1.8 GB", _between(30, continuous=True)),
        ("the same at once, a gigabyte in flight", "similar order", _between(30, continuous=False)),
        ("the same continuously, 10 MB/s", "all of the data", _between(10, continuous=True)),
        ("the same at once, 10 MB/s", "all of the data", _between(10, continuous=False)),
    )
    return Figures(
        caption="spilling at 30 MB/s, a gigabyte of room, backpressure", head=("figure", "text", "here"), rows=pairs
    )


def _cost(rate: int) -> str:
    return f"{cost_of(CONTINUOUS, rate * MB):.1%}"


def _between(rate: int, *, continuous: bool) -> str:
    return f"{written_between(pressed(rate * MB, CONTINUOUS if continuous else AT_ONCE)) / GB:.2f} GB"


def figures_of_durations(rows: list[Duration]) -> Figures:
    return Figures(
        caption="seconds that a checkpoint takes under growing backpressure: 20 MB/s come, spilling at 30 MB/s, "
        "room for 600 MB",
        head=("the task's rate", "in flight", *NAMES),
        rows=tuple(
            (
                f"{row.rate / MB:g} MB/s",
                f"{row.in_flight / MB:.0f} MB",
                *(f"{row.seconds[name]:,.2f}" for name in NAMES),
            )
            for row in rows
        ),
    )


def chart_of_durations(rows: list[Duration]) -> Chart:
    return Chart(
        title="How long a checkpoint takes as a task gets slower",
        caption="Aligned grows without bound, at once until the buffers are full, continuous stays flat.",
        across="the task's rate, MB/s",
        up="seconds",
        logarithmic=True,
        curves=tuple(
            Curve(name=name, points=tuple((row.rate / MB, row.seconds[name]) for row in rows if row.in_flight))
            for name in NAMES
        ),
    )


def figures_of_stores(rows: list[Stored], rate: int) -> Figures:
    return Figures(
        caption=f"the same data on other stores, {rate // MB} MB/s under backpressure",
        head=("store, way", "a checkpoint takes", "processed", "stored at most", "tasks up after a crash"),
        rows=tuple(
            (
                f"{one.store}, {one.way}",
                f"{one.checkpoint_s:.2f} s",
                f"{one.processed:.1f} MB/s",
                f"{one.most_stored / GB:.2f} GB",
                f"{one.restored_s:.2f} s",
            )
            for one in rows
        ),
    )


def figures_of_recoveries(rows: list[Recovered], rate: int) -> Figures:
    return Figures(
        caption=f"a crash half a minute after a checkpoint was due; {rate // MB} MB/s, under backpressure",
        head=("way", "tasks up", "in-flight data read", "processed again", "caught up", "stored at most"),
        rows=tuple(
            (
                one.way,
                f"{one.restored_s:.1f} s",
                f"{one.read / MB:,.0f} MB",
                f"{one.undone / MB:,.0f} MB",
                f"{one.caught_up_s:.1f} s",
                f"{one.most_stored / GB:.2f} GB",
            )
            for one in rows
        ),
    )


def bars_of_recoveries(rows: list[Recovered]) -> Bars:
    return Bars(
        title="Until all that a crash undid is done again",
        caption="The later the last checkpoint came, the more there is to do again; in-flight data that was stored is "
        "read back first.",
        bars=tuple(Bar(name=one.way, value=one.caught_up_s, text=f"{one.caught_up_s:.1f} s") for one in rows),
    )


def bars_of_stored(rows: list[Recovered]) -> Bars:
    return Bars(
        title="What the store holds at most",
        caption="Aligned stores nothing in flight; continuous spilling holds what came since the checkpoint retained.",
        bars=tuple(
            Bar(name=one.way, value=one.most_stored / GB, text=f"{one.most_stored / GB:.2f} GB") for one in rows
        ),
    )


def figures_of_steadiness(rows: list[Steadiness], about: str) -> Figures:
    return Figures(
        caption=f"by second, and how much seconds differ (standard deviation by mean): {about}",
        head=("way", "processed", "varies", "written", "varies"),
        rows=tuple(
            (
                one.way,
                f"{one.processed:.1f} MB/s",
                f"{one.processed_varies:.0%}",
                f"{one.written:.1f} MB/s",
                f"{one.written_varies:.0%}" if one.written else "",
            )
            for one in rows
        ),
    )


THREE_CHECKPOINTS = 180
"""the length of a curve of steadiness, in seconds"""


def chart_of_writing(rows: list[Steadiness], about: str) -> Chart:
    return _by_second(
        title="What the store writes",
        caption=f"Bytes by second over three checkpoints, {about}: spikes at once, a steady flow continuously.",
        series={one.way: one.written_series for one in rows},
    )


def chart_of_throughput(rows: list[Steadiness], about: str) -> Chart:
    return _by_second(
        title="What the task processes",
        caption=f"Throughput by second over three checkpoints, {about}: a store that is too slow sets the pace of what "
        "is spilled continuously, and no way is jerky.",
        series={one.way: one.processed_series for one in rows},
    )


def _by_second(title: str, caption: str, series: dict[str, tuple[float, ...]]) -> Chart:
    return Chart(
        title=title,
        caption=caption,
        across="seconds",
        up="MB/s",
        curves=tuple(
            Curve(name=way, points=tuple((float(at), size) for at, size in enumerate(sizes[:THREE_CHECKPOINTS])))
            for way, sizes in series.items()
        ),
    )


def figures_of_rounds(found: dict[str, list[Round]]) -> Figures:
    """By way, the bytes that complete checkpoints covered at each crash."""
    first = next(iter(found.values()))
    return Figures(
        caption="MB that complete checkpoints cover, and how long the longest since the crash before took",
        head=("crash", *found),
        rows=tuple(
            (f"{one.crashed_us // SECOND} s", *(_round(rounds[at]) for rounds in found.values()))
            for at, one in enumerate(first)
        ),
    )


def _round(one: Round) -> str:
    took = f"{max(one.checkpoints_s):.1f} s" if one.checkpoints_s else "none"
    return f"{one.covered / MB:,.0f} ({took})"


def chart_of_rounds(found: dict[str, list[Round]]) -> Chart:
    return Chart(
        title="What is processed for good, crash by crash",
        caption="Aligned checkpoints come later and later, then never; unaligned ones go on.",
        across="seconds",
        up="MB covered by a checkpoint",
        curves=tuple(
            Curve(name=name, points=tuple((one.crashed_us / SECOND, one.covered / MB) for one in rounds))
            for name, rounds in found.items()
        ),
    )


def figures_of_comparisons(found: list[Comparison]) -> Figures:
    return Figures(
        caption="GB processed for good in 20 minutes under backpressure, and the way that wins; in brackets, as good "
        "and dearer",
        head=("crashes, a checkpoint each, data", *NAMES, "winner"),
        rows=tuple(
            (
                f"{_crashes(one)}, {_time(one.interval_us)}, {one.rate // MB} MB/s",
                *(f"{one.progress[name] / GB:.1f}" for name in NAMES),
                _winner(one),
            )
            for one in found
        ),
    )


def grid_of_winners(found: list[Comparison]) -> Grid:
    """The winner by crashes and interval (rows) and data rate (columns), marked if it is not alignment."""
    by_row: dict[str, dict[int, Comparison]] = {}
    for one in found:
        by_row.setdefault(f"{_crashes(one)} · {_time(one.interval_us)}", {})[one.rate] = one
    rates = sorted({one.rate for one in found})
    return Grid(
        title="Who wins",
        caption="The way that processes most for good, by how often crashes come and checkpoints are due, and by the "
        "data rate; with a ground of their own, those that store data in flight. A plus: others did as well, and "
        "wrote more.",
        corner="crashes · a checkpoint each",
        columns=tuple(f"{rate // MB} MB/s" for rate in rates),
        rows=tuple((name, tuple(_cell(by_rate[rate]) for rate in rates)) for name, by_rate in by_row.items()),
    )


def _cell(one: Comparison) -> grid.Cell:
    more = " +" if len(one.even) > 1 else ""
    return grid.Cell(text=one.winner + more, marked=one.winner not in (ALIGNED_NAME, NOBODY))


def _crashes(one: Comparison) -> str:
    return f"every {_time(one.every_us)}" if one.every_us else "none"


def _time(us: int) -> str:
    return f"{us // MINUTE} min" if us >= MINUTE else f"{us // SECOND} s"


def _winner(one: Comparison) -> str:
    others = ", ".join(name for name in one.even if name != one.winner)
    return f"{one.winner} ({others})" if others else one.winner


def as_text(table: Figures) -> str:
    """A table as text, for a Markdown document or a terminal."""
    rows = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
