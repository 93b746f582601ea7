"""What must not be left of a pipeline at rest is listed, and no-leaks is judged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtAim, KillNode
from cutproof.harness.scenario.history_checks import history_problems
from cutproof.harness.subject.port import SubjectFailed
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines import leaks
from cutproof.harness.user_pipelines.description import Leaks
from cutproof.harness.user_pipelines.leaks import Listing
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.model.verdict import Holds, Violated
from unit.harness.user_pipelines.toys import toy

KILL = KillNode(node=0, trigger=AtAim(aim="halfway"))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "GONE_WITHIN_S", 0.1)


def test_what_every_look_shows_is_left_and_what_goes_away_is_not(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    stays, goes = tmp_path / "state" / "a.tmp", tmp_path / "state" / "b.tmp"
    stays.touch()
    goes.touch()
    with sqlite3.connect(tmp_path / "a.db") as store:
        store.execute("CREATE TABLE open (name TEXT, since INT)")
        store.execute("INSERT INTO open VALUES ('tx-7', 3)")
    one = Leaks(files=("{state}/*.tmp",), query="SELECT name, since FROM open", database=str(tmp_path / "a.db"))
    listing = Listing(one, {"state": str(tmp_path / "state")}, tmp_path)
    listing.look(lambda: goes.unlink(missing_ok=True))
    assert listing.left == ["state/a.tmp", "tx-7, 3"]


def test_a_query_that_cannot_be_asked_is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    one = Leaks(query="SELECT 1", database=str(tmp_path / "nowhere.db"))
    with pytest.raises(SubjectFailed, match=r"leaks\.query: .*there is no file nowhere\.db"):
        Listing(one, {}, tmp_path).look(lambda: None)


@pytest.mark.parametrize(("pattern", "left"), [("*.tmp", []), ("toy.d?", ["state/toy.db"])])
def test_a_run_is_judged_by_what_is_left_of_it(pattern: str, left: list[str], tmp_path: Path) -> None:
    path = toy(tmp_path, ("[computes]", f'[leaks]\nfiles = ["{{state}}/{pattern}"]\n\n[computes]'))
    subject = PipelineSubject(path)
    result = run_on(subject, replace(subject.without_faults(30), faults=(KILL,)))
    assert result.history.witnesses == ["reader", "journal", "listing"]
    assert result.history.residue.left == left
    assert list(history_problems(result.scenario, result.history)) == []
    found = result.judgement.verdicts["no-leaks"]
    assert isinstance(found, Violated if left else Holds), found
