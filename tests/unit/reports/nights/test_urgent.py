from __future__ import annotations

from typing import Any

import pytest

from cutproof.reports.model import ScenarioCounts
from cutproof.reports.nights.urgent import Urgent
from cutproof.reports.nights.view import lead, view_of
from unit.reports.nights import banks


def urgent(lives: dict[str, str], **last: Any) -> Urgent:
    return view_of(*banks.told(lives, **last)).urgent


NAME = "exactly-once on simulated (row repeated)"


@pytest.mark.parametrize(
    ("lives", "headline"),
    [
        ({"a": "nx ", "b": "  n"}, f"Look at the new failure: {NAME}."),
        ({"a": "  n", "b": "  n", "c": "nox"}, f"Look at the 2 new failures, first: {NAME}."),
        ({"a": "nox", "b": "nxx"}, f"A fixed failure is back: {NAME}."),
        ({"a": "nox", "b": "nox"}, f"2 fixed failures are back, first: {NAME}."),
        ({"a": "nxx", "b": "n~~"}, f"Nothing new: fix the failure that still fails: {NAME}."),
        ({"a": "nxx", "b": "nxx"}, f"Nothing new: fix the 2 failures that still fail, first: {NAME}."),
        ({"a": "n~~"}, f"Nothing new: look at the flaky failure: {NAME}, in 3 of 10 runs."),
        ({"a": "nx ", "b": "nxo"}, f"Nothing new, but the last night did not replay {NAME}."),
        ({"a": "nx?", "b": "nx?"}, f"Nothing failed, but {NAME} and 1 more are not known to be fixed."),
        ({"a": "nkk"}, "Nothing to do: only 1 known failure showed."),
        ({"a": "nxo"}, "Nothing to do: everything that was judged held."),
    ],
)
def test_the_most_urgent_failure_is_the_headline(lives: dict[str, str], headline: str) -> None:
    assert urgent(lives).headline == headline


def short(**fields: Any) -> Any:
    return [banks.subject_night(1, **fields)]


@pytest.mark.parametrize(
    ("last", "kind", "outcome"),
    [
        ({"ended": None, "exit_code": None}, "cut-off", "failed"),
        ({"exit_code": 130}, "interrupted", "short"),
        ({"exit_code": 4}, "failed", "failed"),
        ({"exit_code": 2}, "failed", "failed"),
        ({"exit_code": 1}, "failed", "failed"),  # it says violated, and the bank holds nothing that fails
        ({"exit_code": 1, "unshrunk": 2}, "unshrunk", "violated"),
        ({"subjects": short(failures=["Toxiproxy did not start."])}, "failed", "failed"),
        ({"exit_code": 3}, "short", "short"),
        ({"subjects": short(shortfalls=["drain: 0 scenarios."])}, "short", "short"),
        ({"unshrunk": 2}, "unshrunk", "short"),
        ({"unshrunk": 2, "unshrunk_elsewhere": 2}, "unshrunk", "short"),
        ({"exit_code": 1, "unshrunk": 2, "unshrunk_elsewhere": 2}, "failed", "failed"),
        ({"put_aside": 1}, "damaged", "short"),
        ({}, "held", "held"),
    ],
)
def test_a_night_that_did_not_do_its_work_is_never_held(last: dict[str, Any], kind: str, outcome: str) -> None:
    found = urgent({"a": "no"}, **last)
    assert (found.kind, found.outcome) == (kind, outcome)


def test_a_failure_goes_before_a_night_that_was_cut_off_if_that_night_saw_it() -> None:
    cut_off: dict[str, Any] = {"ended": None, "exit_code": None}
    assert urgent({"a": " n"}, **cut_off).kind == "new"
    assert urgent({"a": "nx "}, **cut_off).kind == "cut-off"


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        ({"ended": None, "exit_code": None}, "cut-off"),
        ({"exit_code": 130}, "interrupted"),
        ({"exit_code": 4}, "failed"),
        ({"exit_code": 1, "subjects": short(failures=["Toxiproxy did not start."])}, "failed"),
        ({"exit_code": 1, "unshrunk": 2}, "unshrunk"),
        ({"exit_code": 1, "put_aside": 1}, "damaged"),
        ({"exit_code": 1}, "still_failing"),
    ],
)
def test_a_failure_that_is_told_already_does_not_hide_that_the_night_may_have_missed_a_new_one(
    last: dict[str, Any], kind: str
) -> None:
    assert urgent({"a": "nx"}, **last).kind == kind
    assert urgent({"a": "nx", "b": " n"}, **last).kind == "new"


