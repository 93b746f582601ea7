"""The summary of a run: counts, added scenario by scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ...faults.plan import KINDS, kind_of
from ...properties.model.verdict import INVARIANTS, Holds, Reason, Violated
from ...properties.model.words import why_unapplied
from ...properties.spark.unasked import Unasked
from ...reports.model import (
    AimCounts,
    Asked,
    BatchCounts,
    CheckpointCounts,
    CommandCounts,
    CounterCounts,
    FaultCounts,
    InvariantCounts,
    OracleCounts,
    RecordCounts,
    RestartCounts,
    Samples,
    ScenarioCounts,
    StopCounts,
    Summary,
    SystemCounts,
)
from ..scenario.model import COMMANDS
from .coverage import CoverageTally
from .outcome import RUN_KINDS, AnyOutcome, BatchOutcome, ScenarioOutcome, SystemOutcome
from .profiles import Share
from .stops import StopTally

SAMPLES_AT_MOST = 20_000


class Tally:
    """Counts over outcomes; each outcome is added once, in any order."""

    def __init__(self) -> None:
        self.ran = {kind: Counter[str]() for kind in RUN_KINDS}
        """by kind: how often its runs had each outcome"""
        self.undriven = 0
        """scenarios without a verdict"""
        self.seconds = {"draw": 0.0, "run": 0.0, "judge": 0.0}
        self._invariants = {name: Counter[str]() for name in INVARIANTS}
        self._reasons = {name: Counter[str]() for name in INVARIANTS}
        self._rows_asked = Counter[str]()
        self._state_asked = Counter[str]()
        """scenarios by the reason why PySpark was not asked; by "" if it has answered"""
        self._planned = Counter[str]()
        self._fired: dict[str, Counter[str]] = {}
        self._commands: dict[str, Counter[str]] = {}
        self._stops = StopTally()
        self.coverage = CoverageTally()
        self._totals = Counter[str]()
        self._unapplied = Counter[str]()
        self._why_unapplied: dict[str, Counter[str]] = {}
        self._not_exercised = {name: Counter[str]() for name in INVARIANTS}
        self._pipeline = ""
        self._durations_us: list[int] = []
        self._recoveries_us: list[int] = []
        self._counters: dict[str, list[int | float | str]] = {}
        """by name: what a pipeline's own counter showed at the end of each run"""
        self._aims: dict[str, Counter[str]] = {}
        self._restarts = Counter[str]()
        self._restarted: dict[str, Counter[str]] = {}

    @property
    def run(self) -> int:
        """How many scenarios were run."""
        return self.ran[ScenarioOutcome.kind].total()

    def add(self, outcome: AnyOutcome) -> None:
        self.ran[outcome.kind][outcome.in_a_word] += 1
        match outcome:
            case ScenarioOutcome():
                self._add_scenario(outcome)
            case SystemOutcome():
                self._totals.update(snapshots=outcome.snapshots, under_way=outcome.under_way)
            case BatchOutcome():
                pass  # only its verdict is counted

    def _add_scenario(self, outcome: ScenarioOutcome) -> None:
        self._pipeline = outcome.scenario.pipeline or self._pipeline
        self._add_verdicts(outcome)
        self._add_measured(outcome)
        self._planned.update(kind_of(fault) for fault in outcome.scenario.faults)
        for name, spent in (("draw", outcome.draw_s), ("run", outcome.run_s), ("judge", outcome.judge_s)):
            self.seconds[name] += spent

    def add_all(self, other: Tally) -> None:
        """Add what another tally has counted."""
        for name, theirs in vars(other).items():
            setattr(self, name, added(getattr(self, name), theirs))

    def add_word(self, not_asked: Unasked, by_both: Iterable[str] = ()) -> None:
        """Add PySpark's answer about a scenario, or why there is none; `by_both` are the invariants that it
        confirms."""
        self._rows_asked[not_asked.rows] += 1
        self._state_asked[not_asked.state] += 1
        for name in by_both:
            self._invariants[name]["by_both"] += 1

    def _add_verdicts(self, outcome: ScenarioOutcome) -> None:
        for name, verdict in outcome.verdicts.items():
            counts = self._invariants.setdefault(name, Counter())
            shown = isinstance(verdict, (Holds, Violated))
            counts["can_show"] += name in outcome.can_show
            counts["shown"] += shown and name in outcome.can_show
            if isinstance(verdict, Holds):
                counts["holds"] += 1
            elif isinstance(verdict, Violated):
                counts["violated"] += 1
            else:
                counts["unknown"] += 1
                self._reasons.setdefault(name, Counter())[verdict.reason] += 1
                if outcome.scenario.pipeline and verdict.reason == Reason.NOT_EXERCISED:
                    self._not_exercised.setdefault(name, Counter())[verdict.detail] += 1

    def _add_measured(self, outcome: ScenarioOutcome) -> None:
        measured = outcome.measured
        for kind, phase in measured.fired:
            self._fired.setdefault(kind, Counter())[phase] += 1
        for command in measured.commands:
            counts = self._commands.setdefault(command.kind, Counter())
            counts.update(planned=1, finished=int(command.finished), drain=int(command.drain))
        self._stops.add(measured.stops)
        self.coverage.add(measured.targets, len(measured.fired), measured.snapshots)
        for name, value in measured.counters.items():
            self._counters.setdefault(name, []).append(value)
        for name in ("completed", "aborted", "recoveries", "read", "committed", "foreign_connections"):
            self._totals[name] += getattr(measured, name)
        self._unapplied.update(map(kind_of_unapplied, measured.unapplied))
        for words in measured.unapplied:
            if why := why_unapplied(words):
                self._why_unapplied.setdefault(kind_of_unapplied(words), Counter())[why] += 1
        for name, aimed in measured.aims.items():
            counted = self._aims.setdefault(name, Counter())
            counted.update(planned=aimed.planned, met=aimed.met, fired=aimed.fired)
        for one in measured.restarts:
            self._restarts[one.failover] += 1
            self._restarted.setdefault(one.failover, Counter()).update(one.tasks)
        room = SAMPLES_AT_MOST - len(self._durations_us)
        self._durations_us.extend(measured.checkpoint_durations_us[: max(0, room)])
        room = SAMPLES_AT_MOST - len(self._recoveries_us)
        self._recoveries_us.extend(measured.recovery_times_us[: max(0, room)])

    def shares(self) -> dict[str, Share]:
        """By invariant: in how many of the scenarios that can show it the invariant was exercised."""
        return {
            name: Share(shown=counts["shown"], can_show=counts["can_show"]) for name, counts in self._invariants.items()
        }

    def fired(self) -> frozenset[str]:
        """The fault kinds that fired at least once."""
        return frozenset(self._fired)

    def stops(self) -> dict[str, StopCounts]:
        """Every way to end a job, or to resume one, by kind (`stops.STOPS`)."""
        return self._stops.counts()

    def with_words(self, oracle: OracleCounts) -> OracleCounts:
        """The oracle's own counts, with the scenarios on which it has answered."""
        rows, state = _asked(self._rows_asked), _asked(self._state_asked)
        return replace(oracle, asked=rows.asked, not_asked=rows.not_asked, state=state)

    def samples(self) -> Samples:
        return Samples(checkpoint_durations_us=list(self._durations_us), recovery_times_us=list(self._recoveries_us))

    def summary(self) -> Summary:
        """The counts; the campaign adds what is known about the run as a whole."""
        kinds = sorted({*self._planned, *self._fired})
        return Summary(
            pipeline=self._pipeline,
            scenarios=ScenarioCounts(**self._counted(ScenarioOutcome.kind)),
            invariants={
                name: InvariantCounts(
                    can_show=counts["can_show"],
                    exercised=counts["shown"],
                    holds=counts["holds"],
                    violated=counts["violated"],
                    unknown=counts["unknown"],
                    by_both=counts["by_both"],
                    reasons=dict(sorted(self._reasons[name].items())),
                    not_exercised=dict(self._not_exercised[name].most_common()),
                )
                for name, counts in self._invariants.items()
                if counts.total()
            },
            faults={kind: self._faults_of(kind) for kind in kinds},
            commands={
                kind: CommandCounts(planned=counts["planned"], finished=counts["finished"], drain=counts["drain"])
                for kind, counts in sorted(self._commands.items())
            },
            stops=self.stops(),
            checkpoints=CheckpointCounts(completed=self._totals["completed"], aborted=self._totals["aborted"]),
            recoveries=self._totals["recoveries"],
            oracle=self.with_words(OracleCounts()),
            restarts={
                failover: RestartCounts(recoveries=number, tasks=dict(sorted(self._restarted[failover].items())))
                for failover, number in sorted(self._restarts.items())
            },
            records=RecordCounts(read=self._totals["read"], committed=self._totals["committed"]),
            counters={name: _counter(shown) for name, shown in self._counters.items()},
            aims={name: AimCounts(**counts) for name, counts in sorted(self._aims.items())},
            unapplied=dict(sorted(self._unapplied.items())),
            why_unapplied={kind: dict(why.most_common()) for kind, why in sorted(self._why_unapplied.items())},
            foreign_connections=self._totals["foreign_connections"],
            systems=SystemCounts(
                **self._counted(SystemOutcome.kind),
                snapshots=self._totals["snapshots"],
                under_way=self._totals["under_way"],
            ),
            batches=BatchCounts(**self._counted(BatchOutcome.kind)),
        )

    def _counted(self, kind: str) -> dict[str, int]:
        counted = self.ran[kind]
        return {"run": counted.total(), **{word: counted[word] for word in ("held", "violated", "unknown")}}

    def _faults_of(self, kind: str) -> FaultCounts:
        phases = self._fired.get(kind, Counter())
        return FaultCounts(planned=self._planned[kind], fired=phases.total(), phases=dict(sorted(phases.items())))


