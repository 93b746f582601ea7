"""The kinds of runs in a search: scenarios, systems of processes, and jobs as a stream and as a batch.

A search treats every kind in the same way: a worker runs it by its number and judges it, its outcomes are counted, and
violations are shrunk and reported.  Scenario i of a seed is run as scenario i.  Systems and batches are companions:
they run with some of the scenarios.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ..scenario.model import Scenario
from .outcome import AnyOutcome


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario of a number."""

    scenario: Scenario
    draw_s: float = 0.0


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What was run and judged, and the question about it for PySpark."""

    outcome: AnyOutcome
    question: bytes | None = None
    """None for a kind that has only one judge (`oracle.put`)"""


class Kind(Protocol):
    """How a kind is run."""

    name: str
    """the kind of its outcomes too (`outcome.RUN_KINDS`)"""

    def number_at(self, index: int) -> int | None:
        """The number of this kind's run that accompanies scenario `index`; None if none does."""

    def run(self, number: int, drawn: Drawn) -> Ran:
        """Run it and judge it; raises what the subject, the engine or the judge raises."""
