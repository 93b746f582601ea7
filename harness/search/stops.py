"""Every way to stop a job and to go on: what was planned, what came of it, and what hit it meanwhile.

A fault hits what is under way when it fires.  It does not hit what begins after it,
although its effect may last:

- a stop, a drain and a cancel, from the user's command to the end of the job, or
  to the answer that refuses it. A cancel is over within a few messages: the
  decision is stored, the tasks are notified, their transactions are settled;
- a resume, from the command to the moment at which every task of the job runs, in
  whichever attempt, or to the end of a job that never ran. A later fault hits the
  job and not the resume, also before the job's first checkpoint;
- a resume with an incompatible snapshot, or with an upgrade whose mapping lacks a
  state, from the command to the end of the refused job. No task of it starts, so that only the coordinator can be hit;
- the end by itself, while all input has ended and no command stops the job (the
  phase `finishing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ...faults.plan import AtPoint
from ...properties.model.causes import Why
from ...properties.model.history import AttemptRunning, CommandIssued, CommandReturned, FaultFired, History, JobEnded
from ...reports.model import StopCounts
from ..scenario.model import Cancel, Command, Resume, Scenario, StopWithSavepoint
from ..scenario.upgrades import is_refused, upgrade_of
from ..subject.port import Capabilities

NATURAL = "natural-end"
INCOMPATIBLE = "unfit-resume"
STOPS: tuple[str, ...] = (NATURAL, "stop", "drain", "cancel", "resume", INCOMPATIBLE)
"""the end of all input; a stop with a savepoint, without and with drain; a cancel; a resume; and a resume with an
incompatible snapshot, which has ended when it was refused"""

_RESUMES = ("resume", INCOMPATIBLE)
_ENDS = {"stop": "stopped", "drain": "drained", "cancel": "cancelled"}
"""how a job ends that obeys the command"""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that fired while a stop was under way."""

    fault: str
    phase: str
    point: str = ""
    """the protocol point that triggered the fault; empty for a time or a phase"""


