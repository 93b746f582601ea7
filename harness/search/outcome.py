"""What a search keeps of its runs: verdicts and counts, small enough to be sent and stored."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from ...faults.plan import AtAim
from ...properties.invariants import seen_from_outside
from ...properties.model.history import (
    AttemptRunning,
    AttemptStarted,
    CheckpointAborted,
    CheckpointTriggered,
    CommandIssued,
    CommandReturned,
    FaultFired,
    History,
)
from ...properties.model.verdict import Verdict, Violated, in_a_word
from ...properties.spark.unasked import ASKED, Unasked
from ...reports.model import ShownRun
from ..reference_engine.graphs.system import System
from ..scenario.model import Scenario, StopWithSavepoint, kind_of
from ..scenario.promises import can_show
from .coverage import CoverageTarget, targets_hit
from .snapshot_targets import SnapshotTarget, snapshot_targets_hit
from .stops import Stop, stops_of


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the frozen, keyword-only values of an outcome."""


class Commanded(Value, frozen=True, kw_only=True):
    """One planned command, and whether it returned without an error."""

    kind: str
    finished: bool = False
    drain: bool = False


class RegionRestarted(Value, frozen=True, kw_only=True):
    """The tasks that restarted, and why: failover of their region, or local recovery."""

    failover: str
    tasks: tuple[str, ...]


class Aimed(Value, frozen=True, kw_only=True):
    """What waited for an aim, how often the aim was met meanwhile, and what began at it."""

    planned: int = 0
    met: int = 0
    fired: int = 0


class Measured(Value, frozen=True, kw_only=True):
    """The counts of a history; times in µs of the run's clock."""

    completed: int = 0
    aborted: int = 0
    recoveries: int = 0
    read: int = 0
    committed: int = 0
    fired: tuple[tuple[str, str], ...] = ()
    """(fault kind, phase) of every planned fault that fired, counted once"""
    commands: tuple[Commanded, ...] = ()
    stops: tuple[Stop, ...] = ()
    targets: tuple[CoverageTarget, ...] = msgspec.field(default=(), name="cells")  # as in files of users
    """of the coverage; one for each fault that hit a target"""
    snapshots: tuple[SnapshotTarget, ...] = ()
    """the snapshot targets that it hit"""
    unapplied: tuple[str, ...] = ()
    foreign_connections: int = 0
    restarts: tuple[RegionRestarted, ...] = ()
    """recoveries during which the other tasks went on"""
    checkpoint_durations_us: tuple[int, ...] = ()
    recovery_times_us: tuple[int, ...] = ()
    counters: dict[str, int | float | str] = {}
    """what a pipeline's own counters showed in the end, by name"""
    aims: dict[str, Aimed] = {}
    """by name: the aims of a pipeline that faults and stops waited for"""
    transitions: dict[str, int] = {}
    """by name: how often the run took each transition of the protocol's tables, if the subject counts them"""


class Outcome(Value, frozen=True, kw_only=True):
    """What every kind of outcome has."""

    kind: ClassVar[str]
    index: int
    """the number of the scenario that was run, or whose companion was"""
    verdicts: dict[str, Verdict]
    """by invariant"""

    @property
    def violations(self) -> list[tuple[str, Violated]]:
        return [(name, verdict) for name, verdict in self.verdicts.items() if isinstance(verdict, Violated)]

    @property
    def in_a_word(self) -> str:
        """held, violated or unknown; held if some invariant holds, and none is violated."""
        return in_a_word(self.verdicts.values())


class ScenarioOutcome(Outcome, frozen=True, kw_only=True, tag="scenario"):
    """One scenario, run and judged by the quick checker."""

    kind: ClassVar[str] = "scenario"
    scenario: Scenario
    can_show: frozenset[str] = frozenset()
    measured: Measured = Measured()
    not_asked: Unasked = ASKED
    """why PySpark is not asked about it; empty if it is"""
    defect_reached: bool = False
    history: History | None = None
    """kept for failures, and for all on request"""
    shown: ShownRun | None = None
    """of a pipeline's run that recovered from a fault and held: what the report may show of it"""
    draw_s: float = 0.0
    run_s: float = 0.0
    judge_s: float = 0.0


class Companion(Outcome, frozen=True, kw_only=True):
    """A companion of a scenario: it has one invariant and one judge."""

    invariant: ClassVar[str]
    number: int
    """its own number, which is in the name of its file"""

    @property
    def verdict(self) -> Verdict:
        return self.verdicts[self.invariant]


class SystemOutcome(Companion, frozen=True, kw_only=True, tag="system"):
    """One system of processes; causality is its judge."""

    kind: ClassVar[str] = "system"
    invariant: ClassVar[str] = "consistent-cut"
    snapshots: int = 0
    """snapshots that completed"""
    under_way: int = 0
    """messages that these snapshots have in channels"""
    system: System | None = None
    """kept if it is violated"""


