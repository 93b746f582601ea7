from __future__ import annotations

import pytest

from cutproof.faults.points import PHASES as POINT_PHASES
from cutproof.properties.model.verdict import INVARIANTS
from cutproof.reports.model import (
    Counterexample,
    FaultCounts,
    InvariantCounts,
    OracleCounts,
    ScenarioCounts,
    Summary,
)
from cutproof.reports.overview import PHASES, headline, heat_map, invariant_lines, never, outcome
from cutproof.reports.words import PROMISES, plural
from unit.reports import stories

HELD = ScenarioCounts(run=3, held=3)
BROKEN = {"order": InvariantCounts(violated=1), "progress": InvariantCounts(violated=2)}


def _known(invariant: str) -> Counterexample:
    return Counterexample(id="k", invariant=invariant, scenario="", story="", replay="", known="a bug of ours")


@pytest.mark.parametrize(
    ("summary", "text_shown", "marked"),
    [
        (Summary(scenarios=HELD), "Everything that was judged held.", "held"),
        (Summary(), "Nothing was run.", "short"),
        (Summary(scenarios=ScenarioCounts(run=2, unknown=2)), "Nothing could be judged.", "short"),
        (Summary(scenarios=HELD, interrupted=True), "Interrupted: nothing was violated until then.", "short"),
        (Summary(scenarios=HELD, shortfalls=["x"]), "Nothing was violated, but the run fell short", "short"),
        (Summary(scenarios=HELD, failures=["Spark is gone"]), "The harness failed", "failed"),
        (Summary(scenarios=HELD, oracle=OracleCounts(disagreements=1)), "The harness failed", "failed"),
        (Summary(scenarios=HELD, invariants=BROKEN), "order and progress were violated.", "violated"),
        (Summary(invariants=BROKEN, failures=["x"], interrupted=True), "order and progress were", "violated"),
    ],
)
def test_the_headline_states_the_worst(summary: Summary, text_shown: str, marked: str) -> None:
    assert headline(summary).startswith(text_shown)
    assert outcome(summary) == marked


def test_a_known_failure_is_no_violation_but_stays_in_sight() -> None:
    summary = Summary(scenarios=HELD, invariants=BROKEN, counterexamples=[_known("order")])
    assert headline(summary) == "progress was violated."
    assert {line.name: line.verdict for line in invariant_lines(summary)} == {"order": "known", "progress": "violated"}


def test_violated_invariants_come_first() -> None:
    lines = invariant_lines(stories.summary())
    assert [line.name for line in lines][:3] == ["consistent-cut", "exactly-once", "no-data-loss"]
    assert lines[1].reasons == "not exercised 60, not promised 42"


def test_the_heat_map_has_a_cell_for_every_phase_and_its_hottest_is_one() -> None:
    heat = heat_map(stories.summary())
    assert heat.phases == PHASES
    shares = [share for line in heat.lines for _, share in line.cells]
    assert max(shares) == 1.0
    by_kind = {line.kind: [number for number, _ in line.cells] for line in heat.lines}
    assert by_kind["tear-write"] == [0] * len(PHASES)
    counts = stories.summary().faults["kill-task"].phases
    assert by_kind["kill-task"] == [counts.get(phase, 0) for phase in PHASES]


def test_a_phase_that_nobody_knows_gets_a_column() -> None:
    summary = Summary(faults={"kill-task": FaultCounts(planned=1, fired=1, phases={"dreaming": 1})})
    assert heat_map(summary).phases[-1] == "dreaming"


def test_what_was_never_reached_is_reported() -> None:
    text_shown = " ".join(never(stories.summary()))
    assert "Planned, but never fired: tear-write." in text_shown
    assert "No fault fired while the job was: deploying." in text_shown
    assert "The subject cannot do: fault pause-node." in text_shown
    assert "Planned, but never applied: schedule perturbation of a write (17)." in text_shown
    assert "raise-in-operator" in text_shown


def test_phases_and_promises_are_those_of_the_other_rooms() -> None:
    assert tuple(POINT_PHASES) == PHASES
    assert set(INVARIANTS) <= set(PROMISES)


def test_plurals() -> None:
    assert [plural(1, "row"), plural(0, "row"), plural(1200, "recovery")] == ["1 row", "0 rows", "1,200 recoveries"]


def test_the_faults_of_a_pipeline_are_counted_by_their_aims_alone() -> None:
    faults = {"kill-node": FaultCounts(planned=4, fired=3, phases={"halfway": 2, "at a time": 1})}
    summary = Summary(faults=faults)
    assert heat_map(summary).phases == ("at a time", "halfway")
    assert not [sentence for sentence in never(summary) if "while the job was" in sentence]
