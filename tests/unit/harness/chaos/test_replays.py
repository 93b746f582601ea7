"""Replays: each status, from runs of a subject that fails when it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.chaos.index import Standing
from cutproof.harness.chaos.replays import CLEAR, CLEARLY_FLAKY, RUNS, Replayer
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.port import Capabilities, SubjectFailed
from cutproof.properties.model.history import History
from cutproof.reports.nights.model import Failure, Replay
from unit.harness.chaos.banks import failure
from unit.harness.scenarios import chain

KILL = KillTask(trigger=AtPoint(point="ack-sent", occurrence=1), task="count-1")
SCENARIO = replace(chain(), faults=(KILL,), commands=(), deviations=())
NEVER = KillTask(trigger=AtPoint(point="ack-sent", occurrence=900), task="count-1")
UNREACHED = replace(SCENARIO, faults=(NEVER,))
FOUND = replace(failure(), fired=(0,))


class Losing:
    """The reference engine; its n-th run loses a row if the n-th of these values says so, from the end on the last."""

    name = "losing"

    def __init__(self, loses: Sequence[bool], *, real_time: bool = False, reached: bool = False) -> None:
        self._engine, self._loses, self._real_time = SimulatedSubject(), loses, real_time
        self._reached = reached
        self.runs = 0

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._engine.capabilities, real_time=self._real_time)

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        lost = self._loses[min(self.runs, len(self._loses) - 1)]
        self.runs += 1
        history = self._engine.run(scenario, timeline=timeline)
        history.defect_reached = self._reached
        return replace(history, committed=history.committed[:-1]) if lost else history


def replayed(
    subject: Losing,
    scenario: Scenario = SCENARIO,
    *,
    found: Failure = FOUND,
    before: Standing | None = None,
    defect: str = "",
    redraw: Callable[[Failure], Scenario] = lambda _: UNREACHED,
) -> Replay:
    return Replayer(subject, defect, redraw, lambda work: work()).replayed(found, scenario, before).replay


class Repeating(Losing):
    """The same, but a run that does not lose a row has its last row twice."""

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        history = super().run(scenario, timeline=timeline)
        return replace(history, committed=[*history.committed, history.committed[-1]])


def test_in_virtual_time_one_run_decides() -> None:
    assert replayed(Losing([True])) == Replay(failure=FOUND.id, status="still_failing", runs=1, violated=1)
    assert replayed(Losing([False])) == Replay(failure=FOUND.id, status="fixed", runs=1)


@pytest.mark.parametrize(
    ("loses", "status", "runs", "violated"),
    [
        ([True], "still_failing", CLEAR, CLEAR),
        ([True, False], "flaky", CLEARLY_FLAKY, 1),
        ([*[False] * 7, True, False], "flaky", 8, 1),
        ([False], "fixed", RUNS, 0),
    ],
)
def test_in_real_time_as_many_runs_as_it_takes(loses: list[bool], status: str, runs: int, violated: int) -> None:
    seen = replayed(Losing(loses, real_time=True))
    assert (seen.status, seen.runs, seen.violated) == (status, runs, violated)


def test_a_run_in_which_the_invariant_is_violated_in_another_way_shows_no_fix() -> None:
    seen = Replayer(Repeating([False]), "", lambda _: SCENARIO, lambda work: work()).replayed(FOUND, SCENARIO, None)
    assert seen.replay.status == "not_reached"
    assert seen.replay.words == "exactly-once is violated in another way: repeated row"
    assert seen.other is not None
    assert seen.other.judgement.violated.keys() == {"exactly-once"}


def test_what_else_a_fixed_failure_violates_is_not_dropped() -> None:
    found = replace(FOUND, invariant="no-data-loss")
    seen = Replayer(Repeating([False]), "", lambda _: SCENARIO, lambda work: work()).replayed(found, SCENARIO, None)
    assert seen.replay.status == "fixed"
    assert seen.other is seen.result is not None


def test_a_run_in_which_the_invariant_was_not_exercised_shows_no_fix() -> None:
    found = replace(FOUND, invariant="drain")
    assert replayed(Losing([False]), found=found, redraw=lambda _: SCENARIO).status == "not_reached"


def test_a_failure_whose_fault_no_longer_fires_is_not_fixed() -> None:
    seen = replayed(Losing([False]), UNREACHED)
    assert seen.status == "not_reached"
    assert "nothing is known" in seen.words


def test_it_is_found_again_from_its_seed() -> None:
    seen = replayed(Losing([False, True]), UNREACHED, redraw=lambda _: SCENARIO)
    assert (seen.status, seen.found_again, seen.runs, seen.violated) == ("still_failing", True, 1, 1)


def test_the_scenario_of_its_seed_may_show_that_it_is_fixed() -> None:
    seen = replayed(Losing([False]), UNREACHED, redraw=lambda _: SCENARIO)
    assert seen.status == "fixed"
    assert "drawn from its seed" in seen.words


def test_a_planted_defect_has_to_be_reached_as_long_as_it_is_planted() -> None:
    planted = replace(FOUND, defect="A01")
    assert replayed(Losing([False]), found=planted, defect="A01").status == "not_reached"
    assert replayed(Losing([False], reached=True), found=planted, defect="A01").status == "fixed"
    assert replayed(Losing([False]), found=planted).status == "fixed", "the defect has been removed"


def test_one_that_comes_back_is_called_so() -> None:
    fixed = Standing(status="fixed", runs=3, violated=2, fixed=True)
    seen = replayed(Losing([True]), before=fixed)
    assert (seen.again, seen.words) == (True, "again: an earlier night found it fixed")
    seen = replayed(Losing([True]), before=replace(fixed, fixed=False))
    assert (seen.again, seen.words) == (False, "")


def test_a_flaky_one_is_fixed_when_so_many_runs_hold_that_it_is_hardly_chance() -> None:
    before = Standing(status="flaky", runs=10, violated=1)
    seen = replayed(Losing([False], real_time=True), before=before)
    assert (seen.status, seen.held) == ("not_reached", RUNS)
    assert seen.words == "it showed in 1 of 10 runs; at that rate all 10 runs since hold by chance in 35% of cases"
    two_nights_later = Standing(status="not_reached", runs=30, violated=1, held=20)
    seen = replayed(Losing([False], real_time=True), before=two_nights_later)
    assert (seen.status, seen.words[-32:]) == ("fixed", "since hold by chance in 4% of cases"[-32:])
    assert replayed(Losing([False]), before=before).words == "", "in virtual time nothing is left to chance"


def test_a_scenario_that_is_refused_is_not_reached_and_a_failed_environment_is_no_answer() -> None:
    class Refusing(Losing):
        def __init__(self, error: Exception) -> None:
            super().__init__([False])
            self._error = error

        def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
            raise self._error

    seen = replayed(Refusing(SubjectFailed("no such operator")))
    assert (seen.status, seen.runs) == ("not_reached", 0)
    assert "no such operator" in seen.words
    with pytest.raises(HarnessFailed):
        replayed(Refusing(HarnessFailed("no server")))
