"""The jobs that are forked from a simulated run, and the history of each.

The stores are copied when a fork is requested.  The forked jobs run once the run itself is over: with copies they share
nothing with it.  A fork by reference shares files, of which the run has let go by then what it does not need.
"""

from __future__ import annotations

from functools import partial

import msgspec

from ....faults.plan import kind_of as fault_kind
from ....properties.model import history as h
from ....properties.reconstruct.layouts import rescaled
from ....reference_impl import observed as o
from ....reference_impl.core.decisions.parts import Parts
from ....reference_impl.core.extensions.sinks.direct_sink import Identity
from ....reference_impl.core.job.config import Config
from ....reference_impl.core.protocol.barrier_alignment import OnTransition
from ....reference_impl.core.vocabulary.events import CommandKind, files_of
from ....reference_impl.driver.perturbations import Perturbations
from ....reference_impl.driver.settings import Settings
from ....reference_impl.simulated.forking import Copied
from ....reference_impl.simulated.world import World
from ...scenario.layout import topologies_of
from ...scenario.model import Fork, Scenario
from ...scenario.snapshots import named
from ...scenario.upgrades import absent_of, types_of, uids_of
from .cutting import answers, kept_as_copy, up_to, written_before
from .recorder import Recorder
from .residue import residue_of
from .translation import dated_inputs, identity, job_graph, logs, retyped, without_nodes


class Begun(msgspec.Struct, frozen=True):
    """A fork that was requested: what it begins with."""

    command: int
    stores: Copied
    retained: tuple[int, ...]
    history: h.History
    """up to the snapshot"""
    order: int
    from_copy: bool = False
    """the snapshot is a copy that a user has"""


class Forks:
    """The forks of one run."""

    def __init__(
        self,
        scenario: Scenario,
        parts: Parts,
        config: Config,
        settings: Settings,
        on_transition: OnTransition | None = None,
    ) -> None:
        """Raises InvalidGraph if a fork requests an impossible parallelism."""
        self._scenario = scenario
        self._parts = parts
        self._config = config
        self._settings = settings
        self._on_transition = on_transition
        self._begun: list[Begun] = []
        self._forgets = scenario.engine.trims_logs or not all(one.rewindable for one in scenario.workload.inputs)
        """sources cannot read again what no retained snapshot needs"""
        self._graphs = {
            (number, job): retyped(
                without_nodes(
                    job_graph(scenario.workload, rescaled(topology, command.parallelism), scenario.engine), absent
                ).upgraded(uids),
                types,
            )
            for number, command in enumerate(scenario.commands)
            if isinstance(command, Fork)
            for job, (topology, uids, types, absent) in enumerate(
                zip(topologies_of(scenario), uids_of(scenario), types_of(scenario), absent_of(scenario), strict=True),
                1,
            )
        }
        """by command, and by the job that took the snapshot"""

    def begin(self, number: int, command: Fork, world: World, recorder: Recorder) -> bool:
        """Copy the stores for each snapshot that the command names, and for each copy that a user has if it names all;
        whether there is one."""
        written, before = partial(written_before, recorder.history), len(self._begun)
        copies = world.copies(written)
        retained = tuple(int(one.snapshot.checkpoint) for one in copies)
        wanted = named(command.snapshot, retained, self._scenario, answers(recorder.history))
        for one in copies:
            if one.snapshot.checkpoint in wanted:
                history = up_to(recorder.history, one.snapshot.checkpoint)
                stores = _referring(one, world) if command.by_reference else one
                self._begun.append(Begun(number, stores, retained, history, recorder.latest))
        if command.snapshot == "each" and not command.by_reference:
            for one in world.copies_for_users(written, forgets=self._forgets):
                checkpoint = one.snapshot.checkpoint
                history = kept_as_copy(up_to(recorder.history, checkpoint), checkpoint)
                self._begun.append(Begun(number, one, retained, history, recorder.latest, from_copy=True))
        return len(self._begun) > before

    def run(self) -> list[h.Forked]:
        """Run each forked job to its end."""
        return [
            h.Forked(
                command=one.command,
                at_us=one.stores.at_us,
                checkpoint=int(one.stores.snapshot.checkpoint),
                retained=list(one.retained),
                history=self._run(one),
                from_copy=one.from_copy,
            )
            for one in self._begun
        ]

    def _run(self, begun: Begun) -> h.History:
        scenario, history, stores = self._scenario, begun.history, begun.stores
        command = scenario.commands[begun.command]
        assert isinstance(command, Fork)
        kinds = [fault_kind(fault) for fault in scenario.faults]
        recorder = Recorder(history, kinds, lambda: world.loop.now, False, dated_inputs(scenario.workload), begun.order)
        world = World(
            [self._graphs[begun.command, stores.snapshot.job]],
            self._config,
            self._settings,
            logs(scenario.workload),
            observer=recorder,
            perturbations=Perturbations(()),
            parts=self._parts,
            identity=None if scenario.engine.sink == "plain" else Identity(identity(scenario.workload)),
            begins_from=stores,
            on_transition=self._on_transition,
        )
        checkpoint = stores.snapshot.checkpoint
        claimed, parallelism = True if command.by_reference else None, dict(command.parallelism)
        recorder.saw(
            o.CommandIssued(begun.command, CommandKind.RESUME, False, parallelism, snapshot=checkpoint, claimed=claimed)
        )
        recorder.saw(o.command_returned(begun.command, checkpoint, None))
        world.fork(stores)
        history.quiet = world.quiet
        history.committed = list(world.external.rows())
        history.residue = residue_of(world)
        world.let_go()
        return history


def _referring(copied: Copied, world: World) -> Copied:
    """Stores with references to the files that the snapshots need, in place of copies."""
    sharing = world.sharing()
    return msgspec.structs.replace(
        copied,
        files=sharing.begin(files_of(copied.retained)),
        sharing=sharing,
        claims={**copied.claims, copied.snapshot.checkpoint: True},
    )
