"""A job that a snapshot does not fit is refused by its operators' names (FIN-2): nothing is dropped in silence."""

from __future__ import annotations

import pytest

from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from unit.core.coordinator_rig import CoordinatorRig, deployed, savepoint

GROUPS = 8
GONE = "checkpoint 5 holds state of {}, which the job no longer has: it is dropped only with allow_non_restored_state"


def graph(*between: str, wide: int = 2, groups: int = GROUPS, edges: str = "hash") -> JobGraph:
    """A source, operators one behind the other, and a sink; between the operators are such edges."""
    specs = [OperatorSpec(name="source", parallelism=1, splits=(0, 1), role="source")]
    for name in between:
        partitioning = edges if specs[-1].role == "operator" else "hash"
        before = EdgeSpec(sender=specs[-1].name, partitioning=partitioning)
        specs.append(OperatorSpec(name=name, parallelism=wide, inputs=(before,)))
    last = EdgeSpec(sender=specs[-1].name, partitioning="hash")
    return JobGraph((*specs, OperatorSpec(name="sink", parallelism=1, inputs=(last,), role="sink")), groups)


def refusal(new: JobGraph, initial: CompletedCheckpoint) -> str:
    """Why the job ends before anything is deployed; empty when it does not."""
    job = CoordinatorRig(job=2, graph=new, coordinator={"initial": (initial,)})
    effects = job.start()
    reason = job.closed_for
    assert job.unsaved[-1].has_begun is not bool(reason)
    assert bool(deployed([*effects, *job.saved()])) is not bool(reason)
    return reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            savepoint(graph("count", "join")),
            graph("join"),
            GONE.format("count"),
        ),
        (
            savepoint(graph("count", "join"), "source-0", "count-0", "count-1"),
            graph(),
            GONE.format("count, join"),
        ),
        (
            savepoint(graph("count", "join")),
            graph("count", "join", groups=16),
            "checkpoint 5 holds the state of count, join by 8 key groups, and the job has 16",
        ),
        (
            savepoint(graph("count")),
            graph("count", "fresh"),
            "checkpoint 5 holds no state of fresh: its job had no such operator",
        ),
        (
            savepoint(graph("count"), "source-0", "count-0", "count-1"),
            graph("count", "fresh"),
            "checkpoint 5 holds no state of fresh: its job had no such operator",
        ),
        (
            savepoint(graph("count"), "source-0", "count-0", "count-1"),
            graph("fresh", "count"),
            "checkpoint 5 counts count as finished, but not all that sends to it: rows of fresh would be lost",
        ),
        (
            savepoint(graph("count", wide=1)),
            graph("fresh", "count", edges="forward", wide=3),
            "checkpoint 5 holds no state of fresh: its job had no such operator",
        ),
        (
            savepoint(graph("count", wide=2), "source-0", "count-0", "count-1"),
            graph("fresh", "count", edges="forward", wide=3),
            "checkpoint 5 counts count as finished, but not all that sends to it: rows of fresh would be lost",
        ),
    ],
    ids=[
        "gone",
        "gone and finished",
        "key groups",
        "new",
        "new behind a finished one",
        "new before a finished one",
        "new, and wider",
        "new before a finished one, and wider",
    ],
)
def test_what_is_incompatible_is_refused_by_its_operators(old: CompletedCheckpoint, new: JobGraph, reason: str) -> None:
    assert refusal(new, old) == reason


@pytest.mark.parametrize("wide", [1, 2, 3])
def test_what_is_compatible_is_not(wide: int) -> None:
    assert refusal(graph("count", "join", wide=wide), savepoint(graph("count", "join"))) == ""
    assert refusal(graph("count", wide=wide), savepoint(graph("count"), "source-0", "count-0", "count-1")) == ""