def test_a_night_without_a_judged_scenario_holds_nothing() -> None:
    empty = banks.night(0, subjects=[banks.subject_night(0, run=0, scenarios=ScenarioCounts())])
    assert view_of([empty], []).urgent.kind == "empty"


@pytest.mark.parametrize("last", [{"exit_code": 130}, {"ended": None, "exit_code": None}])
def test_a_night_that_was_ended_amid_failing_scenarios_does_not_say_that_it_found_nothing(last: dict[str, Any]) -> None:
    failing = [banks.subject_night(1, scenarios=ScenarioCounts(run=9, held=6, violated=3))]
    assert "Until then 3 scenarios failed" in urgent({"a": "no"}, subjects=failing, **last).more
    assert lead(view_of(*banks.told({}, subjects=failing, **last))).endswith(
        ": 3 scenarios failed, and no failure of the bank has changed."
    )
    assert "Nothing new was found until then." in urgent({"a": "no"}, **last).more


def test_the_page_of_a_night_that_has_only_begun_says_nothing_of_what_it_found() -> None:
    begun = view_of(*banks.told({"a": "n "}, subjects=[], ended=None, exit_code=None))
    assert "written at its begin" in begun.urgent.more
    assert "until then" not in begun.urgent.more
    assert lead(begun) == ""


def test_a_night_that_was_too_short_to_be_judged_says_so() -> None:
    assert urgent({"a": "no"}, unjudged="The run had 80 of the 50,000 scenarios.").more.startswith("The run had 80 of")


def test_beside_a_known_failure_the_page_does_not_say_that_all_else_held_while_scenarios_failed() -> None:
    failing = [banks.subject_night(1, scenarios=ScenarioCounts(run=9, held=6, violated=3))]
    assert urgent({"a": "nk"}, subjects=failing).more.startswith("3 scenarios failed, and showed no other failure.")
    assert urgent({"a": "nk"}).more.startswith("Everything else that was judged held.")


def test_without_a_night_there_is_nothing_to_say() -> None:
    found = view_of([], [])
    assert (found.urgent.kind, found.last, lead(found)) == ("none", None, "")


def test_the_command_and_the_story_are_those_of_the_failure() -> None:
    nights, _ = banks.told({"a": "n"})
    failure = banks.failure("a", story="Row 7 shows twice.", replay="cutproof replay it", shrunk=False)
    found = view_of(nights, [failure]).urgent
    assert found.replay == "cutproof replay it"
    assert found.more == "Row 7 shows twice. It is not shrunk yet; the next night goes on with it."


def test_the_last_night_in_one_sentence() -> None:
    found = view_of(*banks.told({"a": "nx", "b": "n~", "c": "no", "d": " n"}))
    assert lead(found) == (
        "The night of 2026-02-04 02:17 UTC ran 1,000 scenarios on simulated in 2 h: "
        "1 failure is new, 1 still fails, 1 is flaky, 1 is fixed."
    )


def test_a_night_that_was_cut_off_is_named_by_the_next() -> None:
    nights, failures = banks.told({"a": "noo"})
    nights[1] = banks.night(1, nights[1].replays, ended=None, exit_code=None)
    rows = view_of(nights, failures).nights
    assert [row.notes for row in rows] == [
        ("The night before it, of 2026-02-04 02:17 UTC, did not run to its end.",), (), ()
    ]  # fmt: skip


def test_the_table_has_the_same_speed_as_the_trend() -> None:
    subject = banks.subject_night(0, run=90, seconds=60.0, scenarios_per_second=4.5)
    other = banks.subject_night(0, run=30, subject="processes", scenarios_per_second=3.0)
    silent = banks.subject_night(0, run=30, subject="kafka", scenarios_per_second=0.0)
    view = view_of([banks.night(0, subjects=[subject, other, silent])], [])
    assert view.nights[0].per_second == "4.0"
    assert [one.charts[0].title == "Scenarios a second" for one in view.subjects] == [True, True, False]


def test_the_name_of_a_file_at_the_begin_of_a_note_keeps_its_letters() -> None:
    night = banks.night(0, words=["bank/failures/a1 is cut off", "the clock went back"])
    assert view_of([night], []).nights[0].notes == ("bank/failures/a1 is cut off.", "The clock went back.")


def test_a_clock_that_went_back_gives_no_negative_time() -> None:
    night = banks.night(3, ended=banks.began(2))
    assert view_of([night], []).nights[0].took == "–"
