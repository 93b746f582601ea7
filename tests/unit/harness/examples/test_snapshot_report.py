"""The pages of the examples of snapshots and their life: two timelines, files, stops, and the matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.examples import EXAMPLES
from cutproof.harness.examples.snapshots.figures import histories, lives_of_files, timelines
from cutproof.harness.examples.snapshots.format_matrix import FORMATS
from cutproof.harness.examples.snapshots.savepoints import taken_as
from unit.harness.example_runs import run
from unit.harness.examples.test_example_report import page_of, rows_of, text_of

CAPTION = "What each format of snapshots can do, found in runs with the state backend "


@pytest.fixture(scope="module")
def retained(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of("retained-incremental", tmp_path_factory.mktemp("retained"))


def test_who_refers_to_what_and_when_it_was_deleted(retained: str) -> None:
    rows = rows_of(retained, "Who refers to what")
    assert rows["job-1/chk-3/count-0-1.entries-2"][1:] == ["3, 4", "28.22 ms"]
    assert rows["job-1/chk-5/count-0-2.entries-0"][1:] == ["5, 6, 7 (a savepoint), 8, 9", "kept"]


@pytest.mark.parametrize("backend", ["heap", "lsm"])
def test_the_matrix_is_on_the_page(retained: str, backend: str) -> None:
    rows = rows_of(retained, CAPTION + backend)
    assert list(rows) == ["format", *FORMATS]
    assert rows["incremental"] == ["yes", "yes", "no", "yes", "yes", "yes", "yes"]


def test_each_file_is_a_lane_with_those_who_refer_to_it() -> None:
    picture = lives_of_files(run(EXAMPLES["retained-incremental"].scenario))
    third = picture.lanes[2]
    assert (third.name, [one.text for one in third.moments]) == ("chk-3", ["3", "4"])
    assert third.spans[0].broken
    assert any("S 7" in [one.text for one in lane.moments] and not lane.spans[0].broken for lane in picture.lanes)


def test_two_timelines_where_savepoints_have_no_side_effects_and_one_where_they_are_snapshots() -> None:
    scenario = EXAMPLES["ab-test"].scenario
    one, two = (timelines(way, run(taken_as(scenario, way))) for way in ("snapshots", "without-side-effects"))
    assert [lane.name for lane in one.lanes] == ["snapshots", "A", "B"]
    assert [lane.name for lane in two.lanes] == ["checkpoints", "savepoints", "A", "B"]
    assert [(moment.text, moment.hollow) for moment in two.lanes[1].moments] == [("S 2", True)]
    assert [(arrow.lane, arrow.to_lane) for arrow in one.arrows] == [(0, 1), (0, 2)]
    assert [(arrow.lane, arrow.to_lane) for arrow in two.arrows] == [(0, 2), (1, 3)]


def test_a_job_and_its_fork_begin_with_one_savepoint_and_complete_snapshots_of_their_own() -> None:
    picture = histories(run(EXAMPLES["two-histories-after-fork"].scenario))
    assert [lane.name for lane in picture.lanes] == ["snapshots of A", "A", "B", "snapshots of B"]
    of_a, of_b = ([moment.text for moment in picture.lanes[at].moments] for at in (0, 3))
    assert of_a[:2] == ["1", "S 2"]
    assert of_b
    assert not set(of_a) & set(of_b)
    assert [(arrow.lane, arrow.to_lane) for arrow in picture.arrows] == [(0, 1), (0, 2)]
    assert [span.broken for span in picture.lanes[1].spans] == [True, False]
    assert [span.broken for span in picture.lanes[2].spans] == [False]


def test_what_a_job_and_its_fork_have_in_common(tmp_path: Path) -> None:
    page = page_of("two-histories-after-fork", tmp_path)
    assert rows_of(page, "What A and B have in common") == {
        "": ["A", "B"],
        "rows up to the savepoint": ["56", "56"],
        "records taken behind it": ["108", "108"],
        "rows behind it": ["54", "54"],
        "of these, in this output alone": ["6", "6"],
    }
    assert page.count("<figure>") == 1


def test_what_each_way_restored_and_committed(tmp_path: Path) -> None:
    page = page_of("failure-after-savepoint", tmp_path)
    rows = rows_of(page, "After the failure")
    assert rows["Savepoints are snapshots"] == ["savepoint 2", "26", "160", "nothing"]
    assert rows["Rejected: savepoints commit, and are left out of recovery"] == [
        "checkpoint 1",
        "47",
        "181",
        "exactly-once, visibility",
    ]
    assert rows["Rejected: savepoints have no side effects"] == ["checkpoint 1", "47", "160", "nothing"]
    assert page.count("<figure>") == 3


def test_how_long_stops_take(tmp_path: Path) -> None:
    page = page_of("incremental-stop-and-upgrade", tmp_path)
    rows = rows_of(page, "A stop with a savepoint")
    assert len(rows) == 5
    assert {cells[4] for size, cells in rows.items() if size.endswith("bytes")} == {"3.234 ms"}
    assert "How long a stop takes" in text_of(page)
