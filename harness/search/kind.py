"""A kind of what a search runs: scenarios, systems of processes, jobs as a stream and as a batch.

Every kind goes one way through a search: a worker runs it by its number and judges
it, its outcomes are counted, and what is violated is shrunk and told.  Scenario i of
a seed is run as scenario i; systems and batches are companions, which stand beside
some of the scenarios.
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
    """What was run and judged, and what PySpark is asked about it."""

    outcome: AnyOutcome
    question: bytes | None = None
    """None for a kind that has one judge (`oracle.put`)"""


class Kind(Protocol):
    """How one kind is run."""

    name: str
    """of its outcomes too (`outcome.RUN_KINDS`)"""

    def number_at(self, index: int) -> int | None:
        """The number of the one that is run with scenario `index`; None where none is."""

    def run(self, number: int, drawn: Drawn) -> Ran:
        """Run it and judge it; raises what the subject, the engine or the judge raises."""
