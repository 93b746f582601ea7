"""The pipelines of Kafka, each killed at a moment that it must survive, or must not."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AnyFault, AtAim, CutChannel, KillNode
from cutproof.harness.runtime.exit_codes import HarnessFailed
from cutproof.harness.runtime.progress import Silent
from cutproof.harness.subject.run import Result
from cutproof.harness.subject.run import run as run_on
from cutproof.harness.user_pipelines.library import SHIPPED
from cutproof.harness.user_pipelines.subject import PipelineSubject
from cutproof.properties.model.history import AttemptStarted
from cutproof.properties.model.verdict import Holds, Violated

WORKER, BROKER = 0, 1
RECORDS = 40

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None,
    reason="confluent_kafka is not installed: pip install 'cutproof[kafka]'",
)


@pytest.fixture(scope="module", autouse=True)
def broker(toxiproxy_server: Path) -> None:
    """What the pipelines need is fetched before any of them runs; all of them need the same."""
    try:
        PipelineSubject(SHIPPED["kafka-transactions"].path).prepare(Silent())
    except HarnessFailed as error:
        warnings.warn(f"the pipelines of Kafka were not tested: {error}", stacklevel=1)
        pytest.skip(f"the pipelines of Kafka cannot be run: {error}")


def killed(name: str, *hits: tuple[int, str], records: int = RECORDS) -> Result:
    return ran(name, *(KillNode(node=node, trigger=AtAim(aim=aim)) for node, aim in hits), records=records)


def ran(name: str, *faults: AnyFault, records: int = RECORDS) -> Result:
    subject = PipelineSubject(SHIPPED[name].path)
    result = run_on(subject, replace(subject.without_faults(records), faults=faults))
    assert result.history.unapplied == []
    return result


IN_A_TRANSACTION = [KillNode(node=node, trigger=AtAim(aim="in-a-transaction")) for node in (WORKER, BROKER)]
CUT = CutChannel(trigger=AtAim(aim="before-the-commit"), sender="client", receiver="broker", for_us=300_000)


@pytest.mark.parametrize("fault", [*IN_A_TRANSACTION, CUT], ids=["worker", "broker", "connections"])
def test_a_transaction_that_is_disturbed_loses_and_repeats_nothing(fault: AnyFault) -> None:
    result = ran("kafka-transactions", fault)
    starts = [entry for entry in result.history.journal if isinstance(entry, AttemptStarted)]
    assert [start.restores is not None for start in starts] == [False, True]
    verdicts = result.judgement.verdicts
    assert verdicts["exactly-once"] == Holds(exercised=1)
    assert verdicts["no-data-loss"] == Holds(exercised=1)


def test_offsets_that_the_consumer_commits_amid_a_transaction_lose_its_rows() -> None:
    hits = [(WORKER, "in-a-transaction")] * 2
    found = killed("kafka-offsets-outside", *hits, records=60).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert isinstance(found["no-data-loss"], Violated)
    assert found["no-data-loss"].difference == "lost row"


def test_rows_that_have_arrived_before_their_offsets_are_committed_are_repeated() -> None:
    found = killed("kafka-no-transaction", *[(WORKER, "halfway")] * 2, records=60).judgement.verdicts
    assert isinstance(found["exactly-once"], Violated)
    assert found["exactly-once"].difference == "repeated row"
    assert isinstance(found["no-data-loss"], Holds)
