"""A job with other operators than the one before takes a savepoint over, or is refused by name (SNAP-5)."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.reference_impl.core.decisions.snapshots.compatibility import layout_of, refusal
from cutproof.reference_impl.core.decisions.snapshots.upgrading import operators_in
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.upgrades import StateMapping
from unit.core.coordinator_rig import CoordinatorRig, deployed, savepoint

MAY_DROP = StateMapping(allow_non_restored_state=True)
EMPTY = StateMapping(begin_empty=("count",))


def graph(*between: str, edges: str = "hash", wide: int = 1, stateless: tuple[str, ...] = ()) -> JobGraph:
    """A source, operators one behind the other, and a sink, as wide as said but for the source."""
    specs = [OperatorSpec(name="source", parallelism=1, splits=(0, 1), role="source")]
    for name in between:
        before = EdgeSpec(sender=specs[-1].name, partitioning=edges if len(specs) > 1 else "hash")
        spec = OperatorSpec(name=name, parallelism=wide, inputs=(before,), keeps_state=name not in stateless)
        specs.append(spec)
    last = EdgeSpec(sender=specs[-1].name, partitioning=edges if len(specs) > 1 else "hash")
    return JobGraph((*specs, OperatorSpec(name="sink", parallelism=wide, inputs=(last,), role="sink")), 16)


BOTH, ONE = graph("count", "map"), graph("map")


def submitted(new: JobGraph, mapping: StateMapping, initial: CompletedCheckpoint) -> CoordinatorRig:
    job = CoordinatorRig(
        job=2, graph=new.taking_over(mapping), coordinator={"initial": (initial,), "first_checkpoint": 6}
    )
    job.start()
    return job


def restored(job: CoordinatorRig) -> dict[str, str | None]:
    """By task of the first attempt, the handle of the state that it restores."""
    assert job.closed_for == ""
    return {str(task): order.handle for task, order in deployed(job.saved()).items()}


def test_the_state_of_an_operator_that_is_gone_is_dropped_by_permission() -> None:
    held = savepoint(BOTH).handles
    found = restored(submitted(ONE, MAY_DROP, savepoint(BOTH)))
    assert found == {task: held[TaskId(task)] for task in ("source-0", "map-0", "sink-0")}


def test_it_is_refused_by_name_and_uid_without() -> None:
    called = msgspec.structs.replace(savepoint(BOTH), uids={"count": "total"})
    assert submitted(ONE, StateMapping(), called).closed_for == (
        "checkpoint 5 holds state of count (uid total), which the job no longer has: it is dropped only with"
        " allow_non_restored_state"
    )


def test_one_that_keeps_no_state_goes_without_a_permission() -> None:
    stateless = msgspec.structs.replace(savepoint(BOTH), stateless=("count",))
    assert set(restored(submitted(ONE, StateMapping(), stateless))) == {"source-0", "map-0", "sink-0"}


def test_a_snapshot_records_who_keeps_no_state() -> None:
    assert graph("count", "map", stateless=("map",)).stateless == ("map",)


@pytest.mark.parametrize(
    ("new", "mapping", "initial", "names"),
    [(ONE, MAY_DROP, BOTH, "count"), (BOTH, EMPTY, ONE, "count")],
    ids=["removed", "added"],
)
def test_a_checkpoint_fits_no_job_with_other_operators(
    new: JobGraph, mapping: StateMapping, initial: JobGraph, names: str
) -> None:
    checkpoint = msgspec.structs.replace(savepoint(initial), savepoint=False, ending=None)
    assert submitted(new, mapping, checkpoint).closed_for == (
        f"checkpoint 5 is no savepoint, and {names} cannot be new or gone, nor have another uid or type than in it:"
        " resume from a savepoint"
    )


def test_a_new_operator_begins_without_a_state_if_its_user_says_so() -> None:
    held = savepoint(ONE).handles
    found = restored(submitted(BOTH, EMPTY, savepoint(ONE)))
    assert found == {**{str(task): handle for task, handle in held.items()}, "count-0": None}


def test_the_uid_counts() -> None:
    called = BOTH.upgraded({"count": "total"})
    assert submitted(called, StateMapping(begin_empty=("total",)), savepoint(ONE)).closed_for == ""
    assert "holds no state of count" in submitted(called, EMPTY, savepoint(ONE)).closed_for


def test_who_may_begin_empty_still_needs_the_state_that_the_snapshot_has() -> None:
    found = savepoint(BOTH)
    lost = {task: handle for task, handle in found.handles.items() if task != "count-0"}
    assert submitted(BOTH, EMPTY, msgspec.structs.replace(found, handles=lost)).closed_for == (
        "checkpoint 5 holds no state of count-0"
    )


def test_no_permission_lets_one_begin_in_front_of_a_finished_one() -> None:
    done = savepoint(ONE, "source-0", "map-0", stateless=("map-0",))
    assert submitted(BOTH, EMPTY, done).closed_for == (
        "checkpoint 5 counts map as finished, but not all that sends to it: rows of count would be lost"
    )


@pytest.mark.parametrize(("between", "new"), [(("map", "count"), "count"), (("count", "map"), "count")])
def test_a_new_operator_was_as_wide_as_those_to_which_forward_edges_join_it(between: tuple[str, ...], new: str) -> None:
    before = savepoint(graph("map", edges="forward", wide=2))
    now = graph(*between, edges="forward", wide=3)
    assert layout_of(now, before).parallelism == {"source": 1, "map": 2, "sink": 2, new: 2}


# -- what a record does not say ------------------------------------------------------------------------------------


def test_a_record_that_says_0_key_groups_and_no_parallelism_has_not_recorded_them_and_is_stored_so_again() -> None:
    recorded = savepoint(BOTH)
    stored = msgspec.json.encode(recorded.stored())
    assert msgspec.json.decode(stored, type=CompletedCheckpoint) == recorded
    former = msgspec.json.encode({**recorded.stored(), "parallelism": {}, "key_groups": 0})
    read = msgspec.json.decode(former, type=CompletedCheckpoint)
    assert (read.parallelism, read.key_groups) == (None, None)
    assert msgspec.json.encode(read.stored()) == former


def test_where_parallelism_and_key_groups_are_not_recorded_a_job_is_not_refused_for_them() -> None:
    unrecorded = msgspec.structs.replace(savepoint(BOTH), parallelism=None, key_groups=None)
    assert operators_in(unrecorded) == operators_in(savepoint(BOTH)) == ("source", "count", "map", "sink")
    assert layout_of(graph("count", "map", wide=2), unrecorded).parallelism["count"] == 2
    assert refusal(JobGraph(BOTH.operators, 64), savepoint(BOTH)) is not None
    assert refusal(JobGraph(BOTH.operators, 64), unrecorded) is None
