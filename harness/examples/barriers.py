"""Barriers in one stream: which records they separate, and what a snapshot then has."""

from __future__ import annotations

from collections import Counter

import msgspec

from ...faults.plan import AtPoint, AtTime, DelayChannel, KillTask
from ...properties.model.history import History, Mark, TaskRun
from ...properties.model.workload import Count, Input, Node, Workload, offset_of, split_of
from ..scenario import topologies
from ..scenario.model import Engine, Scenario
from .claims import (
    Claim,
    Example,
    attempts,
    before_barrier,
    channel,
    first_completed,
    happenings,
    numbered,
    require,
    runs_of,
    stored_state,
)
from .texts import COURSE, DESCRIPTION

_ONE_INPUT = Workload(
    name="single-input-barrier",
    inputs=(Input(name="source", splits=(numbered(120, 6),)),),
    nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
)


def _mark(run: TaskRun, checkpoint: int) -> Mark:
    found = [mark for mark in run.marks if mark.checkpoint == checkpoint]
    require(bool(found), f"{run.task} took no snapshot of checkpoint {checkpoint}")
    return found[0]


def _source_records_offset(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    (source,) = runs_of(history, "source", first.attempt)
    mark = _mark(source, first.checkpoint)
    position = stored_state(history, first.checkpoint, source.task).positions
    require(position == {0: mark.reads}, f"{source.task} had read {mark.reads} records and stored {position}")
    preceding = sum(before_barrier(channel(history, name, first.attempt), first.checkpoint) for name in source.outputs)
    require(preceding == mark.reads, f"{mark.reads} records were read, and {preceding} precede the barrier")
    return f"checkpoint {first.checkpoint} stores offset {mark.reads}; {preceding} records precede its barrier"


def _each_records_its_state(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    taken = []
    for run in runs_of(history, "count", first.attempt):
        mark = _mark(run, first.checkpoint)
        before = [before_barrier(channel(history, name, first.attempt), first.checkpoint) for name in run.inputs]
        require(
            mark.received == before, f"{run.task} had processed {mark.received} records, its barriers followed {before}"
        )
        taken.append(f"{run.task} after {mark.applies} records")
    require(len(taken) == scenario.topology.parallelism["count"], "not every subtask took its snapshot")
    return ", ".join(taken)


def _last_is_the_sink(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    marks = {
        run.task: mark.order
        for run in history.runs
        if run.attempt == first.attempt
        for mark in run.marks
        if mark.checkpoint == first.checkpoint
    }
    last = max(marks, key=lambda task: marks[task])
    require(last.startswith("sink"), f"the last to take its snapshot was {last}")
    stored = [entry.order for entry in history.stored if entry.checkpoint == first.checkpoint]
    require(first.order > max(stored), "the checkpoint was complete before a snapshot was durable")
    return f"{last} was the last of {len(marks)} tasks; the checkpoint's own record was written after all of theirs"


SINGLE_INPUT_BARRIER = Example(
    about="one input: the barrier goes from the source through two subtasks to the last one",
    document=COURSE,
    scenario=Scenario(
        name="single-input-barrier",
        workload=_ONE_INPUT,
        topology=topologies.lay_out(_ONE_INPUT, {"source": 1, "count": 2, "sink": 1}),
        faults=(KillTask(task="count-0", trigger=AtPoint(point="checkpoint-completed")),),
    ),
    claims=(
        Claim(text="the source will first record the offsets of the partition that it is processing",
              find=_source_records_offset),
        Claim(text="when the barrier arrives at the two concurrencies, they record their local states",
              find=_each_records_its_state),
        Claim(text="in the end, the barrier arrives at the final subtask, and the snapshot is completed",
              find=_last_is_the_sink),
    ),
)  # fmt: skip


def _several_in_the_stream(scenario: Scenario, history: History) -> str:
    first = attempts(history)[0]
    most, where = 0, ""
    for name in sorted({entry.name for entry in history.channels}):
        sent = [(event.order, 1) for event in happenings(history, "barrier-sent", first, name)]
        received = [(event.order, -1) for event in happenings(history, "barrier-received", first, name)]
        inside = 0
        for _, change in sorted(sent + received):
            inside += change
            if inside > most:
                most, where = inside, name
    require(most >= 2, f"at most {most} barrier was in a channel at a time")
    return f"{most} barriers were in {where} at once"


def _strictly_in_order(scenario: Scenario, history: History) -> str:
    checked = 0
    for run in history.runs:
        for mark in run.marks:
            for name, received in zip(run.inputs, mark.received, strict=True):
                before = before_barrier(channel(history, name, run.attempt), mark.checkpoint)
                require(before == received, f"{received} records of {name} were processed before barrier "
                        f"{mark.checkpoint}, {before} were sent before it")  # fmt: skip
                checked += 1
    require(checked > 0, "no barrier reached an operator")
    return f"at {checked} arrivals of a barrier, the task had processed exactly the records sent before it"


def _separates(scenario: Scenario, history: History) -> str:
    first = attempts(history)[0]
    (source,) = runs_of(history, "source", first)
    completed = [mark for mark in source.marks if any(done.checkpoint == mark.checkpoint for done in history.completed)]
    positions = [mark.reads for mark in completed]
    require(len(positions) >= 2 and positions == sorted(positions), f"the barriers stand at {positions}")
    for mark in completed:
        stored = stored_state(history, mark.checkpoint, source.task).positions[0]
        require(stored == mark.reads, f"checkpoint {mark.checkpoint} stores {stored}, its barrier is at {mark.reads}")
    return f"the barriers stand before the records {', '.join(map(str, positions))}: the offsets that are stored"


_EARLY = AtTime(at_us=1_000)

BARRIERS_IN_STREAM = Example(
    about="several barriers in the stream at once, none overtaking a record",
    document=DESCRIPTION,
    scenario=Scenario(
        name="barriers-in-stream",
        workload=msgspec.structs.replace(_ONE_INPUT, name="barriers-in-stream"),
        topology=topologies.lay_out(_ONE_INPUT, {"source": 1, "count": 1, "sink": 1}),
        engine=Engine(checkpoint_interval_us=2_000, concurrent_checkpoints=4, channel_capacity=64),
        faults=(
            DelayChannel(sender="source-0", receiver="count-0", by_us=6_000, for_us=14_000, trigger=_EARLY),
            KillTask(task="count-0", trigger=AtPoint(point="checkpoint-completed", occurrence=3)),
        ),
    ),
    claims=(
        Claim(text="multiple barriers from different snapshots can be in the stream at the same time",
              find=_several_in_the_stream),
        Claim(text="barriers never overtake records, the flow strictly in line", find=_strictly_in_order),
        Claim(text="a barrier separates the records into the set of records that goes into the current snapshot, "
              "and the records that go into the next", find=_separates),
    ),
)  # fmt: skip


def _an_offset_a_source(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    found: dict[int, int] = {}
    for run in runs_of(history, "source", first.attempt):
        mark = _mark(run, first.checkpoint)
        read = {split: offset + 1 for split, offset in run.reads[: mark.reads]}
        stored = stored_state(history, first.checkpoint, run.task).positions
        require(all(stored.get(split) == offset for split, offset in read.items()),
                f"{run.task} stored {stored}, it had read up to {read}")  # fmt: skip
        found.update(stored)
    splits = {number for number, _, _ in scenario.workload.splits()}
    require(set(found) == splits, f"only the splits {sorted(found)} have stored positions")
    return "next offsets by split: " + ", ".join(f"{split}: {found[split]}" for split in sorted(found))


def _a_pointer_an_operator(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    tasks = {run.task for run in history.runs if run.attempt == first.attempt}
    require(set(first.handles) == tasks, f"the record points only to states of {sorted(first.handles)}")
    handles = {stored.handle for stored in history.stored}
    missing = sorted(set(first.handles.values()) - handles)
    require(not missing, f"the record points to {missing}, which the store does not hold")
    return f"the record of checkpoint {first.checkpoint} points to {len(tasks)} states, all of them in the store"


def _exactly_what_was_before(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    records = {number: rows for number, _, rows in scenario.workload.splits()}
    held = 0
    for run in runs_of(history, "count", first.attempt):
        mark = _mark(run, first.checkpoint)
        expected_rows = Counter(
            records[split_of(origin)][offset_of(origin)][0] for _, origin in run.applies[: mark.applies]
        )
        stored = stored_state(history, first.checkpoint, run.task).entries
        counts = {key: number for _, key, number, _ in stored}
        require(
            counts == dict(expected_rows),
            f"{run.task} stored {counts}, the records before its barriers are {dict(expected_rows)}",
        )
        held += len(counts)
    require(held > 0, "no key was counted before the snapshot")
    return f"{held} counts, each of exactly the records before the barriers"


_TWO_SOURCES = Workload(
    name="snapshot-contents",
    inputs=(Input(name="source", splits=(numbered(60, 5), numbered(120, 5)[60:], numbered(180, 5)[120:])),),
    nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
)

SNAPSHOT_CONTENTS = Example(
    about="what a completed snapshot holds: an offset for each source, a handle of the state for each operator",
    document=DESCRIPTION,
    scenario=Scenario(
        name="snapshot-contents",
        workload=_TWO_SOURCES,
        topology=topologies.lay_out(_TWO_SOURCES, {"source": 2, "count": 2, "sink": 1}),
        faults=(KillTask(task="count-1", trigger=AtPoint(point="checkpoint-completed")),),
    ),
    claims=(
        Claim(text="for each parallel stream data source, the offset in the stream when the snapshot was started",
              find=_an_offset_a_source),
        Claim(text="for each operator, a pointer to the state that was stored as part of the snapshot",
              find=_a_pointer_an_operator),
        Claim(text="all updates to the state from records before the barriers will have been made, and no updates "
              "that depend on records from after the barriers", find=_exactly_what_was_before),
    ),
)  # fmt: skip
