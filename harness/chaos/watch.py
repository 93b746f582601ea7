"""What a night keeps of a search while it goes on: each chunk is counted, and what fails is in the bank at once.

Of many scenarios that fail alike the first in the order of drawing are kept, in whatever order they come: so the bank
does not depend on the number of workers, or on which of them was faster.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ...reports.model import ScenarioCounts
from ...reports.nights.model import Growth, Origin
from ..counterexamples.findings import violation_of
from ..generate.aims import Learnt
from ..runtime.exit_codes import CutproofError
from ..search.coverage import AnyTarget, in_words
from ..search.outcome import ScenarioOutcome
from ..subject.port import Capabilities
from .bank import Bank
from .identity import names_of_fault, points_of
from .records import Unshrunk
from .transitions import TransitionTally

WAITING = {"unexplained": 20, "perhaps explained": 8, "explained": 4}
"""failing scenarios with one difference that wait at a time to be shrunk, by whether known failures explain them;
further ones are only counted"""
ALIKE = 2
"""of those, so many with faults at the same points"""
NOT_RUN = 100
"""scenarios that the subject could not run, and that are kept; further ones are only counted"""
CURVE = 200
"""points of the growth curve; with more, each second one is left out"""


class BankLost(Exception):
    """The bank cannot be written any more; it ends the search, which reports any exception."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A failing scenario that waits to be shrunk."""

    index: int
    violation: tuple[str, str]
    kind: str
    """whether known failures explain it, as in `WAITING`"""
    names: frozenset[str]
    """of its faults"""


class Watch:
    """Where a search of a night stores its scenarios (`search.Keeper`)."""

    def __init__(
        self,
        bank: Bank,
        night: str,
        subject: str,
        defect: str,
        capabilities: Capabilities,
        *,
        first: str,
        before: dict[str, int],
        learnt: Learnt,
        origin: Callable[[int], Origin],
        on_chunk: Callable[[], None],
    ) -> None:
        """`first`: the invariant that a planted defect must violate.  `before`: the hits of all earlier nights, and
        `learnt` what they know of transitions.
        `origin`: where a scenario was drawn.  `on_chunk` is called after each chunk, to write the night."""
        self._bank, self._night, self._subject, self._defect = bank, night, subject, defect
        self._real_time = capabilities.real_time
        self._first = first
        self._origin, self._on_chunk = origin, on_chunk
        self._before = {name for name, count in before.items() if count}
        self._new = set[AnyTarget]()
        """targets that no earlier night has hit"""
        self._words = Counter[str]()
        self._kept: dict[Path, _Kept] = {}
        """by their files the failing scenarios that wait"""
        self._began = time.perf_counter()
        self.hits = Counter[AnyTarget]()
        self.transitions = TransitionTally(capabilities.transitions, learnt)
        self.growth: list[Growth] = []
        self.first_failure_s: float | None = None
        self._not_run = 0
        self.not_kept = 0
        """failing scenarios that were only counted"""
        self.seconds = 0.0
        """since the first scenario was drawn, without pauses for shrinking"""
        self.error: CutproofError | None = None
        """why the bank could not be written"""

    @property
    def counts(self) -> ScenarioCounts:
        words = {word: self._words[word] for word in ("held", "violated", "unknown")}
        return ScenarioCounts(run=self._words.total(), **words)

    def begin(self) -> None:
        """A search begins, or goes on."""
        self._began = time.perf_counter() - self.seconds

    def add(self, outcomes: Iterable[ScenarioOutcome]) -> None:
        self.seconds = time.perf_counter() - self._began
        try:
            for outcome in outcomes:
                self._add(outcome)
            self._grow()
            self._on_chunk()
        except CutproofError as error:
            self.error = error
            raise BankLost(str(error)) from None

    def add_counterexample(self, name: str, text: str) -> str:
        """A scenario that the subject could not run; returns its file, or nothing if it is only counted."""
        if self._not_run >= NOT_RUN:
            return ""
        self._not_run += 1
        try:
            return self._bank.add_not_run(self._night, name, text)
        except CutproofError as error:
            self.error = error
            raise BankLost(str(error)) from None

    def _add(self, outcome: ScenarioOutcome) -> None:
        self._words[outcome.in_a_word] += 1
        hit: tuple[AnyTarget, ...] = (*outcome.measured.targets, *outcome.measured.snapshots)
        for target in hit:
            if target not in self.hits and in_words(target) not in self._before:
                self._new.add(target)
            self.hits[target] += 1
        self.transitions.add(outcome)
        if outcome.violations:
            if self.first_failure_s is None:
                self.first_failure_s = round(self.seconds, 3)
            self._keep(outcome)

    def _keep(self, outcome: ScenarioOutcome) -> None:
        names = frozenset(name for fault in outcome.scenario.faults for name in names_of_fault(fault))
        violation = violation_of(outcome, self._first)
        kind = self._explained(violation, names)
        self._kept = {path: one for path, one in self._kept.items() if path in self._bank.unshrunk}
        waiting = [path for path, one in self._kept.items() if (one.violation, one.kind) == (violation, kind)]
        alike = [path for path in waiting if self._kept[path].names == names]
        rivals = alike if len(alike) >= ALIKE else waiting if len(waiting) >= WAITING[kind] else []
        last = max(rivals, key=lambda path: self._kept[path].index, default=None)
        if last is not None:
            self.not_kept += 1
            if self._kept[last].index < outcome.index:
                return
        path = self.keep(outcome, self._origin(outcome.index))
        self._kept[path] = _Kept(index=outcome.index, violation=violation, kind=kind, names=names)
        if last is not None:
            self._bank.drop_unshrunk(last)

    def keep(self, outcome: ScenarioOutcome, origin: Origin) -> Path:
        """Keep a failing scenario to be shrunk; returns its file."""
        return self._bank.add_unshrunk(
            Unshrunk(
                night=self._night,
                subject=self._subject,
                defect=self._defect,
                found=datetime.datetime.now(tz=datetime.UTC),
                origin=origin,
                outcome=replace(outcome, shown=None, history=outcome.history if self._real_time else None),
            )
        )

    def _explained(self, violation: tuple[str, str], names: frozenset[str]) -> str:
        """Whether known failures may be all that a scenario with these faults shows, as far as its faults say."""
        failures = [one for one in self._bank.failures.values() if one.subject == self._subject]
        points = points_of([one for one in failures if (one.invariant, one.difference) == violation])
        if "" in points:
            return "explained"
        return "perhaps explained" if points & names else "unexplained"

    def _grow(self) -> None:
        now = self._now
        last = self.growth[-1] if self.growth else None
        if last is None or (last.hit, last.taken) != (now.hit, now.taken) or not now.scenarios:
            self.growth.append(now)
        if len(self.growth) > CURVE:
            self.growth = [*self.growth[:-1:2], self.growth[-1]]

    @property
    def _now(self) -> Growth:
        """The targets and the transitions of this night and all earlier ones."""
        hit = len(self._before) + len(self._new)
        return Growth(scenarios=self._words.total(), hit=hit, taken=self.transitions.taken_so_far)

    @property
    def curve(self) -> list[Growth]:
        """The growth curve, up to the last scenario."""
        is_whole = bool(self.growth) and self.growth[-1].scenarios == self._words.total()
        return self.growth if is_whole else [*self.growth, self._now]
