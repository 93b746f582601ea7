"""How long a sink waits for the answer to a commit: one that is refused comes at once, silence takes a timeout."""

from __future__ import annotations

import pytest

from cutproof.faults.plan import AtTime, FailCommit
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.properties.model.history import FaultFired
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.simulated.world import World
from unit.simulated.worlds import fired, job, journal


class Answers:
    """Hears when commits are answered."""

    points = frozenset({"commit-answered"})
    phases = False

    def __init__(self, world: World) -> None:
        self._world = world
        self.received_at: list[int] = []

    def reached(self, point: str, task: str | None, side: str) -> None:
        if side == "before":
            self.received_at.append(self._world.loop.now)

    def entered(self, phase: str) -> None:
        """Phases are not asked for."""

    def job_ended(self, job: int, status: Status) -> None:
        """Nothing follows."""


@pytest.mark.parametrize(
    ("how", "setting"),
    [
        ("refused", "transaction_us"),
        ("unavailable", "transaction_timeout_us"),
        ("lost-response", "transaction_timeout_us"),
    ],
)
def test_a_refusal_is_answered_at_once_and_silence_after_the_time_out(how: str, setting: str) -> None:
    scenario = job(faults=(FailCommit(trigger=AtTime(at_us=4_000), how=how),))
    driven = Run(scenario, Parts(), False)
    answers = Answers(driven.world)
    driven.world.direct(answers)
    history = driven.history()
    assert fired(history) == ["fail-commit"]
    (fault,) = journal(FaultFired, history)
    wait_us = getattr(driven.world.settings, setting)
    assert min(at for at in answers.received_at if at > fault.at_us) == fault.at_us + wait_us


def test_the_time_out_is_longer_than_an_answer_takes() -> None:
    settings = Run(job(), Parts(), False).world.settings
    assert settings.transaction_timeout_us > 2 * settings.transaction_us
