"""A history up to a snapshot."""

from __future__ import annotations

import pytest

from cutproof.harness.reference_engine.subjects.cutting import cut_run
from cutproof.properties.model.history import Completed, Mark, TaskRun


@pytest.mark.parametrize(("reads", "ended"), [(3, False), (5, True)])
def test_the_end_of_the_data_is_in_front_of_a_snapshot_if_nothing_came_behind_it(reads: int, ended: bool) -> None:
    mark = Mark(checkpoint=2, order=9, at_us=9, reads=reads, applies=0, received=[], sent=[], events=reads)
    run = TaskRun(
        task="source-0",
        operator="source",
        subtask=0,
        attempt=1,
        job=1,
        started=1,
        inputs=[],
        outputs=[],
        reads=[(0, offset) for offset in range(5)],
        applies=[],
        marks=[mark],
        end_of_data=True,
    )
    last = Completed(checkpoint=2, job=1, attempt=1, order=10, at_us=10, handles={"source-0": "h"}, savepoint=False)
    cut = cut_run(run, last)
    assert (len(cut.reads), cut.end_of_data) == (reads, ended)
