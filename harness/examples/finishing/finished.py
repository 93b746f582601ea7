"""Checkpoints with finished tasks: their content, what recovery skips, and the cost of having none (FIN-1, FIN-7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ....faults.plan import AtTime, KillTask
from ....properties.model.history import Completed, History, JobEnded
from ....properties.model.workload import Count, Input, Map, Node, Union, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Scenario
from ..claims import Claim, Comparison, Example, Ran, Variant, attempts, numbered, require, runs_of, stored_state
from ..texts import POST

_EVENTS = 160
_SIDE = tuple((key, value, tag + 1) for key, value, tag in numbered(20, 5))
_MIXED = Workload(
    name="mixed-bounded-unbounded",
    inputs=(
        Input(name="side", splits=(_SIDE,)),
        Input(name="events", splits=(numbered(_EVENTS, 5),), bounded=False),
    ),
    nodes=(
        Node(name="all", operator=Union(), inputs=("side", "events")),
        Node(name="count", operator=Count(), inputs=("all",)),
    ),
)


def _with_finished(history: History, *tasks: str) -> Iterator[Completed]:
    """The completed checkpoints in which these tasks are finished, in order."""
    for completed in sorted(history.completed, key=lambda one: one.order):
        if all(task in completed.finished for task in tasks):
            yield completed


def replayed(history: History, operator: str) -> int:
    """How many records of an input were read again, over all attempts."""
    before: set[tuple[int, int]] = set()
    again = 0
    for attempt in attempts(history):
        reads = [read for run in runs_of(history, operator, attempt) for read in run.reads]
        again += sum(read in before for read in reads)
        before.update(reads)
    return again


def _both_kinds(scenario: Scenario, history: History) -> str:
    first = attempts(history)[0]
    (side,) = runs_of(history, "side", first)
    (events,) = runs_of(history, "events", first)
    require(side.how == "finished", f"{side.task} is {side.how}")
    require(not events.end_of_data and events.how != "finished", f"{events.task} came to an end")
    require(not any(isinstance(entry, JobEnded) for entry in history.journal), "the job ended")
    return f"{side.task} read {len(side.reads)} records and finished, {events.task} goes on, and so does the job"


def _taken_with_finished(scenario: Scenario, history: History) -> str:
    found = list(_with_finished(history, "side-0"))
    require(len(found) >= 2, f"{len(found)} checkpoints completed after side-0 had finished")
    held = [completed.checkpoint for completed in found if "side-0" in completed.handles]
    require(not held, f"checkpoints {held} hold a state of side-0")
    return f"{len(found)} of {len(history.completed)} checkpoints completed after side-0 had finished"


FAILURES_US = (12_000, 20_000, 28_000)
"""the times of the failure, one for each run"""


def _reprocessed(own: Ran, companions: Sequence[Ran]) -> str:
    sentences, grown = [], 0
    for at_us, ran, ran_without in zip(FAILURES_US, companions[::2], companions[1::2], strict=True):
        few, other = (replayed(one.history, "events") for one in (ran, ran_without))
        require(other > few, f"a failure at {at_us} µs replays {few} records with such checkpoints, {other} without")
        require(
            other > grown,
            f"a failure at {at_us} µs replays {other} records without such checkpoints, and an earlier failure {grown}",
        )
        grown = other
        sentences.append(
            f"at {at_us // 1000} ms {other} of {_EVENTS} records without such checkpoints, {few} with them"
        )
    return "records of the unbounded input that are read again after a failure: " + "; ".join(sentences)


def _never_committed(own: Ran, companions: Sequence[Ran]) -> str:
    expected_rows = own.scenario.workload.records()
    shown, without = (len(ran.history.committed) for ran in (own, *companions))
    require(shown == expected_rows, f"{shown} of {expected_rows} rows are committed")
    require(without < expected_rows // 2, f"without such checkpoints {without} rows are committed")
    return f"{expected_rows} rows are committed; without checkpoints after a finish only {without} ever are"


_SIDE_INPUT_ENDS = Scenario(
    name="mixed-bounded-unbounded",
    workload=_MIXED,
    topology=topologies.lay_out(_MIXED, {"side": 1, "events": 1, "all": 1, "count": 2, "sink": 1}),
    engine=Engine(checkpoint_interval_us=3_000),
    faults=(KillTask(task="count-0", trigger=AtTime(at_us=FAILURES_US[-1])),),
)


def late_failure(at_us: int, *, after_finish: bool) -> Variant:
    """The job with its failure at another time, with or without checkpoints after a finish."""
    engine = msgspec.structs.replace(_SIDE_INPUT_ENDS.engine, checkpoints_after_finish=after_finish)
    kill = KillTask(task="count-0", trigger=AtTime(at_us=at_us))
    how = "with" if after_finish else "without"
    return Variant(
        name=f"a failure at {at_us // 1_000} ms, {how} checkpoints after a finish",
        scenario=msgspec.structs.replace(_SIDE_INPUT_ENDS, engine=engine, faults=(kill,)),
        violates=() if after_finish else ("progress",),
    )


_LATE_FAILURES = tuple(late_failure(at_us, after_finish=on) for at_us in FAILURES_US for on in (True, False))

MIXED_BOUNDED_UNBOUNDED = Example(
    about="a bounded side input ends, the unbounded one goes on, and so do checkpoints; what it costs without them",
    document=POST,
    scenario=_SIDE_INPUT_ENDS,
    claims=(
        Claim(text="mixed jobs involving both unbounded streams and bounded side-inputs", find=_both_kinds),
        Claim(text="support taking checkpoints with finished tasks", find=_taken_with_finished),
        Comparison(text="if there are no checkpoints after the bounded part finished, the unbounded part might need "
                   "to reprocess a large amount of records in case of a failure",
                   companions=_LATE_FAILURES, find=_reprocessed),
        Comparison(text="if a job contains bounded sources, committing the results would not be possible after the "
                   "bounded sources finish", companions=(late_failure(FAILURES_US[-1], after_finish=False),),
                   find=_never_committed),
    ),
)  # fmt: skip


_SHORT, _LONG = _SIDE[:4], _SIDE[4:] + tuple((key, value, tag + 1) for key, value, tag in numbered(60, 5)[30:])
_OPERATORS = Workload(
    name="finished-operators-snapshot",
    inputs=(
        Input(name="side", splits=(_SHORT, _LONG)),
        Input(name="events", splits=(numbered(_EVENTS, 5),), bounded=False),
    ),
    nodes=(
        Node(name="tidy", operator=Map(add=1), inputs=("side",)),
        Node(name="all", operator=Union(), inputs=("tidy", "events")),
        Node(name="count", operator=Count(), inputs=("all",)),
    ),
)
_FINISHED = ("side-0", "side-1", "tidy-0", "tidy-1")
"""every subtask of the operators that finish"""


def _fully_finished(scenario: Scenario, history: History) -> str:
    marked = next(_with_finished(history, *_FINISHED), None)
    if marked is None:
        require(False, "no checkpoint counts side and tidy as finished")
        return ""
    held = sorted(task for task in _FINISHED if task in marked.handles)
    require(not held, f"checkpoint {marked.checkpoint} holds states of {held}")
    return f"checkpoint {marked.checkpoint} counts {', '.join(_FINISHED)} as finished and holds no state of them"


def _partly_finished(scenario: Scenario, history: History) -> str:
    partly = [one for one in _with_finished(history, "side-0") if "side-1" not in one.finished]
    require(bool(partly), "no checkpoint was taken while side-0 had finished and side-1 had not")
    amid = 0
    for completed in partly:
        require("side-1" in completed.handles, f"checkpoint {completed.checkpoint} holds nothing of side-1")
        position = stored_state(history, completed.checkpoint, "side-1").positions[1]
        amid += 0 < position < len(_LONG)
        last = completed.handles.get("side-0")
        known = [stored.checkpoint for stored in history.stored if stored.handle == last]
        require(bool(known) and known[0] < completed.checkpoint, "it does not hold the last state of side-0")
    require(amid > 0, "none was taken while side-1 was still reading")
    numbers = ", ".join(str(completed.checkpoint) for completed in partly)
    return f"in checkpoint {numbers} side-1 has its current state, and side-0 the last state that it had"


def _skipped(scenario: Scenario, history: History) -> str:
    last = attempts(history)[-1]
    require(last > 1, "there was no recovery")
    for name in ("side", "tidy"):
        for run in runs_of(history, name, last):
            require(not run.reads and not run.applies, f"{run.task} processed records again")
            require(run.loaded is None, f"{run.task} was restored")
            require(run.end_of_data, f"{run.task} was not restored as finished")
    (events,) = runs_of(history, "events", last)
    require(bool(events.reads) and events.loaded is not None, "events did not go on from the checkpoint")
    return f"attempt {last}: side and tidy loaded no state and processed no record; events went on reading"


FINISHED_OPERATORS_SNAPSHOT = Example(
    about="what a snapshot holds of operators that have finished, in part or as a whole, and how recovery skips them",
    document=POST,
    scenario=Scenario(
        name="finished-operators-snapshot",
        workload=_OPERATORS,
        topology=topologies.lay_out(_OPERATORS, {"events": 1, "all": 1, "sink": 1}),
        engine=Engine(checkpoint_interval_us=2_500),
        faults=(KillTask(task="count-0", trigger=AtTime(at_us=26_000)),),
    ),
    claims=(
        Claim(text="if all the subtasks of an operator have finished, we could mark it as fully finished",
              find=_fully_finished),
        Claim(text="for other operators, their states are composed of the states of all the running subtasks",
              find=_partly_finished),
        Claim(text="mark the finished operators in checkpoints and skip executing these operators after recovery",
              find=_skipped),
    ),
)  # fmt: skip
