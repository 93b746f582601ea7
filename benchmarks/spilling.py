"""The arithmetic of unaligned checkpoints, measured in virtual time: all tables of docs/spilling.md.

    python benchmarks/spilling.py            all of them, less than a minute
    python benchmarks/spilling.py --quick    without the table of winners

The figures are virtual and the same on every machine; only how long they take is not.
"""

from __future__ import annotations

import argparse
import sys
import time

from cutproof.harness.pipelines import tables
from cutproof.harness.pipelines.arithmetic import GB
from cutproof.harness.pipelines.crashing import cells, circle, rounds
from cutproof.harness.pipelines.measures import (
    WAYS,
    cost_of,
    crossover,
    durations,
    fed,
    pressed,
    recoveries,
    steadiness,
    times_as_long,
    written_between,
)
from cutproof.harness.pipelines.run import measured
from cutproof.harness.progress import TerminalProgress
from cutproof.reference_impl.core.spilling import AT_ONCE, CONTINUOUS
from cutproof.reference_impl.simulated.pipeline_plan import MB
from cutproof.reports.figures import Figures


def document() -> Figures:
    """The document's figures and ours."""
    pairs = (
        ("spilling at once against alignment, 100 MB/s", "3.3 times as long", f"{times_as_long(100 * MB):.2f}"),
        ("spilling at once against alignment, 10 MB/s", "shorter", f"{times_as_long(10 * MB):.2f}"),
        ("data rate at which they are equal", "30 MB/s, the spilling rate", f"{crossover() / MB:.1f} MB/s"),
        ("throughput that continuous spilling costs, 10 MB/s", "low", f"{cost_of(CONTINUOUS, 10 * MB):.1%}"),
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


def _between(rate: int, *, continuous: bool) -> str:
    return f"{written_between(pressed(rate * MB, CONTINUOUS if continuous else AT_ONCE)) / GB:.2f} GB"


def show(table: Figures) -> None:
    print(f"\n{table.caption}\n\n{tables.as_text(table)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the table of winners")
    options = parser.parse_args()
    began = time.perf_counter()
    show(document())
    show(tables.figures_of_durations(durations()))
    show(tables.figures_of_recoveries(recoveries(10 * MB), 10 * MB))
    for rate in (20, 100):
        even = steadiness(lambda way, rate=rate: pressed(rate * MB, way))  # type: ignore[misc]
        show(tables.figures_of_steadiness(even, f"{rate} MB/s under backpressure"))
    idle = steadiness(lambda way: fed(10 * MB, 20 * MB, way))
    show(tables.figures_of_steadiness(idle, "10 MB/s come to a task that does 20: no backpressure"))
    show(tables.figures_of_rounds({name: rounds(measured(circle(way))) for name, way in WAYS.items()}))
    if not options.quick:
        show(tables.figures_of_cells(_cells()))
    print(f"\n{time.perf_counter() - began:.0f} s", file=sys.stderr)


def _cells() -> list[tables.Cell]:
    if not sys.stderr.isatty():
        return list(cells())
    with TerminalProgress(sys.stderr) as progress:
        return list(cells(progress.step))


if __name__ == "__main__":
    main()
