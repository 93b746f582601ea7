"""The transitions of barrier alignment that a run has taken, against what the time line of the run shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtTime, KillTask
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.port import Capabilities, SubjectFailed
from cutproof.harness.subject.run import run
from unit.harness.scenarios import chain

KILLED = replace(chain(24), faults=(KillTask(trigger=AtTime(at_us=2_500), task="count-1"),))
OVERTAKING = replace(KILLED, engine=replace(KILLED.engine, alignment="unaligned"))


def barriers(transitions: Mapping[str, int], signal: str = "barrier") -> int:
    """How many barriers came, whatever they found."""
    return sum(count for name, count in transitions.items() if f": {signal}" in name)


@pytest.mark.parametrize("defect", [None, "B07", "J08"])
@pytest.mark.parametrize("scenario", [KILLED, OVERTAKING], ids=["in their turn", "overtaking"])
def test_each_barrier_that_a_task_received_is_a_transition_in_every_attempt(
    scenario: Scenario, defect: str | None
) -> None:
    """Also where the attempts after a restart have new machines, and where a defect has replaced their decisions."""
    result = run(SimulatedSubject(defect), scenario, timeline=True)
    received = [one for one in result.history.timeline if one.what == "barrier-received"]
    assert max(one.attempt for one in received) > 1
    assert not any(", new" in name for name in result.transitions if name.startswith("aligning")), (
        "it would count twice"
    )
    assert barriers(result.transitions) == len(received)


def test_a_run_counts_its_own_transitions_alone() -> None:
    subject = SimulatedSubject()
    first = run(subject, KILLED).transitions
    assert run(subject, OVERTAKING).transitions != first
    assert run(subject, KILLED).transitions == first


class Wrong(SimulatedSubject):
    """A subject that reports what it has not declared, or anything else."""

    def __init__(self, reported: Any) -> None:
        super().__init__()
        self._reported = reported

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, transitions=frozenset({"idle: ping"}))

    @property
    def transitions(self) -> Mapping[str, int]:
        return self._reported


@pytest.mark.parametrize(
    ("reported", "words"),
    [({"idle: pong": 1}, "'idle: pong', which its capabilities do not declare"), (["idle: ping"], "how often each")],
)
def test_what_is_no_count_of_a_declared_transition_is_refused_in_one_line(reported: object, words: str) -> None:
    with pytest.raises(SubjectFailed, match=words):
        run(Wrong(reported), KILLED)


def test_a_transition_that_was_not_taken_may_be_reported_so() -> None:
    assert run(Wrong({"idle: ping": 0}), KILLED).transitions == {}
