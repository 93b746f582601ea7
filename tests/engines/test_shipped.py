"""The pipelines that come with the package, each killed at a moment that it must survive, or must not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AnyFault, AtAim, KillNode, PauseNode
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.needs.supplies import missing
from cutproof.harness.user_pipelines.reading import read_pipeline
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.model.verdict import Holds, Violated
from unit.harness.user_pipelines.toys import NEEDS_BYTEWAX

RECORDS = 40
FOUND = Path(__file__).parents[2] / "docs" / "found"


def killed(name: str, aim: str, **parameters: str) -> Result:
    return struck(name, KillNode(node=0, trigger=AtAim(aim=aim)), **parameters)


def struck(name: str, fault: AnyFault, **parameters: str) -> Result:
    subject = PipelineSubject(SHIPPED[name].path, parameters)
    result = run_on(subject, replace(subject.without_faults(RECORDS), faults=(fault,)))
    assert result.history.unapplied == []
    return result


@NEEDS_BYTEWAX
def test_bytewax_resumes_and_repeats_nothing() -> None:
    verdicts = killed("bytewax-count", "halfway").judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


def test_spark_repeats_the_rows_that_foreachbatch_appends() -> None:
    found = killed("spark-foreachbatch-append", "written-and-not-committed").judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert found["exactly-once"].difference == "repeated row"
    assert found["no-data-loss"] == Holds(exercised=1)


def test_spark_repeats_no_row_if_a_batch_replaces_its_folder() -> None:
    verdicts = killed("spark-foreachbatch-idempotent", "written-and-not-committed").judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


@pytest.mark.parametrize("name", ["spark-file", "spark-count", "spark-dedup", "spark-windows", "spark-delta"])
def test_spark_repeats_no_row_that_its_sink_has_committed(name: str) -> None:
    demand(name)
    verdicts = killed(name, "written-and-not-committed" if name != "spark-delta" else "amid-a-batch").judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


@pytest.mark.parametrize(("version", "holds"), [("1.4.3", False), ("1.5.0", True)])
def test_iceberg_loses_what_a_restarted_driver_had_committed_with_a_release_that_has_the_bug(
    version: str, holds: bool
) -> None:
    subject = PipelineSubject(SHIPPED["iceberg-spark"].path, {"version": version})
    if needed := missing(subject.pipeline):
        pytest.skip(f"{', '.join(needed)} have not been fetched: cutproof pipeline try iceberg-spark")
    result = run_on(subject, read_scenario(FOUND / "iceberg-1.4.3-restarted-driver.json"))
    verdicts = result.judgement.verdicts
    assert {type(verdicts[name]) for name in ("exactly-once", "no-data-loss")} == {Holds if holds else Violated}


@pytest.mark.parametrize("library", ["deltalake", "pyiceberg", "pypaimon"])
def test_rows_are_appended_twice_unless_the_table_is_asked_for_the_last_commit(library: str) -> None:
    demand(f"{library}-appends")
    found = killed(f"{library}-appends", "committed-and-not-noted").judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert found["exactly-once"].difference == "repeated row"
    verdicts = killed(f"{library}-transactions", "committed-and-not-noted").judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


@pytest.mark.parametrize(
    ("library", "careless"), [("deltalake", "path"), ("pyiceberg", "retries"), ("pypaimon", "append")]
)
def test_a_zombie_repeats_a_file_unless_its_commit_is_refused_or_its_rows_have_a_key(
    library: str, careless: str
) -> None:
    demand(f"{library}-zombie")
    pause = PauseNode(node=0, for_us=3_500_000, trigger=AtAim(aim="before-a-commit"))
    found = struck(f"{library}-zombie", pause, way=careless).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert found["exactly-once"].difference == "repeated row"
    assert found["no-data-loss"] == Holds(exercised=1)
    verdicts = struck(f"{library}-zombie", pause).judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


@pytest.mark.parametrize("library", ["deltalake", "pyiceberg", "pypaimon"])
def test_two_writers_lose_rows_unless_each_asks_for_its_own_last_commit(library: str) -> None:
    demand(f"{library}-two-writers")
    found = killed(f"{library}-two-writers", "before-a-commit", other="worker").judgement.verdicts
    assert isinstance(found["no-data-loss"], Violated)
    result = killed(f"{library}-two-writers", "before-a-commit")
    assert result.judgement.verdicts["exactly-once"] == Holds(exercised=1)
    assert result.judgement.verdicts["no-data-loss"] == Holds(exercised=1)
    taken = result.history.counters
    conflicts = sum(int(taken[name][-1].value) for name in ("conflicts", "conflicts-of-the-other"))
    if library != "pypaimon":  # it bases a commit on the newest snapshot: only commits at the same moment meet
        assert conflicts


def demand(name: str) -> None:
    """Skip a test whose engine is not there."""
    one = SHIPPED[name]
    if one.module and importlib.util.find_spec(one.module) is None:
        pytest.skip(f"{one.module} is not installed: pip install 'cutproof[{one.extra}]'")
    if needed := missing(read_pipeline(one.path)):
        pytest.skip(f"{', '.join(needed)} have not been fetched: cutproof pipeline try {name}")
