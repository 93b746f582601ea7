"""The stage of a template: everything of a scenario but its faults, commands and perturbations."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...faults.plan import AnyFault
from ...properties.model.workload import Map, Topology, Workload
from ..scenario.forecast import Forecast, forecast
from ..scenario.model import AnyCommand, Engine, Perturbation, Scenario
from ..subject.abilities import EDGES, drawable, operators_of
from ..subject.port import Capabilities
from .choices import Choices
from .engines import Tuning, draw_committing, draw_engine, paced, with_enough_time
from .workloads.draw_workloads import Recipe, draw_topology, draw_workload, modest
from .workloads.enumerated import enumerated
from .workloads.fitting import fitted

ALL_GUARANTEES = frozenset({"exactly-once", "at-least-once", "at-most-once"})
ALL_SINKS = frozenset({"transactional", "idempotent", "plain"})
ALL_COMMITTING = frozenset({"writer", "committer", "global"})


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of every template: sizes, the given workload if there is one, and the subject's capabilities."""

    max_records: int = 120
    max_faults: int = 4
    workload: Workload | None = None
    topology: Topology | None = None
    capabilities: Capabilities | None = None
    lead: tuple[str, ...] | None = None
    """in real time, the kinds of fault of this scenario (`real_time`); None: any"""
    group_number: int | None = None
    """in the template `cells`, the number of its group of targets (`target_rounds`); None: it is drawn"""

    @property
    def real_time(self) -> bool:
        return self.capabilities is not None and self.capabilities.real_time

    def recipe(self, **wishes: object) -> Recipe:
        recipe = msgspec.structs.replace(Recipe(operators=self.operators, edges=self.edges), **wishes)
        if self.sinks == {"idempotent"} and self.workload is None:  # whatever a template would have
            recipe = msgspec.structs.replace(recipe, idempotent=True)
        recipe = msgspec.structs.replace(recipe, most_records=max(2, min(recipe.most_records, self.max_records)))
        return modest(recipe) if self.real_time else recipe

    @property
    def operators(self) -> frozenset[str] | None:
        """The operators that can be drawn; None: all."""
        return drawable(self.capabilities) if self.capabilities else None

    @property
    def edges(self) -> frozenset[str]:
        return self.capabilities.edges if self.capabilities else frozenset(EDGES)

    def fitted(self, engine: Engine) -> Engine:
        """The engine with settings that the subject knows, before faults are drawn for its tasks."""
        return fitted(engine, self.capabilities) if self.capabilities else engine

    @property
    def knows_idle_splits(self) -> bool:
        return self.capabilities is None or "idle" in self.capabilities.sources

    @property
    def knows_forgetful_inputs(self) -> bool:
        return self.capabilities is None or "not-rewindable" in self.capabilities.sources

    @property
    def knows_rescaling(self) -> bool:
        return self.capabilities is None or self.capabilities.rescales

    @property
    def resumes_older(self) -> bool:
        return self.capabilities is None or self.capabilities.resumes_older

    @property
    def knows_claims(self) -> bool:
        return self.capabilities is None or self.capabilities.claims_snapshots

    @property
    def knows_upgrades(self) -> bool:
        return self.capabilities is None or self.capabilities.upgrades

    @property
    def knows_other_operators(self) -> bool:
        known = self.capabilities is None or self.capabilities.changes_operators
        return self.knows_upgrades and known and self.workload is None

    @property
    def takes_sums(self) -> bool:
        """Whether a sum may stand in the place of another operator."""
        known = self.capabilities is None or "sum" in operators_of(self.capabilities)
        return self.workload is None and known

    @property
    def knows_file_faults(self) -> bool:
        return self.capabilities is None or self.capabilities.file_faults

    @property
    def trims_logs(self) -> bool:
        return self.capabilities is None or self.capabilities.trims_logs

    @property
    def knows_forks(self) -> bool:
        return self.capabilities is None or "fork" in self.capabilities.commands

    @property
    def knows_deletions(self) -> bool:
        return self.capabilities is None or "delete-snapshot" in self.capabilities.commands

    @property
    def knows_copies(self) -> bool:
        return self.capabilities is None or {"copy-snapshot", "move-snapshot"} <= self.capabilities.commands

    @property
    def knows_formats(self) -> bool:
        return self.capabilities is None or len(self.capabilities.snapshot_formats) > 1

    @property
    def knows_enumerators(self) -> bool:
        return self.capabilities is None or self.capabilities.enumerators

    @property
    def knows_state_in_files(self) -> bool:
        return self.capabilities is None or "lsm" in self.capabilities.state_backends

    @property
    def knows_two_phase(self) -> bool:
        return self.capabilities is None or self.capabilities.two_phase

    @property
    def guarantees(self) -> frozenset[str]:
        return self.capabilities.guarantees if self.capabilities else ALL_GUARANTEES

    @property
    def committing(self) -> frozenset[str]:
        return self.capabilities.committing if self.capabilities else ALL_COMMITTING

    @property
    def sinks(self) -> frozenset[str]:
        """The sinks that can be drawn.  With a given workload the idempotent sink is left out, unless the subject has
        no other: the workload may have more than one right last row for a key."""
        sinks = self.capabilities.sinks if self.capabilities else ALL_SINKS
        return sinks - {"idempotent"} or sinks if self.workload else sinks


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a scenario but its faults, commands and perturbations."""

    workload: Workload
    topology: Topology
    engine: Engine
    target: Forecast

    def scenario(
        self,
        name: str,
        *,
        faults: tuple[AnyFault, ...] = (),
        commands: tuple[AnyCommand, ...] = (),
        deviations: tuple[Perturbation, ...] = (),
    ) -> Scenario:
        return Scenario(
            name=name,
            workload=self.workload,
            topology=self.topology,
            engine=self.engine,
            faults=faults,
            commands=commands,
            deviations=deviations,
        )


Own = tuple[Workload, Topology | None]
"""the workload and the layout that a template has drawn itself"""


def stage_of(
    choices: Choices, frame: Frame, recipe: Recipe, tuning: Tuning, own: Own | None = None, /, **settings: object
) -> Stage:
    """A stage drawn by a recipe.  The `settings` of the engine are fixed.

    A given workload is used instead of the template's own, and is not changed.
    """
    is_given = frame.workload is not None
    drawn_workload, laid_out = own or (None, None)
    workload = frame.workload or drawn_workload or draw_workload(choices, recipe)
    topology = frame.topology or laid_out or draw_topology(choices, workload, recipe)
    drawn = frame.fitted(draw_engine(choices, workload, topology, tuning))
    committing = draw_committing(choices, drawn, frame.committing)
    pooled = drawn.sink == "transactional" and committing == "writer" and choices.percent(25)
    drawn = msgspec.structs.replace(drawn, committing=committing, pooled_ids=pooled)
    drawn = paced(drawn, workload, topology) if frame.real_time else drawn
    engine = frame.fitted(msgspec.structs.replace(drawn, **settings))
    if "failover" not in settings and has_regions(topology) and choices.percent(50):
        engine = msgspec.structs.replace(engine, failover="region")
    if not is_given and frame.knows_two_phase and choices.percent(recipe.two_phase_percent):
        workload, engine = committing_amid(workload, engine)
    target = with_enough_time(forecast(workload, topology, engine))
    if not is_given and frame.knows_enumerators and choices.percent(recipe.enumerated_percent):
        workload = enumerated(choices, workload, target)
    return Stage(workload=workload, topology=topology, engine=target.engine, target=target)


def committing_amid(workload: Workload, engine: Engine) -> tuple[Workload, Engine]:
    """The job with its maps as two-phase operators, like the chain of three in FLIP-147.

    Only an exactly-once job whose transactional sink commits by itself is changed; its maps then change no row.
    """
    maps = tuple(node.name for node in workload.nodes if isinstance(node.operator, Map))
    if engine.sink != "transactional" or engine.committing != "writer" or engine.guarantee != "exactly-once":
        return workload, engine
    nodes = tuple(
        msgspec.structs.replace(node, operator=Map()) if node.name in maps else node for node in workload.nodes
    )
    return msgspec.structs.replace(workload, nodes=nodes), msgspec.structs.replace(engine, two_phase=maps)


def has_regions(topology: Topology) -> bool:
    """Whether the job has several regions: any edge but a forward one joins all subtasks into one."""
    several = any(number > 1 for number in topology.parallelism.values())
    return several and all(edge.partitioning == "forward" for edge in topology.edges)


Template = Callable[[Choices, Frame], Scenario]
