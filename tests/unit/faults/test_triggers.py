"""What sets things off: a time, the n-th occurrence of a point, a phase; each action once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cutproof.faults.injectors.triggers import Triggers
from cutproof.faults.plan import AtPoint, AtTime, InPhase


class Clock:
    """Triggers, with a clock that carries nothing out by itself."""

    def __init__(self) -> None:
        self.now = 100
        self.appointments: list[tuple[int, Callable[[], None]]] = []
        self.triggers = Triggers(lambda: self.now, lambda time, action: self.appointments.append((time, action)))
        self.done: list[str] = []

    def wait(self, name: str, trigger: AtTime | AtPoint | InPhase) -> None:
        self.triggers.add(trigger, lambda: self.done.append(name))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_time_is_the_environments_to_keep(clock: Clock) -> None:
    clock.wait("hit", AtTime(at_us=700))
    ((time, action),) = clock.appointments
    assert (time, clock.done) == (700, [])
    action()
    assert clock.done == ["hit"]
    assert (clock.triggers.points, clock.triggers.phases) == (frozenset(), False)


def test_a_point_of_a_task_counts_its_own_occurrences(clock: Clock) -> None:
    clock.wait("hit", AtPoint(point="ack-sent", occurrence=2, task="a-0"))
    for task in ("a-0", "b-0", "b-0"):
        clock.triggers.reached("ack-sent", task, "after")
    assert clock.done == []
    clock.triggers.reached("ack-sent", "a-0", "after")
    clock.triggers.reached("ack-sent", "a-0", "after")
    assert clock.done == ["hit"]


def test_a_point_of_any_task_counts_them_all(clock: Clock) -> None:
    clock.wait("hit", AtPoint(point="ack-sent", occurrence=3))
    for task in ("a-0", "b-0"):
        clock.triggers.reached("ack-sent", task, "after")
    assert clock.done == []
    clock.triggers.reached("ack-sent", "c-0", "after")
    assert clock.done == ["hit"]


def test_a_point_of_the_coordinator_has_no_task(clock: Clock) -> None:
    clock.wait("hit", AtPoint(point="checkpoint-completed", occurrence=2))
    clock.triggers.reached("checkpoint-completed", None, "after")
    assert clock.done == []
    clock.triggers.reached("checkpoint-completed", None, "after")
    assert clock.done == ["hit"]


def test_before_and_after_are_counted_apart(clock: Clock) -> None:
    clock.wait("before", AtPoint(point="ack-sent", side="before"))
    clock.wait("after", AtPoint(point="ack-sent", occurrence=2))
    clock.triggers.reached("ack-sent", "a-0", "before")
    assert clock.done == ["before"]
    clock.triggers.reached("ack-sent", "a-0", "after")
    clock.triggers.reached("ack-sent", "a-0", "before")
    assert clock.done == ["before"]
    clock.triggers.reached("ack-sent", "a-0", "after")
    assert clock.done == ["before", "after"]


def test_several_can_wait_for_the_same(clock: Clock) -> None:
    clock.wait("first", AtPoint(point="ack-sent"))
    clock.wait("second", AtPoint(point="ack-sent"))
    clock.wait("later", AtPoint(point="ack-sent", occurrence=2))
    clock.triggers.reached("ack-sent", "a-0", "after")
    assert clock.done == ["first", "second"]


def test_it_names_the_points_it_waits_for(clock: Clock) -> None:
    clock.wait("a", AtPoint(point="ack-sent", task="a-0"))
    clock.wait("b", AtPoint(point="record-read", side="before"))
    assert clock.triggers.points == {"ack-sent", "record-read"}
    assert not clock.triggers.phases


def test_a_phase_is_entered_for_the_nth_time(clock: Clock) -> None:
    clock.wait("hit", InPhase(phase="aligning", occurrence=2))
    clock.triggers.entered("aligning")
    clock.triggers.entered("running")
    assert clock.done == []
    assert clock.triggers.phases
    clock.triggers.entered("aligning")
    clock.triggers.entered("aligning")
    assert clock.done == ["hit"]
    assert not clock.triggers.phases, "nothing waits for a phase any more"


def test_a_phase_can_be_hit_a_while_later(clock: Clock) -> None:
    clock.wait("hit", InPhase(phase="aligning", after_us=40))
    clock.triggers.entered("aligning")
    assert clock.done == []
    ((time, action),) = clock.appointments
    action()
    assert (time, clock.done) == (140, ["hit"])
