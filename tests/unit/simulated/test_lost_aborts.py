"""A store that dies just as something is to be aborted comes back with what was sealed: in whole runs."""

from __future__ import annotations

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Cancel, Scenario
from cutproof.properties.model.history import History
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.transactions import (
    AbortTransaction,
    AnyRequest,
    NoAnswer,
    Outcome,
    Standing,
)
from cutproof.reference_impl.simulated.external import TransactionStore
from unit.simulated.worlds import ended, job

SEALED = AtPoint(point="transaction-pre-committed", task="sink-0", occurrence=2)
"""Just after the second transaction is sealed: its checkpoint is not complete."""


class DeadForAnAbort:
    """It is away when a sealed transaction is to be aborted for the first time."""

    def __init__(self, store: TransactionStore) -> None:
        self._store = store
        self.lost: list[str] = []

    def handle(self, request: AnyRequest) -> Outcome:
        if isinstance(request, AbortTransaction) and not self.lost:
            account = self._store.accounts.get(request.name)
            if account is not None and account.standing is Standing.SEALED:
                self.lost.append(request.name)
                return NoAnswer(reason="the store is away")
        return self._store.handle(request)


def run(scenario: Scenario) -> tuple[list[str], History]:
    """(the aborts that died with the store, what the run was)."""
    driven = Run(scenario, Parts(), False)
    store = DeadForAnAbort(driven.world.external)
    driven.world.sessions.store = store
    return store.lost, driven.history()


def test_a_restored_sink() -> None:
    lost, history = run(job(faults=(KillTask(trigger=SEALED, task="sink-0"),)))
    assert len(lost) == 1
    assert ended(history)[0] == "finished"
    assert history.residue.prepared_transactions == []


def test_a_job_that_is_cancelled() -> None:
    lost, history = run(job(commands=(Cancel(trigger=SEALED),)))
    assert len(lost) == 1
    assert ended(history)[0] == "cancelled"
    assert history.residue.prepared_transactions == []
