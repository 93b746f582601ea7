"""Subjects and oracles for the tests of the harness."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.oracle import Examined
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import AttemptStarted, History


class Lossy:
    """The reference engine, but the reader never sees the last committed row of key 0 once the job recovered."""

    name = "lossy"

    def __init__(self) -> None:
        self._engine = SimulatedSubject()
        self.runs = 0

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        self.runs += 1
        history = self._engine.run(scenario, timeline=timeline)
        starts = [entry for entry in history.journal if isinstance(entry, AttemptStarted)]
        hit = [row for row in history.committed if row[0] == 0]
        if len(starts) < 2 or not hit:
            return history
        kept = list(history.committed)
        kept.reverse()
        kept.remove(hit[-1])
        kept.reverse()
        return msgspec.structs.replace(history, committed=kept)


class InRealTime:
    """As `Lossy`, but no two runs are alike: it loses the row in every second run only, beginning with the first."""

    name = "in real time"

    def __init__(self, every: int = 2, at_most: int = 1_000_000) -> None:
        self._lossy, self._sound = Lossy(), SimulatedSubject()
        self._every, self._at_most = every, at_most
        self.runs = 0
        self.lost = 0
        self.closed = 0

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(self._sound.capabilities, real_time=True, deviations=False)

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        self.runs += 1
        sound = self._sound.run(scenario, timeline=timeline)
        if self.runs % self._every != 1 % self._every or self.lost >= self._at_most:
            return sound
        lossy = self._lossy.run(scenario, timeline=timeline)
        self.lost += lossy.committed != sound.committed
        return lossy

    def close(self) -> None:
        self.closed += 1


class Failing:
    """A subject that runs some scenarios, and then raises an error whenever it is asked."""

    name = "failing"

    def __init__(self, runs: int, error: Exception) -> None:
        self._engine = SimulatedSubject()
        self._left, self._error = runs, error
        self.refused = 0

    @property
    def capabilities(self) -> Capabilities:
        return msgspec.structs.replace(self._engine.capabilities, real_time=True, deviations=False)

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        if not self._left:
            self.refused += 1
            raise self._error
        self._left -= 1
        return self._engine.run(scenario, timeline=timeline)


class Broken:
    """A subject that cannot be driven through scenarios with an odd number of records."""

    name = "broken"

    def __init__(self) -> None:
        self._engine = SimulatedSubject()

    @property
    def capabilities(self) -> Capabilities:
        return self._engine.capabilities

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        if scenario.workload.records() % 2:
            raise RuntimeError("no connection\nat all")
        return self._engine.run(scenario, timeline=timeline)


class Agreeing:
    """An oracle that agrees, but for the positions it is told to disagree about in each batch."""

    def __init__(self, disagree: Sequence[int] = ()) -> None:
        self.started = False
        self.batches: list[int] = []
        self._disagree = disagree

    def start(self) -> None:
        self.started = True

    def wait(self) -> None:
        assert self.started

    def examine(self, questions: Sequence[bytes]) -> Examined:
        self.batches.append(len(questions))
        return Examined(
            engine="nobody",
            workloads=len(questions),
            expected_rows=7,
            queries=1,
            disagreements=tuple((at, "one row more") for at in self._disagree if at < len(questions)),
        )
