"""Which failures are one: by point and shape, by experiment, and by what is left when known faults are taken out."""

from __future__ import annotations

from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtTime, KillTask
from cutproof.harness.chaos.identity import id_of, is_explained, is_one_bug, shape_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.known_failures import Cause
from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Edge, Topology, Workload
from unit.harness.chaos.banks import failure
from unit.harness.scenarios import chain

LOST = Cause(invariant="exactly-once", difference="lost row", point="", subject="simulated")


def _aligned(scenario: Scenario, alignment: str) -> Scenario:
    return replace(scenario, engine=replace(scenario.engine, alignment=alignment))


def _without_operators(scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        workload=Workload(name="copy", inputs=scenario.workload.inputs),
        topology=Topology(
            parallelism={"source": 2, "sink": 2},
            edges=(Edge(sender="source", receiver="sink", partitioning="forward"),),
        ),
        faults=(),
        commands=(),
        deviations=(),
    )


class LosesARow:
    """The reference engine, but the last committed row is lost if `when` says so."""

    name = "simulated"

    def __init__(self, when: object, *, real_time: bool = False) -> None:
        self._engine, self._when, self._real_time = SimulatedSubject(), when, real_time

    @property
    def capabilities(self) -> Capabilities:
        return replace(self._engine.capabilities, real_time=self._real_time)

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        history = self._engine.run(scenario, timeline=timeline)
        return replace(history, committed=history.committed[:-1]) if self._when(scenario) else history  # type: ignore[operator]


def test_the_shape_is_the_operators_in_order_and_the_alignment() -> None:
    assert shape_of(chain()) == "map > keyed, aligned"
    assert shape_of(_aligned(_without_operators(chain()), "timeout")) == "no operator, timeout"


def test_the_defect_is_no_part_of_the_identity_and_all_else_is() -> None:
    ids = {
        id_of(LOST, "keyed, aligned"),
        id_of(LOST, "keyed, unaligned"),
        *(id_of(replace(LOST, **{name: "other"}), "keyed, aligned") for name in LOST.__struct_fields__),
    }
    assert len(ids) == 2 + len(LOST.__struct_fields__)


def test_one_bug_in_two_alignments_is_one() -> None:
    always = LosesARow(lambda _: True)
    small, large = _without_operators(chain()), _aligned(chain(), "unaligned")
    assert is_one_bug(always, LOST, small, large)
    assert is_one_bug(always, LOST, large, small)


def test_a_bug_that_needs_its_alignment_is_another() -> None:
    subject = LosesARow(lambda scenario: scenario.engine.alignment == "unaligned" or len(scenario.workload.nodes) == 0)
    aligned_only = LosesARow(lambda scenario: scenario.engine.alignment == "aligned")
    small, large = _without_operators(chain()), _aligned(chain(), "unaligned")
    assert is_one_bug(subject, LOST, small, large)
    assert not is_one_bug(aligned_only, LOST, small, large)


def test_other_operators_are_another_bug() -> None:
    keyed = replace(chain(), workload=replace(chain().workload, nodes=chain().workload.nodes[1:]))
    mapped = replace(chain(), workload=replace(chain().workload, nodes=chain().workload.nodes[:1]))
    assert not is_one_bug(LosesARow(lambda _: True), LOST, keyed, mapped)


def test_in_real_time_nothing_is_tried() -> None:
    subject = LosesARow(lambda _: True, real_time=True)
    assert not is_one_bug(subject, LOST, _without_operators(chain()), _aligned(chain(), "unaligned"))
    assert is_one_bug(subject, LOST, _without_operators(chain()), chain())


KILL = KillTask(trigger=AtPoint(point="ack-sent", occurrence=1), task="count-1")


def _outcome(*faults: KillTask) -> ScenarioOutcome:
    scenario = replace(chain(), faults=faults, commands=(), deviations=())
    return ScenarioOutcome(index=0, scenario=scenario, verdicts={})


def test_a_scenario_that_fails_without_the_known_faults_is_not_explained() -> None:
    known = [failure()]  # at ack-sent
    other = KillTask(trigger=AtTime(at_us=1_500), task="count-0")
    needs_it = LosesARow(lambda scenario: KILL in scenario.faults)
    needs_the_other = LosesARow(lambda scenario: other in scenario.faults)
    both = _outcome(KILL, other)
    assert is_explained(needs_it, both, "exactly-once", "lost row", known)
    assert not is_explained(needs_the_other, both, "exactly-once", "lost row", known)
    assert not is_explained(needs_it, _outcome(other), "exactly-once", "lost row", known), "it has no such fault"
    assert not is_explained(needs_it, both, "exactly-once", "lost row", [])
    faultless = [replace(failure(), point="")]
    assert is_explained(needs_the_other, both, "exactly-once", "lost row", faultless)
