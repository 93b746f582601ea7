"""A job may fail on a snapshot that its user left behind, and for no other refused transaction."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.properties.invariants.judge import judge
from cutproof.properties.model.history import AttemptStarted, History, Transaction
from cutproof.properties.model.verdict import Unknown, Violated

TESTS = Path(__file__).parents[4]
SCENARIO = read_scenario(TESTS / "regressions/abandoned/a-newest-snapshot-behind-which-a-job-went-back.json")
REFUSED = "job-1/sink-0/1-2"


@pytest.fixture(scope="module")
def history() -> History:
    return SimulatedSubject().run(SCENARIO)


def progress(history: History, *, causes: bool = True, **changed: object) -> object:
    """The verdict on progress if the refused transaction had been another one."""

    def other(one: Transaction) -> Transaction:
        return msgspec.structs.replace(one, **changed) if one.name == REFUSED else one

    journal = history.journal if causes else [nameless(entry) for entry in history.journal]
    altered = msgspec.structs.replace(
        history, transactions=[other(one) for one in history.transactions], journal=journal
    )
    return judge(SCENARIO.workload, SCENARIO.topology, altered).verdicts["progress"]


def test_an_attempt_that_began_from_the_older_snapshot_is_accused(history: History) -> None:
    journal = [
        msgspec.structs.replace(entry, restores=1) if isinstance(entry, AttemptStarted) and entry.job == 3 else entry
        for entry in history.journal
    ]
    verdict = progress(msgspec.structs.replace(history, journal=journal))
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexplained failure"


def nameless(entry: msgspec.Struct) -> msgspec.Struct:
    return msgspec.structs.replace(entry, cause=None) if hasattr(entry, "cause") and hasattr(entry, "reason") else entry


@pytest.mark.parametrize("causes", [True, False], ids=["by its cause", "by its sentence"])
def test_a_job_that_begins_behind_the_older_snapshot_may_fail(history: History, causes: bool) -> None:
    assert isinstance(progress(history, causes=causes), Unknown)


@pytest.mark.parametrize(
    "changed",
    [
        {"checkpoint": 1},  # that from which the job in between was begun
        {"checkpoint": None},
        {"aborted": 40},  # before anybody went back
        {"aborted": None},
        {"prepared": 50},  # sealed by the job that went back
        {"name": "job-1/sink-0/1-9"},  # not the one that was refused
    ],
    ids=str,
)
def test_for_any_other_refused_transaction_it_is_accused(history: History, changed: dict[str, object]) -> None:
    verdict = progress(history, **changed)
    assert isinstance(verdict, Violated)
    assert verdict.difference == "unexplained failure"
