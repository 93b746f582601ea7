"""`verify --tamper`: lies told about an engine's own histories, and whether the judge sees them.

Scenarios are drawn and run as ever.  Wherever an invariant held, the history is
altered so that it no longer may, and the verdict has to turn.  A lie for which no
history had a place was not reached; that too is a shortfall.
"""

from __future__ import annotations

import time

import msgspec

from ..properties.case import Case
from ..properties.history import History
from ..properties.judge import judge
from ..properties.tampering import LIES, Tampering, tamperings
from ..properties.verdict import Holds, Verdict, Violated
from .progress import Progress, Silent
from .scenario import Scenario
from .slices import Draw
from .subject import Subject, forget

FORMAT = "cutproof-tamper/1"
SCENARIOS = 200
"""how many histories, where nothing else is said"""
MISSES_KEPT = 5
FURTHER = 10
"""times as many scenarios are drawn for lies that had no place"""


class LieCount(msgspec.Struct, kw_only=True):
    """How often one lie was told, and seen."""

    name: str
    tried: int = 0
    caught: int = 0
    by_invariant: dict[str, int] = {}
    """how often which invariant turned"""
    missed: list[str] = []
    """seeds of scenarios in which it was not seen, the first few"""


class TamperReport(msgspec.Struct, kw_only=True):
    """What `verify --tamper --json` prints."""

    format: str = FORMAT
    subject: str
    seed: int
    scenarios: int = 0
    searched: int = 0
    """scenarios drawn beyond them, for the lies that none of them had a place for"""
    accused: list[str] = []
    """seeds of scenarios in which an invariant was violated before any lie was told"""
    held: dict[str, int] = {}
    """how many histories each invariant held in, as they were"""
    tamperings: list[LieCount]
    caught: int = 0
    missed: int = 0
    not_reached: list[str] = []
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def has_teeth(self) -> bool:
        """Every lie was told, and every time it was seen; nothing was accused without one."""
        return not self.missed and not self.not_reached and not self.accused


def tamper(
    subject: Subject,
    draw: Draw,
    *,
    seed: int,
    scenarios: int,
    time_s: float | None = None,
    progress: Progress | None = None,
) -> TamperReport:
    """Tell every lie about every drawn scenario's history; an interruption keeps what was done.

    Lies for which none of them had a place are told about the first that has one, of some times as many more.
    """
    progress = progress or Silent()
    counts = {name: LieCount(name=name) for name in LIES}
    report = TamperReport(subject=subject.name, seed=seed, tamperings=list(counts.values()))
    began = time.monotonic()
    progress.step("tampering with histories", scenarios)
    try:
        while report.scenarios < scenarios and not _is_over(began, time_s):
            scenario = draw(seed, report.scenarios)
            _tell_all(scenario, subject.run(scenario), counts, report)
            forget(subject)
            report.scenarios += 1
            progress.advance(report.scenarios)
        while _untold(counts) and report.searched < FURTHER * scenarios and not _is_over(began, time_s):
            scenario = draw(seed, report.scenarios + report.searched)
            _tell_all(scenario, subject.run(scenario), {name: counts[name] for name in _untold(counts)}, report)
            forget(subject)
            report.searched += 1
    except KeyboardInterrupt:
        report.interrupted = True
    report.caught = sum(count.caught for count in counts.values())
    report.missed = sum(count.tried - count.caught for count in counts.values())
    report.not_reached = _untold(counts)
    report.seconds = round(time.monotonic() - began, 3)
    return report


def _is_over(began: float, time_s: float | None) -> bool:
    return bool(time_s) and time.monotonic() - began > (time_s or 0)


def _untold(counts: dict[str, LieCount]) -> list[str]:
    return [name for name, count in counts.items() if not count.tried]


def _tell_all(scenario: Scenario, history: History, counts: dict[str, LieCount], report: TamperReport) -> None:
    before = _verdicts(scenario, history)
    if any(isinstance(verdict, Violated) for verdict in before.values()):
        report.accused.append(scenario.seed)
    for name in [name for name, verdict in before.items() if isinstance(verdict, Holds)]:
        report.held[name] = report.held.get(name, 0) + 1
    for tampering in tamperings(Case(scenario.workload, scenario.topology, history)):
        if tampering.name in counts and any(isinstance(before.get(name), Holds) for name in tampering.invariants):
            _count(scenario, _turned(scenario, history, tampering), counts[tampering.name])


def _turned(scenario: Scenario, history: History, tampering: Tampering) -> list[str]:
    """Which of the invariants that the lie touches are violated after it."""
    after = _verdicts(scenario, tampering.apply(history))
    return [name for name in tampering.invariants if isinstance(after.get(name), Violated)]


def _count(scenario: Scenario, turned: list[str], count: LieCount) -> None:
    count.tried += 1
    count.caught += bool(turned)
    for name in turned:
        count.by_invariant[name] = count.by_invariant.get(name, 0) + 1
    if not turned and len(count.missed) < MISSES_KEPT:
        count.missed.append(scenario.seed)


def _verdicts(scenario: Scenario, history: History) -> dict[str, Verdict]:
    return judge(scenario.workload, scenario.topology, history).verdicts
