"""Jobs that are forked to another state backend than the one with which the snapshot was taken."""

from __future__ import annotations

import msgspec

from ...properties.model.history import Forked
from ...reference_impl.core.decisions.parts import Parts
from ..scenario.model import Scenario
from .subjects.forks import Forks
from .subjects.simulated import Run
from .subjects.translation import config, lateness_us, settings


def forked_to(backend: str, scenario: Scenario) -> list[Forked]:
    """Run a scenario in virtual time; the jobs that its forks begin have this backend, with a small memtable."""
    run, parts = Run(scenario, Parts(), False), Parts()
    other = msgspec.structs.replace(config(scenario.engine, lateness_us(scenario)), state_backend=backend)
    run.forks = Forks(scenario, parts, other, settings(scenario))
    forks = run.history().forks
    run.let_go()
    return [] if isinstance(forks, msgspec.UnsetType) else forks
