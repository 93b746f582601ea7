from __future__ import annotations

import msgspec
import pytest

from cutproof.reports.nights.lives import Life, fixed_before
from cutproof.reports.nights.view import NightsView, view_of
from cutproof.reports.nights.words import subject_of
from unit.reports.nights import banks


def view(lives: dict[str, str]) -> NightsView:
    return view_of(*banks.told(lives))


def life(letters: str) -> Life:
    """The life of one failure, which the nights of another one surround."""
    return next(one for one in view({"it": letters, "other": "n" + "o" * (len(letters) - 1)}).lives
                if one.failure.id == "it")  # fmt: skip


@pytest.mark.parametrize(
    ("letters", "standing"),
    [
        ("  n", "new"),
        ("n  ", "still_failing"),  # found in an earlier night, and not replayed since
        ("nxx", "still_failing"),
        ("nx~", "flaky"),
        ("nxo", "fixed"),
        ("no?", "not_reached"),
        ("nox", "again"),
        ("no~", "again"),
        ("no?x", "again"),  # the night in between could not tell
        ("noxx", "still_failing"),
        ("nox ", "still_failing"),  # it was back in an earlier night
        ("nkk", "known"),
        ("nok", "known"),
    ],
)
def test_how_a_failure_stands(letters: str, standing: str) -> None:
    assert life(letters).standing == standing


def test_a_failure_that_no_night_of_the_bank_has_seen_is_not_replayed() -> None:
    found = view_of([banks.night(5)], [banks.failure("it", found=2)])
    assert [one.standing for one in found.lives] == ["not_replayed"]


def test_a_failure_of_a_night_that_was_cut_off_before_it_wrote_its_replays_is_new() -> None:
    found = view_of([banks.night(2, ended=None, exit_code=None)], [banks.failure("it", found=2)])
    assert [(one.standing, one.nights) for one in found.lives] == [("new", "x")]


def test_a_known_failure_expires_in_the_first_night_after_its_last_day() -> None:
    known = {"known": "ENGINE-1: a bug", "expires": banks.began(2).date()}
    replays = [
        banks.replay("it", "n"), banks.replay("it", "x", **known), banks.replay("it", "x", **known),
        banks.replay("it", "x"), banks.replay("it", "x"),
    ]  # fmt: skip
    nights = [banks.night(number, [one]) for number, one in enumerate(replays)]
    standings = [view_of(nights[:many], [banks.failure("it")]).lives[0].standing for many in range(1, 6)]
    assert standings == ["new", "known", "known", "expired", "still_failing"]
    expired = view_of(nights[:4], [banks.failure("it")])
    assert "It was a known failure until 2026-02-05: ENGINE-1: a bug" in expired.lives[0].words
    assert [one.failure.id for one in expired.known] == ["it"]


def test_a_known_failure_whose_entry_was_removed_before_its_last_day_is_over_has_not_expired() -> None:
    known = banks.replay("it", "x", known="a bug", expires=banks.began(1).date())
    nights = [banks.night(0, [known]), banks.night(1, [banks.replay("it", "x")])]
    assert view_of(nights, [banks.failure("it")]).lives[0].standing == "still_failing"


@pytest.mark.parametrize(
    ("letters", "drawn"), [("nx o", "xx.o"), ("  n~?", "  x~?"), (" n k", " x.x")], ids=["gap", "late", "known"]
)
def test_a_life_has_a_letter_a_night(letters: str, drawn: str) -> None:
    assert life(letters).nights == drawn


FIXED_BEFORE = "It was fixed on 2026-02-04."


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("n", ""),
        ("nx", "1 night replayed it, and it failed, the last time on 2026-02-04."),
        ("n?", "1 night replayed it, and it did not fail."),
        ("n~x", "2 nights replayed it, and it failed in all of them, the last time on 2026-02-05."),
        (
            "nxoo",
            "3 nights replayed it, and it failed in 1 of them, the last time on 2026-02-04. Fixed since 2026-02-05.",
        ),
        ("no x", "2 nights replayed it, and it failed in 1 of them, the last time on 2026-02-06. " + FIXED_BEFORE),
        ("n~", "1 night replayed it, and it failed, the last time on 2026-02-04. It failed in 3 of the last 10 runs."),
        ("no ", "1 night replayed it, and it did not fail. Fixed since 2026-02-04. The last night did not replay it."),
    ],
)
def test_a_life_in_words(letters: str, words: str) -> None:
    assert life(letters).words == f"Found on 2026-02-03. {words}".strip()


