"""Companion runs of systems of processes: general snapshots on drawn graphs (CL-1, CL-3).

A search runs one for every `EVERY` scenarios.  System n of a seed is the same whatever
the budget, the order of the work or the number of workers, as scenario i is.
Causality alone judges it: there is no row that PySpark could expect.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ...properties.model.verdict import Verdict, Violated
from ..generate.systems import system_of
from ..reference_engine.graphs.run import run_and_judge
from ..reference_engine.graphs.system import System
from ..scenario.model import Scenario

EVERY = 20
"""scenarios to one system: it costs a tenth of a scenario"""


INVARIANT = "consistent-cut"


class SystemOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="system"):
    """What a search keeps of one system."""

    kind: ClassVar = "system"
    invariant: ClassVar = INVARIANT
    number: int
    verdict: Verdict
    snapshots: int = 0
    """that completed"""
    under_way: int = 0
    """messages that these have in channels"""
    system: System | None = None
    """kept where it is violated"""

    @property
    def index(self) -> int:
        """The scenario that it stands beside."""
        return self.number * EVERY

    @property
    def counts(self) -> dict[str, int]:
        """What a search adds up over all of them."""
        return {"snapshots": self.snapshots, "under_way": self.under_way}


class CompanionSystems:
    """The systems of a seed, drawn and run by their numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draw = system_of()

    def number_at(self, index: int) -> int | None:
        return None if index % EVERY else index // EVERY

    def name_of(self, number: int) -> str:
        return f"system {number}"

    def run(self, number: int, scenario: Scenario | None = None) -> SystemOutcome:
        """Draw system `number`, run it and judge it, whatever scenario it stands beside; raises what the machine
        raises."""
        system = self._draw(self._seed, number)
        run = run_and_judge(system)
        complete = [one for one in run.history.snapshots if one.complete_us is not None]
        return SystemOutcome(
            number=number,
            verdict=run.verdict,
            snapshots=len(complete),
            under_way=sum(len(held) for one in complete for part in one.parts for held in part.channels.values()),
            system=system if isinstance(run.verdict, Violated) else None,
        )
