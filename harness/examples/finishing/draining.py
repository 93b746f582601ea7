"""A way that the post rejects: a drain that takes its savepoint before it ends the input (FIN-4, FIN-9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ....faults.plan import AtPoint
from ....properties.model.history import Completed, History, StoredState, TaskRun
from ....properties.model.workload import END_OF_TIME, Input, Node, Row, Tumbling, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Scenario, StopWithSavepoint
from ..claims import Comparison, Example, Ran, Variant, numbered, require, runs_of
from ..texts import POST
from .ways_to_finish import ended, finishing_by

_RECORDS = numbered(100, 5)
_SIZE = 250
_READ_LAST = 60
_MODE = "drain-after-savepoint"


def _windowed(name: str) -> Scenario:
    """Records 10 apart in event time, counted in windows of 25, and a drain after 60 records, amid a window."""
    times = tuple(10 * number for number in range(len(_RECORDS)))
    workload = Workload(
        name=name,
        inputs=(Input(name="source", splits=(_RECORDS,), times=(times,)),),
        nodes=(Node(name="window", operator=Tumbling(size=_SIZE), inputs=("source",)),),
    )
    return Scenario(
        name=name,
        workload=workload,
        topology=topologies.lay_out(workload, {"source": 1, "window": 1, "sink": 1}),
        engine=Engine(checkpoint_interval_us=7_000),
        commands=(StopWithSavepoint(trigger=AtPoint(point="record-read", occurrence=_READ_LAST), drain=True),),
    )


def _savepoint(history: History) -> Completed:
    found = [completed for completed in history.completed if completed.savepoint]
    require(len(found) == 1, f"{len(found)} savepoints completed")
    return found[0]


def _stored(history: History, task: str) -> StoredState:
    handle = _savepoint(history).handles[task]
    texts = [one.state for one in history.stored if one.handle == handle]
    require(bool(texts), f"the savepoint holds nothing of {task}")
    return msgspec.json.decode(texts[0], type=StoredState)


def _run(history: History, operator: str) -> TaskRun:
    (run,) = runs_of(history, operator, _savepoint(history).attempt)
    return run


def _at_the_cut(history: History) -> bool:
    """Whether the window's watermark was at the end of time when it took its snapshot for the savepoint."""
    run = _run(history, "window")
    (mark,) = [mark for mark in run.marks if mark.checkpoint == _savepoint(history).checkpoint]
    return any(time == END_OF_TIME for _, time in run.watermarks[: mark.watermarks])


def _open(history: History) -> Counter[Row]:
    """The windows that are open in the savepoint, as the rows that they would emit."""
    return Counter((key, value, tags, start) for start, key, value, tags in _stored(history, "window-0").entries)


def _never_committed(own: Ran, companions: Sequence[Ran]) -> str:
    other = companions[0].history
    require(_run(other, "window").end_of_data, "the window never received the end of data")
    written = Counter(row for one in other.transactions for row in one.rows if one.status != "committed")
    missing = _open(other)
    require(written.total() > 0 and not written - missing, f"{written.total()} rows were written and not committed")
    require(missing.total() > 0 and not missing & Counter(other.committed), "some of the last rows were committed")
    require("no-data-loss" in companions[0].violated, "no-data-loss is not violated")
    sentence = f"at the end of data the last {missing.total()} rows were emitted after the savepoint"
    return f"{sentence}; {written.total()} were written, and none was committed"


def _not_in_the_savepoint(own: Ran, companions: Sequence[Ran]) -> str:
    other = companions[0].history
    require(not _at_the_cut(other), "all windows had fired before the snapshot")
    require(ended(other).status == "drained", f"the job is {ended(other).status}")
    held = _open(other).total()
    require(held > 0 and "drain" in companions[0].violated, "drain is not violated")
    return f"the job is drained, and its savepoint still holds {held} open windows"


def _in_the_savepoint(own: Ran, companions: Sequence[Ran]) -> str:
    history = own.history
    require(_at_the_cut(history), "the window took its snapshot before the end of the data")
    require(not _open(history), f"the savepoint holds {_open(history).total()} open windows")
    last = _open(companions[0].history)
    require(not last - Counter(history.committed), "not all of the last rows were committed")
    require(not own.violated, f"violated: {', '.join(own.violated)}")
    read = _stored(history, "source-0").positions
    return f"the savepoint covers {sum(read.values())} records and their last {last.total()} rows, which were committed"


_DRAINED = _windowed("drain-after-savepoint")
_SAVEPOINT_FIRST = Variant(
    name="the savepoint first",
    scenario=finishing_by(_DRAINED, _MODE),
    violates=("exactly-once", "no-data-loss", "consistent-cut", "drain"),
)

DRAIN_AFTER_SAVEPOINT = Example(
    about="rejected: a drain takes its savepoint first and then ends the input; the last rows are in no snapshot",
    document=POST,
    scenario=_DRAINED,
    claims=(
        Comparison(text="with --drain the operator logic like endInput() would still be executed during finishing and "
                   "generate new records, these records would not be committed", companions=(_SAVEPOINT_FIRST,),
                   find=_never_committed),
        Comparison(text="the savepoint also does not include these records and thus it is inconsistent",
                   companions=(_SAVEPOINT_FIRST,), find=_not_in_the_savepoint),
        Comparison(text="first process all records, then they have the chance to wait for the same checkpoint / "
                   "savepoint", companions=(_SAVEPOINT_FIRST,), find=_in_the_savepoint),
    ),
)  # fmt: skip
