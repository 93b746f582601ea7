"""From failing scenarios to counterexamples: they are grouped by cause, shrunk, judged again and described.

One bug fails many scenarios.  Scenarios that violate the same invariant with the same kind
of difference form a group.  One scenario of each group is shrunk: the first that PySpark has
confirmed, if there is one.  Groups whose shrunk
scenarios fail at the same point have one cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from ...properties.invariants.judge import judge_case
from ...properties.model.verdict import INVARIANTS, Violated
from ...properties.quick_checker.case import Case
from ...properties.spark.unasked import SPARK_FAILED
from ...reports.model import Counterexample, CounterexampleView, Size
from ..runtime.exit_codes import CutproofError, one_line
from ..runtime.interruption import Interruption
from ..scenario.files import text_of
from ..scenario.model import Scenario
from ..search.known_failures import Cause, KnownFailures
from ..search.oracle import Oracle, SeenBy, Word, word_on
from ..search.outcome import ScenarioOutcome
from ..search.pool import Pool
from ..search.search import Found
from ..shrink.on_subject import REAL_TIME_S, Seen, fails_like
from ..shrink.repetition import violates
from ..shrink.shrink import Shrunk, size_of
from ..subject.names import stand_in_for
from ..subject.port import Subject
from ..subject.run import Result, run
from .causes import cause_of
from .kept import Kept, keep
from .story import Neighbour, nearest_passing, rows_side_by_side, story_of_case

GROUPS_AT_MOST = 12
"""the number of causes that are shrunk and described; further causes are only counted"""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The failing scenarios that seem to have one cause, in order."""

    invariant: str
    difference: str
    outcomes: tuple[ScenarioOutcome, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One counterexample with its description."""

    cause: Cause
    counterexample: Counterexample
    view: CounterexampleView
    confirmed: bool
    """the violation counts: PySpark sees it too, or cannot be asked about it; false if the scenario was not judged
    again by PySpark because of an interruption or an error"""


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How a search stores its findings."""

    keep: Callable[[str, str], str]
    """stores the text of a file under a name and returns its path"""
    replay_command: Callable[[str], str]
    found_s: float
    """when the search found its first failure"""


def group(failing: list[ScenarioOutcome], first: str = "") -> list[Group]:
    """Group failures by the first violated invariant, in the order of INVARIANTS, and its kind of difference.

    `first` is the invariant that a planted defect must violate; it comes before all others.
    """

    groups: dict[tuple[str, str], list[ScenarioOutcome]] = {}
    for outcome in sorted(failing, key=lambda outcome: outcome.index):
        groups.setdefault(violation_of(outcome, first), []).append(outcome)
    found = [
        Group(invariant=invariant, difference=difference, outcomes=tuple(outcomes))
        for (invariant, difference), outcomes in groups.items()
    ]
    return sorted(found, key=lambda one: one.invariant != first)


def violation_of(outcome: ScenarioOutcome, first: str = "") -> tuple[str, str]:
    """The violated invariant by which a failure is grouped, and its kind of difference."""

    def rank(invariant: str) -> tuple[bool, int]:
        return invariant != first, INVARIANTS.index(invariant)

    invariant, verdict = min(outcome.violations, key=lambda named: rank(named[0]))
    return invariant, verdict.difference


class FindingBuilder:
    """Makes findings from groups; failures of the harness are added to `found.failures`."""

    def __init__(
        self,
        pool: Pool,
        subject: Subject,
        oracle: Oracle,
        found: Found,
        *,
        known: KnownFailures,
        keeping: Keeping,
        subject_name: str,
        interruption: Interruption | None = None,
        first: str = "",
        shrink_s: float = REAL_TIME_S,
    ) -> None:
        """`first`: the invariant whose violations are described first.  `shrink_s`: how long the scenarios of one cause
        are run again, if a run costs seconds."""
        self._pool = pool
        self._subject = subject
        self._oracle = oracle
        self._found = found
        self._known = known
        self._keeping = keeping
        self._subject_name = subject_name
        self._interruption = interruption or Interruption()
        self._groups = group(found.failing_scenarios, first)
        self._shrink_s = shrink_s
        self._began = 0.0
        self._by_cause: dict[Cause, Finding] = {}

    def findings(self) -> list[Finding]:
        """One finding for each cause.  After an interruption the remaining groups are described without shrinking."""
        for left_out in self._groups[GROUPS_AT_MOST:]:
            self._found.failures.append(
                f"scenario {left_out.outcomes[0].index} and {len(left_out.outcomes) - 1} more violate "
                f"{left_out.invariant} ({left_out.difference}); too many causes to describe them all"
            )
        self._began = time.perf_counter()
        shown = self._groups[:GROUPS_AT_MOST]
        for one, shrinking in zip(shown, self._shrinking(shown), strict=True):
            self._describe(one, shrinking)
        return list(self._by_cause.values())

    def _shrinking(self, groups: list[Group]) -> list[Future[Shrunk] | None]:
        """The shrinking of each group; None for groups that an interruption kept from being shrunk."""
        begun: list[Future[Shrunk] | None] = []
        try:
            for one in groups:
                with self._interruption.open():
                    example = self._example(one)
                    seen = Seen(violated=frozenset(name for name, _ in example.violations), run_s=example.run_s)
                    begun.append(self._pool.shrink(example.scenario, one.invariant, one.difference, seen))
        except KeyboardInterrupt:
            self._found.interrupted = True
        return begun + [None] * (len(groups) - len(begun))

    def _example(self, one: Group) -> ScenarioOutcome:
        """The first outcome of the group on which both judges agree, else the first."""
        both = (outcome for outcome in one.outcomes if outcome.index not in self._found.unconfirmed)
        return next(both, one.outcomes[0])

    def _describe(self, one: Group, shrinking: Future[Shrunk] | None) -> None:
        """Describe a group by its shrunk scenario, or if shrinking fails by the scenario that was found."""
        try:
            with self._interruption.open():
                if shrinking is not None:
                    self._add(one, shrinking.result())
                    return
        except KeyboardInterrupt:
            self._found.interrupted = True
        except Exception as error:  # in the subject, a worker or the oracle: what was found must not be lost
            self._found.failures.append(f"{one.invariant} could not be shrunk and described: {one_line(error)}")
        try:
            self._add(one, None)
        except Exception as error:  # as above; the search's record of the scenario is used instead
            self._found.failures.append(f"{one.invariant} could not be described: {one_line(error)}")

    def _add(self, one: Group, shrunk: Shrunk | None) -> None:
        """Without a shrunk scenario the one that was found is described in haste."""
        kept = self._kept(one, shrunk)
        result = kept.result
        verdict = result.judgement.verdicts[one.invariant]
        if not isinstance(verdict, Violated):
            index = self._example(one).index
            self._found.failures.append(f"scenario {index} fails in a search, but holds when it is run again")
            return
        cause = cause_of(one.invariant, verdict, result.scenario, result.history, self._subject_name)
        finding = self._finding(one, kept, verdict, cause, hasty=shrunk is None)
        self._by_cause[cause] = _merged(self._by_cause[cause], finding) if cause in self._by_cause else finding

    def _kept(self, one: Group, shrunk: Shrunk | None) -> Kept:
        """The run that is described, with its time line.

        In real time a violation need not show again; then the recorded run is described.  In
        virtual time it must show again.
        """
        example = self._example(one)
        if not self._subject.capabilities.real_time:
            scenario = example.scenario if shrunk is None else shrunk.scenario
            words = "" if shrunk is None else _bound_in_words(shrunk)
            return Kept(result=run(self._subject, scenario, timeline=True), words=words)
        recorded = recorded_result(example)
        if shrunk is None:
            return Kept(result=recorded)
        shows = violates(one.invariant, one.difference)
        return keep(self._subject, recorded, shrunk, shows, limit_s=self._shrink_s)

    def _finding(self, one: Group, kept: Kept, verdict: Violated, cause: Cause, *, hasty: bool) -> Finding:
        """`hasty`: without a passing neighbour and without PySpark, which take time."""
        result = kept.result
        scenario = result.scenario
        confirmed, seen_by = self._seen_by(one, result, verdict, hasty=hasty)
        story = story_of_case(scenario, result.case, result.judgement.verdicts, invariant=one.invariant)
        neighbour = None if hasty else self._neighbour(one, scenario)
        name = f"{one.invariant}-{self._example(one).index}"
        path = self._keeping.keep(name, text_of(scenario))
        tasks, records, faults = size_of(scenario)
        counterexample = Counterexample(
            id=name,
            invariant=one.invariant,
            scenario=path,
            story=story.sentence,
            replay=self._keeping.replay_command(path),
            size=Size(tasks=tasks, records=records, faults=faults),
            seconds_to_find=round(self._keeping.found_s, 3),
            seconds_to_shrink=0.0 if hasty else round(time.perf_counter() - self._began, 3),
            difference=one.difference,
            scenarios=len(one.outcomes),
            known=self._known.reason(cause),
            judges=seen_by.judges,
            not_asked=seen_by.not_asked,
            repetitions=kept.rate.runs,
            violated_again=kept.rate.reproduced,
            kept=kept.words,
        )
        view = msgspec.structs.replace(
            view_of(
                counterexample,
                verdict,
                paragraphs=(*story.paragraphs, *filter(None, (kept.words,))),
                scenario=text_of(scenario),
            ),
            neighbour=neighbour.sentence if neighbour else "",
            rows=rows_side_by_side(result.case),
            history=result.history,
            checkpoint=verdict.checkpoint,
        )
        return Finding(cause=cause, counterexample=counterexample, view=view, confirmed=confirmed)

    def _neighbour(self, one: Group, scenario: Scenario) -> Neighbour | None:
        """The nearest passing scenario.  In real time a run that holds proves nothing, so it is searched for on the
        engine's twin in virtual time, if the scenario fails there in the same way."""
        subject = self._subject
        if subject.capabilities.real_time:
            twin = stand_in_for(subject, scenario.defect or None)
            if twin is None or not fails_like(twin, scenario, one.invariant, one.difference):
                return None
            subject = twin
        return nearest_passing(scenario, lambda other: fails_like(subject, other, one.invariant, one.difference))

    def _seen_by(self, one: Group, result: Result, verdict: Violated, *, hasty: bool) -> tuple[bool, SeenBy]:
        """Whether a violation counts, and which judges saw it in the scenario that was found and, unless `hasty`, in
        the shrunk one."""
        example = self._example(one)
        if example.index in self._found.unconfirmed:
            return False, SeenBy(not_asked=self._found.unconfirmed[example.index])
        if hasty:
            return False, Word(unasked=example.not_asked).on(one.invariant, verdict)
        try:
            word = word_on(self._oracle, result)
        except CutproofError as error:
            self._found.failures.append(one_line(error))
            return False, SeenBy(not_asked=SPARK_FAILED)
        counts = self._found.oracle
        disagreements = counts.disagreements + len(word.disagreements)
        self._found.oracle = msgspec.structs.replace(counts, disagreements=disagreements)
        for words in word.disagreements:
            self._found.failures.append(f"the two judges disagree about {one.invariant}'s shrunk case: {words}")
        return not word.disagreements, word.on(one.invariant, verdict)


def recorded_result(outcome: ScenarioOutcome) -> Result:
    """The recorded run of a failure, judged again without a new run."""
    if outcome.history is None:
        raise ValueError(f"the history of scenario {outcome.index} was not kept")
    case = Case(outcome.scenario.workload, outcome.scenario.topology, outcome.history)
    return Result(outcome.scenario, case, judge_case(case), outcome.run_s, outcome.judge_s)


def _bound_in_words(shrunk: Shrunk) -> str:
    return f"Shrinking was stopped after {shrunk.runs} runs; a smaller case may exist." if shrunk.early else ""


def view_of(
    counterexample: Counterexample, verdict: Violated, *, paragraphs: tuple[str, ...], scenario: str
) -> CounterexampleView:
    """The view of a counterexample; `scenario` is the text of its file."""
    return CounterexampleView(
        id=counterexample.id,
        invariant=counterexample.invariant,
        difference=counterexample.difference,
        story=counterexample.story,
        paragraphs=paragraphs,
        witness=witness_of(verdict),
        scenario=scenario,
        replay=counterexample.replay,
        size=counterexample.size,
        scenarios=counterexample.scenarios,
        known=counterexample.known,
        judges=counterexample.judges,
        not_asked=counterexample.not_asked,
    )


def witness_of(verdict: Violated) -> str:
    """The records and events that show the violation, line by line."""
    lines = [verdict.message]
    if verdict.tasks:
        lines.append(f"tasks: {', '.join(verdict.tasks)}")
    lines.extend(verdict.records)
    lines.extend(verdict.events)
    return "\n".join(lines)


def _merged(first: Finding, second: Finding) -> Finding:
    """The finding of two groups with one cause, which the smaller scenario describes."""
    smaller = min(first, second, key=lambda finding: finding.counterexample.size.total)
    scenarios = first.counterexample.scenarios + second.counterexample.scenarios
    return msgspec.structs.replace(
        smaller,
        counterexample=msgspec.structs.replace(smaller.counterexample, scenarios=scenarios),
        view=msgspec.structs.replace(smaller.view, scenarios=scenarios),
        confirmed=first.confirmed or second.confirmed,
    )
