"""`night.py BANK MASTER`: a night on a cluster that tests two subjects, the second with a defect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import msgspec

from cutproof.harness.chaos import subject_night
from cutproof.harness.chaos.job import ChaosRequest, run_night
from cutproof.harness.reference_engine.subjects.simulated import Run, SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.history import History
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.defects import DEFECTS

SEED = 7
"""its batches leave out nothing that the defect needs"""
SCENARIOS = 80
"""of each subject"""
CHUNK = 20
"""scenarios of a task: two are a job, if there are two cores"""


class Planted(SimulatedSubject):
    """A user's own subject: the reference engine with a defect."""

    planted: ClassVar[str] = "I06"

    @property
    def name(self) -> str:
        return "planted"

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        return Run(scenario, Parts(**DEFECTS[self.planted].replacements()), timeline).history()


SUBJECTS = ("simulated", "night:Planted")


def request(bank: Path, master: str | None = None) -> ChaosRequest:
    return ChaosRequest(
        bank=bank, seconds=3_600.0, subjects=SUBJECTS, seed=SEED, profile="smoke", scenarios=SCENARIOS, master=master
    )


if __name__ == "__main__":
    subject_night.CHUNK_OF_A_TASK = CHUNK
    done = run_night(request(Path(sys.argv[1]), sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(done.summary))
    sys.exit(done.exit_code)
