"""Hypothesis strategies for scenarios and their parts.

A scenario is drawn as one serialisable value, and no draw depends on what the
system under test did.  `scenarios` is what tests use; `Drawing` draws scenario
i of a seed for a search, from bytes, through the same builders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ...faults.plan import AnyFault
from ...properties.model.workload import Topology, Workload
from ..runtime.exit_codes import HarnessFailed
from ..scenario.forecast import forecast
from ..scenario.model import Engine, Scenario
from ..subject.abilities import demand, usable
from ..subject.needs import demand_given, lacks
from ..subject.port import Capabilities
from .admission import admitted
from .choices import Choices, FromBytes, built
from .copies import with_copies
from .coverage.target_rounds import aims_at_snapshots, number_of_group
from .coverage.target_scenarios import TARGETS
from .deletions import with_deletions
from .determined_distribution import made_distinct
from .engines import Tuning, draw_engine, with_local_channels, without_late_checkpoints
from .faults.few_tolerated import with_few_tolerated
from .faults.file_faults import with_file_faults
from .faults.stop_hits import with_hits
from .faults.stragglers import with_stragglers
from .forking import with_claims, with_forks, with_older_snapshots
from .formats import with_formats
from .other_operators import with_other_operators
from .plain import plain
from .real_time import draw_scenario, eased, lead_of, leads_of
from .situations import extras
from .situations.hunted import HUNTED
from .situations.rescaling import with_rescaling
from .situations.templates import FAULTLESS, SHARES, TEMPLATES
from .stage import Frame, Template
from .state_backends import with_state_in_files
from .upgrading import with_upgrades
from .workloads.draw_workloads import Recipe, draw_topology, draw_workload
from .workloads.fitting import fit
from .workloads.forgetful import with_forgetful_inputs

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Drawing", "engines", "faults", "laid_out_workloads", "scenario_of", "scenarios", "topologies", "workloads"]


def workloads(*, max_records: int = 120, max_operators: int = 3) -> SearchStrategy[Workload]:
    """Workloads of up to so many records and operators; most have one right answer under every schedule (the judge's
    classes M and S)."""
    recipe = Recipe(most_records=max_records, most_operators=max_operators)
    return built(lambda choices: draw_workload(choices, recipe))


def topologies(workload: Workload) -> SearchStrategy[Topology]:
    """Layouts of a workload: parallelism from 1 to 3, and forward, hash and rebalance edges."""
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
    """Faults of every kind, placed so that they mostly fire while records flow."""
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
    """Whole scenarios that a subject can run, with the given workload if there is one."""
    frame = Frame(
        max_records=max_records,
        max_faults=max_faults,
        workload=workload,
        topology=topology,
        capabilities=capabilities,
    )
    checked = _checked(frame)
    table = _left(templates, checked)
    return built(lambda choices: _scenario(choices, checked, table))


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """How a search draws: the strategy's arguments as one value that can be sent to other processes."""

    max_records: int = 120
    max_faults: int = 4
    templates: tuple[str, ...] = tuple(SHARES)
    """each is drawn as often as its share says; a template that is listed twice, twice as often"""
    workload: Workload | None = None
    topology: Topology | None = None
    capabilities: Capabilities | None = None


class scenario_of:
    """Scenario i of a seed: a function of (drawing, seed, i) alone, independent of budget, order and process."""

    def __init__(self, drawing: Drawing) -> None:
        self._frame = _checked(
            Frame(
                max_records=drawing.max_records,
                max_faults=drawing.max_faults,
                workload=drawing.workload,
                topology=drawing.topology,
                capabilities=drawing.capabilities,
            )
        )
        real_time = self._frame.real_time
        self._leads = leads_of(drawing.capabilities) if drawing.capabilities and real_time else ()
        table = _left(drawing.templates, self._frame)
        self._shares = (0 if real_time else table.count(TEMPLATES[TARGETS]), len(table))
        others = tuple(name for name in drawing.templates if name != TARGETS)
        self._free = _left(drawing.templates if real_time or not others else others, self._frame)
        self._on_targets = _left((TARGETS,), self._frame)

    @property
    def frame(self) -> Frame:
        """The bounds in which it draws."""
        return self._frame

    def __call__(self, seed: int, index: int) -> Scenario:
        return self.aimed(seed, index, self.group_number(seed, index))

    def group_number(self, seed: int, index: int) -> int | None:
        """The number of the group of coverage targets at which scenario `index` aims; None if it aims at none."""
        return number_of_group(self._frame, seed, index, *self._shares)

    def aimed(self, seed: int, index: int, group_number: int | None) -> Scenario:
        """Scenario `index`, aimed at that group instead of its own."""
        lead = lead_of(index, self._leads) if self._frame.real_time else None
        frame = msgspec.structs.replace(self._frame, lead=lead, group_number=group_number)
        table = self._free if group_number is None else self._on_targets
        choices = FromBytes(hashlib.shake_256(f"cutproof {seed} {index}".encode()).digest(_BYTES))
        return msgspec.structs.replace(_scenario(choices, frame, table), seed=f"{seed} {index}")


