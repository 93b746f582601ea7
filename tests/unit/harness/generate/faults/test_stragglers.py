"""Messages are drawn that outlive their job, and meet the one that followed."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.faults.plan import AnyFault, LateMessage, RepeatMessage
from cutproof.faults.points import CONTROL_MESSAGES
from cutproof.harness.generate import strategies
from cutproof.harness.generate.choices import Choices
from cutproof.harness.generate.faults.stragglers import AGAIN_BEHIND_A_CANCEL, AGAIN_BEHIND_A_STOP
from cutproof.harness.generate.situations.templates import FAULTLESS
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.processes import ProcessesSubject
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.layout import layout_of
from cutproof.harness.scenario.model import Resume, Scenario
from cutproof.harness.subject.run import run
from cutproof.reference_impl.core.decisions.fencing import Fencing
from cutproof.reference_impl.core.lifecycle.coordinator import Coordinator
from cutproof.reference_impl.core.vocabulary.effects import Effect
from cutproof.reference_impl.core.vocabulary.events import Event, Received
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.messages import ToTask, kind_of

SEED = 6
TEMPLATES = ("laid-out-anew", "S9", FAULTLESS)
MANY = 160


def without(choices: Choices, scenario: Scenario, most: int, **known: bool) -> Scenario:
    return scenario


def pairs(drawing: Drawing, many: int) -> list[tuple[Scenario, Scenario]]:
    """Scenarios as they are drawn but for what is drawn after stragglers, and as they would be without stragglers."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(strategies, "with_few_tolerated", without)  # it goes by the faults that are there
        for later in ("with_older_snapshots", "with_forks", "with_forgetful_inputs"):
            patched.setattr(strategies, later, lambda choices, scenario: scenario)
        patched.setattr(strategies, "with_deletions", without)
        patched.setattr(strategies, "with_copies", without)
        patched.setattr(strategies, "with_file_faults", without)
        patched.setattr(strategies, "with_state_in_files", without)
        drawn = [draw(SEED, index) for draw in [scenario_of(drawing)] for index in range(many)]
        patched.setattr(strategies, "with_stragglers", without)
        plain = [draw(SEED, index) for draw in [scenario_of(drawing)] for index in range(many)]
    return list(zip(drawn, plain, strict=True))


@pytest.fixture(scope="module")
def found() -> list[tuple[Scenario, Scenario]]:
    return pairs(Drawing(templates=TEMPLATES, max_records=40), MANY)


def test_nothing_else_of_a_scenario_moves(found: list[tuple[Scenario, Scenario]]) -> None:
    """One fault more, or one perturbation more, behind those that there are; and only where a job follows another."""
    more = [(one, other) for one, other in found if one != other]
    assert 20 < len(more) < MANY / 2
    for one, other in more:
        assert any(isinstance(command, Resume) for command in one.commands)
        faults, deviations = one.faults[: len(other.faults)], one.deviations[: len(other.deviations)]
        assert msgspec.structs.replace(one, faults=faults, deviations=deviations) == other
        assert len(one.faults) + len(one.deviations) == len(other.faults) + len(other.deviations) + 1
        assert one.name != FAULTLESS or one.faults == ()


def test_most_messages_are_drawn_and_of_tasks_that_there_are(found: list[tuple[Scenario, Scenario]]) -> None:
    kinds: Counter[str] = Counter()
    for one, other in found:
        layouts = layout_of(one.workload, one.topology, one.engine.committing)
        for fault in one.faults[len(other.faults) :]:
            assert isinstance(fault, LateMessage | RepeatMessage)
            kinds[fault.message] += 1
        for late in one.deviations[len(other.deviations) :]:
            _, message, task = late.what.split()
            kinds[message] += 1
            assert task in layouts.tasks or len([c for c in one.commands if isinstance(c, Resume)]) > 1
    assert set(kinds) <= {*AGAIN_BEHIND_A_CANCEL, *AGAIN_BEHIND_A_STOP}
    assert len(kinds) > 5
    assert set(kinds) <= set(CONTROL_MESSAGES)


def test_what_is_late_meets_the_job_that_followed(
    found: list[tuple[Scenario, Scenario]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is violated by it."""
    met: Counter[str] = Counter()
    addressed, step = Fencing.addressed, Coordinator.step

    def watched(self: Fencing, message: ToTask, job: int, newest: AttemptId) -> AttemptId | None:
        met[kind_of(message)] += message.job < job
        return addressed(self, message, job, newest)

    def stepped(self: Coordinator, event: Event) -> list[Effect]:
        if isinstance(event, Received):
            met[kind_of(event.message)] += event.message.job < self.job
        return step(self, event)

    late = [one for one, other in found if one != other]
    monkeypatch.setattr(Fencing, "addressed", watched)
    monkeypatch.setattr(Coordinator, "step", stepped)
    for scenario in late:
        assert not run(SimulatedSubject(), scenario).judgement.violated
    assert sum(met.values()) > len(late) / 4
    assert len(+met) >= 5


def test_in_real_time_they_are_faults_that_last_no_longer_than_others() -> None:
    drawing = Drawing(capabilities=ProcessesSubject().capabilities)
    more = [one.faults[-1] for one, other in pairs(drawing, 300) if one.faults != other.faults]
    assert more
    lates = [fault.by_us if isinstance(fault, LateMessage) else expect(fault).after_us for fault in more]
    assert max(lates) <= 30_000


def expect(fault: AnyFault) -> RepeatMessage:
    assert isinstance(fault, RepeatMessage)
    return fault
