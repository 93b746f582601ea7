"""A count executed as a stream and as a batch (FIN-6)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....faults.plan import AtPoint, KillTask
from ....properties.model.history import History, StoredState, TaskRun
from ....properties.model.verdict import Holds
from ....properties.model.workload import SINK, Count, Input, Node, Workload, offset_of, split_of
from ...reference_engine import streaming_batch
from ...reference_engine.streaming_batch import BatchResult
from ...scenario import topologies
from ...scenario.model import Engine, Scenario
from ..claims import Claim, Example, attempts, numbered, require, runs_of
from ..texts import POST

_KEYS = 5
_COUNTED = Workload(
    name="count-streaming-batch",
    inputs=(Input(name="source", splits=(numbered(60, _KEYS), numbered(120, _KEYS)[60:])),),
    nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
)
_FAILURES = {"count-0": (7,)}
"""the batch execution fails too: the first attempt of count-0 dies after seven records"""


def _batch(scenario: Scenario) -> BatchResult:
    return streaming_batch.execute(scenario, _FAILURES)


def _keys_of(scenario: Scenario, run: TaskRun) -> list[int | None]:
    """The keys of the records that a task took, in order."""
    records = {number: rows for number, _, rows in scenario.workload.splits()}
    return [records[split_of(origin)][offset_of(origin)][0] for _, origin in run.applies]


def _changes(keys: list[int | None]) -> int:
    """How often the key of the state in use changes; the first key counts as a change."""
    return sum(index == 0 or keys[index - 1] != key for index, key in enumerate(keys))


def _held(history: History) -> Iterator[int]:
    for stored in history.stored:
        if stored.task.startswith("count-"):
            yield len({key for _, key, _, _ in msgspec.json.decode(stored.state, type=StoredState).entries})


def _streaming_goes_to_and_fro(scenario: Scenario, history: History) -> str:
    sentences = []
    for run in runs_of(history, "count", attempts(history)[-1]):
        keys = _keys_of(scenario, run)
        require(_changes(keys) > len(set(keys)), f"{run.task} had its {len(set(keys))} keys one after the other")
        sentences.append(f"{run.task} took {len(keys)} records and changed its key {_changes(keys)} times")
    most = max(_held(history), default=0)
    require(most > 1, "no snapshot of count holds more than one key")
    return f"{', '.join(sentences)}; it held state of {most} keys at once"


def _batch_sorts_first(scenario: Scenario, history: History) -> str:
    batch = _batch(scenario)
    counts = [report for report in batch.tasks if report.task.startswith("count-")]
    for report in counts:
        require(report.keys_held == 1, f"{report.task} held state of {report.keys_held} keys at once")
    changes, keys = sum(report.keys for report in counts), len({row[0] for row in batch.rows})
    require(changes == keys, f"the key changed {changes} times, and there are {keys} keys")
    sentences = [
        f"{report.task} took {report.taken} records and changed its key {report.keys} times" for report in counts
    ]
    return f"{', '.join(sentences)}; it held state of 1 key at a time"


def _in_topological_order(scenario: Scenario, history: History) -> str:
    tasks = _batch(scenario).tasks
    ran = [report.task.rpartition("-")[0] for report in tasks]
    order = ["source", "count", SINK]
    require(ran == sorted(ran, key=order.index), f"they ran as {', '.join(ran)}")
    fed = {name: sum(one.taken for one in tasks if one.task.startswith(f"{name}-")) for name in order}
    records = scenario.workload.records()
    require(fed["source"] == fed["count"] == records, f"count took {fed['count']} of {records} records")
    again = [f"{one.task} ran {one.attempts} times" for one in tasks if one.attempts > 1]
    require(bool(again), "no task failed")
    return f"{', '.join(one.task for one in tasks)}, each to its end; {', '.join(again)}, without a checkpoint"


def _same_counts(scenario: Scenario, history: History) -> str:
    batch = _batch(scenario)
    found = streaming_batch.compare(scenario, history, batch, None).equal
    if not isinstance(found, Holds):
        require(False, getattr(found, "message", "") or getattr(found, "detail", ""))
    updates, final = len(history.committed), len(batch.rows)
    require(updates > final, f"{updates} rows were committed by the stream, {final} by the batch")
    return f"the stream committed {updates} counts, the batch {final}: the last of each key, and they are the same"


COUNT_STREAMING_BATCH = Example(
    about="a count in both modes: state of all keys together, or of one key at a time over sorted input",
    document=POST,
    scenario=Scenario(
        name="count-streaming-batch",
        workload=_COUNTED,
        topology=topologies.lay_out(_COUNTED, {"source": 2, "count": 2, "sink": 1}),
        engine=Engine(checkpoint_interval_us=3_000),
        faults=(KillTask(task="count-0", trigger=AtPoint(point="checkpoint-completed")),),
    ),
    claims=(
        Claim(text="for streaming mode, the arrived elements are not sorted, the operator would read / write the state "
              "corresponding to the element for computation", find=_streaming_goes_to_and_fro),
        Claim(text="for batch mode, the arrived elements are first sorted as a whole and then processed: it avoids "
              "random state access", find=_batch_sorts_first),
        Claim(text="it executes all the tasks in topological order", find=_in_topological_order),
        Claim(text="maintaining consistency between streaming and batch backfilling jobs", find=_same_counts),
    ),
)  # fmt: skip
