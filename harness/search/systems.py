"""Companion runs of systems of processes: general snapshots on drawn graphs (CL-1, CL-3).

A search runs one for every `EVERY` scenarios.  Like scenario i, system n of a seed is the same whatever the budget, the
order of the work or the number of workers.  Only causality judges it: there is no row that PySpark could expect.
"""

from __future__ import annotations

from ...properties.model.verdict import Violated
from ..generate.systems import system_of
from ..reference_engine.graphs.run import run_and_judge
from .kind import Drawn, Ran
from .outcome import SystemOutcome

EVERY = 20
"""how many scenarios there are for one system: a system costs a tenth of a scenario"""


class CompanionSystems:
    """The systems of a seed, drawn and run by their numbers."""

    name = SystemOutcome.kind

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draw = system_of()

    def number_at(self, index: int) -> int | None:
        return None if index % EVERY else index // EVERY

    def run(self, number: int, _: Drawn) -> Ran:
        return Ran(outcome=self.judged(number))

    def judged(self, number: int) -> SystemOutcome:
        """Draw system `number`, run it and judge it; raises what the machine raises."""
        system = self._draw(self._seed, number)
        run = run_and_judge(system)
        complete = [one for one in run.history.snapshots if one.complete_us is not None]
        return SystemOutcome(
            index=number * EVERY,
            number=number,
            verdicts={SystemOutcome.invariant: run.verdict},
            snapshots=len(complete),
            under_way=sum(len(held) for one in complete for part in one.parts for held in part.channels.values()),
            system=system if isinstance(run.verdict, Violated) else None,
        )
