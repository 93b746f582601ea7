"""progress: a machine that is too slow to judge by time accuses nobody, and excuses nothing else."""

from __future__ import annotations

from cutproof.properties.invariants.progress import check
from cutproof.properties.model.history import TaskFailed
from cutproof.properties.model.verdict import Unknown
from unit.properties.asked import Asked
from unit.properties.histories import recovered
from unit.properties.toy import Toy

ASKED = Asked(check)
judged, difference = ASKED.judged, ASKED.difference


def silent(reason: str = "no heartbeat", *, starved: bool = True) -> Toy:
    toy = recovered()
    toy.finish()
    toy.seen.starved = starved
    toy.seen.journal.append(TaskFailed(order=10**6, at_us=1, task="count-0", attempt=1, reason=reason))
    return toy


def test_silence_on_a_machine_that_is_too_slow_accuses_nobody() -> None:
    verdict = judged(silent())
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not observable"
    assert "the machine was too slow: count-0 of attempt 1 sent no heartbeat" in verdict.detail


def test_silence_elsewhere_and_another_failure_there_are_unexplained() -> None:
    assert difference(silent(starved=False)) == "unexplained failure"
    assert difference(silent("KeyError: 3")) == "unexplained failure"


def test_a_machine_that_is_too_slow_has_its_failure_of_rest_excused() -> None:
    toy = recovered()
    toy.seen.quiet = False
    assert difference(toy) == "no rest"
    toy.seen.starved = True
    verdict = judged(toy)
    assert isinstance(verdict, Unknown)
    assert verdict.reason == "not observable"