class BatchOutcome(Companion, frozen=True, kw_only=True, tag="batch"):
    """One job as a stream and as a batch; the comparison of the two is its judge."""

    kind: ClassVar[str] = "batch"
    invariant: ClassVar[str] = "exactly-once"
    scenario: Scenario | None = None
    """kept if the two differ"""


AnyOutcome = ScenarioOutcome | SystemOutcome | BatchOutcome
RUN_KINDS = (SystemOutcome.kind, BatchOutcome.kind, ScenarioOutcome.kind)
"""in the order in which their findings are reported"""


def outcome_of(
    index: int,
    scenario: Scenario,
    history: History,
    verdicts: dict[str, Verdict],
    *,
    not_asked: Unasked = ASKED,
    keep_history: bool = False,
    seconds: tuple[float, float, float] = (0.0, 0.0, 0.0),
    transitions: dict[str, int] | None = None,
) -> ScenarioOutcome:
    """`seconds` are those that drawing, running and judging took.  `transitions`: how often each was taken."""
    failed = any(isinstance(verdict, Violated) for verdict in verdicts.values())
    draw_s, run_s, judge_s = seconds
    return ScenarioOutcome(
        index=index,
        scenario=scenario,
        verdicts=verdicts,
        can_show=can_show(scenario),
        measured=replace(measure(scenario, history), transitions=transitions or {}),
        not_asked=not_asked,
        defect_reached=history.defect_reached,
        history=history if keep_history or failed else None,
        draw_s=draw_s,
        run_s=run_s,
        judge_s=judge_s,
    )


def measure(scenario: Scenario, history: History) -> Measured:
    fired: dict[int, tuple[str, str]] = {}
    returned: set[int] = set()
    triggered_at: dict[int, int] = {}
    started: dict[int, AttemptStarted] = {}
    recovered: list[tuple[AttemptRunning, AttemptStarted | None]] = []
    aborted = 0
    for entry in history.journal:
        match entry:
            case FaultFired():
                fired.setdefault(entry.fault, (entry.kind, entry.phase))
            case CommandReturned(error=""):
                returned.add(entry.command)
            case CheckpointTriggered():
                triggered_at[entry.checkpoint] = entry.at_us
            case CheckpointAborted():
                aborted += 1
            case AttemptStarted():
                started[entry.attempt] = entry
            case AttemptRunning() if started and entry.attempt != min(started):
                recovered.append((entry, started.get(entry.attempt)))
            case _:
                pass
    return Measured(
        completed=len(history.completed),
        aborted=aborted,
        recoveries=seen_from_outside.recoveries(history) if history.lacks(("tasks",)) else len(recovered),
        read=sum(len(run.reads) for run in history.runs),
        committed=len(history.committed),
        fired=tuple(fired.values()),
        commands=tuple(
            Commanded(
                kind=kind_of(command),
                finished=number in returned,
                drain=isinstance(command, StopWithSavepoint) and command.drain,
            )
            for number, command in enumerate(scenario.commands)
        ),
        stops=stops_of(scenario, history),
        targets=targets_hit(scenario, history),
        snapshots=snapshot_targets_hit(scenario, history),
        unapplied=tuple(history.unapplied),
        foreign_connections=history.foreign_connections,
        restarts=tuple(
            RegionRestarted(failover="local" if began.in_place else "region", tasks=tuple(began.tasks))
            for _, began in recovered
            if began is not None and began.tasks
        ),
        checkpoint_durations_us=tuple(
            done.at_us - triggered_at[done.checkpoint] for done in history.completed if done.checkpoint in triggered_at
        ),
        counters={}
        if not isinstance(history.counters, dict)
        else {name: taken[-1].value for name, taken in history.counters.items() if taken},
        aims=_aims(scenario, history),
        recovery_times_us=tuple(ran.at_us - (began.at_us if began else ran.at_us) for ran, began in recovered),
    )


def _aims(scenario: Scenario, history: History) -> dict[str, Aimed]:
    """The aims that faults and commands of a scenario have."""
    fired = {entry.fault for entry in history.journal if isinstance(entry, FaultFired)}
    issued = {entry.command for entry in history.journal if isinstance(entry, CommandIssued)}
    met = Counter(entry.detail for entry in history.timeline if entry.what == "aim-met")
    found: dict[str, Aimed] = {}
    for planned, begun in ((scenario.faults, fired), (scenario.commands, issued)):
        for number, one in enumerate(planned):
            if isinstance(one.trigger, AtAim):
                aim = one.trigger.aim
                before = found.get(aim, Aimed())
                found[aim] = Aimed(planned=before.planned + 1, met=met[aim], fired=before.fired + (number in begun))
    return found