def added(one: Any, other: Any) -> Any:
    """Two parts of tallies, added: numbers, words (the first that is not empty), lists, counters, and dictionaries and
    tallies of these."""
    match one:
        case CoverageTally() | StopTally():
            one.add_all(other)
            return one
        case Counter():
            return one + other
        case dict():
            return one | {name: added(one[name], value) if name in one else value for name, value in other.items()}
        case str():
            return one or other
        case _:
            return one + other


def _counter(shown: list[int | float | str]) -> CounterCounts:
    numbers = [value for value in shown if not isinstance(value, str)]
    return CounterCounts(read=len(shown), least=min(numbers, default=None), most=max(numbers, default=None))


def _asked(counts: Counter[str]) -> Asked:
    return Asked(asked=counts[""], not_asked={reason: number for reason, number in sorted(counts.items()) if reason})


def kind_of_unapplied(words: str) -> str:
    """The kind of a fault, command or perturbation that a subject reports as never applied: "fault 0: kill-task",
    "command 1: savepoint", "resume", or a schedule perturbation by its name, "write coordinator, occurrence 2"."""
    kind = words.rpartition(": ")[2].split(" ", 1)[0].rstrip(",")
    return kind if kind in KINDS or kind in COMMANDS else f"schedule perturbation of a {kind}"