class Stop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One planned stop of a scenario, of a kind in `STOPS`."""

    kind: str
    finished: bool = False
    begins_with: str = ""
    """what a resume restored: savepoint, checkpoint or nothing"""
    hits: tuple[Hit, ...] = ()


def stops_of(scenario: Scenario, history: History) -> tuple[Stop, ...]:
    """The stops that a scenario plans, the end of its input as the last; with what its history shows of each."""
    watch = _Watch(scenario, history)
    for entry in history.journal:
        match entry:
            case CommandIssued():
                watch.issued(entry)
            case CommandReturned():
                watch.returned(entry)
            case FaultFired():
                watch.fired(entry)
            case AttemptRunning():
                watch.running()
            case JobEnded():
                watch.ended(entry)
            case _:
                pass
    return watch.stops()


class _Watch:
    """Reads a journal in order, and keeps track of the stops that are under way."""

    def __init__(self, scenario: Scenario, history: History) -> None:
        self._scenario = scenario
        self._savepoints = {done.checkpoint for done in history.completed if done.savepoint}
        self._kinds = {
            number: kind for number, command in enumerate(scenario.commands) if (kind := _kind(command, scenario))
        }
        self._open: list[int] = []
        """commands under way"""
        self._finished: set[int | None] = set()
        self._origins: dict[int, str] = {}
        self._hits: dict[int | None, dict[int, Hit]] = {}
        """by command (None: the end by itself) and number of the fault"""

    def issued(self, entry: CommandIssued) -> None:
        if entry.command in self._kinds:
            self._open.append(entry.command)

    def returned(self, entry: CommandReturned) -> None:
        if entry.command not in self._kinds:
            return
        if entry.error:
            self._refused(entry.command, Why(entry.cause, entry.error))
            self._close(entry.command)
        elif self._kinds[entry.command] in _RESUMES:
            snapshot = entry.checkpoint
            kind = "savepoint" if snapshot in self._savepoints else "checkpoint"
            self._origins[entry.command] = kind if snapshot is not None else "nothing"

    def fired(self, entry: FaultFired) -> None:
        hit = Hit(fault=entry.kind, phase=entry.phase, point=self._point_of(entry.fault))
        stopping = [number for number in self._open if self._kinds[number] not in _RESUMES]
        by_itself = [None] if entry.phase == "finishing" and not stopping else []
        for number in (*self._open, *by_itself):
            self._hits.setdefault(number, {}).setdefault(entry.fault, hit)

    def running(self) -> None:
        for number in [number for number in self._open if self._kinds[number] in _RESUMES]:
            if self._kinds[number] == "resume":
                self._finished.add(number)
            self._close(number)

    def ended(self, entry: JobEnded) -> None:
        if entry.status == "finished":
            self._finished.add(None)
        for number in list(self._open):
            if _ENDS.get(self._kinds[number]) == entry.status:
                self._finished.add(number)
            if entry.status == "failed":
                self._refused(number, entry.why)
            self._close(number)

    def _refused(self, number: int, why: Why) -> None:
        """A resume with an incompatible snapshot has ended when it was refused for that reason: the cause names
        the operator that is new, or does not find its state."""
        command, upgrade = self._scenario.commands[number], upgrade_of(self._scenario.commands[number])
        names = [
            *(command.inserted if isinstance(command, Resume) else ()),
            *((*upgrade.renamed, *upgrade.retyped, *upgrade.removed, *upgrade.added) if upgrade else ()),
        ]
        if any(why.blames(name) for name in names):
            self._finished.add(number)

    def stops(self) -> tuple[Stop, ...]:
        planned: list[tuple[int | None, str]] = list(self._kinds.items())
        if all(source.bounded for source in self._scenario.workload.inputs):
            planned.append((None, NATURAL))
        return tuple(
            Stop(
                kind=kind,
                finished=number in self._finished,
                begins_with=self._origins.get(number, "") if number is not None else "",
                hits=tuple(self._hits.get(number, {}).values()),
            )
            for number, kind in planned
        )

    def _close(self, number: int) -> None:
        if number in self._open:
            self._open.remove(number)

    def _point_of(self, fault: int) -> str:
        faults = self._scenario.faults
        trigger = faults[fault].trigger if fault < len(faults) else None
        return trigger.point if isinstance(trigger, AtPoint) else ""


def _kind(command: Command, scenario: Scenario) -> str:
    match command:
        case StopWithSavepoint(drain=drain):
            return "drain" if drain else "stop"
        case Cancel():
            return "cancel"
        case Resume():
            return INCOMPATIBLE if is_refused(command, scenario.workload) else "resume"
        case _:
            return ""


class StopTally:
    """Counts stops over scenarios; adding in any order gives the same."""

    def __init__(self) -> None:
        self._counts = Counter[tuple[str, str]]()
        self._phases: dict[str, dict[str, Counter[str]]] = {}
        self._points: dict[str, Counter[str]] = {}
        self._origins: dict[str, Counter[str]] = {}

    def add(self, stops: Iterable[Stop]) -> None:
        for stop in stops:
            self._counts[stop.kind, "planned"] += 1
            self._counts[stop.kind, "finished"] += stop.finished
            self._counts[stop.kind, "hit"] += bool(stop.hits)
            if stop.begins_with:
                self._origins.setdefault(stop.kind, Counter())[stop.begins_with] += 1
            for hit in stop.hits:
                self._phases.setdefault(stop.kind, {}).setdefault(hit.fault, Counter())[hit.phase] += 1
                if hit.point:
                    self._points.setdefault(stop.kind, Counter())[hit.point] += 1

    def add_all(self, other: StopTally) -> None:
        """Add what another tally has counted."""
        self._counts.update(other._counts)
        for own, their in ((self._points, other._points), (self._origins, other._origins)):
            for kind, counts in their.items():
                own.setdefault(kind, Counter()).update(counts)
        for kind, by_fault in other._phases.items():
            for fault, counts in by_fault.items():
                self._phases.setdefault(kind, {}).setdefault(fault, Counter()).update(counts)

    def counts(self) -> dict[str, StopCounts]:
        """The counts of every kind, planned or not."""
        return {kind: self._counts_of(kind) for kind in STOPS}

    def _counts_of(self, kind: str) -> StopCounts:
        phases = self._phases.get(kind, {})
        return StopCounts(
            planned=self._counts[kind, "planned"],
            finished=self._counts[kind, "finished"],
            hit=self._counts[kind, "hit"],
            faults={fault: dict(sorted(counts.items())) for fault, counts in sorted(phases.items())},
            points=dict(sorted(self._points.get(kind, Counter()).items())),
            begins_with=dict(sorted(self._origins.get(kind, Counter()).items())),
        )


_NEEDS = {"stop": "stop-with-savepoint", "drain": "stop-with-savepoint", "cancel": "cancel", "resume": "resume"}
"""by kind: the command that a subject has to know"""


def never_hit(counts: Mapping[str, StopCounts], capabilities: Capabilities) -> list[str]:
    """The kinds that the subject knows and that no fault hit, each in one sentence."""
    found = [kind for kind in STOPS if _is_known(kind, capabilities) and not counts.get(kind, StopCounts()).hit]
    return [f"{kind} was planned {counts.get(kind, StopCounts()).planned:,} times and never hit" for kind in found]


def _is_known(kind: str, capabilities: Capabilities) -> bool:
    if kind == INCOMPATIBLE:
        return capabilities.refuses_incompatible and _is_known("resume", capabilities)
    if kind == "resume" and not capabilities.commands & {"stop-with-savepoint", "cancel"}:
        return False  # a job that does not end cannot be resumed
    return _NEEDS.get(kind, "") in {"", *capabilities.commands}
