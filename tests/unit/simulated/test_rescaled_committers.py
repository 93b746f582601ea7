"""Committables that other committers than those of the snapshot are given: a job goes on wider or narrower (ABS-11)."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtTime, FailCommit
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import AnyCommand, Cancel, Resume, StopWithSavepoint
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import FaultFired, JobEnded
from cutproof.properties.model.verdict import Holds
from unit.simulated.overtaken import loaded
from unit.simulated.test_committers import RECORDS, scenario
from unit.simulated.worlds import journal

CANCELLED = Cancel(trigger=AtTime(at_us=4_000))
STOPPED = StopWithSavepoint(trigger=AtTime(at_us=2_500))


@pytest.mark.parametrize("committing", ["committer", "global"])
@pytest.mark.parametrize("end", [CANCELLED, STOPPED], ids=["cancelled", "stopped"])
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2)])
def test_committables_in_the_snapshot_are_committed_once_at_another_width(
    before: int, after: int, end: AnyCommand, committing: str
) -> None:
    """No commit gets through for a while, so that a cancelled job leaves what its checkpoint covers to the next."""
    refused = [
        FailCommit(trigger=AtTime(at_us=0), task=f"committer-{subtask}", how="refused", times=4)
        for subtask in range(before)
    ]
    plain = scenario(committing, *refused)
    topology = replace(plain.topology, parallelism=dict.fromkeys(plain.topology.parallelism, before))
    resume = Resume(trigger=AtTime(at_us=500), parallelism=dict.fromkeys(topology.parallelism, after))
    result = run(SimulatedSubject(), replace(plain, topology=topology, commands=(end, resume)))
    history = result.history

    assert {entry.fault for entry in journal(FaultFired, history)} == set(range(before))
    first = min(one.attempt for one in history.runs if one.job == 2)
    (checkpoint,) = {one.loaded.checkpoint for one in history.runs if one.attempt == first and one.loaded is not None}
    left = Counter(name for state in result.case.states(checkpoint).values() for name, _ in state.transactions)
    given = {task: [name for name, _ in state.transactions] for task, state in loaded(history, first).items()}
    assert len(left) >= before
    assert Counter(name for names in given.values() for name in names) == left
    assert {task for task, names in given.items() if names} == {f"committer-{n}" for n in range(min(before, after))}

    ended = journal(JobEnded, history)
    assert [entry.status for entry in ended] == ["cancelled" if end is CANCELLED else "stopped", "finished"]
    committed = {one.name: one.committed for one in history.transactions if one.committed is not None and one.rows}
    assert set(left) <= set(committed)
    assert end is STOPPED or all(committed[name] > ended[0].order for name in left)
    assert Counter(tag for _, _, tag, _ in history.committed) == Counter(tag for _, _, tag in RECORDS)
    assert not result.judgement.violated
    for name in ("exactly-once", "visibility", "restored-state", "no-leaks"):
        assert isinstance(result.judgement.verdicts[name], Holds), name
