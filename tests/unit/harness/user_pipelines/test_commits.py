"""Markers of commits that are read in one snapshot with the rows: no row may be seen before its own."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, KillNode
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.history_checks import history_problems
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.description import Read
from cutproof.harness.user_pipelines.journal import Journal
from cutproof.harness.user_pipelines.output.formats import Output
from cutproof.harness.user_pipelines.output.reader import Reader
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.harness.user_pipelines.trial import tried
from cutproof.properties.model.verdict import Holds, Violated
from unit.harness.user_pipelines.toys import toy

COMMITS = ("[restored]", '[commits]\nquery = "SELECT sum(records) FROM done"\n\n[restored]')
LAST = (
    'steps = [{ kind = "count" }]',
    'steps = [{ kind = "tumbling", size = 10 }]\ntime = "tag"\n\n[feed.last_record]\ntag = 2000',
)
REPEATING = ('"careful"', '"repeating"')
KILL = KillNode(node=0, trigger=AtAim(aim="halfway"))


def subject(folder: Path, *changes: tuple[str, str]) -> PipelineSubject:
    return PipelineSubject(toy(folder, COMMITS, *changes))


def ran(one: PipelineSubject, *faults: KillNode) -> Result:
    return run_on(one, replace(one.without_faults(40), faults=faults))


@pytest.mark.parametrize("how", ["careful", "losing"])
def test_rows_that_come_with_their_marker_or_behind_it_are_not_early(how: str, tmp_path: Path) -> None:
    """What `losing` loses is seen in the end: its marker is there before its rows."""
    result = ran(subject(tmp_path, ('"careful"', f'"{how}"'), ("timeout_s = 5", "timeout_s = 1")), KILL)
    commits = result.history.commits
    assert [one.commit for one in commits] == list(range(1, len(commits) + 1))
    assert commits[-1].positions == {0: 40}
    assert list(history_problems(result.scenario, result.history)) == []
    found = result.judgement.verdicts["visibility"]
    assert isinstance(found, Holds), found


def test_rows_that_are_seen_before_their_marker_are_early_without_any_kill(tmp_path: Path) -> None:
    result = ran(subject(tmp_path, REPEATING))
    found = result.judgement.verdicts["visibility"]
    assert isinstance(found, Violated)
    assert found.difference == "rows seen too early"
    assert set(result.judgement.violated) == {"visibility"}


def test_a_trial_says_whether_the_markers_come_with_the_rows(tmp_path: Path) -> None:
    (careful,) = [check for check in tried(subject(tmp_path)) if check.entry == "commits"]
    assert (careful.ok, careful.seen) == (True, "in the end it said 10 of 10 records")
    (early,) = [check for check in tried(subject(tmp_path, REPEATING)) if check.entry == "commits"]
    assert not early.ok
    assert early.seen.startswith("a reader saw rows before their commit: ")
    (never,) = [
        check for check in tried(subject(tmp_path, ("sum(records) FROM", "0 FROM"))) if check.entry == "commits"
    ]
    assert not never.ok


def test_rows_and_marker_are_of_one_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row and its marker are committed between the two queries; the second does not see them."""
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("CREATE TABLE rows (key INT, value INT, tag INT)")
    writer.execute("INSERT INTO rows VALUES (1, 2, 3)")

    def write(asked: str) -> None:
        if asked.startswith("SELECT count") and writer.execute("SELECT count(*) FROM rows").fetchone()[0] < 2:
            writer.execute("INSERT INTO rows VALUES (4, 5, 6)")

    real = sqlite3.connect

    def connected(*args: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = real(*args, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(write)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connected)
    read = Read(format="sqlite", path=str(tmp_path / "a.db"), query="SELECT * FROM rows")
    output = Output(read, {}, commits="SELECT count(*) FROM rows")
    assert (output.rows(), output.marker) == ([(1, 2, 3, 0)], 1)
    assert (len(output.rows()), output.marker) == (2, 2)


def test_a_marker_without_its_table_is_none_yet_and_one_that_is_no_number_is_said(tmp_path: Path) -> None:
    store = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    store.execute("CREATE TABLE rows (key INT, value INT, tag INT)")
    store.execute("INSERT INTO rows VALUES (1, 2, 3)")
    read = Read(format="sqlite", path=str(tmp_path / "a.db"), query="SELECT * FROM rows")
    output = Output(read, {}, commits="SELECT n FROM done")
    assert (output.rows(), output.marker, output.absent) == ([(1, 2, 3, 0)], 0, None)
    store.execute("CREATE TABLE done (n TEXT)")
    assert (output.rows(), output.marker) == ([(1, 2, 3, 0)], 0)
    for value in ("some", "-1", "1.5"):
        store.execute("DELETE FROM done")
        store.execute("INSERT INTO done VALUES (?)", (value,))
        with pytest.raises(SubjectFailed, match=rf"commits\.query: '{value}' is no number of records"):
            output.rows()
    with pytest.raises(SubjectFailed, match=r"commits\.query: the query 'SELEKT' fails"):
        Output(read, {}, commits="SELEKT").rows()


def test_a_commit_comes_before_the_end_of_the_read_that_shows_it_and_none_goes_back() -> None:
    journal = Journal()
    for marker in (0, 3, 2, 3, 5):
        journal.read(journal.next(), [], marker)
    assert [one.positions for one in journal.commits] == [{0: 3}, {0: 5}]
    _, first, *_, last = journal.reads
    assert first.began < journal.commits[0].order < first.ended
    assert last.began < journal.commits[1].order < last.ended


def test_a_marker_of_more_records_than_there_are_is_said(tmp_path: Path) -> None:
    with pytest.raises(SubjectFailed, match=r"commits\.query: it says 5\d+, and there are 40 records"):
        ran(subject(tmp_path, ("sum(records)", "50 + sum(records)")))


def test_a_marker_may_count_the_two_last_records_and_tells_of_those_of_the_workload(tmp_path: Path) -> None:
    store = sqlite3.connect(tmp_path / "toy.db", isolation_level=None)
    store.execute("CREATE TABLE rows (key INT, n INT)")
    store.execute("CREATE TABLE done (file TEXT, records INT)")
    file = read_pipeline(toy(tmp_path, COMMITS, LAST)).file
    journal = Journal()
    reader = Reader(file, {"state": str(tmp_path)}, str, journal, records=40, expected=Counter())
    for records in (39, 1, 1, 1):
        store.execute("INSERT INTO done VALUES ('a', ?)", (records,))
        reader.read()
    assert [one.positions for one in journal.commits] == [{0: 39}, {0: 40}]
    store.execute("INSERT INTO done VALUES ('a', 1)")
    with pytest.raises(SubjectFailed, match=r"commits\.query: it says 43, and there are 42 records"):
        reader.read()
    journal.fired(0, "kill", "halfway", "", 1)  # after a kill one of them may have been counted twice
    reader.read()
    assert journal.commits[-1].positions == {0: 40}


def test_a_marker_elsewhere_than_the_rows_is_refused(tmp_path: Path) -> None:
    read = 'format = "json-lines"\npath = "{output}/*.jsonl"'
    path = toy(tmp_path, COMMITS)
    text = path.read_text()
    begin, end = text.index('format = "sqlite"'), text.index("every_ms = 30")
    path.write_text(text[:begin] + read + "\n" + text[end:])
    with pytest.raises(UsageError, match=r"commits\.query: it is asked of the database that the rows are in"):
        read_pipeline(path)
