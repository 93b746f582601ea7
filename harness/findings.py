"""From failing scenarios to counterexamples: grouped by cause, shrunk, judged again, told.

One bug fails many scenarios.  Those that violate the same invariant by the same
kind of difference are one group; of each group the first is shrunk, and groups
that then turn out to fail at the same point are one cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from ..properties.verdict import INVARIANTS, Violated
from ..reports.model import Counterexample, CounterexampleView, Size
from ..reports.rows import side_by_side
from .causes import cause_of
from .exit_codes import CutproofError, one_line
from .files import encode_scenario
from .known_failures import Cause, KnownFailures
from .oracle import Oracle, question_of
from .outcome import Outcome
from .pool import Pool
from .run import Result, run
from .scenario import Scenario
from .search import Found
from .shrink import Shrunk, size_of
from .story import expected_rows, nearest_passing, tell_case
from .subject import Subject
from .worker import fails_like

GROUPS_AT_MOST = 12
"""causes that are shrunk and told; more than these are counted"""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The failing scenarios of what looks like one cause, the first of them first."""

    invariant: str
    difference: str
    outcomes: tuple[Outcome, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One counterexample, told."""

    counterexample: Counterexample
    view: CounterexampleView
    scenario: Scenario
    confirmed: bool
    """PySpark judged it too, and alike"""


def group(failing: list[Outcome]) -> list[Group]:
    """By the first violated invariant, in the order of INVARIANTS, and its kind of difference."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in sorted(failing, key=lambda outcome: outcome.index):
        invariant, verdict = min(outcome.violations, key=lambda named: INVARIANTS.index(named[0]))
        groups.setdefault((invariant, verdict.difference), []).append(outcome)
    return [
        Group(invariant=invariant, difference=difference, outcomes=tuple(outcomes))
        for (invariant, difference), outcomes in groups.items()
    ]


class Teller:
    """Makes findings of groups; what it has to say of the harness goes to `found.failures`."""

    def __init__(
        self,
        pool: Pool,
        subject: Subject,
        oracle: Oracle,
        found: Found,
        *,
        known: KnownFailures,
        keep: Callable[[str, Scenario], str],
        replay_command: Callable[[str], str],
        subject_name: str,
    ) -> None:
        """`keep` stores a scenario under a name and tells its path, from which
        `replay_command` makes the command that runs it again."""
        self._pool = pool
        self._subject = subject
        self._oracle = oracle
        self._found = found
        self._known = known
        self._keep = keep
        self._replay_command = replay_command
        self._subject_name = subject_name

    def findings(self) -> list[Finding]:
        groups = group(self._found.failing)
        for left_out in groups[GROUPS_AT_MOST:]:
            first = left_out.outcomes[0].index
            self._found.failures.append(
                f"scenario {first} and {len(left_out.outcomes) - 1} more violate {left_out.invariant} "
                f"({left_out.difference}); too many causes to tell them all"
            )
        began = time.perf_counter()
        shrinking: list[tuple[Group, Future[Shrunk]]] = [
            (one, self._pool.shrink(one.outcomes[0].scenario, one.invariant, one.difference))
            for one in groups[:GROUPS_AT_MOST]
        ]
        by_cause: dict[Cause, Finding] = {}
        for one, future in shrinking:
            scenario = future.result().scenario
            result = run(self._subject, scenario, timeline=True)
            verdict = result.judgement.verdicts[one.invariant]
            if not isinstance(verdict, Violated):
                self._found.failures.append(
                    f"scenario {one.outcomes[0].index} fails in a search and holds when run again"
                )
                continue
            cause = cause_of(one.invariant, verdict, scenario, result.history, self._subject_name)
            finding = self._told(one, result, verdict, cause, time.perf_counter() - began)
            by_cause[cause] = _merged(by_cause[cause], finding) if cause in by_cause else finding
        return list(by_cause.values())

    def _told(self, one: Group, result: Result, verdict: Violated, cause: Cause, shrink_s: float) -> Finding:
        scenario = result.scenario
        story = tell_case(scenario, result.case, result.judgement.verdicts, invariant=one.invariant)
        neighbour = nearest_passing(
            scenario, lambda other: fails_like(self._subject, other, one.invariant, one.difference)
        )
        first = one.outcomes[0]
        name = f"{one.invariant}-{first.index}"
        path = self._keep(name, scenario)
        tasks, records, faults = size_of(scenario)
        counterexample = Counterexample(
            id=name,
            invariant=one.invariant,
            scenario=path,
            story=story.sentence,
            replay=self._replay_command(path),
            size=Size(tasks=tasks, records=records, faults=faults),
            seconds_to_find=round(self._found.first_failure_s, 3),
            seconds_to_shrink=round(shrink_s, 3),
            difference=one.difference,
            scenarios=len(one.outcomes),
            known=self._known.reason(cause),
        )
        view = CounterexampleView(
            id=name,
            invariant=one.invariant,
            difference=one.difference,
            story=story.sentence,
            paragraphs=story.paragraphs,
            witness=witness_of(verdict),
            neighbour=neighbour.sentence if neighbour else "",
            scenario=msgspec.json.format(encode_scenario(scenario), indent=1).decode(),
            replay=counterexample.replay,
            rows=side_by_side(expected_rows(result.case).elements(), result.history.committed),
            history=result.history,
            checkpoint=verdict.checkpoint,
            size=counterexample.size,
            scenarios=counterexample.scenarios,
            known=counterexample.known,
        )
        return Finding(
            counterexample=counterexample, view=view, scenario=scenario, confirmed=self._confirmed(one, result)
        )

    def _confirmed(self, one: Group, result: Result) -> bool:
        """Whether PySpark judged one of the group, and the shrunk case, as the quick checker did."""
        if all(outcome.index in self._found.unconfirmed for outcome in one.outcomes):
            return False
        try:
            examined = self._oracle.examine([question_of(result)])
        except CutproofError as error:
            self._found.failures.append(one_line(error))
            return False
        for _, words in examined.disagreements:
            self._found.failures.append(f"the two judges disagree about {one.invariant}'s shrunk case: {words}")
        return not examined.disagreements


def witness_of(verdict: Violated) -> str:
    """What the checker points at, line by line."""
    lines = [verdict.message]
    if verdict.tasks:
        lines.append(f"tasks: {', '.join(verdict.tasks)}")
    lines.extend(verdict.records)
    lines.extend(verdict.events)
    return "\n".join(lines)


def _merged(first: Finding, second: Finding) -> Finding:
    """Two groups that failed for one cause: the smaller case tells it."""
    smaller = min(first, second, key=lambda finding: sum(size_of(finding.scenario)))
    scenarios = first.counterexample.scenarios + second.counterexample.scenarios
    return msgspec.structs.replace(
        smaller,
        counterexample=msgspec.structs.replace(smaller.counterexample, scenarios=scenarios),
        view=msgspec.structs.replace(smaller.view, scenarios=scenarios),
        confirmed=first.confirmed or second.confirmed,
    )