def test_nights_of_one_day_are_told_apart_by_their_minute() -> None:
    early, late = banks.night(0, [banks.replay("it", "n")]), banks.night(1, [banks.replay("it", "o")])
    late = msgspec.structs.replace(late, began=banks.FIRST.replace(hour=4))
    words = view_of([early, late], [banks.failure("it")]).lives[0].words
    assert words.startswith("Found on 2026-02-03 02:17. ")
    assert words.endswith("Fixed since 2026-02-03 04:17.")


def test_a_failure_that_a_later_night_shrank_has_both_days() -> None:
    nights = [banks.night(0), banks.night(1, [banks.replay("it", "n")])]
    life = view_of(nights, [banks.failure("it")]).lives[0]
    assert (life.standing, life.words) == ("new", "Found on 2026-02-03, shrunk on 2026-02-04.")


def test_what_an_earlier_night_found_fixed_is_told_from_what_the_last_one_did() -> None:
    assert fixed_before(banks.told({"a": "noo", "b": "nxo", "c": "nox", "d": "no ", "e": "no?o"})[0]) == {"e"}
    assert fixed_before(banks.told({"a": "noo", "b": "nxo", "c": "nox", "d": "no "})[0]) == {"a"}


def test_a_failure_that_is_known_from_its_first_night_on_is_not_named_as_new() -> None:
    nights = [banks.night(0, [banks.replay("it", "n", known="ENGINE-1")])]
    row = view_of(nights, [banks.failure("it")]).nights[0]
    assert (row.found, row.seen.new, row.seen.known) == ((), 0, 1)


def test_a_fixed_failure_that_is_still_listed_as_known_says_so() -> None:
    nights = [banks.night(0, [banks.replay("it", "n")]), banks.night(1, [banks.replay("it", "o", known="a bug")])]
    found = view_of(nights, [banks.failure("it")]).lives[0]
    assert found.standing == "fixed"
    assert found.words.endswith("Fixed since 2026-02-04. It is still listed as a known failure.")


@pytest.mark.parametrize(
    ("subject", "defect", "words"),
    [
        ("simulated", "A01", "simulated with A01"),
        ("my_package.my_engine:MyEngine", "", "my_package.my_engine:MyEngine"),
        ("pipeline:kafka-copy", "", "kafka-copy"),
        ("pipeline:/srv/orders/pipeline.toml?version=2", "", "orders/pipeline.toml?version=2"),
    ],
)
def test_a_subject_is_named_so_that_it_can_be_read(subject: str, defect: str, words: str) -> None:
    assert subject_of(subject, defect) == words


def test_what_a_replay_says_stands_in_the_life_as_a_sentence_and_a_return_is_said_once() -> None:
    letters = {"n": "", "o": "", "x": "again: an earlier night found it fixed; it was found again from its seed"}
    nights = [
        banks.night(at, [banks.replay("it", one, words=words, again=one == "x")])
        for at, (one, words) in enumerate(letters.items())
    ]
    words = view_of(nights, [banks.failure("it")]).lives[0].words
    assert words.endswith("It was fixed on 2026-02-04. It was found again from its seed.")


def test_the_most_urgent_failure_is_first_and_of_two_the_one_that_is_understood_sooner() -> None:
    nights, failures = banks.told(
        {"fixed": "nxo", "known": "nkk", "flaky": "n~~", "again": "nox", "still": "nxx", "large": "  n", "small": "  n"}
    )
    failures = [msgspec.structs.replace(one, shrunk=one.id != "large") for one in failures]
    assert [one.failure.id for one in view_of(nights, failures).lives] == [
        "small", "large", "again", "still", "flaky", "known", "fixed",
    ]  # fmt: skip


def test_a_row_counts_a_fix_and_a_return_in_their_night_alone() -> None:
    rows = view({"it": "nxoox~", "known": "nkko??"}).nights
    counted = [{name: number for name, number in msgspec.structs.asdict(row.seen).items() if number} for row in rows]
    assert counted[::-1] == [
        {"new": 2},
        {"still_failing": 1, "known": 1},
        {"fixed": 1, "known": 1},
        {"fixed": 1},
        {"again": 1, "not_reached": 1},
        {"flaky": 1, "not_reached": 1},
    ]
