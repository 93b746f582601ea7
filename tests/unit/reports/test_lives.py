"""The time line of a pipeline: the lives of its processes, what readers saw, and its counters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from msgspec.structs import replace

from cutproof.properties.model.history import Commit, Computed, History
from cutproof.properties.model.workload import Row
from cutproof.reports.diagrams.diagram import Diagram
from cutproof.reports.diagrams.lives import CHARACTER, time_line_of
from cutproof.reports.diagrams.lives_layout import APART, LONGEST_WAIT, WIDTH, Event, Scale, TimeLine, lives_of
from cutproof.reports.model import RowPair
from cutproof.reports.rows import side_by_side
from unit.reports import stories
from unit.reports.pipeline_runs import RunBuilder, late, of_one_event, repeating, restless, row

Run = tuple[History, tuple[RowPair, ...]]
RUNS: dict[str, Run] = {"repeating": repeating(), "one": (of_one_event(), ()), "restless": restless(), "late": late()}
SIGNS = ("process-", "work-", "aim-met", "command-", "job-ended", "rows-")


def laid_out(run: Run) -> TimeLine:
    found = lives_of(*run)
    assert found is not None
    return found


def drawn(run: Run) -> Diagram:
    found = time_line_of("it", *run)
    assert found is not None
    return found


def of(run: Run, what: str) -> list[Event]:
    return [one for one in laid_out(run).events if one.what == what]


def test_a_history_of_an_engine_has_no_time_line_of_processes() -> None:
    assert lives_of(stories.premature_snapshot(), ()) is None
    assert lives_of(None, ()) is None


def test_each_process_has_a_lane_with_its_lives() -> None:
    lives = laid_out(repeating())
    assert lives.lanes == ("commands", "aims met", "pipeline", "broker")
    in_ms = [
        (life.lane, life.first_us / 1e3, life.ready_us / 1e3, None if life.last_us is None else life.last_us / 1e3)
        for life in lives.lives
    ]
    assert in_ms == [
        ("pipeline", 180_002, 180_002, 180_121),
        ("pipeline", 180_222, 180_222, 180_910),
        ("broker", 1, 180_000, None),
    ]
    assert [life.pauses for life in lives.lives] == [(), (), ((180_450_000, 180_650_000),)]


def test_markers_of_commits_have_a_lane_where_a_reader_has_seen_them() -> None:
    history, rows = repeating()
    first, second = (read.ended for read in history.reads[1:3])
    commits = [
        Commit(commit=1, order=first, positions={0: 2}),
        Commit(commit=2, order=second, positions={0: 1_200}),
        Commit(commit=3, order=10_000, positions={0: 1_300}),
    ]
    # In a real history a commit comes just before the end of the read that saw it.
    timeline = [replace(entry, order=2 * entry.order + 1) for entry in history.timeline]
    commits = [replace(one, order=2 * one.order) for one in commits]
    run = replace(history, timeline=timeline, commits=commits), rows
    seen = of(run, "commit-seen")
    assert [(one.at_us, one.label) for one in seen] == [(180_100_000, "2"), (180_180_000, "1,200")]
    assert seen[1].words == "the first 1,200 records are seen to be committed"
    assert laid_out(run).lanes == ("commands", "aims met", "commits seen", "pipeline", "broker")
    assert drawn(run).picture.count('class="mark commit-seen"') == 2
    assert ("180.10 s", "commits", "the first 2 records are seen to be committed") in drawn(run).words


def test_a_process_may_have_any_name_and_its_beginning_may_be_unknown() -> None:
    run = RunBuilder()
    for at, name in enumerate(("aims", "output", "feed")):
        run.note(at, "process-started", name)
    run.note(4, "process-killed", "from-before")
    run.ended(-1)
    lives = laid_out((run.history, ()))
    assert lives.lanes == ("pipeline", "aims", "output", "feed", "from-before")
    assert [life.lane for life in lives.lives] == ["aims", "output", "feed"]
    assert "killed" in drawn((run.history, ())).picture


def test_a_kill_and_a_pause_are_told_with_their_aims() -> None:
    (killed,), (paused,) = of(repeating(), "process-killed"), of(repeating(), "process-paused")
    assert (killed.label, paused.label) == ("killed: in-a-batch", "paused: halfway")
    assert killed.words == (
        "is killed at the aim 'in-a-batch': pipeline: 3 records had been given, 2 rows were visible"
    )


def test_a_fault_of_a_proxy_is_told_beside_the_kill_before_it() -> None:
    run = RunBuilder()
    run.note(0, "process-started", "pipeline")
    run.note(10, "process-killed", "pipeline")
    run.fired(11, "kill-node", "halfway", "")
    run.fired(20, "cut-channel", "amid-a-batch", "2 connections through the proxy queue closed")
    ((killed,), (cut,)) = (of((run.history, ()), what) for what in ("process-killed", "fault-fired"))
    assert killed.words == "is killed at the aim 'halfway'"
    assert (cut.lane, cut.label) == ("faults of proxies", "cut-channel: amid-a-batch")
    told = "cut-channel takes effect at the aim 'amid-a-batch': 2 connections through the proxy queue closed"
    picture = drawn((run.history, ()))
    assert ("0.02 s", "proxy", told) in picture.words
    assert 'class="mark fault-fired"' in picture.picture
    assert laid_out((run.history, ())).lanes == ("faults of proxies", "pipeline")


TOTALS = ([(1, 5, 0, 0)], [(1, 9, 0, 0)])
REPEATS = ([row(1), row(1)], [row(1), row(1), (9, 9, 9, 0)])


@pytest.mark.parametrize(
    ("promised", "reads", "expected", "labels"),
    [
        ({}, TOTALS, TOTALS[1], ["1 wrong", "1 vanished", ""]),
        ({"computed": Computed(by_record=False, until=[])}, TOTALS, TOTALS[1], ["", "", ""]),
        ({"computed": Computed(by_record=False, until=[])}, TOTALS, TOTALS[0], ["", "", "1 wrong, 1 missing"]),
        ({"computed": Computed(by_record=True, until=[])}, TOTALS, TOTALS[1], ["1 wrong", "1 vanished", ""]),
        ({"sink": "idempotent"}, TOTALS, TOTALS[1], ["", "", ""]),
        ({"guarantee": "at-least-once"}, REPEATS, [row(1)], ["", "1 wrong", ""]),
        ({"guarantee": "at-most-once"}, REPEATS[:1], [row(1), row(2)], ["1 wrong", ""]),
    ],
    ids=["exactly once", "totals", "wrong totals", "by record", "idempotent", "at least once", "at most once"],
)
def test_no_row_that_the_promises_allow_is_marked(
    promised: dict[str, object], reads: Sequence[list[Row]], expected: list[Row], labels: list[str]
) -> None:
    run = RunBuilder()
    run.note(0, "process-started", "pipeline")
    for number, rows in enumerate(reads):
        run.read(10 + number, *rows)
    run.leave(90, *reads[-1])
    history = replace(run.history, **promised)
    lives = laid_out((history, side_by_side(expected, history.committed)))
    assert [one.label for one in lives.events if one.lane == "rows seen"] == labels


def test_a_row_is_told_in_the_read_in_which_it_vanished_was_repeated_or_is_missing() -> None:
    told = [
        (one.at_us // 1_000, one.label, one.words) for one in laid_out(repeating()).events if one.lane == "rows seen"
    ]
    assert told == [
        (180_020, "", "0 rows seen"),
        (180_100, "", "2 rows seen"),
        (180_180, "1 vanished", "1 row seen; 1 vanished: (key 2, value 1, tag 2)"),
        (180_400, "1 wrong", "4 rows seen; 3 new; 1 wrong: (key 2, value 1, tag 2), 2 times"),
        (180_920, "1 missing", "6 rows seen in the end; 2 new; 1 missing: (key 6, value 1, tag 6)"),
    ]


def test_without_the_expected_rows_no_row_is_called_wrong() -> None:
    assert not of((repeating()[0], ()), "rows-wrong")


def test_the_three_minutes_in_which_nothing_happens_are_cut_short() -> None:
    scale = Scale(laid_out(repeating()))
    ((_, wait),) = scale.cuts
    assert wait == 179_999_000
    assert scale.x(180_000_000) - scale.x(1_000) <= LONGEST_WAIT
    assert WIDTH / 2 < scale.width < WIDTH * 1.5


@pytest.mark.parametrize("name", RUNS)
def test_places_follow_the_clock_and_signs_of_a_lane_are_apart(name: str) -> None:
    lives = laid_out(RUNS[name])
    scale = Scale(lives)
    places = [scale.x(at_us) for at_us in sorted(one.at_us for one in lives.events)]
    assert places == sorted(places)
    for lane in {one.lane for one in lives.events}:
        signs = {one.at_us for one in lives.events if one.lane == lane and one.what.startswith(SIGNS)}
        assert all(after - before >= APART - 0.01 for before, after in pairwise(map(scale.x, sorted(signs))))


@pytest.mark.parametrize("name", RUNS)
def test_all_that_is_drawn_is_inside_the_picture(name: str) -> None:
    picture = drawn(RUNS[name])
    inside = picture.picture.partition("<g")[2]
    xs = [float(x) for x in re.findall(r'[^r]x="(-?[0-9.]+)"', inside)]
    xs += [float(x) for d in re.findall(r' d="([^"]+)"', inside) for x in re.findall(r"[ML](-?[0-9.]+) ", d)]
    assert len(xs) > 5
    assert min(xs) >= 0
    assert max(xs) <= picture.width
    for x, anchor, text in re.findall(r'<text x="([0-9.]+)"[^>]* text-anchor="(\w+)">([^<]+)<', inside):
        wide = len(text) * CHARACTER * (1 if anchor == "start" else -1)
        assert 0 <= float(x) + wide <= picture.width, text


def test_the_words_have_everything_that_is_drawn() -> None:
    lives, words = laid_out(repeating()), drawn(repeating()).words
    assert len(words) == len(lives.events) + 4, "and the values of the counters, one of which has none"
    assert [(who, what) for _, who, what in words if "counter" in what] == [
        ("commits", "counter shows 1"),
        ("state", "counter shows running"),
        ("commits", "counter shows 12,000"),
        ("in-flight", "counter was never seen"),
    ]
    assert words[0] == ("0.00 s", "broker", "is started")


def test_a_picture_says_its_kills_to_whoever_cannot_see_it_and_escapes_what_others_wrote() -> None:
    picture = drawn(repeating()).picture
    assert "<desc>Lanes from top to bottom: commands, aims met, pipeline, broker, rows seen" in picture
    assert "At 180.12 s pipeline is killed at the aim" in picture
    assert "&lt;b&gt;no&lt;/b&gt; slots" in picture
    assert "&lt;i&gt;6&lt;/i&gt; records" in picture
    assert "<b>" not in picture
    assert "<i>" not in picture


def test_the_last_value_of_a_counter_stands_at_the_right() -> None:
    picture = drawn(repeating()).picture
    assert re.findall(r'class="note value last">([^<]+)<', picture) == ["12,000", "running", "never seen"]
