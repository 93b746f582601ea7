"""What the page of the arithmetic, the benchmark and docs/spilling.md measure alike, measured once in a process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from cutproof.harness.examples.pipelines import tables
from cutproof.harness.reference_engine.pipelines import measures

MEASURED: dict[str, Callable[..., Any]] = {
    name: cache(getattr(measures, name)) for name in ("durations", "stores", "recoveries", "steadiness")
}
THE_DOCUMENTS = cache(tables.figures_of_the_document)