SUBJECT = "the subject"
_BYTES = 4096
"""many times the number of bytes that the draws of a scenario consume"""


TRIES = 4
"""how often a scenario is drawn until it is one that the subject can run"""


def _checked(frame: Frame) -> Frame:
    """The frame; raises UsageError, in one line, if nothing can be drawn in it."""
    if frame.capabilities is not None:
        demand(frame.capabilities, SUBJECT)
        if frame.workload is not None:
            demand_given(frame.workload, frame.topology, frame.capabilities, SUBJECT)
        return msgspec.structs.replace(frame, capabilities=usable(frame.capabilities))
    return frame


def _table(templates: Iterable[str]) -> list[Template]:
    """The templates, each as often as its share says; raises ValueError for an unknown name, or for no name."""
    names = tuple(templates)
    known = TEMPLATES | HUNTED
    unknown = sorted(set(names) - set(known))
    if unknown or not names:
        raise ValueError(f"no such template: {', '.join(unknown) or '(none given)'}")
    return [known[name] for name in names for _ in range(SHARES.get(name, 1))]


def _left(templates: Iterable[str], frame: Frame) -> list[Template]:
    """The table of the templates that are drawn for the frame's subject."""
    names = tuple(templates)
    _table(names)
    return _table(admitted(names, frame.capabilities, given=frame.workload is not None))


def _scenario(choices: Choices, frame: Frame, table: list[Template]) -> Scenario:
    """A scenario of one of these templates that needs only what the subject has declared; if one needs more, another
    is drawn."""

    def by_template(choices: Choices, frame: Frame) -> Scenario:
        return draw_scenario(choices, frame, table) if frame.real_time else choices.pick(table)(choices, frame)

    missing: tuple[str, ...] = ()
    for draw in (*[by_template] * TRIES, plain):
        scenario = _drawn(choices, frame, draw)
        missing = lacks(scenario, frame.capabilities) if frame.capabilities is not None else ()
        if not missing:
            return scenario
    raise HarnessFailed(f"the subject can run no scenario: even the simplest needs {', '.join(missing)}")


def _drawn(choices: Choices, frame: Frame, template: Template) -> Scenario:
    scenario = _fit(template(choices, frame), frame)  # the following draws depend on what is left
    if frame.topology is None:
        scenario = made_distinct(choices, scenario)
    if frame.knows_rescaling and not aims_at_snapshots(frame):
        scenario = with_rescaling(choices, scenario)
    if frame.group_number is None:
        scenario = without_late_checkpoints(choices, scenario)
    if frame.group_number is None and not frame.real_time:
        scenario = with_local_channels(choices, scenario)
    if frame.knows_formats and not aims_at_snapshots(frame):
        scenario = with_formats(choices.apart("formats"), scenario)
    if frame.group_number is None and frame.knows_upgrades:
        scenario = with_upgrades(choices.apart("upgrades"), scenario, takes_sums=frame.takes_sums)
    if frame.group_number is None and frame.knows_other_operators:
        scenario = with_other_operators(choices.apart("other operators"), scenario)
    if frame.group_number is None and scenario.name != FAULTLESS:
        scenario = with_hits(choices, scenario, frame.max_faults, real_time=frame.real_time)
    if frame.real_time:
        scenario = eased(choices, scenario)
    if frame.group_number is None:
        most = frame.max_faults if scenario.name != FAULTLESS else 0
        scenario = with_stragglers(choices, scenario, most, real_time=frame.real_time)
        scenario = with_older_snapshots(choices, scenario) if frame.resumes_older else scenario
        scenario = with_claims(choices.apart("claims"), scenario) if frame.knows_claims else scenario
        scenario = with_forks(choices, scenario) if frame.knows_forks else scenario
        scenario = with_few_tolerated(choices, scenario, most, real_time=frame.real_time)
        scenario = with_deletions(choices, scenario, most) if frame.knows_deletions else scenario
        if frame.knows_copies:
            apart = choices.apart("copied snapshots")
            scenario = with_copies(apart, scenario, most, file_faults=frame.knows_file_faults)
        if frame.knows_file_faults:
            apart = choices.apart("file faults")
            scenario = with_file_faults(apart, scenario, most, real_time=frame.real_time)
        scenario = with_state_in_files(choices, scenario, most) if frame.knows_state_in_files else scenario
    if frame.knows_forgetful_inputs and frame.workload is None:
        scenario = with_forgetful_inputs(choices, scenario)
    return _fit(scenario, frame)


def _fit(scenario: Scenario, frame: Frame) -> Scenario:
    if frame.capabilities is None:
        return scenario
    return fit(scenario, frame.capabilities, given=frame.workload is not None)
