"""PySpark on broadcast state: each subtask's copy is its own, and the greatest rule holds whichever came first."""

from __future__ import annotations

import pytest

from cutproof.properties.model.workload import SINK, Input, Node, Rules, Workload, origin_of
from cutproof.properties.spark.oracle import Oracle
from cutproof.properties.spark.tables import Apply, Cut, OracleJob

pytestmark = pytest.mark.usefixtures("spark")

DATA = ((1, 5, 70), (1, 6, 71), (1, 7, 72))
CHANGES = ((1, 10, 81), (1, 20, 80))


def test_a_row_finds_the_rules_that_its_own_subtask_had() -> None:
    """The first subtask has both rules before its rows, the second gets one before and one after its row."""
    workload = Workload(
        name="ruled",
        inputs=(Input(name="data", splits=(DATA,)), Input(name="changes", splits=(CHANGES,))),
        nodes=(Node(name="rules", operator=Rules(), inputs=("data", "changes")),),
    )
    first, second, third = (origin_of(0, offset) for offset in range(3))
    greater, lesser = (origin_of(1, offset) for offset in range(2))
    taken = (
        Apply(origin=first, epoch=0, lane=0),
        Apply(origin=greater, epoch=0, lane=0),
        Apply(origin=lesser, epoch=0, lane=0),
        Apply(origin=second, epoch=1, lane=0),
        Apply(origin=lesser, epoch=0, lane=1),
        Apply(origin=third, epoch=1, lane=1),
        Apply(origin=greater, epoch=1, lane=1),
    )
    arrived = tuple(Apply(origin=origin, epoch=epoch) for origin, epoch in ((first, 0), (second, 1), (third, 1)))
    job = OracleJob(
        id="ruled",
        workload=workload,
        cuts=(Cut(name=1, positions=(1, 2)), Cut(name=2, positions=(3, 2))),
        applies={"rules": taken, SINK: arrived},
    )
    (answer,) = Oracle().judge_batch([job])
    assert answer.expected is not None
    assert answer.expected.rows_of(1) == {(1, 5, 70, 0): 1}
    assert answer.expected.rows_of(2) == {(1, 16, 71, 81): 1, (1, 27, 72, 80): 1}
    assert answer.expected.state(1) == {"rules": {(0, 1, 10, 81): 1, (0, 1, 20, 80): 1}}
    assert answer.expected.state(2) == {"rules": {(0, 1, 10, 81): 2}}
