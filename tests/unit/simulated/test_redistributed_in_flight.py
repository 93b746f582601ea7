"""Data in flight that goes to other subtasks, before each kind of state (UNA-5, OPS-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtTime
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Cancel, Engine, Resume, Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import JobEnded, StoredState
from cutproof.properties.model.verdict import Holds
from cutproof.properties.model.workload import (
    AnyOperator,
    Batch,
    Count,
    Input,
    Map,
    Node,
    Rules,
    Tally,
    Topology,
    Workload,
)
from cutproof.properties.reconstruct.in_flight import records
from unit.simulated.overtaken import SLOW, in_flight, loaded
from unit.simulated.worlds import QUICK, counted, job, journal

WIDTHS = [(2, 3), (3, 2), (7, 2), (2, 7)]
UNALIGNED = {**QUICK, **SLOW, "alignment": "unaligned"}


def redistributed_by_key(topology: Topology) -> Topology:
    """No edge is forward, so that barriers overtake on all but those that are broadcast."""
    edges = tuple(
        one if one.partitioning == "broadcast" else replace(one, partitioning="hash") for one in topology.edges
    )
    return replace(topology, edges=edges)


def chain(wide: int, *operators: AnyOperator) -> Scenario:
    """Twelve keys, for seven subtasks to have something."""
    plain = job(84 * wide, *operators, width=wide, splits=wide, **{**SLOW, "alignment": "unaligned"})  # type: ignore[arg-type]
    (source,) = plain.workload.inputs
    splits = tuple(tuple((tag % 12, value, tag) for _, value, tag in split) for split in source.splits)
    workload = replace(plain.workload, inputs=(replace(source, splits=splits),))
    return replace(plain, workload=workload, topology=redistributed_by_key(plain.topology))


def ruled(wide: int) -> Scenario:
    """Rows on their way to rules, and behind them; the rules themselves are broadcast."""
    data = Input(name="data", splits=tuple(tuple((n % 12, n, 1000 * at + n) for n in range(84)) for at in (1, 2)))
    changes = tuple(tuple((n % 12, 100 * n, 10_000 * at + n) for n in range(30)) for at in (1, 2))
    workload = Workload(
        name="ruled",
        inputs=(data, Input(name="changes", splits=changes)),
        nodes=(
            Node(name="map", operator=Map(add=1), inputs=("data",)),
            Node(name="rules", operator=Rules(), inputs=("map", "changes")),
        ),
    )
    names = ("data", "map", "changes", "rules", "sink")
    topology = redistributed_by_key(lay_out(workload, dict.fromkeys(names, wide)))
    return Scenario(workload=workload, topology=topology, engine=Engine(**UNALIGNED))  # type: ignore[arg-type]


KINDS: dict[str, tuple[Callable[[int], Scenario], str, str]] = {
    "keyed": (lambda wide: chain(wide, Count()), "op0", "entries"),
    "list": (lambda wide: chain(wide, Batch(size=5), Count()), "op0", "listed"),
    "union": (lambda wide: chain(wide, Tally()), "op0", "shared"),
    "broadcast": (ruled, "rules", "broadcast"),
}
"""by kind of state: a job, the operator that has it, and the field of a stored state in which it stands"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("before", "after"), WIDTHS)
def test_what_was_in_flight_is_redistributed_once_along_with_each_kind_of_state(
    before: int, after: int, kind: str
) -> None:
    """Each record in flight is one subtask's, in front of the state or, where that is broadcast, beside it."""
    build, operator, field = KINDS[kind]
    plain = build(before)
    cancel = Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=3))
    resume = Resume(trigger=AtTime(at_us=500), parallelism=dict.fromkeys(plain.topology.parallelism, after))
    scenario = replace(plain, commands=(cancel, resume))
    result = run(SimulatedSubject(), scenario)
    history = result.history

    begun = loaded(history, min(one.attempt for one in history.runs if one.job == 2))
    assert [task for task, state in begun.items() if task.startswith(operator) and getattr(state, field)]
    receiver = operator if kind != "broadcast" else "map"
    left = in_flight(history)[max(entry.checkpoint for entry in history.completed if entry.job == 1)]
    waiting = [origin for channel, origins in left.items() if f">{receiver}-" in channel for origin in origins]
    shares = [queued(state) for task, state in begun.items() if task.startswith(receiver)]
    assert waiting
    assert sorted(origin for origins in shares for origin in origins) == sorted(waiting)
    assert sum(map(bool, shares)) > 1 or after < before, "where there are more than before they share it"
    assert kind != "broadcast" or not [channel for channel in left if ">rules-" in channel], "never unaligned"

    assert [entry.status for entry in journal(JobEnded, history)] == ["cancelled", "finished"]
    assert not result.judgement.violated
    for name in ("exactly-once", "consistent-cut", "restored-state"):
        assert isinstance(result.judgement.verdicts[name], Holds), name
    if kind != "broadcast":
        assert Counter(history.committed) == counted(scenario)


def queued(state: StoredState) -> list[int]:
    """The records that a task finds in its inputs when it is restored, by their origins."""
    return [origin for held in state.queued.values() for origin, _ in records(held)]
