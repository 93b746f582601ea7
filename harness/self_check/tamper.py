"""`verify --tamper`: mutates an engine's own histories, and checks that the judge detects it.

Scenarios are drawn and run as usual.  If an invariant held, the history is mutated so that
the invariant is violated, and the verdict must change.  A mutation that could be applied to
no history was not reached; that too is a shortfall.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ...properties.invariants.judge import judge
from ...properties.model.history import History
from ...properties.model.verdict import Holds, Verdict, Violated
from ...properties.mutations.tampering import MUTATIONS, Tampering, tamperings
from ...properties.quick_checker.case import Case
from ...reports.model import NotRun
from ..runtime.exit_codes import CutproofError
from ..runtime.progress import Progress, Silent
from ..scenario.model import Scenario
from ..scenario.slices import Draw
from ..search.worker import where
from ..subject.port import Subject, SubjectFailed, forget
from ..subject.run import history_of

FORMAT = "cutproof-tamper/1"
SCENARIOS = 200
"""the number of histories, by default"""
MISSES_KEPT = 5
FURTHER = 10
"""this many times as many scenarios are drawn for mutations that could not be applied yet"""


class MutationCount(msgspec.Struct, kw_only=True):
    """How often one mutation was applied, and detected."""

    name: str
    tried: int = 0
    caught: int = 0
    by_invariant: dict[str, int] = {}
    """how often which invariant became violated"""
    missed: list[str] = []
    """seeds of scenarios in which the mutation was not detected, the first few"""


class TamperReport(msgspec.Struct, kw_only=True):
    """What `verify --tamper --json` prints."""

    format: str = FORMAT
    subject: str
    seed: int
    scenarios: int = 0
    searched: int = 0
    """scenarios that were drawn in addition, for the mutations that could not be applied yet"""
    not_run: list[NotRun] = []
    """scenarios that the subject could not be driven through"""
    accused: list[str] = []
    """seeds of scenarios in which an invariant was violated before any mutation"""
    held: dict[str, int] = {}
    """in how many unmutated histories each invariant held"""
    tamperings: list[MutationCount]
    caught: int = 0
    missed: int = 0
    not_reached: list[str] = []
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def has_teeth(self) -> bool:
        """Whether every mutation was applied and always detected, and no unmutated history was found violated."""
        return not self.missed and not self.not_reached and not self.accused


def tamper(
    subject: Subject,
    draw: Draw,
    *,
    seed: int,
    scenarios: int,
    time_s: float | None = None,
    progress: Progress | None = None,
    keep: Callable[[int, Scenario], NotRun] | None = None,
) -> TamperReport:
    """Apply every mutation to the history of every drawn scenario; an interruption keeps what was done.

    A mutation that could be applied to none of them is applied to the first further scenario that allows it.
    `keep` receives each scenario that could not be run.  Raises CutproofError if the environment failed.
    """
    progress = progress or Silent()
    keep = keep or (lambda number, scenario: NotRun(number=number, reason=""))
    counts = {name: MutationCount(name=name) for name in MUTATIONS}
    report = TamperReport(subject=subject.name, seed=seed, tamperings=list(counts.values()))
    began = time.monotonic()
    progress.step("tampering with histories", scenarios)
    try:
        while report.scenarios < scenarios and not _is_over(began, time_s):
            _tamper_with(subject, draw(seed, report.scenarios), report.scenarios, counts, report, keep)
            report.scenarios += 1
            progress.advance(report.scenarios)
        further = FURTHER * scenarios if len(report.not_run) < report.scenarios else 0
        while _not_reached(counts) and report.searched < further and not _is_over(began, time_s):
            number = report.scenarios + report.searched
            remaining = {name: counts[name] for name in _not_reached(counts)}
            _tamper_with(subject, draw(seed, number), number, remaining, report, keep)
            report.searched += 1
    except KeyboardInterrupt:
        report.interrupted = True
    report.caught = sum(count.caught for count in counts.values())
    report.missed = sum(count.tried - count.caught for count in counts.values())
    report.not_reached = _not_reached(counts)
    report.seconds = round(time.monotonic() - began, 3)
    return report


def _is_over(began: float, time_s: float | None) -> bool:
    return bool(time_s) and time.monotonic() - began > (time_s or 0)


def _not_reached(counts: dict[str, MutationCount]) -> list[str]:
    return [name for name, count in counts.items() if not count.tried]


def _tamper_with(
    subject: Subject,
    scenario: Scenario,
    number: int,
    counts: dict[str, MutationCount],
    report: TamperReport,
    keep: Callable[[int, Scenario], NotRun],
) -> None:
    """Run a scenario and mutate its history; a scenario that cannot be run is reported, and the next one follows."""
    try:
        _apply_all(scenario, history_of(subject, scenario), counts, report)
        forget(subject)
    except CutproofError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split()) if isinstance(error, SubjectFailed) else where(error)
        report.not_run.append(replace(keep(number, scenario), reason=reason))


def _apply_all(scenario: Scenario, history: History, counts: dict[str, MutationCount], report: TamperReport) -> None:
    before = _verdicts(scenario, history)
    if any(isinstance(verdict, Violated) for verdict in before.values()):
        report.accused.append(scenario.seed)
    for name in [name for name, verdict in before.items() if isinstance(verdict, Holds)]:
        report.held[name] = report.held.get(name, 0) + 1
    for tampering in tamperings(Case(scenario.workload, scenario.topology, history)):
        if tampering.name in counts and any(isinstance(before.get(name), Holds) for name in tampering.invariants):
            _count(scenario, _caught_by(scenario, history, tampering), counts[tampering.name])


def _caught_by(scenario: Scenario, history: History, tampering: Tampering) -> list[str]:
    """The invariants that the mutation concerns and that are violated after it."""
    after = _verdicts(scenario, tampering.apply(history))
    return [name for name in tampering.invariants if isinstance(after.get(name), Violated)]


def _count(scenario: Scenario, caught_by: list[str], count: MutationCount) -> None:
    count.tried += 1
    count.caught += bool(caught_by)
    for name in caught_by:
        count.by_invariant[name] = count.by_invariant.get(name, 0) + 1
    if not caught_by and len(count.missed) < MISSES_KEPT:
        count.missed.append(scenario.seed)


def _verdicts(scenario: Scenario, history: History) -> dict[str, Verdict]:
    return judge(scenario.workload, scenario.topology, history).verdicts
