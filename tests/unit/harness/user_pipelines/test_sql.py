"""Pipelines whose file has an SQL text.  Plain Python stands in for PySpark here: `spark/test_query.py` tests the text
itself, and `end_to_end/test_user_pipelines.py` both together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, KillNode
from cutproof.harness.counterexamples.story import rows_side_by_side, story_of_case
from cutproof.harness.counterexamples.story_text import rows_text
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.files import decode_scenario, encode_scenario
from cutproof.harness.scenario.history_checks import history_problems
from cutproof.harness.scenario.model import StopWithSavepoint
from cutproof.harness.search.oracle import put
from cutproof.harness.subject.port import ScenarioRefused, SubjectFailed
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.harness.user_pipelines.trial import tried
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import Computed
from cutproof.properties.model.verdict import Holds, Unknown, Violated
from cutproof.properties.model.words import columns_of
from cutproof.properties.model.workload import InputRecord, Row
from cutproof.properties.spark.unasked import GIVEN
from unit.harness.user_pipelines.toys import TOY, toy

TEXT = "SELECT key, count(*) AS value, 0 AS tag FROM input GROUP BY key"
BY_SQL = ('steps = [{ kind = "count" }]', f'sql = "{TEXT}"')
TABLE = ("n AS value, 0 AS tag FROM rows", "n AS value, 0 AS tag FROM counts")
"""a row for each key, which is replaced as more records of the key come"""
AMID_A_FILE = (
    "SELECT count(*) FROM done",
    "SELECT (SELECT sum(n) FROM counts) > 2 + (SELECT coalesce(sum(records), 0) FROM done)",
)
NAME_FIRST = (
    "SELECT count(*) FROM done",
    "SELECT (SELECT sum(n) FROM counts) < (SELECT sum(records) FROM done) - 2",
)
KILL = KillNode(node=0, trigger=AtAim(aim="a-file-is-done"))


class Plain:
    """What PySpark would compute."""

    def __init__(self, rows: Callable[[Sequence[InputRecord]], list[Row]], *, by_record: bool) -> None:
        self.rows = rows
        self.by_record = by_record

    def demand_no_order(self, records: Sequence[InputRecord]) -> None:
        pass


def counts(records: Sequence[InputRecord]) -> list[Row]:
    return [(key, number, 0, 0) for key, number in Counter(key for key, _, _ in records).items()]


def running_counts(records: Sequence[InputRecord]) -> list[Row]:
    return [(key, sum(one[0] == key for one in records[: at + 1]), 0, 0) for at, (key, _, _) in enumerate(records)]


def subject(folder: Path, *changes: tuple[str, str], query: Plain | None = None) -> PipelineSubject:
    one = PipelineSubject(toy(folder, BY_SQL, *changes))
    one._query = query or Plain(counts, by_record=False)  # type: ignore[assignment]
    return one


def ran(one: PipelineSubject, records: int = 40, **parts: Any) -> Result:
    return run_on(one, replace(one.without_faults(records), **parts))


def test_a_table_that_a_kill_leaves_right_holds_and_its_rows_may_be_replaced(tmp_path: Path) -> None:
    result = ran(subject(tmp_path, TABLE), faults=(KILL,))
    verdicts = result.judgement.verdicts
    assert {type(verdicts[name]) for name in ("exactly-once", "no-data-loss", "progress")} == {Holds}, verdicts
    seen = [Counter(read.seen) for read in result.history.reads]
    assert any(before - after for before, after in pairwise(seen)), "rows were replaced on the way"
    found = verdicts["visibility"]
    assert isinstance(found, Unknown)
    assert (found.reason, found.detail[:30]) == ("not observable", "more records may replace a row")
    assert put(result).unasked.rows == GIVEN


def wrong(how: str) -> tuple[tuple[str, str], ...]:
    return ('"careful"', f'"{how}"'), ("timeout_s = 5", "timeout_s = 1")


@pytest.mark.parametrize(("how", "aim"), [("repeating", AMID_A_FILE), ("losing", NAME_FIRST)])
def test_rows_that_a_kill_leaves_wrong_are_seen(how: str, aim: tuple[str, str], tmp_path: Path) -> None:
    columns = ("[computes]", 'columns = { key = "customer", value = "orders", tag = "" }\n\n[computes]')
    named = (TABLE[1], "n AS orders FROM counts")
    one = subject(
        tmp_path, TABLE, named, ("SELECT key, n AS o", "SELECT key AS customer, n AS o"), columns, aim, *wrong(how)
    )
    result = ran(one, faults=(KILL,))
    found = result.judgement.verdicts["exactly-once"]
    assert isinstance(found, Violated)
    assert found.difference == "wrong row"
    changed = next(pair for pair in rows_side_by_side(result.case) if pair.status == "changed")
    assert changed.expected is not None
    assert changed.committed is not None
    expected, committed = changed.expected[1], changed.committed[1]
    words = f"customer {changed.expected[0]}: expected orders {expected}, committed orders {committed}"
    assert words in found.records
    story = story_of_case(result.scenario, result.case, result.judgement.verdicts)
    assert "Wrong: customer " in " ".join(story.paragraphs)
    text = rows_text(rows_side_by_side(result.case), columns_of(result.history))
    assert text[0].split() == ["expected:", "customer", "orders", "committed:", "customer", "orders"]
    assert text[1].split() == ["changed", *map(str, (*changed.expected[:2], *changed.committed[:2]))]


def test_rows_that_each_record_yields_by_itself_may_not_vanish(tmp_path: Path) -> None:
    """Half of the rows are hidden as soon as all are there."""
    hidden = ("FROM rows", "FROM rows WHERE rowid <= 12 OR (SELECT count(*) FROM done) < 4")
    one = subject(tmp_path, hidden, ("timeout_s = 5", "timeout_s = 1"), query=Plain(running_counts, by_record=True))
    found = ran(one, 32).judgement.verdicts["visibility"]
    assert isinstance(found, Violated)
    assert found.difference == "rows vanished"


def test_a_stopped_job_is_judged_by_the_rows_of_what_it_covers(tmp_path: Path) -> None:
    stop = f'["{{python}}", "{TOY}", "stop", "{{state}}/toy.db"]'
    covers = 'covers = "^covers ([0-9]+) records"'
    commands = ("[computes]", f"[commands]\nstop_with_savepoint = {stop}\n{covers}\n[computes]")
    one = subject(tmp_path, TABLE, commands, ("every_ms = 20", "every_ms = 100"))
    requested = (StopWithSavepoint(trigger=AtAim(aim="halfway")),)
    result = ran(one, 200, faults=(KILL,), commands=requested)
    verdicts = result.judgement.verdicts
    covered = result.case.from_outside.cuts[-1][1][0]
    assert 0 < covered < 200
    records = result.scenario.workload.inputs[0].splits[0]
    assert Counter(result.history.committed) == Counter(counts(records[:covered]))
    assert {type(verdicts[name]) for name in ("exactly-once", "no-data-loss")} == {Holds}, verdicts
    wrong = replace(result.history, committed=counts(records))
    assert "exactly-once" in judge(result.scenario.workload, result.scenario.topology, wrong).violated


def test_no_scenario_and_no_history_has_the_text_and_a_history_needs_the_rows(tmp_path: Path) -> None:
    one = subject(tmp_path, TABLE)
    result = ran(one, 16)
    written = encode_scenario(result.scenario)
    assert b"SELECT" not in written
    scenario = decode_scenario(written)
    assert scenario == result.scenario
    assert list(history_problems(scenario, result.history)) == []
    (without, *_) = history_problems(scenario, replace(result.history, computed=Computed()))
    assert without.startswith("computed.until: the rows of the records below {0: 16} are missing")
    steps = replace(scenario, workload=replace(scenario.workload, query=UNSET))
    (spare, *_) = history_problems(steps, result.history)
    assert spare == "computed: the scenario's workload has no query, so its rows are computed here"


def test_a_scenario_of_another_text_is_refused(tmp_path: Path) -> None:
    one = subject(tmp_path, TABLE)
    scenario = one.without_faults(8)
    other = subject(tmp_path, ("GROUP BY key", "GROUP BY key HAVING count(*) > 1"))
    with pytest.raises(SubjectFailed, match="its workload is another"):
        run_on(other, scenario)
    with pytest.raises(ScenarioRefused, match="--subject pipeline:FILE"):
        run_on(PipelineSubject(toy(tmp_path)), scenario)


def test_a_trial_compares_with_what_the_query_yields(tmp_path: Path) -> None:
    checks = {check.entry: check for check in tried(subject(tmp_path, TABLE))}
    assert (checks["computes"].ok, checks["computes"].seen) == (
        True,
        "the rows are those that the query computes.sql yields",
    )
    checks = {check.entry: check for check in tried(subject(tmp_path))}
    assert not checks["computes"].ok


def test_rows_of_one_key_cannot_replace_each_other(tmp_path: Path) -> None:
    changes = ("[restored]", '[promises]\nsink = "idempotent"\n\n[restored]')
    one = subject(tmp_path, changes, query=Plain(running_counts, by_record=False))
    with pytest.raises(SubjectFailed, match=r"promises\.identity: the query yields \d+ rows of one key"):
        ran(one)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("\nsteps = []\ntime = 'tag'", "computes.time does not go with sql"),
        ('\nsteps = [{ kind = "count" }]', "computes.steps does not go with sql"),
    ],
)
def test_a_query_does_not_go_with_operators(more: str, said: str, tmp_path: Path) -> None:
    path = toy(tmp_path, (BY_SQL[0], BY_SQL[1] + more))
    with pytest.raises(UsageError, match=said):
        read_pipeline(path)
