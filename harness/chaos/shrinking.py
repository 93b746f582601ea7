"""From failing scenarios to failures of the bank: what is new is shrunk, and no failure twice.

A failing scenario that known failures may explain (`identity.is_explained`) comes last.  If a night saw that those fail
still, it is dropped at the end; else it may show that one of them is back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...properties.model.history import History
from ...reports.model import Counterexample
from ...reports.nights.model import Failure, Replay
from ..counterexamples.findings import Finding, FindingBuilder, Keeping, violation_of
from ..runtime.interruption import Interruption
from ..runtime.progress import Progress
from ..scenario.files import decode_scenario
from ..scenario.model import Scenario
from ..search.campaign import promised_by, replay_command
from ..search.known_failures import KnownFailures
from ..search.oracle import Oracle
from ..search.pool import Pool
from ..search.search import Found
from ..search.summary import Tally
from ..search.worker import Plan
from ..subject.port import Subject
from ..subject.run import run
from .bank import Bank
from .identity import cause_of_failure, fired_in, id_of, is_explained, is_one_bug, shape_of
from .night import NightLog
from .records import FAILURES, SCENARIO, Unshrunk

CURRENT = ("new", "still_failing", "flaky")
EXPLAINED = 2
"""the rank of a failing scenario that a failure explains which fails still"""
REPETITIONS = 6
"""after so many shrunk scenarios in a row that showed what was known, those that known failures explain are left"""


class Shrinking:
    """The shrinking of one subject's failing scenarios in one night."""

    def __init__(
        self,
        bank: Bank,
        log: NightLog,
        plan: Plan,
        subject: Subject,
        pool: Pool,
        oracle: Oracle,
        *,
        known: KnownFailures,
        interruption: Interruption,
        progress: Progress,
    ) -> None:
        self._bank, self._log, self._plan, self._subject = bank, log, plan, subject
        self._pool, self._oracle = pool, oracle
        self._known, self._interruption, self._progress = known, interruption, progress
        self._first = promised_by(plan.defect)
        self._explained_by: dict[Path, tuple[str, ...]] = {}
        """failing scenarios that these failures may explain"""
        self._attempted: set[Path] = set()
        """scenarios that could not be made a failure tonight"""
        self.failures: list[str] = []
        """of the harness, each in one sentence"""
        self.counterexamples: list[Counterexample] = []
        """those that the night saw and found new, or back"""
        self._repetitions = 0
        self._began = False
        """something has been shrunk tonight"""
        self.confirmed: set[str] = set()
        """failures that both judges saw tonight"""
        self.dropped = 0
        """failing scenarios that known failures explain"""

    def waiting(self) -> dict[Path, Unshrunk]:
        """The failing scenarios of this subject that are still to be shrunk, of this night and of earlier ones."""
        defect = self._plan.defect or ""
        return {
            path: one
            for path, one in self._bank.unshrunk.items()
            if (one.subject, one.defect) == (self._plan.subject, defect) and path not in self._attempted
        }

    def work(self, deadline: float, unconfirmed: Mapping[int, str]) -> None:
        """Shrink until nothing is left, or the time is over.  What has begun is finished, and a night begins something
        also without time for it, since else a short one would never shrink.

        `unconfirmed`: by index the scenarios of this night that PySpark has not confirmed, and why.
        """
        self._drop_unconfirmed(unconfirmed)
        while not (self._interruption.came or self._pool.lost) and (time.monotonic() < deadline or not self._began):
            chosen = self._chosen()
            if not chosen:
                return
            self._began = True
            self._progress.step(f"shrinking what failed: {len(self.waiting())} scenarios")
            self._shrink(chosen)

    def drop_explained(self) -> None:
        """Forget what is left and explained by failures that this night saw failing."""
        for path in self.waiting():
            if self._rank(path) == EXPLAINED:
                self._bank.drop_unshrunk(path)
                self.dropped += 1

    def _drop_unconfirmed(self, unconfirmed: Mapping[int, str]) -> None:
        """Forget violations of the quick checker alone: they are failures of the harness, which the search reports."""
        for path, one in self.waiting().items():
            if one.night == self._log.night.id and unconfirmed.get(one.outcome.index) == "":
                self._bank.drop_unshrunk(path)
            elif one.night == self._log.night.id and one.outcome.index in unconfirmed:
                self._attempted.add(path)  # PySpark gave no answer: the next night asks again

    def _chosen(self) -> dict[Path, Unshrunk]:
        """What is shrunk next: one for each worker, with different differences."""
        waiting = self.waiting()

        def order(path: Path) -> tuple[int, int, int, int, str]:
            """Differences of which the bank has few failures come first, then small scenarios."""
            scenario = waiting[path].outcome.scenario
            many = len(self._alike(*violation_of(waiting[path].outcome, self._first)))
            disturbed = len(scenario.faults) + len(scenario.commands)
            return self._rank(path), many, disturbed, scenario.workload.records(), str(path)

        chosen: dict[tuple[str, str], Path] = {}
        for path in sorted(waiting, key=order):
            if self._rank(path) == EXPLAINED and self._repetitions >= REPETITIONS:
                break
            chosen.setdefault(violation_of(waiting[path].outcome, self._first), path)
        return {path: waiting[path] for path in list(chosen.values())[: self._pool.workers]}

    def _rank(self, path: Path) -> int:
        """What comes first: what no known failure explains, then what may show that one is back."""
        known = [self._bank.failures[one] for one in self._explanation(path)]
        if any(self._fails_tonight(one) for one in known):
            return EXPLAINED
        return 1 if known else 0

    def _fails_tonight(self, failure: Failure) -> bool:
        seen = self._log.replays.get(failure.id)
        return seen is not None and seen.status in CURRENT

    def _explanation(self, path: Path) -> tuple[str, ...]:
        """The known failures that may be all that a failing scenario shows."""
        one = self._bank.unshrunk[path]
        invariant, difference = violation_of(one.outcome, self._first)
        known = self._alike(invariant, difference)
        ids = tuple(sorted(failure.id for failure in known))
        before = self._explained_by.get(path)
        if before is None or before[0] != " ".join(ids):
            explained = is_explained(self._subject, one.outcome, invariant, difference, known)
            before = self._explained_by[path] = (" ".join(ids), *(ids if explained else ()))
        return before[1:]

    def _alike(self, invariant: str, difference: str) -> list[Failure]:
        return [
            one
            for one in self._bank.failures.values()
            if (one.subject, one.invariant, one.difference) == (self._plan.subject, invariant, difference)
        ]

    def _shrink(self, chosen: Mapping[Path, Unshrunk]) -> None:
        self._attempted.update(chosen)
        shown = {path: one for path, one in chosen.items() if self._still_shows(path, one)}
        found = Found(
            tally=Tally(),
            failing=[one.outcome for one in shown.values()],
            unconfirmed={},
            not_run=[],
            failures=[],
        )
        builder = FindingBuilder(
            self._pool,
            self._subject,
            self._oracle,
            found,
            known=self._known,
            keeping=Keeping(keep=lambda name, _: name, replay_command=lambda path: path, found_s=0.0),
            subject_name=self._plan.subject,
            interruption=self._interruption,
            first=self._first,
            shrink_s=self._plan.shrink_s,
        )
        findings = {finding.counterexample.id: finding for finding in builder.findings()}
        if found.interrupted:
            self._attempted.difference_update(chosen)
            return
        lost = self._pool.lost
        self.failures += [lost] if lost else found.failures
        for path, one in shown.items():
            invariant, _ = violation_of(one.outcome, self._first)
            finding = findings.get(f"{invariant}-{one.outcome.index}")
            if finding is None:
                continue
            unshrunk = finding.counterexample.seconds_to_shrink == 0
            if unshrunk and lost:
                self._attempted.discard(path)  # the next night shrinks it
            elif unshrunk or finding.confirmed:
                self._take(path, one, finding)

    def _still_shows(self, path: Path, one: Unshrunk) -> bool:
        """Whether a failing scenario of an earlier night still fails; one that does not is no counterexample now."""
        if one.night == self._log.night.id or self._subject.capabilities.real_time:
            return True
        with self._interruption.open():
            if run(self._subject, one.outcome.scenario).judgement.violated:
                return True
        self._log.add_words([f"a failing scenario that night {one.night} had left unshrunk holds now"])
        self._bank.drop_unshrunk(path)
        return False

    def _take(self, path: Path, one: Unshrunk, finding: Finding) -> None:
        """Make a finding a failure of the bank, or see in it one that the bank has."""
        scenario = decode_scenario(finding.view.scenario.encode())
        shape = shape_of(scenario)
        failure = self._same(finding, scenario) or self._bank.failures.get(id_of(finding.cause, shape))
        if failure is None and not self._showed_tonight(one, finding) and self._explanation(path):
            self._log.add_words([f"a failing scenario that night {one.night} had left unshrunk did not fail again"])
            self._bank.drop_unshrunk(path)
            return
        self._repetitions = 0 if failure is None else self._repetitions + 1
        if failure is None:
            failure = self._new(one, finding, scenario, shape)
            self._bank.add_failure(failure, scenario, self._history(finding))
            found = finding.counterexample
            earlier = f"it showed in night {one.night}, and in no run of this one"
            self._see(
                failure,
                Replay(
                    failure=failure.id,
                    status="new",
                    runs=1 + found.repetitions,
                    violated=1 + found.violated_again,
                    words="" if self._showed_tonight(one, finding) else earlier,
                ),
            )
        elif self._showed_tonight(one, finding) and not self._fails_tonight(failure):
            before = self._log.replays.get(failure.id)
            words = f"its own scenario did not show it; {self._source(one)} does"
            again = before is not None and before.status == "fixed"
            if again:
                words = f"again: {words}"
            seen = Replay(failure=failure.id, status="still_failing", runs=1, violated=1, found_again=True, words=words)
            self._see(failure, msgspec.structs.replace(seen, again=again))
        self._bank.drop_unshrunk(path)
        self.confirmed.add(failure.id)

    def _showed_tonight(self, one: Unshrunk, finding: Finding) -> bool:
        """Whether some run of this night failed: the recorded run of an earlier night says nothing about an engine that
        has been mended since."""
        of_tonight = one.night == self._log.night.id
        return of_tonight or not self._subject.capabilities.real_time or finding.counterexample.violated_again > 0

    def _source(self, one: Unshrunk) -> str:
        """Where a failing scenario came from, in words."""
        night = "this night" if one.night == self._log.night.id else f"night {one.night}"
        if one.outcome.index < 0:
            return f"the replay of another failure in {night}"
        return f"scenario {one.outcome.index} of {night}"

    def _see(self, failure: Failure, replay: Replay) -> None:
        self._log.add_replay(with_known(replay, failure, self._known))
        self.counterexamples.append(counterexample_of(failure, self._known))

    def _history(self, finding: Finding) -> History | None:
        return finding.view.history if self._subject.capabilities.real_time else None

    def _same(self, finding: Finding, scenario: Scenario) -> Failure | None:
        """The failure of the bank that shows the same bug at the same point, as far as can be told."""
        for failure in self._alike(finding.cause.invariant, finding.cause.difference):
            if failure.point == finding.cause.point and is_one_bug(
                self._subject, finding.cause, self._bank.scenario(failure.id), scenario
            ):
                return failure
        return None

    def _new(self, one: Unshrunk, finding: Finding, scenario: Scenario, shape: str) -> Failure:
        cause, found = finding.cause, finding.counterexample
        name = id_of(cause, shape)
        place = f"{FAILURES}/{name}/{SCENARIO}"
        history = finding.view.history
        return Failure(
            id=name,
            subject=self._plan.subject,
            defect=self._plan.defect or "",
            invariant=cause.invariant,
            difference=cause.difference,
            point=cause.point,
            shape=shape,
            found=one.found,
            night=one.night,
            version=self._bank.contents.nights[one.night].version,
            origin=one.origin,
            scenario=place,
            shrunk=found.seconds_to_shrink > 0,
            fired=fired_in(history) if history is not None else (),
            size=found.size,
            story=found.story,
            replay=replay_command(self._plan, Path(), place),
        )


def with_known(replay: Replay, failure: Failure, known: KnownFailures) -> Replay:
    """The replay with the reason why the failure is expected, if it is."""
    matched = known.match(cause_of_failure(failure))
    if matched is None:
        return replay
    return msgspec.structs.replace(replay, known=known.reason(cause_of_failure(failure)), expires=matched.expires)


def counterexample_of(failure: Failure, known: KnownFailures) -> Counterexample:
    """A failure of the bank as a summary shows it."""
    return Counterexample(
        id=failure.id,
        invariant=failure.invariant,
        scenario=failure.scenario,
        story=failure.story,
        replay=failure.replay,
        size=failure.size,
        difference=failure.difference,
        known=known.reason(cause_of_failure(failure)),
    )
