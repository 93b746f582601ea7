"""Hypothesis strategies for scenarios and their parts.

A scenario is drawn as one serialisable value, and no draw depends on what the
system under test did.  `scenarios` is what tests use; `Drawing` draws scenario
i of a seed for a search, through the same strategy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ...faults.plan import AnyFault
from ...properties.workload import Topology, Workload
from ..forecast import forecast
from ..scenario import Engine, Scenario
from ..subject import Capabilities
from . import extras
from .choices import Choices, built
from .engines import Tuning, draw_engine
from .fitting import fit
from .real_time import Lead, draw_scenario, eased, lead_of, leads_of
from .rescaling import laid_out_anew
from .stage import Frame
from .templates import SHARES, TEMPLATES
from .workloads import Recipe, draw_topology, draw_workload

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Drawing", "engines", "faults", "laid_out_workloads", "scenario_of", "scenarios", "topologies", "workloads"]


def workloads(*, max_records: int = 120, max_operators: int = 3) -> SearchStrategy[Workload]:
    """Workloads with one right answer under every schedule (classes M and S of the judge)."""
    recipe = Recipe(most_records=max_records, most_operators=max_operators)
    return built(lambda choices: draw_workload(choices, recipe))


def topologies(workload: Workload) -> SearchStrategy[Topology]:
    """Layouts of a workload: parallelism 1 to 3, forward, hash and rebalance edges."""
    return built(lambda choices: draw_topology(choices, workload, Recipe()))


def laid_out_workloads(*, max_records: int = 120) -> SearchStrategy[tuple[Workload, Topology]]:
    recipe = Recipe(most_records=max_records)

    def build(choices: Choices) -> tuple[Workload, Topology]:
        workload = draw_workload(choices, recipe)
        return workload, draw_topology(choices, workload, recipe)

    return built(build)


def engines(workload: Workload, topology: Topology) -> SearchStrategy[Engine]:
    """Engine configurations in which a run of the workload sees several checkpoints."""
    return built(lambda choices: draw_engine(choices, workload, topology, Tuning()))


def faults(
    workload: Workload, topology: Topology, engine: Engine, *, max_faults: int = 4
) -> SearchStrategy[tuple[AnyFault, ...]]:
    """Faults of every kind, aimed so that they mostly fire while records flow."""
    target = forecast(workload, topology, engine)
    return built(lambda choices: extras.mixed_faults(choices, target, max_faults))


def scenarios(
    *,
    max_records: int = 120,
    max_faults: int = 4,
    templates: Iterable[str] = tuple(SHARES),
    workload: Workload | None = None,
    topology: Topology | None = None,
    capabilities: Capabilities | None = None,
) -> SearchStrategy[Scenario]:
    """Whole scenarios; of a given workload when there is one, within what a subject can do."""
    frame = Frame(
        max_records=max_records,
        max_faults=max_faults,
        workload=workload,
        topology=topology,
        capabilities=capabilities,
    )
    return _scenarios(frame, tuple(templates), seeded=False)


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """How a search draws: the strategy's arguments as one value that other processes can be given."""

    max_records: int = 120
    max_faults: int = 4
    templates: tuple[str, ...] = tuple(SHARES)
    """each drawn as often as its share says; one that stands here twice, twice as often"""
    workload: Workload | None = None
    topology: Topology | None = None
    capabilities: Capabilities | None = None


class scenario_of:
    """Scenario i of a seed: a function of (drawing, seed, i) alone, whatever the budget, order or core."""

    def __init__(self, drawing: Drawing) -> None:
        self._frame = Frame(
            max_records=drawing.max_records,
            max_faults=drawing.max_faults,
            workload=drawing.workload,
            topology=drawing.topology,
            capabilities=drawing.capabilities,
        )
        self._templates = drawing.templates
        self._leads = leads_of(drawing.capabilities) if drawing.capabilities and self._frame.real_time else ()
        self._drawn: list[Scenario] = []
        self._fuzz: dict[Lead | None, Callable[[bytes], object]] = {}
        self._fuzz_of(self._lead(0))

    def __call__(self, seed: int, index: int) -> Scenario:
        draw = self._fuzz_of(self._lead(index))
        draw(hashlib.shake_256(f"cutproof {seed} {index}".encode()).digest(_BYTES))
        return msgspec.structs.replace(self._drawn.pop(), seed=f"{seed} {index}")

    def _lead(self, index: int) -> Lead | None:
        return lead_of(index, self._leads) if self._frame.real_time else None

    def _fuzz_of(self, lead: Lead | None) -> Callable[[bytes], object]:
        """The strategy for a lead, as a function of bytes; made when it is first needed."""
        if lead not in self._fuzz:
            from hypothesis import HealthCheck, given, settings

            frame = msgspec.structs.replace(self._frame, lead=lead)

            @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
            @given(_scenarios(frame, self._templates, seeded=True))
            def catch(scenario: Scenario) -> None:
                self._drawn.append(scenario)

            self._fuzz[lead] = catch.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
        return self._fuzz[lead]


_BYTES = 4096
"""Many times what a scenario's draws consume, so that none runs short."""


def _scenarios(frame: Frame, templates: tuple[str, ...], *, seeded: bool) -> SearchStrategy[Scenario]:
    unknown = sorted(set(templates) - set(TEMPLATES))
    if unknown or not templates:
        raise ValueError(f"no such template: {', '.join(unknown) or '(none given)'}")
    table = [TEMPLATES[name] for name in templates for _ in range(SHARES[name])]

    def build(choices: Choices) -> Scenario:
        if frame.real_time:
            scenario = eased(choices, draw_scenario(choices, frame, table))
        else:
            scenario = choices.pick(table)(choices, frame)
        scenario = laid_out_anew(choices, scenario)
        return fit(scenario, frame.capabilities) if frame.capabilities else scenario

    return built(build, seeded=seeded)
