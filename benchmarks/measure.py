"""How a figure is taken: several runs, their median, and what machine it was."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number; `runs` are its single values, of which it is the median."""

    name: str
    value: float
    unit: str
    runs: tuple[float, ...]
    note: str = ""


def figure(name: str, unit: str, runs: list[float], note: str = "") -> Figure:
    return Figure(name=name, value=median(runs), unit=unit, runs=tuple(runs), note=note)


def rate(work: Callable[[], int], clock: Callable[[], float] = time.perf_counter) -> float:
    """How many units a second `work` does; it returns how many it did.

    With `time.process_time` as the clock it is a second of the processor, which hardly depends on what else runs.
    """
    began = clock()
    done = work()
    return done / (clock() - began)


def interleaved_rates(works: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """For each second of the processor.  Each round runs every one of them, so that a slow moment of the machine hits
    all alike."""
    rates: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            rates[name].append(rate(work, time.process_time))
    return rates


def machine() -> dict[str, str | int]:
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 0,
    }


def table(figures: list[Figure]) -> str:
    rows = [("figure", "median", "unit", "runs"), *((f.name, _short(f.value), f.unit, _spread(f)) for f in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for row, note in zip(rows, ["", *(f.note for f in figures)], strict=True):
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2]), row[3].ljust(widths[3])]
        lines.append("  ".join([*cells, note]).rstrip())
    return "\n".join(lines)


def _spread(taken: Figure) -> str:
    return f"{len(taken.runs)}: {_short(min(taken.runs))} to {_short(max(taken.runs))}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
