from __future__ import annotations

from cutproof.reports.charts.trend import Chart
from cutproof.reports.model import ScenarioCounts
from cutproof.reports.nights.counts import table_of
from cutproof.reports.nights.model import Growth
from cutproof.reports.nights.page import render_nights
from cutproof.reports.nights.trends import defects_chart, trends_of
from cutproof.reports.nights.view import view_of
from unit.reports.nights import banks

FAULTS, TRANSITIONS = "Coverage: targets", "Coverage: transitions"


def charts(*fields: dict[str, object]) -> dict[str, Chart]:
    nights = [banks.night(at, subjects=[banks.subject_night(at, **one)]) for at, one in enumerate(fields)]
    (one,) = trends_of(nights)
    return {chart.title: chart for chart in one.charts}


def test_each_subject_has_its_charts_and_that_of_the_newest_night_is_first() -> None:
    nights = [
        banks.night(0, subjects=[banks.subject_night(0, subject="processes"), banks.subject_night(0)]),
        banks.night(1, subjects=[banks.subject_night(1)]),
    ]
    assert [(one.subject, one.nights, len(one.charts)) for one in trends_of(nights)] == [
        ("simulated", 2, 8),
        ("processes", 1, 8),
    ]


def test_a_planted_defect_makes_no_other_subject() -> None:
    assert [*charts({}, {"defect": "A01"})["Scenarios a second"].lines[0].points[0]][-1][0] == 1


def test_coverage_is_what_the_night_and_all_nights_so_far_have_hit() -> None:
    found = charts({"hits": {"a": 1, "b": 2}, "possible": 4}, {"hits": {"b": 1, "c": 1, "d": 0}, "possible": 4})[FAULTS]
    assert [line.points for line in found.lines] == [(((0, 2), (1, 3)),), (((0, 2), (1, 2)),)]
    assert found.caption == "All nights together hit 3 coverage targets of 4 possible ones."
    assert found.limit == 4


def test_targets_in_tables_are_counted_once_whatever_the_order_of_the_columns() -> None:
    one = table_of({("aligned", "kill-task"): 2, ("none", "fail-read"): 1}, ["kill-task", "fail-read"])
    other = table_of({("aligned", "kill-task"): 5, ("aligned", "fail-read"): 1}, ["fail-read", "kill-task"])
    found = charts({"targets": one, "hits": {"a": 1}}, {"targets": other, "hits": {"a": 1}})[FAULTS]
    assert [line.points for line in found.lines] == [(((0, 3), (1, 4)),), (((0, 3), (1, 3)),)]


def test_what_is_possible_is_not_drawn_where_it_would_flatten_the_lines() -> None:
    found = charts({"hits": {"a": 1}, "possible": 10_236})[FAULTS]
    assert found.limit is None
    assert "10,236 possible" in found.caption


def test_transitions_are_counted_beside_the_targets_and_those_never_taken_are_named() -> None:
    grown = [Growth(scenarios=10, hit=1, taken=1), Growth(scenarios=400, hit=1, taken=2)]
    first = {"transitions": {"a: x": 3, "b: x": 0, "b: y": 1, "b: z": 0}, "growth": grown}
    then = {"transitions": {"a: x": 1, "b: x": 2, "b: y": 0, "b: z": 0}, "growth": []}
    nights = [banks.night(at, subjects=[banks.subject_night(at, **one)]) for at, one in enumerate((first, then))]
    (found,) = trends_of(nights)
    by_title = {chart.title: chart for chart in found.charts}
    coverage, growth = by_title[TRANSITIONS], by_title["Growth of coverage: transitions"]
    assert [line.points for line in coverage.lines] == [(((0, 2), (1, 3)),), (((0, 2), (1, 2)),)]
    assert coverage.caption == "All nights together took 3 of the 4 transitions that the subject counts."
    assert growth.lines[0].points == (((0, 0), (10, 1), (400, 2), (1_000, 2), (2_000, 3)),)
    assert growth.caption == "The last new transition was taken within the first 2,000 scenarios."
    assert found.never_taken == ("b: z",)


def test_targets_that_no_night_hit_are_named_as_the_newest_night_left_them() -> None:
    first = {"hits": {"a": 1}, "possible": 9, "not_hit": ["b", "c", "d"]}
    then = {"hits": {"b": 1, "c": 1}, "possible": 9, "not_hit": ["d", "e"]}
    nights = [banks.night(at, subjects=[banks.subject_night(at, **one)]) for at, one in enumerate((first, then))]
    (found,) = trends_of(nights)
    assert found.not_hit == ("d", "e", "and 4 more")
    whole = banks.night(2, subjects=[banks.subject_night(2, hits={"d": 1}, possible=4, not_hit=[])])
    (found,) = trends_of([*nights, whole])
    assert found.not_hit == ()
    page = render_nights(view_of(nights[:1], []))
    assert "Targets that no night has hit" in page


def test_a_night_that_found_nothing_has_no_time_to_first_failure() -> None:
    found = charts({"first_failure_s": 8.0}, {"first_failure_s": None}, {"first_failure_s": 90.0})[
        "Time to first failure"
    ]
    assert found.lines[0].points == (((0, 8.0),), ((2, 90.0),))
    assert found.caption == "2 of 3 nights found a failure by exploring; half of them within 49 s."


def test_what_was_not_measured_has_no_chart() -> None:
    nothing: dict[str, object] = {
        "scenarios": ScenarioCounts(), "hits": {}, "transitions": {}, "growth": [], "checkpoints_ms": None,
        "recoveries_ms": None, "first_failure_s": None,
    }  # fmt: skip
    assert charts(nothing) == {}


def test_defects_are_a_trend_where_a_night_tried_several() -> None:
    one = banks.night(0, defects_caught=(1, 1))
    several = banks.night(1, defects_caught=(104, 108))
    assert defects_chart([banks.night(0), one]) is None
    found = defects_chart([one, several])
    assert found is not None
    assert found.caption == "The last night that tried planted defects caught 104 of 108."
