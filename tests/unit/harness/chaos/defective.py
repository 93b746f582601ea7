"""The reference engine with several planted defects at once, as a subject that a night names."""

from __future__ import annotations

from typing import ClassVar

from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.history import History
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import DEFECTS


class Defective(SimulatedSubject):
    planted: ClassVar[tuple[str, ...]] = ()
    """the defects; no two of them replace the same part"""

    @property
    def name(self) -> str:
        return "defective"

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        parts = {name: part for one in self.planted for name, part in DEFECTS[one].replacements().items()}
        return Run(scenario, Parts(**parts), timeline).history()


DEFECTIVE = f"{__name__}:{Defective.__name__}"
