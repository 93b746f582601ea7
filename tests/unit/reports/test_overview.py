from __future__ import annotations

import re

import msgspec
import pytest

from cutproof.faults.points import PHASES as POINT_PHASES
from cutproof.harness.search.profiles import REAL_TIME_PROFILES, Share, shortfalls
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.verdict import INVARIANTS
from cutproof.reports.coverage import stops_shown
from cutproof.reports.model import (
    Counterexample,
    Coverage,
    FaultCounts,
    InvariantCounts,
    OracleCounts,
    ReportView,
    ScenarioCounts,
    StopCounts,
    Summary,
)
from cutproof.reports.overview import PHASES, headline, heat_map, invariant_lines, never, outcome, why_short
from cutproof.reports.render import render_html
from cutproof.reports.text import render_text
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


def test_a_night_whose_replays_alone_failed_has_not_held() -> None:
    replayed = msgspec.structs.replace(_known("order"), known="")
    night = Summary(scenarios=HELD, counterexamples=[replayed])
    assert (headline(night), outcome(night)) == ("order was violated.", "violated")
    assert outcome(Summary(scenarios=HELD, counterexamples=[replayed], failures=["x"])) == "failed"
    assert outcome(Summary(scenarios=HELD, counterexamples=[_known("order")])) == "held"


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
    unfired = Summary(pipeline="toy", faults={"kill-node": FaultCounts(planned=4)})
    assert heat_map(unfired).phases == ()


OF_A_PIPELINE = Summary(
    pipeline="toy",
    subject="pipeline:toy.toml",
    scenarios=ScenarioCounts(run=3, held=1, unknown=2),
    invariants={
        "exactly-once": InvariantCounts(
            can_show=3,
            exercised=1,
            holds=1,
            unknown=2,
            reasons={"not exercised": 2},
            not_exercised={"no fault struck: its aim was never met": 2},
        ),
        "order": InvariantCounts(unknown=3, reasons={"not observable": 3}),
        "visibility": InvariantCounts(holds=3),
    },
    faults={"kill-node": FaultCounts(planned=3, fired=1, phases={"halfway": 1})},
    stops={"natural-end": StopCounts(planned=3, finished=3), "cancel": StopCounts()},
    coverage=Coverage(possible=48),
    not_tried=["fault kill-task"],
    unapplied={"kill-node": 2},
    why_unapplied={"kill-node": {"its aim was never met": 2}},
)


@pytest.mark.parametrize("verbose", [False, True])
def test_of_a_pipeline_only_what_it_can_reach_is_shown(verbose: bool) -> None:
    shown = render_text(OF_A_PIPELINE, verbose=verbose) + (render_html(ReportView(summary=OF_A_PIPELINE)) * verbose)
    assert "Not promised, or not seen from outside a pipeline: order." in shown
    for absent in (
        "coverage target",
        "Coverage:",
        "way to end",
        "Every way to end",
        "checkpoints completed",
        "kill-task",
    ):
        assert absent not in shown, absent
    lines = {line.name: line.can_show for line in invariant_lines(OF_A_PIPELINE)}
    assert lines == {"exactly-once": 3, "visibility": None}
    assert re.search(r"^visibility +holds +3 +0 +0 +- +0$", shown, re.MULTILINE)
    stopped = {**OF_A_PIPELINE.stops, "stop": StopCounts(planned=1)}
    assert set(stops_shown(msgspec.structs.replace(OF_A_PIPELINE, stops=stopped))) == {"natural-end", "stop"}


def test_why_a_pipeline_was_not_exercised_is_reported() -> None:
    text_shown = " ".join(render_text(OF_A_PIPELINE).split())
    assert "Not exercised: exactly-once: no fault struck: its aim was never met (2)." in text_shown
    assert never(OF_A_PIPELINE) == (
        *(one for one in never(OF_A_PIPELINE) if "Never planned" in one),
        "Planned, but never applied: kill-node (2: its aim was never met (2)).",
    )
    assert invariant_lines(OF_A_PIPELINE)[0].reasons == ("not exercised 2 (no fault struck: its aim was never met (2))")
    (sentence,) = shortfalls(
        REAL_TIME_PROFILES["smoke"],
        {"exactly-once": Share(shown=1, can_show=3)},
        frozenset(),
        Capabilities(),
        why_short(OF_A_PIPELINE),
    )
    assert sentence.endswith("75 % are wanted: no fault struck: its aim was never met (2)")
