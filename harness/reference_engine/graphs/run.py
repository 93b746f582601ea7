"""Run a system of processes and channels, and judge its snapshots by causality."""

from __future__ import annotations

import msgspec

from ....properties.graphs.causality import Event, GraphHistory, Part, Taken, check
from ....properties.model.verdict import Verdict, in_a_word
from ....reference_impl.core.protocol.chandy_lamport import Contribution
from ....reference_impl.simulated.graphs.plan import System
from ....reference_impl.simulated.graphs.world import GraphWorld
from ...scenario.files import digest


class SystemRun(msgspec.Struct, frozen=True, kw_only=True):
    """The history of a run, and its verdict."""

    history: GraphHistory
    verdict: Verdict

    @property
    def outcome(self) -> str:
        """violated, held or unknown, as for a scenario"""
        return in_a_word((self.verdict,))

    @property
    def trace_sha256(self) -> str:
        """The digest of the history."""
        return digest(self.history)


def run_and_judge(system: System) -> SystemRun:
    """Run a system and judge it by causality; raises EngineError if it cannot run."""
    history = run(system)
    return SystemRun(history=history, verdict=check(history))


def run(system: System) -> GraphHistory:
    """The history of a system; raises EngineError if it cannot run."""
    outcome = GraphWorld(system).run()
    return GraphHistory(
        processes=system.processes,
        events=tuple(
            Event(process=one.process, kind=one.kind, label=one.label, at_us=one.at_us, channel=one.channel,
                  message=one.message)
            for one in outcome.events
        ),
        snapshots=tuple(
            Taken(name=one.name, begun_us=one.begun_us, complete_us=one.complete_us, parts=tuple(map(_part, one.parts)))
            for one in outcome.snapshots
        ),
        markers=tuple(outcome.markers),
        fired=tuple(outcome.fired),
        stopped_us=outcome.stopped_us,
    )  # fmt: skip


def _part(contribution: Contribution) -> Part:
    return Part(
        process=contribution.process,
        events=contribution.state,
        channels={str(channel): messages for channel, messages in contribution.channels.items()},
    )
