"""The arithmetic of unaligned checkpoints, measured in virtual time: all tables of docs/spilling.md.

    python benchmarks/spilling.py            all of them, less than a minute
    python benchmarks/spilling.py --quick    without the table of winners

The figures are virtual and the same on every machine; only how long they take is not.
"""

from __future__ import annotations

import argparse
import sys
import time

from cutproof.harness.examples.pipelines import tables
from cutproof.harness.reference_engine.pipelines.crashing import circle, comparisons, rounds
from cutproof.harness.reference_engine.pipelines.measures import (
    PRESSURES,
    WAYS,
    durations,
    recoveries,
    steadiness,
    stores,
)
from cutproof.harness.reference_engine.pipelines.run import measured
from cutproof.harness.runtime.progress import TerminalProgress
from cutproof.reference_impl.simulated.pipelines.plan import MB
from cutproof.reports.example_report import Figures


def show(table: Figures) -> None:
    print(f"\n{table.caption}\n\n{tables.as_text(table)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without the table of winners")
    options = parser.parse_args()
    began = time.perf_counter()
    show(tables.figures_of_the_document())
    show(tables.figures_of_durations(durations()))
    show(tables.figures_of_stores(stores(20 * MB), 20 * MB))
    show(tables.figures_of_recoveries(recoveries(10 * MB), 10 * MB))
    for about, plan in PRESSURES.items():
        show(tables.figures_of_steadiness(steadiness(plan), about))
    show(tables.figures_of_rounds({name: rounds(measured(circle(way))) for name, way in WAYS.items()}))
    if not options.quick:
        show(tables.figures_of_comparisons(_comparisons()))
    print(f"\n{time.perf_counter() - began:.0f} s", file=sys.stderr)


def _comparisons() -> list[tables.Comparison]:
    if not sys.stderr.isatty():
        return list(comparisons())
    with TerminalProgress(sys.stderr) as progress:
        return list(comparisons(progress.step))


if __name__ == "__main__":
    main()
