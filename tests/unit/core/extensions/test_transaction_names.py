"""How the transactions of a sink are named: each anew, or by the ids of a pool (ABS-11)."""

from __future__ import annotations

from cutproof.reference_impl.core.decisions.snapshots.naming import Naming
from cutproof.reference_impl.core.extensions.sinks.transaction_names import NewNames, PooledIds
from cutproof.reference_impl.core.protocol.sink import OpenTransaction
from cutproof.reference_impl.core.vocabulary.ids import CheckpointId, TaskId
from cutproof.reference_impl.core.vocabulary.state import Sealed
from unit.core.machines import spec

NAMING = Naming()


def pooled(number: int) -> str:
    return f"job-1/sink-0/id-{number}"


def sealed(*numbers: int) -> list[Sealed]:
    """Transactions under these ids that wait for their commit."""
    return [Sealed(f"t{number}", CheckpointId(3), TaskId("sink-0"), pooled(number)) for number in numbers]


def test_each_transaction_of_an_attempt_has_a_name_of_its_own_and_no_id() -> None:
    names = NewNames(spec("sink-0"), NAMING)
    assert [names.next([]) for _ in range(2)] == [
        OpenTransaction("job-1/sink-0/3-1"),
        OpenTransaction("job-1/sink-0/3-2"),
    ]


def test_the_first_id_is_taken_that_no_sealed_transaction_holds() -> None:
    ids = PooledIds(spec("sink-0"))
    taken = [ids.next(sealed(*held)).pooled_id for held in ((), (0,), (0, 1, 3), (1,))]
    assert taken == [pooled(0), pooled(1), pooled(2), pooled(0)]


def test_an_id_that_is_used_again_names_another_transaction() -> None:
    ids = PooledIds(spec("sink-0"))
    assert [ids.next([]).name for _ in range(2)] == ["job-1/sink-0/id-0#3-1", "job-1/sink-0/id-0#3-2"]
