"""The coverage and the ways to end a job, as a reader sees them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from cutproof.reports.coverage import (
    MODES,
    WAYS,
    coverage_lead,
    coverage_maps,
    snapshot_lead,
    snapshot_maps,
    snapshots_not_hit,
    stop_lines,
    targets_not_hit,
)
from cutproof.reports.model import Coverage, Impossible, ReportView, SnapshotCoverage, StopCounts, Summary
from cutproof.reports.nights.counts import CountTable
from cutproof.reports.render import render_html
from cutproof.reports.text import render_text

COVERAGE = Coverage(
    possible=5,
    hit=3,
    fired=1_010,
    outside=7,
    table=CountTable(
        columns=["kill-task", "kill-node"],
        rows={
            "aligned finished ack-sent": "1000,0",
            "aligned failed ack-sent": "4,0",
            "aligned failed record-read": "6",
        },
    ),
    impossible=[Impossible(rule="no checkpoints", reason="there are <none>", cells=12)],
    snapshots=SnapshotCoverage(
        possible=5,
        hit=3,
        table=CountTable(
            columns=["kill-task", "kill-node"],
            rows={"native lsm none": "2000,0", "native lsm resume oldest": ",7", "canonical heap none": "1,0"},
        ),
        impossible=[Impossible(rule="unknown command", reason="there is no <fork>", cells=34)],
    ),
)
STOPS = {
    "resume": StopCounts(planned=9, finished=8, begins_with={"checkpoint": 2, "savepoint": 6}),
    "drain": StopCounts(
        planned=30,
        finished=20,
        hit=11,
        faults={"fail-write": {"finishing": 3}, "kill-task": {"committing": 2, "finishing": 6}},
        points={"ack-sent": 5},
    ),
}
SUMMARY = Summary(coverage=COVERAGE, stops=STOPS)


def test_a_map_sums_over_the_ways_of_ending_and_marks_what_is_empty_with_a_dot() -> None:
    [one] = coverage_maps(COVERAGE)
    assert one.title == MODES["aligned"]
    assert one.kinds == ("kill-task", "kill-node")
    shown = {point: [cell.text for cell in cells] for point, cells in one.lines}
    assert shown == {"ack-sent": ["1,004", "·"], "record-read": ["6", ""]}
    assert (one.hit, one.possible, one.share) == (3, 5, "60.0 %")
    assert one.endings == (("finished", 2, 1, 1_000), ("failed", 3, 2, 10))


def test_the_hottest_cell_is_one_and_an_empty_one_nothing() -> None:
    [one] = coverage_maps(COVERAGE)
    heat = [cell.heat for _, cells in one.lines for cell in cells]
    assert (max(heat), min(heat)) == (1.0, 0.0)


def test_the_lead_counts_and_is_silent_without_coverage() -> None:
    assert coverage_lead(COVERAGE) == "3 of 5 possible coverage targets were hit, by 1,010 faults."
    assert not coverage_lead(Coverage())


def test_targets_without_hits_are_named_up_to_a_dozen() -> None:
    assert targets_not_hit(COVERAGE) == (
        "kill-node at ack-sent, finished, aligned",
        "kill-node at ack-sent, failed, aligned",
    )
    many = Coverage(table=CountTable(columns=["x"], rows={f"aligned finished p{n}": "0" for n in range(20)}))
    assert len(targets_not_hit(many)) == 13
    assert targets_not_hit(many)[-1] == "and 8 more"


def test_the_rows_of_an_earlier_summary_are_shown_as_the_table_is() -> None:
    rows = [
        {"alignment": mode, "ending": ending, "point": point, "fired": fired}
        for row, fired in COVERAGE.table.by_row()
        for mode, ending, point in (row.split(" "),)
    ]
    earlier = msgspec.convert({"possible": 5, "rows": rows}, Coverage)
    assert coverage_maps(earlier) == coverage_maps(COVERAGE)
    assert targets_not_hit(earlier) == targets_not_hit(COVERAGE)
    assert b"rows" not in msgspec.json.encode(Coverage()).replace(b'"rows":{}', b""), (
        "a table has rows, the summary none"
    )


def test_snapshot_targets_have_a_map_for_each_format_and_backend() -> None:
    files, heap = snapshot_maps(COVERAGE)
    assert (files.title, heap.title) == (
        "native snapshots, state in an LSM store",
        "canonical snapshots, state on the heap",
    )
    shown = {action: [cell.text for cell in cells] for action, cells in files.lines}
    assert shown == {"no command": ["2,000", "·"], "resume oldest": ["", "7"]}
    assert (files.hit, files.possible) == (2, 3)
    assert [cell.heat for _, cells in heap.lines for cell in cells] == [1.0, 0.0], "of its own map"
    assert snapshot_lead(COVERAGE) == "3 of 5 possible snapshot targets were hit."
    assert not snapshot_lead(Coverage())
    assert snapshots_not_hit(COVERAGE) == (
        "kill-node and no command, native snapshots, state in an LSM store",
        "kill-node and no command, canonical snapshots, state on the heap",
    )


def test_the_page_shows_snapshot_targets_what_is_impossible_and_how_to_aim() -> None:
    page = render_html(ReportView(summary=SUMMARY))
    assert "Coverage: snapshot format, state backend, command, fault" in page
    assert "native snapshots, state in an LSM store: 2 of 3 possible targets hit" in page
    assert "34 targets, because there is no &lt;fork&gt;." in page
    assert "aim at those that were hit least" in page
    everything = replace(
        COVERAGE, snapshots=replace(COVERAGE.snapshots, table=CountTable(columns=["x"], rows={"native heap fork": "1"}))
    )
    assert "aim at those that were hit least" not in render_html(ReportView(summary=Summary(coverage=everything)))


def test_each_way_to_end_a_job_counts_what_hit_it() -> None:
    drain, resume = stop_lines(SUMMARY)
    assert (drain.name, resume.name) == (WAYS["drain"], "resume (2 with a checkpoint, 6 with a savepoint)")
    assert drain.by == "fail-write 3 (finishing 3); kill-task 8 (committing 2, finishing 6)"
    assert drain.at == "ack-sent 5"
    assert not resume.by


def test_the_page_shows_the_map_the_rules_and_the_ways_to_end() -> None:
    page = render_html(ReportView(summary=SUMMARY))
    assert "Coverage: point, fault, way of ending, alignment" in page
    assert "12 targets, because there are &lt;none&gt;." in page
    assert "3 of 5 possible targets hit" in page
    assert "empty)" not in page
    assert "stop with savepoint and drain" in page
    assert "kill-node at ack-sent, failed, aligned" in page


def test_the_page_of_a_run_without_coverage_does_not_speak_of_it() -> None:
    page = render_html(ReportView(summary=Summary()))
    assert "Coverage" not in page
    assert "Every way to end" not in page


def test_the_terminal_has_a_line_for_each_way_to_end() -> None:
    text = render_text(SUMMARY, verbose=True)
    lines = [line.split() for line in text.splitlines()]
    assert ["stop", "with", "savepoint", "and", "drain", "30", "20", "11", "kill-task"] in lines
    assert "3 of 5 possible coverage targets were hit" in text
    assert "3 of 5 possible snapshot targets were hit" in text
    assert max(map(len, text.splitlines())) <= 80
