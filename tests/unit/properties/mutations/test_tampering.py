"""Tampering: every mutation is seen by an invariant that it names, and every invariant has a mutation.

Windows, and with them the mutations of event time, are in tests/defects/test_windowed_runs.py, broadcast state in
test_ruled_runs.py beside it, data in flight in test_unaligned_runs.py, rows that wait and those that commit otherwise
in test_held_runs.py.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from cutproof.properties.invariants.judge import CHECKERS
from cutproof.properties.model.history import History
from cutproof.properties.model.verdict import INVARIANTS, Holds, Violated
from cutproof.properties.mutations.copies import COPY_MUTATIONS
from cutproof.properties.mutations.tampering import (
    BATCH_MUTATIONS,
    CLAIM_MUTATIONS,
    COMMITTER_MUTATIONS,
    COMPATIBILITY_MUTATIONS,
    DELETION_MUTATIONS,
    EVENT_TIME_MUTATIONS,
    FORK_MUTATIONS,
    IN_FLIGHT_MUTATIONS,
    LISTING_MUTATIONS,
    MUTATIONS,
    PROCESSING_TIME_MUTATIONS,
    RULE_MUTATIONS,
    UPGRADE_MUTATIONS,
    tamperings,
)
from cutproof.properties.mutations.transactions import add_sealed_transaction
from cutproof.properties.quick_checker.case import Case
from unit.properties.histories import correct_runs, counting, recovered


def held(case: Case) -> set[str]:
    return {name for name in INVARIANTS if isinstance(CHECKERS[name](case), Holds)}


@pytest.fixture(scope="module")
def trials() -> tuple[Counter[tuple[str, bool]], Counter[str]]:
    """(mutation, caught) and the invariants that caught one, over many correct runs."""
    outcomes: Counter[tuple[str, bool]] = Counter()
    caught_by: Counter[str] = Counter()
    for (workload, topology), history in correct_runs(range(4)):
        case = Case(workload, topology, history)
        holding = held(case)
        for tampering in tamperings(case):
            targeted = [name for name in tampering.invariants if name in holding]
            if not targeted:
                continue
            mutated_history = Case(workload, topology, tampering.apply(history))
            turned = [name for name in targeted if isinstance(CHECKERS[name](mutated_history), Violated)]
            outcomes[tampering.name, bool(turned)] += 1
            caught_by.update(turned)
    return outcomes, caught_by


ELSEWHERE = (
    EVENT_TIME_MUTATIONS
    | PROCESSING_TIME_MUTATIONS
    | IN_FLIGHT_MUTATIONS
    | RULE_MUTATIONS
    | COMPATIBILITY_MUTATIONS
    | BATCH_MUTATIONS
    | COMMITTER_MUTATIONS
    | FORK_MUTATIONS
    | DELETION_MUTATIONS
    | COPY_MUTATIONS
    | LISTING_MUTATIONS
    | CLAIM_MUTATIONS
    | UPGRADE_MUTATIONS
)


@pytest.mark.parametrize("mutation", [name for name in MUTATIONS if name not in ELSEWHERE])
def test_every_mutation_is_caught_wherever_its_invariant_held(
    mutation: str, trials: tuple[Counter[tuple[str, bool]], Counter[str]]
) -> None:
    outcomes, _ = trials
    assert outcomes[mutation, True] > 0
    assert outcomes[mutation, False] == 0


@pytest.mark.parametrize("invariant", [name for name in INVARIANTS if name not in ("drain", "restorable")])
def test_every_invariant_catches_a_mutation(
    invariant: str, trials: tuple[Counter[tuple[str, bool]], Counter[str]]
) -> None:
    _, caught_by = trials
    assert caught_by[invariant] > 0


def test_every_invariant_that_held_is_mutated() -> None:
    for case, history in correct_runs(range(2)):
        mutated_case = Case(*case, history)
        mutated = {name for tampering in tamperings(mutated_case) for name in tampering.invariants}
        assert held(mutated_case) <= mutated, (case[0].name, history.sink, history.guarantee)


def test_a_mutation_leaves_the_recorded_history_as_it_was() -> None:
    toy = recovered()
    toy.finish()
    history = toy.history()
    case = Case(toy.workload, toy.topology, history)
    before = msgspec.json.encode(history)
    for tampering in tamperings(case):
        mutated_history = tampering.apply(history)
        assert msgspec.json.encode(mutated_history) != before, tampering.name
        assert msgspec.json.encode(history) == before, tampering.name
        assert msgspec.json.encode(tampering.apply(history)) == msgspec.json.encode(mutated_history), tampering.name


def test_a_mutation_is_still_a_history() -> None:
    toy = recovered(counting(bounded=False))
    toy.checkpoint_now()
    history = toy.history()
    for tampering in tamperings(Case(toy.workload, toy.topology, history)):
        text = msgspec.json.encode(tampering.apply(history))
        assert isinstance(msgspec.json.decode(text, type=History), History)


def test_only_what_is_promised_is_mutated() -> None:
    toy = recovered(sink="plain", guarantee="at-least-once")
    case = Case(toy.workload, toy.topology, toy.history())
    found = tamperings(case)
    assert found
    assert all(name in case.promised for tampering in found for name in tampering.invariants)
    assert "swap two records of a channel" not in {tampering.name for tampering in found}


def test_an_empty_history_has_no_place_for_most() -> None:
    toy = recovered()
    empty = History(subject="toy", guarantee="exactly-once", sink="transactional")
    assert [tampering.name for tampering in tamperings(Case(toy.workload, toy.topology, empty))] == ["leave a file"]


def test_only_the_first_transaction_is_left_sealed_and_only_where_somebody_cleaned_up_behind_it() -> None:
    """A later one says nothing of it: its writer's leftovers are another attempt's to clean up."""
    toy = recovered()
    toy.finish()
    history = toy.history()
    first = history.transactions[0]
    assert len({one.name for one in history.transactions}) > 1
    mutation = add_sealed_transaction(Case(toy.workload, toy.topology, history))
    assert mutation is not None
    mutation[1](history)
    assert history.residue.prepared_transactions == [f"{first.name}-sealed"]

    of_no_attempt = recovered(counting(bounded=False)).history()
    of_no_attempt.transactions[0].attempt = 9  # after all others
    assert add_sealed_transaction(Case(toy.workload, toy.topology, of_no_attempt)) is None
