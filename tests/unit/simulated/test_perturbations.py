"""The one port of every choice, and faults that wait for the next of their kind."""

from __future__ import annotations

from cutproof.reference_impl.driver.arms import Arms
from cutproof.reference_impl.driver.perturbations import Perturbations


def test_the_named_occurrence_is_late_and_no_other() -> None:
    perturbations = Perturbations([("step a-0", 2, 70), ("step a-0", 4, 5), ("write a-0", 1, 9)])
    assert [perturbations.late("step a-0") for _ in range(5)] == [0, 70, 0, 5, 0]
    assert [perturbations.late("write a-0"), perturbations.late("write a-0")] == [9, 0]


def test_what_nobody_named_is_never_late_and_costs_nothing() -> None:
    perturbations = Perturbations([("step a-0", 1, 70)])
    assert perturbations.late("step b-0") == 0
    assert perturbations.of("step b-0") is None
    lateness = perturbations.of("step a-0")
    assert lateness is not None
    assert lateness.next() == 70


def test_what_never_came_is_reported() -> None:
    perturbations = Perturbations([("step a-0", 1, 70), ("step a-0", 3, 5), ("read b-0", 1, 9)])
    perturbations.late("step a-0")
    assert perturbations.unapplied() == ["step a-0, occurrence 3", "read b-0, occurrence 1"]


def test_an_armed_fault_is_taken_once_by_its_own_target() -> None:
    arms = Arms()
    assert arms.take("fail-write", "a-0") is None
    arms.arm("fail-write", "a-0", 3)
    assert arms.take("fail-write", "b-0") is None
    assert arms.take("fail-read", "a-0") is None
    assert arms.take("fail-write", None) is None
    assert arms.take("fail-write", "a-0") == 3
    assert arms.take("fail-write", "a-0") is None


def test_faults_of_one_target_are_taken_in_order_and_as_often_as_they_last() -> None:
    arms = Arms()
    arms.arm("refused", None, 1, times=2)
    arms.arm("refused", None, 2)
    arms.arm("refused", "a-0", 5)
    assert [arms.take("refused", None) for _ in range(2)] == [1, 1]
    assert arms.remaining() == [2, 5]
