"""Which scenarios one value of a parameter violates and another does not, and the page that says so."""

from __future__ import annotations

import json
from pathlib import Path

from cutproof.harness.search.variants import differences, variant_of
from cutproof.reports.model import Counterexample, InvariantCounts, ScenarioCounts, Summary
from cutproof.reports.variants import Difference, Variants, headline, in_words, render_variants, table


def folder(parent: Path, name: str, *lines: dict[str, str]) -> Path:
    """A run folder with the verdicts of its scenarios, in the order in which they ended."""
    made = parent / name
    made.mkdir()
    written = [
        {
            "type": "scenario",
            "index": index,
            "verdicts": {name: {"verdict": verdict} for name, verdict in verdicts.items()},
        }
        for index, verdicts in reversed(list(enumerate(lines)))
    ]
    text = "".join(json.dumps(line) + "\n" for line in [*written, {"type": "system", "number": 0}])
    (made / "scenarios.jsonl").write_text(text, encoding="utf-8")
    return made


BROKEN = {"exactly-once": "violated", "progress": "holds"}
SOUND = {"exactly-once": "holds", "progress": "holds"}
UNKNOWN = {"exactly-once": "unknown", "progress": "holds"}


def test_a_scenario_that_one_value_violates_and_another_does_not_is_a_difference(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", SOUND, BROKEN), folder(tmp_path, "new", SOUND, SOUND)
    assert differences({"1.4": old, "1.5": new}) == [
        Difference(index=1, invariant="exactly-once", violated=["1.4"], held=["1.5"])
    ]


def test_what_both_violate_is_none_and_neither_is_what_only_one_has_run(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", BROKEN, BROKEN), folder(tmp_path, "new", BROKEN)
    assert differences({"1.4": old, "1.5": new}) == []


def test_what_is_unknown_with_the_other_value_is_not_said_to_hold(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", BROKEN), folder(tmp_path, "new", UNKNOWN)
    (found,) = differences({"1.4": old, "1.5": new})
    assert found.held == []
    assert in_words(found) == "scenario 0: exactly-once is violated with 1.4"


def both(tmp_path: Path) -> Variants:
    counts = {"exactly-once": InvariantCounts(violated=1, holds=1)}
    failed = Summary(
        scenarios=ScenarioCounts(run=2, held=1, violated=1),
        invariants=counts,
        counterexamples=[
            Counterexample(
                id="x", invariant="exactly-once", scenario="x.json", story="a row <twice>", replay="cutproof replay x"
            )
        ],
    )
    sound = Summary(scenarios=ScenarioCounts(run=2, held=2), invariants={"exactly-once": InvariantCounts(holds=2)})
    return Variants(
        pipeline="queue",
        parameter="version",
        seed=1,
        variants=[
            variant_of("1.4", tmp_path / "version=1.4", 1, failed),
            variant_of("1.5", tmp_path / "version=1.5", 0, sound),
        ],
        differences=[Difference(index=1, invariant="exactly-once", violated=["1.4"], held=["1.5"])],
    )


def test_the_table_sets_both_side_by_side(tmp_path: Path) -> None:
    found = both(tmp_path)
    assert headline(found) == "version: violated with 1.4; held with 1.5"
    assert [(name, [cell.word for cell in cells]) for name, cells in table(found)] == [
        ("exactly-once", ["violated in 1 of 2", "holds in 2"])
    ]


def test_what_was_not_shown_is_not_called_held(tmp_path: Path) -> None:
    """A value whose scenarios could not be run, or exercised nothing, has shown nothing."""
    nothing = Summary(scenarios=ScenarioCounts(run=3, unknown=3))
    found = Variants(
        pipeline="queue",
        parameter="how",
        seed=1,
        variants=[variant_of("a", tmp_path / "a", 3, nothing), variant_of("b", tmp_path / "b", 4, Summary())],
    )
    assert headline(found) == "how: not shown with a and b"
    assert '<header class="short">' in render_variants(found)


def test_the_page_has_what_differs_and_the_command_and_escapes_what_it_quotes(tmp_path: Path) -> None:
    page = render_variants(both(tmp_path))
    for said in (
        "scenario 1: exactly-once is violated with 1.4, and holds with 1.5",
        "a row &lt;twice&gt;",
        "cutproof replay x",
        'href="version=1.4/report.html"',
    ):
        assert said in page
    assert "<twice>" not in page
