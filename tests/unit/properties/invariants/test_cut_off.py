"""progress: what is required of a run that was cut off: nothing while a fault lasted, nor when the harness ran out of
time."""

from __future__ import annotations

import pytest

from cutproof.harness.reference_engine.subjects.recorder import Recorder
from cutproof.properties.invariants.progress import check
from cutproof.properties.model.history import TaskFailed
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.reference_impl import observed as o
from unit.properties.asked import Asked
from unit.properties.histories import counting, recovered, resting
from unit.properties.toy import Toy

PAUSE, STALL = 1, 2


ASKED = Asked(check)
judged, difference, reason = ASKED.judged, ASKED.difference, ASKED.reason


def goes_through(toy: Toy, *happens: tuple[str, int]) -> None:
    """More faults, of kinds that last, as whoever records a run tells them."""
    recorder = Recorder(toy.seen, ["kill-task", "pause-task", "stall-channel"], lambda: 0, False)
    while recorder.order() < toy.order:
        pass
    for what, fault in happens:
        if what == "fires":
            recorder.saw(o.FaultFired(fault, "running", "", toy.attempt))
        elif what == "heals":
            recorder.saw(o.FaultHealed(fault))
        else:
            recorder.fault_lasts(fault)
    toy.order = recorder.order()


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    "happens",
    [
        [("fires", PAUSE)],
        [("lasts", STALL)],
        [("fires", PAUSE), ("fires", STALL), ("heals", STALL)],
        [("heals", PAUSE), ("fires", STALL), ("fires", PAUSE)],
    ],
    ids=["it was felt", "nobody felt it", "of two", "felt late"],
)
def test_a_run_cut_off_while_a_fault_lasted_shows_nothing(bounded: bool, happens: list[tuple[str, int]]) -> None:
    toy = recovered(counting(bounded=bounded))
    toy.seen.quiet = False
    goes_through(toy, *happens)
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert (verdict.reason, verdict.detail) == ("not observable", "a fault lasted until the run was cut off")
    goes_through(toy, *[("heals", fault) for fault in (PAUSE, STALL)])
    assert difference(toy) == ("no rest" if bounded else "input not covered")


def test_a_fault_that_lasts_without_having_been_felt_is_no_run_without_faults() -> None:
    toy = Toy(counting())
    toy.start()
    toy.seen.quiet = False
    goes_through(toy, ("lasts", STALL))
    assert reason(toy) == "not observable"


def test_a_job_that_ended_well_while_a_fault_lasted_has_achieved_its_end() -> None:
    toy = recovered()
    toy.finish()
    toy.seen.quiet = False
    goes_through(toy, ("fires", PAUSE))
    assert judged(toy) == Holds(exercised=1)


@pytest.mark.parametrize("bounded", [True, False])
def test_of_a_run_that_the_harness_cut_short_no_rest_is_expected(bounded: bool) -> None:
    toy = recovered(counting(bounded=bounded))
    toy.seen.quiet, toy.seen.cut_short = False, True
    assert reason(toy) == "not observable"
    toy.seen.cut_short = False
    assert difference(toy) == ("no rest" if bounded else "input not covered")


def test_what_fails_in_a_run_that_was_cut_short_is_found() -> None:
    toy = recovered()
    toy.seen.quiet, toy.seen.cut_short = False, True
    toy.note(TaskFailed, task="count-0", attempt=2, reason="KeyError: 3")
    assert difference(toy) == "unexplained failure"


# -- a job that never ends ----------------------------------------------------------------------------------------


def test_a_checkpoint_is_expected_of_a_resumed_job_though_all_its_input_was_covered_before() -> None:
    toy = resting()
    toy.stop()
    toy.resume()
    toy.seen.quiet = False
    verdict = judged(toy)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "no checkpoint"
    assert verdict.message == "everything had healed, and job 2 completed no checkpoint until it was cut off"
    toy.seen.cut_short = True
    assert reason(toy) == "not observable"
    toy.seen.cut_short = False
    toy.checkpoint_now()
    assert isinstance(judged(toy), Holds)


def test_a_checkpoint_from_before_healing_is_none_after_it() -> None:
    toy = resting()
    toy.seen.quiet = False
    assert isinstance(judged(toy), Holds)
    toy.seen.healed = toy.order + 1
    assert difference(toy) == "no checkpoint"


def test_at_most_once_no_checkpoint_is_expected() -> None:
    toy = Toy(counting(bounded=False), guarantee="at-most-once")
    toy.start()
    toy.seen.quiet = False
    assert not isinstance(judged(toy), Violated)
