"""How jobs finish: two ways, a chain of two-phase commits, and the ways that the post rejects (FIN-3, FIN-4, FIN-9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ....faults.plan import AtPoint, AtTime, KillTask
from ....properties.model.history import Completed, History, JobEnded, Timed
from ....properties.model.workload import Input, Map, Node, Row, Tumbling, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from ..claims import Claim, Comparison, Example, Ran, Variant, attempts, numbered, require, runs_of
from ..texts import POST

_RECORDS = numbered(100, 5)
_CHAIN = ("first", "second")
"""two of the three committing operators; the third is the sink"""


def _chained(name: str) -> Scenario:
    """A source, two two-phase operators and a transactional sink, with one task each."""
    workload = Workload(
        name=name,
        inputs=(Input(name="source", splits=(_RECORDS,)),),
        nodes=(
            Node(name="first", operator=Map(), inputs=("source",)),
            Node(name="second", operator=Map(), inputs=("first",)),
        ),
    )
    return Scenario(
        name=name,
        workload=workload,
        topology=topologies.lay_out(workload, dict.fromkeys(("source", *_CHAIN, "sink"), 1)),
        engine=Engine(checkpoint_interval_us=7_000, two_phase=_CHAIN),
        faults=(KillTask(task="second-0", trigger=AtPoint(point="checkpoint-completed", occurrence=2)),),
    )


def finishing_by(scenario: Scenario, how: str, **changes: object) -> Scenario:
    """The scenario with another way of finishing, or other changes."""
    engine = msgspec.structs.replace(scenario.engine, finishing=how)
    return msgspec.structs.replace(scenario, engine=engine, **changes)


def expected_rows(scenario: Scenario) -> Counter[Row]:
    return Counter((*record, 0) for _, _, records in scenario.workload.splits() for record in records)


def ended(history: History) -> JobEnded:
    ends = [entry for entry in history.journal if isinstance(entry, JobEnded)]
    require(bool(ends), "the job did not end")
    return ends[-1]


# -- the chain of three ----------------------------------------------------------------------------------------


def first_end_of_data(history: History) -> Timed:
    """Where the end of an input was first sent, in the attempt that finished."""
    last = attempts(history)[-1]
    found = [event for event in history.timeline if event.what == "end-of-data-sent" and event.attempt == last]
    require(bool(found), "no input ended")
    return min(found, key=lambda event: event.order)


def while_finishing(history: History) -> list[Completed]:
    """The checkpoints that completed between the first end of data and the job's end."""
    begun, over = first_end_of_data(history).order, ended(history).order
    return [completed for completed in history.completed if begun < completed.order < over]


def finishing_us(history: History) -> int:
    return ended(history).at_us - first_end_of_data(history).at_us


def _three(own: Ran, companions: Sequence[Ran]) -> str:
    (one_by_one,) = companions
    found = while_finishing(one_by_one.history)
    require(len(found) == 1 + len(_CHAIN), f"{len(found)} checkpoints completed while they finished one by one")
    finished = [", ".join(sorted(completed.finished)) or "nobody" for completed in found]
    return (
        f"one by one they needed {len(found)} checkpoints; the tasks that had finished at each: {'; '.join(finished)}"
    )


def _one(scenario: Scenario, history: History) -> str:
    found = while_finishing(history)
    require(len(found) == 1, f"{len(found)} checkpoints completed after the first end of data")
    final = found[0].checkpoint
    sealed = [one for one in (*history.passing, *history.transactions) if one.checkpoint == final and one.rows]
    require({one.task for one in sealed} == {"first-0", "second-0", "sink-0"}, "not all three sealed rows for it")
    require(all(one.status == "committed" for one in sealed), "not all of them committed")
    return f"only checkpoint {final}: with it first-0, second-0 and sink-0 committed their last rows"


def _takes_longer(own: Ran, companions: Sequence[Ran]) -> str:
    (one_by_one,) = companions
    took, other = finishing_us(own.history), finishing_us(one_by_one.history)
    require(other > took + own.scenario.engine.checkpoint_interval_us, f"{took} µs together, {other} µs one by one")
    return f"from the first end of data to the job's end: together {took} µs, one by one {other} µs"


def _new_sources(own: Ran, companions: Sequence[Ran]) -> str:
    other = companions[0].history
    after = {completed.checkpoint for completed in while_finishing(other) if "first-0" in completed.finished}
    words = sorted(
        {event.task for event in other.timeline if event.what == "trigger-received" and event.checkpoint in after}
    )
    require("second-0" in words, f"after first-0 had finished, {', '.join(words) or 'no task'} was triggered")
    return f"after source-0 and first-0 had finished, {' and then '.join(words)} was triggered, as a source is"


