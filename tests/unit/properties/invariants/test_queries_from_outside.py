"""Runs whose expected rows PySpark computed of a query: what of them is judged, and what is no violation."""

from __future__ import annotations

from typing import Any

from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import (
    AttemptStarted,
    Commit,
    Computed,
    FaultFired,
    History,
    JobEnded,
    Read,
    RowsBelow,
)
from cutproof.properties.model.verdict import Unknown, Verdict, Violated
from cutproof.properties.model.workload import SINK, Edge, Input, Row, Topology, Workload

RECORDS = ((7, 10, 1), (8, 20, 2), (7, 30, 3))
WORKLOAD = Workload(name="by hand", inputs=(Input(name="source", splits=(RECORDS,)),), query="sha256 0")
EDGE = Edge(sender="source", receiver=SINK, partitioning="forward")
TOPOLOGY = Topology(parallelism={"source": 1, SINK: 1}, edges=(EDGE,))
COUNTS: list[list[Row]] = [[], [(7, 1, 0, 0)], [(7, 1, 0, 0), (8, 1, 0, 0)], [(7, 2, 0, 0), (8, 1, 0, 0)]]
"""a row for each key, by the number of records"""
SAME: list[list[Row]] = [[(key, value, tag, 0) for key, value, tag in RECORDS[:number]] for number in range(4)]

STARTED = AttemptStarted(order=1, at_us=0, attempt=1, job=1)
FAULT = FaultFired(order=5, at_us=0, fault=0, kind="kill", phase="holds work")
AGAIN = AttemptStarted(order=6, at_us=0, attempt=2, job=1, restores=4)
FINISHED = JobEnded(order=20, at_us=0, job=1, status="finished")
STOPPED = JobEnded(order=20, at_us=0, job=1, status="stopped", covers={0: 2})


def verdicts(
    committed: list[Row], rows: list[list[Row]], end: JobEnded | None = FINISHED, **fields: Any
) -> dict[str, Verdict]:
    """`rows` are those of the first 0, 1, 2, 3 records."""
    until = [RowsBelow(positions={0: number}, rows=of_these) for number, of_these in enumerate(rows)]
    given: dict[str, Any] = {"guarantee": "exactly-once", "sink": "transactional"}
    given["computed"] = Computed(by_record=rows is SAME, until=until)
    history = History(
        subject="black box",
        witnesses=["reader", "journal"],
        committed=committed,
        journal=[STARTED, FAULT, AGAIN, *([end] if end else [])],
        **given | fields,
    )
    return dict(judge(WORKLOAD, TOPOLOGY, history).verdicts)


def word(verdict: Verdict) -> str:
    if isinstance(verdict, Violated):
        return verdict.difference
    return verdict.reason if isinstance(verdict, Unknown) else "holds"


def saw(began: int, rows: list[Row]) -> Read:
    return Read(began=began, ended=began + 1, rows=len(rows), seen=rows)


def test_the_rows_of_what_a_job_covers_are_those_that_have_to_be_there() -> None:
    assert word(verdicts(COUNTS[3], COUNTS)["exactly-once"]) == "holds"
    assert word(verdicts(COUNTS[2], COUNTS)["exactly-once"]) == "wrong row"
    assert word(verdicts(COUNTS[3][1:], COUNTS)["no-data-loss"]) == "lost row"
    assert word(verdicts(COUNTS[2], COUNTS, STOPPED)["exactly-once"]) == "holds"
    assert word(verdicts(COUNTS[3], COUNTS, STOPPED)["exactly-once"]) == "wrong row"
    assert word(verdicts([*SAME[2], SAME[3][2]], SAME, STOPPED)["exactly-once"]) == "unexpected row"


def test_without_an_end_a_row_that_more_records_replace_is_not_too_many() -> None:
    assert word(verdicts(COUNTS[2], COUNTS, None)["exactly-once"]) == "not observable"
    assert word(verdicts([*SAME[2], (9, 9, 9, 0)], SAME, None)["exactly-once"]) == "unexpected row"


def test_a_table_that_may_be_ahead_is_judged_once_the_job_covers_all() -> None:
    table = {"sink": "idempotent"}
    assert word(verdicts(COUNTS[3], COUNTS, **table)["exactly-once"]) == "holds"
    assert word(verdicts(COUNTS[2], COUNTS, **table)["exactly-once"]) == "wrong row"
    for rows in (COUNTS[2], COUNTS[3]):
        assert word(verdicts(rows, COUNTS, STOPPED, **table)["exactly-once"]) == "not observable"
    by_row = {"sink": "idempotent", "identity": "row"}
    assert word(verdicts(SAME[3], SAME, STOPPED, **by_row)["exactly-once"]) == "holds"
    assert word(verdicts(SAME[1], SAME, STOPPED, **by_row)["exactly-once"]) == "lost row"


def test_in_weaker_guarantees_only_rows_that_each_record_yields_by_itself_are_judged() -> None:
    weak = {"guarantee": "at-least-once", "sink": "plain"}
    assert word(verdicts([(7, 3, 0, 0), (8, 1, 0, 0)], COUNTS, **weak)["at-least-once"]) == "not observable"
    assert word(verdicts([*SAME[3], SAME[3][0]], SAME, **weak)["at-least-once"]) == "holds"
    assert word(verdicts(SAME[2], SAME, **weak)["at-least-once"]) == "lost row"


def test_a_row_may_vanish_only_where_more_records_may_replace_it() -> None:
    reads = [saw(2, COUNTS[2]), saw(8, COUNTS[3])]
    assert word(verdicts(COUNTS[3], COUNTS, reads=reads)["visibility"]) == "not observable"
    vanished = [saw(2, SAME[2]), saw(8, SAME[1])]
    assert word(verdicts(SAME[3], SAME, reads=vanished)["visibility"]) == "rows vanished"
    assert word(verdicts(SAME[3], SAME, reads=vanished[:1])["visibility"]) == "holds"


def test_markers_say_which_of_the_rows_are_early() -> None:
    commits = [Commit(commit=1, order=2, positions={0: 1}), Commit(commit=2, order=8, positions={0: 3})]
    for rows, found in ((SAME[1], "holds"), (SAME[2], "rows seen too early")):
        reads = [saw(3, rows), saw(9, SAME[3])]
        assert word(verdicts(SAME[3], SAME, commits=commits, reads=reads)["visibility"]) == found
    reads = [saw(3, COUNTS[2]), saw(9, COUNTS[3])]
    assert word(verdicts(COUNTS[3], COUNTS, commits=commits, reads=reads)["visibility"]) == "not observable"


def test_rows_that_were_not_given_are_no_violation() -> None:
    found = verdicts(SAME[3], SAME, computed=Computed(by_record=True))
    assert {word(found[name]) for name in ("exactly-once", "no-data-loss")} == {"checker failed"}
