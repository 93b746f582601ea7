"""Batch execution: order of tasks, sorted input, state of one key, running again, and what it gives."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutproof.reference_impl.batch.execution import RESTARTS, Batch, BatchFailed, BatchResult, TaskReport
from cutproof.reference_impl.core.job.split_log import SplitLog
from cutproof.reference_impl.core.job.topology import EdgeSpec, JobGraph, OperatorSpec
from cutproof.reference_impl.core.operators import holding
from cutproof.reference_impl.core.operators.operators import (
    Count,
    Dedup,
    Filter,
    Greater,
    Join,
    Map,
    Operator,
    Sum,
)
from cutproof.reference_impl.core.operators.user_functions import Context, Function, Out, Taken, UserOperator
from cutproof.reference_impl.core.operators.windows import Tumbling
from cutproof.reference_impl.core.vocabulary.errors import Refused
from cutproof.reference_impl.core.vocabulary.ids import TaskId
from cutproof.reference_impl.core.vocabulary.messages import Record

Log = Sequence[tuple[int | None, int | None, int]]

keys = st.one_of(st.none(), st.integers(-2, 2))
logs = st.lists(st.tuples(keys, st.one_of(st.none(), st.integers(-9, 9)), st.integers(1, 1 << 40)), max_size=20)


def graph(*builds: Callable[[], Operator], sources: int = 1, rewindable: bool = True, bounded: bool = True) -> JobGraph:
    """Sources with one split each into the first operator, the others in a chain, two subtasks each but the sink."""
    inputs = tuple(
        OperatorSpec(
            name=f"source{number}",
            parallelism=1,
            splits=(number,),
            role="source",
            rewindable=rewindable,
            bounded=bounded,
        )
        for number in range(sources)
    )
    before = tuple(EdgeSpec(sender=spec.name, partitioning="hash") for spec in inputs)
    chain = []
    for number, build in enumerate(builds):
        chain.append(OperatorSpec(name=f"op{number}", parallelism=2, inputs=before, build=build))
        before = (EdgeSpec(sender=f"op{number}", partitioning="hash"),)
    sink = OperatorSpec(name="sink", parallelism=1, inputs=before, role="sink")
    return JobGraph((*inputs, *chain, sink), key_groups=8)


def execute(job: JobGraph, *records: Log, failures: dict[str, Sequence[int]] | None = None) -> BatchResult:
    splits = [SplitLog(split=number, records=log) for number, log in enumerate(records)]
    return Batch(job, splits, {TaskId(task): deaths for task, deaths in (failures or {}).items()}).run()


def report(result: BatchResult, task: str) -> TaskReport:
    return next(one for one in result.tasks if one.task == task)


FIVE: Log = ((1, 5, 11), (4, 7, 12), (1, 6, 13), (4, 1, 14), (1, 2, 15))
"""Of key 1, which op0-1 owns, and of key 4, which op0-0 does."""


def test_tasks_run_in_topological_order_each_over_all_that_was_sent() -> None:
    result = execute(graph(lambda: Filter(lambda value: value != 7), Sum), FIVE)
    assert [one.task for one in result.tasks] == ["source0-0", "op0-0", "op0-1", "op1-0", "op1-1", "sink-0"]
    assert [one.taken for one in result.tasks if one.task.startswith("op0")] == [2, 3]
    assert sum(one.taken for one in result.tasks if one.task.startswith("op1")) == 4


def test_a_count_that_feeds_the_sink_gives_its_last_row_alone() -> None:
    assert sorted(execute(graph(lambda: Count(False)), FIVE).rows) == [(1, 3, 0, 0), (4, 2, 0, 0)]


def test_a_sum_that_feeds_the_sink_gives_its_last_row_alone() -> None:
    assert sorted(execute(graph(Sum), FIVE).rows) == [(1, 13, 39, 0), (4, 8, 26, 0)]


def test_a_count_within_the_job_feeds_every_row() -> None:
    result = execute(graph(lambda: Count(False), Sum), FIVE)
    assert sorted(result.rows) == [(1, 6, 0, 0), (4, 3, 0, 0)]


def test_what_is_no_update_stream_is_given_whole() -> None:
    assert Multiset(row[:3] for row in execute(graph(lambda: Count(True)), FIVE).rows) == Multiset(
        [(1, 1, 11), (1, 2, 13), (1, 3, 15), (4, 1, 12), (4, 2, 14)]
    )
    assert sorted(execute(graph(Greater), FIVE).rows) == [(1, 5, 11, 0), (1, 6, 13, 0), (4, 7, 12, 0)]


def test_sorting_is_stable_over_inputs_and_null_is_a_key() -> None:
    left: Log = ((None, 1, 1), (3, 2, 2), (None, 3, 3))
    right: Log = ((3, 4, 4), (None, 5, 5))
    rows = execute(graph(lambda: Count(True), sources=2), left, right).rows
    assert sorted(row for row in rows if row[0] is None) == [(None, 1, 1, 0), (None, 2, 3, 0), (None, 3, 5, 0)]
    assert [row for row in rows if row[0] == 3] == [(3, 1, 2, 0), (3, 2, 4, 0)]


def test_null_is_sorted_apart_from_zero() -> None:
    """Or a key would be cut in pieces, of which each begins anew."""
    fed = [(0, Record(key, None, 1, 0, number, 0)) for number, key in enumerate((0, None, 0, None, -1))]
    found = Batch(graph(Greater), []).sort_by_key(fed)
    assert [record.origin for _, record in found] == [1, 3, 4, 0, 2]


@given(logs, logs)
def test_a_join_gives_every_pair(left: Log, right: Log) -> None:
    pairs = [(a[0], a[1], a[2], b[2]) for a in left for b in right if a[0] is not None and a[0] == b[0]]
    assert Multiset(execute(graph(Join, sources=2), left, right).rows) == Multiset(pairs)


@given(logs)
def test_rows_that_wait_for_company_are_let_out_at_the_end(log: Log) -> None:
    assert Multiset(execute(graph(lambda: holding.Batch(3)), log).rows) == Multiset((*record, 0) for record in log)
    assert execute(graph(holding.Tally), log).rows == execute(graph(lambda: Count(False)), log).rows


@pytest.mark.parametrize("build", [lambda: Count(False), Sum, Greater, lambda: Dedup(True)])
@given(logs)
def test_state_of_one_key_at_a_time_and_of_each_key_once(build: Callable[[], Operator], log: Log) -> None:
    result = execute(graph(build), log)
    found = [one for one in result.tasks if one.task.startswith("op0")]
    assert all(one.keys_held <= 1 for one in found)
    assert sum(one.keys for one in found) == len({record[0] for record in log})


def test_state_that_is_not_dropped_is_measured() -> None:
    class Hoarding(Batch):
        def drop_state(self, operator: Operator) -> None:
            pass

    result = Hoarding(graph(lambda: Count(False)), [SplitLog(split=0, records=((1, 5, 11), (2, 7, 12)))]).run()
    assert max(one.keys_held for one in result.tasks) == 2


def test_input_that_is_not_sorted_is_measured() -> None:
    class Unsorted(Batch):
        def sort_by_key(self, fed: list[tuple[int, object]]) -> list[tuple[int, object]]:  # type: ignore[override]
            return fed

    records = ((1, 5, 11), (2, 7, 12), (1, 6, 13))
    result = Unsorted(graph(lambda: Count(False)), [SplitLog(split=0, records=records)]).run()
    assert sum(one.keys for one in result.tasks) > 2


@pytest.mark.parametrize("task", ["source0-0", "op0-0", "op0-1", "op1-1", "sink-0"])
@pytest.mark.parametrize("deaths", [(0,), (1, 2), (99,), (1, 0, 1)])
def test_a_failed_task_runs_again_and_nothing_else_does(task: str, deaths: Sequence[int]) -> None:
    job = graph(lambda: Map(lambda key, value: (key, value)), Sum)
    result = execute(job, FIVE, failures={task: deaths})
    assert result.rows == execute(job, FIVE).rows
    assert [one.task for one in result.tasks if one.attempts > 1] == [task]
    assert report(result, task).attempts == 1 + len(deaths)


def test_restarts_are_used_up_in_the_end() -> None:
    with pytest.raises(BatchFailed, match="op0-1: 3 restarts are used up; the last cause was: it died after 1 records"):
        execute(graph(Sum), FIVE, failures={"op0-1": (1,) * (RESTARTS + 1)})


def test_what_a_user_function_raises_fails_its_task() -> None:
    def raising(value: int | None) -> bool:
        raise ZeroDivisionError("by a user")

    with pytest.raises(BatchFailed, match="its user function raised ZeroDivisionError: by a user"):
        execute(graph(lambda: Filter(raising)), FIVE)


def test_a_source_that_cannot_rewind_is_not_read_again() -> None:
    job = graph(Sum, rewindable=False)
    assert len(execute(job, FIVE).rows) == 2
    with pytest.raises(BatchFailed, match=r"source0-0: .*cannot be read again"):
        execute(job, FIVE, failures={"source0-0": (1,)})


def test_an_input_that_never_ends_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="source0 never ends"):
        execute(graph(Sum, bounded=False), FIVE)


def test_a_window_has_all_of_its_key_before_the_end_of_time() -> None:
    split = SplitLog(split=0, records=FIVE, times=[30, 4, 2, 25, 8])
    result = Batch(graph(lambda: Tumbling(10, "sum", 0)), [split]).run()
    assert sorted(result.rows) == [(1, 5, 11, 30), (1, 8, 28, 0), (4, 1, 14, 20), (4, 7, 12, 0)]
    assert report(result, "op0-1").keys_held == 1


def test_a_timer_of_a_user_function_fires_once() -> None:
    class Waits(Function):
        timed = True

        def on_record(self, record: Taken, context: Context) -> Sequence[Out]:
            context.set_timer(record.time)
            return ()

        def on_timer(self, time: int, context: Context) -> Sequence[Out]:
            if time == 4:
                context.set_timer(5)
            return [(time, 0, 0)]

    split = SplitLog(split=0, records=FIVE, times=[30, 4, 2, 25, 8])
    result = Batch(graph(lambda: UserOperator("waits", Waits)), [split]).run()
    assert sorted(result.rows) == [(1, 2, 0, 0), (1, 8, 0, 0), (1, 30, 0, 0), (4, 4, 0, 0), (4, 5, 0, 0), (4, 25, 0, 0)]