def _all_commit_once(scenario: Scenario, history: History) -> str:
    due = expected_rows(scenario)
    require(Counter(history.committed) == due, "the sink did not commit each row once")
    for name in _CHAIN:
        rows = Counter(row for one in history.passing if one.task == f"{name}-0" and one.status == "committed"
                       for row in one.rows)  # fmt: skip
        require(rows == due, f"{name}-0 committed {rows.total()} rows, {due.total()} passed it")
    return f"first-0, second-0 and sink-0 committed each of {due.total()} rows once, through a failure"


_CHAIN_OF_THREE = _chained("three-2pc-chain")
_ONE_BY_ONE = Variant(name="one by one", scenario=finishing_by(_CHAIN_OF_THREE, "one-by-one"))

THREE_2PC_CHAIN = Example(
    about="three two-phase commits in a chain: one final checkpoint for all, or three one after the other",
    document=POST,
    scenario=_CHAIN_OF_THREE,
    claims=(
        Comparison(text="each task would wait for the next checkpoint separately, thus the job needs to wait for three "
                   "more checkpoints during finishing", companions=(_ONE_BY_ONE,), find=_three),
        Comparison(text="which might prolong the total execution time for a long time", companions=(_ONE_BY_ONE,),
                   find=_takes_longer),
        Claim(text="allows all tasks to first process all records, then they have the chance to wait for the same "
              "checkpoint / savepoint", find=_one),
        Comparison(text="treat the running tasks who do not have running precedent tasks as new sources",
                   companions=(_ONE_BY_ONE,), find=_new_sources),
        Claim(text="revise the process of finishing so that all the data could always be committed",
              find=_all_commit_once),
    ),
)  # fmt: skip


# -- two ways to finish ----------------------------------------------------------------------------------------

_AMID = AtPoint(point="record-read", occurrence=60, task="source-0")


def _stopped(scenario: Scenario, *, drain: bool, how: str = "together") -> Scenario:
    """The scenario, stopped with a savepoint amid its records.  Without drain it is resumed from the savepoint."""
    stop = StopWithSavepoint(trigger=_AMID, drain=drain)
    commands = (stop,) if drain else (stop, Resume(trigger=AtTime(at_us=1_000)))
    return finishing_by(scenario, how, commands=commands)


def _savepoint(history: History) -> Completed:
    found = [completed for completed in history.completed if completed.savepoint]
    require(len(found) == 1, f"{len(found)} savepoints completed")
    return found[0]


def _tasks_at_their_end(history: History, attempt: int) -> list[str]:
    return sorted(run.task for run in history.runs if run.attempt == attempt and run.end_of_data)


def _after_all_records(scenario: Scenario, history: History) -> str:
    require(ended(history).status == "finished", f"the job is {ended(history).status}")
    last = attempts(history)[-1]
    (source,) = runs_of(history, "source", last)
    require(len(_tasks_at_their_end(history, last)) == len(scenario.topology.parallelism), "not every task ended")
    final = while_finishing(history)[-1].checkpoint
    require(ended(history).checkpoint == final, "the job does not rest on the last checkpoint")
    return f"{source.task} read to its end, every task saw it, checkpoint {final} completed, and the job finished"


def _savepoint_and_finish(own: Ran, companions: Sequence[Ran]) -> str:
    words = []
    for other, status in zip(companions, ("stopped", "drained"), strict=True):
        savepoint = _savepoint(other.history).checkpoint
        end = next(entry for entry in other.history.journal if isinstance(entry, JobEnded))
        require((end.status, end.checkpoint) == (status, savepoint), f"the job is {end.status} on {end.checkpoint}")
        words.append(f"{status} on savepoint {savepoint}")
    return ", ".join(words)


def _ends_nothing(own: Ran, companions: Sequence[Ran]) -> str:
    plain, drained, *windowed = (other.history for other in companions)
    scenario = own.scenario
    stopped = _savepoint(plain).attempt
    require(not _tasks_at_their_end(plain, stopped), f"{_tasks_at_their_end(plain, stopped)} received an end of data")
    require(ended(plain).status == "finished", "the resumed job did not finish")
    require(Counter(plain.committed) == expected_rows(scenario), "the resumed job left a gap or a repeat")
    saw = _tasks_at_their_end(drained, _savepoint(drained).attempt)
    require(len(saw) == len(scenario.topology.parallelism), f"with drain only {saw} received the end of data")
    windows = _fired_windows(*windowed)
    return (
        "without drain no task received an end of data, and a new job continued from the "
        f"savepoint; with drain all tasks received it; {windows}"
    )


