"""What a search runs beside its scenarios: systems of processes, and jobs as a batch.

Each kind stands beside some of the scenarios, by their numbers alone, and has one
judge.  All kinds go one way through a search: they are run by its workers, counted,
and told where they are violated.
"""

from __future__ import annotations

from typing import Protocol

from ..scenario.model import Scenario
from .batches import BatchOutcome, CompanionBatches
from .systems import CompanionSystems, SystemOutcome

AnyCompanion = SystemOutcome | BatchOutcome
"""What a search keeps of one, whatever its kind."""

COMPANIONS = (SystemOutcome.kind, BatchOutcome.kind)
"""in the order in which what is found is told"""


class Companion(Protocol):
    """A kind of what stands beside scenarios."""

    def number_at(self, index: int) -> int | None:
        """The number of the one that stands beside scenario `index`; None where none does."""

    def name_of(self, number: int) -> str:
        """What it is called where it cannot be run."""

    def run(self, number: int, scenario: Scenario) -> AnyCompanion:
        """Run it and judge it; raises what the engine raises."""


def companions_of(seed: int) -> tuple[Companion, ...]:
    """Every kind, for the scenarios of a seed."""
    return CompanionSystems(seed), CompanionBatches()