def _windowed(*, drain: bool) -> Scenario:
    """A job with one window a key, which only the end of event time closes; it is stopped amid its records."""
    times = (tuple(range(len(_RECORDS))),)
    workload = Workload(
        name="two-ways-to-finish",
        inputs=(Input(name="source", splits=(_RECORDS,), times=times),),
        nodes=(Node(name="window", operator=Tumbling(size=10 * len(_RECORDS)), inputs=("source",)),),
    )
    layout = topologies.lay_out(workload, {"source": 1, "window": 2, "sink": 1})
    stop = StopWithSavepoint(trigger=_AMID, drain=drain)
    return Scenario(workload=workload, topology=layout, engine=Engine(checkpoint_interval_us=7_000), commands=(stop,))


def _fired_windows(stopped: History, drained: History) -> str:
    """Which windows fire when a job with open windows is stopped: without drain none."""
    require(not stopped.committed, f"without drain {len(stopped.committed)} windows fired")
    (source,) = runs_of(drained, "source", attempts(drained)[-1])
    open_then = {_RECORDS[offset][0] for _, offset in source.reads}
    taken = sum(count or 0 for _, count, _, _ in drained.committed)
    require(
        Counter(open_then) == Counter(key for key, *_ in drained.committed), "with drain not each window fired once"
    )
    require(taken == len(source.reads), f"with drain windows of {taken} of {len(source.reads)} records fired")
    return (
        f"without drain none of {len(open_then)} open windows fired; with drain all of them did, with {taken} records"
    )


def _both_exactly_once(own: Ran, companions: Sequence[Ran]) -> str:
    words = []
    for ran in (own, *companions):
        require(not ran.violated, f"violated: {', '.join(ran.violated)}")
        committed = ran.history.committed
        require(max(Counter(committed).values(), default=0) == 1, "not each row was committed once")
        words.append(str(len(committed)))
    return (
        f"each row was committed once: {words[0]} rows at the natural end, {words[1]} stopped "
        f"and resumed, {words[2]} drained"
    )


def ended_in(history: History, checkpoint: int) -> list[str]:
    """The tasks that took their snapshot for a checkpoint after the end of all their input."""
    stored = [one for one in history.stored if one.checkpoint == checkpoint]
    return sorted(one.task for one in stored if msgspec.json.decode(one.state).get("ended"))


def _no_one_savepoint(own: Ran, companions: Sequence[Ran]) -> str:
    one_by_one, together = (ended_in(other.history, _savepoint(other.history).checkpoint) for other in companions)
    tasks = len(own.scenario.topology.parallelism)
    require(len(together) == tasks, f"together, only {together} had ended in the savepoint")
    require(set(one_by_one) < set(together), f"one by one, {one_by_one} had ended in the savepoint")
    return f"together, all tasks had ended in the savepoint; one by one, only {' and '.join(one_by_one)}"


_TO_FINISH = _chained("two-ways-to-finish")
_STOPPED = Variant(name="stopped without drain, and resumed", scenario=_stopped(_TO_FINISH, drain=False))
_DRAINED = Variant(name="stopped with drain", scenario=_stopped(_TO_FINISH, drain=True))
_DRAINED_ONE_BY_ONE = Variant(
    name="stopped with drain, one by one", scenario=_stopped(_TO_FINISH, drain=True, how="one-by-one")
)
_WINDOWS_STOPPED = Variant(name="open windows, stopped without drain", scenario=_windowed(drain=False))
_WINDOWS_DRAINED = Variant(name="open windows, stopped with drain", scenario=_windowed(drain=True))

TWO_WAYS_TO_FINISH = Example(
    about="a job finishes when its sources have ended, or by stop-with-savepoint, with drain and without",
    document=POST,
    scenario=_TO_FINISH,
    claims=(
        Claim(text="all sources are bound and they processed all the input records", find=_after_all_records),
        Comparison(text="the job will take a savepoint and then finish", companions=(_STOPPED, _DRAINED),
                   find=_savepoint_and_finish),
        Comparison(text="if the --drain parameter is not set, the savepoint might be used to start new jobs and the "
                   "operators will not flush all the event times or call methods marking all records processed",
                   companions=(_STOPPED, _DRAINED, _WINDOWS_STOPPED, _WINDOWS_DRAINED), find=_ends_nothing),
        Comparison(text="ideally we should ensure exactly-once semantics in both cases",
                   companions=(_STOPPED, _DRAINED), find=_both_exactly_once),
        Comparison(text="different tasks have to wait for different checkpoints / savepoints, thus we could not finish "
                   "the job with a specific savepoint", companions=(_DRAINED_ONE_BY_ONE, _DRAINED),
                   find=_no_one_savepoint),
    ),
)  # fmt: skip
