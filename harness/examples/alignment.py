"""An operator with two inputs: with alignment, and without blocked channels."""

from __future__ import annotations

from collections import Counter

import msgspec

from ...faults.plan import AtPoint, AtTime, DelayChannel, KillTask
from ...properties.model.history import History, Mark, TaskRun, Timed
from ...properties.model.workload import Input, InputRecord, Join, Node, Workload
from ..scenario import topologies
from ..scenario.model import Engine, Scenario
from .claims import (
    Claim,
    Example,
    NotShown,
    attempts,
    before_barrier,
    channel,
    happenings,
    require,
    task_run,
)
from .texts import COURSE, DESCRIPTION

FAST, SLOW = "fast-0>join-0", "slow-0>join-0"
JOIN = "join-0"


def _side(first_tag: int) -> tuple[InputRecord, ...]:
    return tuple((index % 40, index, first_tag + index) for index in range(80))


_TWO_INPUTS = Workload(
    name="two-input-alignment",
    inputs=(Input(name="fast", splits=(_side(1_000_000),)), Input(name="slow", splits=(_side(2_000_000),))),
    nodes=(Node(name="join", operator=Join(), inputs=("fast", "slow")),),
)
_ONE_SUBTASK_EACH = topologies.lay_out(_TWO_INPUTS, {"fast": 1, "slow": 1, "join": 1, "sink": 1})
_SLOWER = DelayChannel(sender="slow-0", receiver=JOIN, by_us=2_000, for_us=12_000, trigger=AtTime(at_us=1_000))
_DIES = KillTask(task=JOIN, trigger=AtPoint(point="checkpoint-completed"))


def _first_aligned(history: History) -> tuple[TaskRun, Mark]:
    """The join's first snapshot."""
    run = task_run(history, JOIN, attempts(history)[0])
    require(bool(run.marks), f"{JOIN} took no snapshot in its first attempt")
    return run, run.marks[0]


def _arrival(history: History, run: TaskRun, name: str, checkpoint: int) -> Timed:
    for event in happenings(history, "barrier-received", run.attempt, name):
        if event.checkpoint == checkpoint:
            return event
    raise NotShown(f"barrier {checkpoint} never came out of {name}")


def _waiting(history: History, run: TaskRun, checkpoint: int) -> list[int]:
    """The records, by origin, that the fast channel had received behind its barrier when the slow barrier arrived."""
    slow = _arrival(history, run, SLOW, checkpoint)
    behind = before_barrier(channel(history, FAST, run.attempt), checkpoint)
    sent = happenings(history, "record-sent", run.attempt, FAST)
    number = sum(event.order < slow.order for event in sent) - behind
    return channel(history, FAST, run.attempt).sent[behind : behind + max(0, number)]


def _nothing_from_the_fast_one(scenario: Scenario, history: History) -> str:
    run, mark = _first_aligned(history)
    fast, slow = (_arrival(history, run, name, mark.checkpoint) for name in (FAST, SLOW))
    require(fast.order < slow.order, "the slow channel's barrier came first")
    applied = happenings(history, "record-applied", run.attempt, FAST)
    early = [event for event in applied if fast.order < event.order < slow.order]
    require(not early, f"{len(early)} records of the fast channel were processed although it had to be blocked")
    other = [event for event in happenings(history, "record-applied", run.attempt, SLOW)
             if fast.order < event.order < slow.order]  # fmt: skip
    require(bool(other), "the slow channel had no records left before its barrier, so the task had nothing to wait for")
    return (
        f"for {slow.at_us - fast.at_us} µs the task processed no record of the fast channel, "
        f"and {len(other)} of the slow one"
    )


def _blocked(scenario: Scenario, history: History) -> str:
    run, mark = _first_aligned(history)
    waiting = _waiting(history, run, mark.checkpoint)
    require(bool(waiting), "no record followed the fast channel's barrier while the task waited for the other barrier")
    before = [before_barrier(channel(history, name, run.attempt), mark.checkpoint) for name in run.inputs]
    require(
        mark.received == before,
        f"the snapshot was taken after {mark.received} records, and the barriers follow {before}",
    )
    return f"{len(waiting)} records waited after the barrier, and the snapshot has none of them"


def _emits_then_barrier(scenario: Scenario, history: History) -> str:
    run, mark = _first_aligned(history)
    for name, sent in zip(run.outputs, mark.sent, strict=True):
        before = before_barrier(channel(history, name, run.attempt), mark.checkpoint)
        require(before == sent, f"{sent} records were emitted before the snapshot, and {before} precede its barrier")
    slow = _arrival(history, run, SLOW, mark.checkpoint)
    barriers = [event for name in run.outputs for event in happenings(history, "barrier-sent", run.attempt, name)
                if event.checkpoint == mark.checkpoint]  # fmt: skip
    require(bool(barriers), f"no barrier {mark.checkpoint} was sent on")
    require(
        all(event.order > slow.order for event in barriers),
        "the barrier was sent before the last input had delivered it",
    )
    return (
        f"all {sum(mark.sent)} pairs emitted so far precede barrier {mark.checkpoint}, which "
        "was sent when all inputs had delivered it"
    )


def _waiting_first(scenario: Scenario, history: History) -> str:
    run, mark = _first_aligned(history)
    slow = _arrival(history, run, SLOW, mark.checkpoint)
    waiting = set(_waiting(history, run, mark.checkpoint))
    taken = [event for event in happenings(history, "record-applied", run.attempt, FAST) if event.origin in waiting]
    require(bool(waiting), "nothing waited")
    require(len(taken) == len(waiting), f"{len(taken)} of {len(waiting)} waiting records were taken")
    newer = {
        event.origin
        for name in (FAST, SLOW)
        for event in happenings(history, "record-sent", run.attempt, name)
        if event.order > slow.order
    }
    applied = [event for name in (FAST, SLOW) for event in happenings(history, "record-applied", run.attempt, name)]
    taken_newer = [event.order for event in applied if event.origin in newer]
    require(bool(taken_newer), "no newer record was taken")
    last = max(event.order for event in taken)
    require(last < min(taken_newer), "a newer record was taken before a waiting one")
    return f"{len(taken)} waiting records were taken first, then {len(taken_newer)} newer ones"


TWO_INPUT_ALIGNMENT = Example(
    about="two inputs, one slow: the first barrier blocks its channel until the other barrier has come",
    document=f"{DESCRIPTION}, and {COURSE}",
    scenario=Scenario(
        name="two-input-alignment",
        workload=_TWO_INPUTS,
        topology=_ONE_SUBTASK_EACH,
        engine=Engine(channel_capacity=64),
        faults=(_SLOWER, _DIES),
    ),
    claims=(
        Claim(text="as soon as the operator received barrier n from an incoming stream, it cannot process any further "
              "records from that stream until it has received barrier n from the other inputs as well",
              find=_nothing_from_the_fast_one),
        Claim(text="records that are received from these streams are not processed, but put into an input buffer",
              find=_blocked),
        Claim(text="once the last stream has received barrier n, the operator emits all pending outgoing records, and "
              "then emits snapshot n barriers itself", find=_emits_then_barrier),
        Claim(text="after that, it processes records from the input buffers before processing the records from the "
              "streams", find=_waiting_first),
    ),
)  # fmt: skip


def _from_behind_the_barrier(history: History) -> tuple[TaskRun, Mark, list[int]]:
    """The records of the fast channel that are in the snapshot although they were sent after the barrier."""
    run, mark = _first_aligned(history)
    index = run.inputs.index(FAST)
    before = before_barrier(channel(history, FAST, run.attempt), mark.checkpoint)
    return run, mark, channel(history, FAST, run.attempt).sent[before : mark.received[index]]


def _next_is_in_the_current(scenario: Scenario, history: History) -> str:
    _, mark, early = _from_behind_the_barrier(history)
    require(bool(early), "no record from after the barrier is in the snapshot")
    return f"{len(early)} records from after barrier {mark.checkpoint} are in checkpoint {mark.checkpoint}"


def _processed_repeatedly(scenario: Scenario, history: History) -> str:
    run, mark, early = _from_behind_the_barrier(history)
    later = [other for other in history.runs if other.task == JOIN and other.attempt > run.attempt]
    restored = [other for other in later if other.loaded and other.loaded.checkpoint == mark.checkpoint]
    require(bool(restored), f"{JOIN} was never restored from checkpoint {mark.checkpoint}")
    require(bool(early), "no record from after the barrier is in the snapshot")
    again = {origin for other in restored for _, origin in other.applies} & set(early)
    require(again == set(early), f"only {len(again)} of {len(early)} were processed again")
    return f"all {len(again)} were in the restored state, and were processed again"


def _output_repeats(scenario: Scenario, history: History) -> str:
    repeated = {row: number for row, number in Counter(history.committed).items() if number > 1}
    require(bool(repeated), "no pair is in the output twice")
    by_tag = {record[2]: record for source in scenario.workload.inputs for split in source.splits for record in split}
    expected_rows = {pair for pair in repeated if by_tag[pair[2]][0] == by_tag[pair[3]][0]}
    require(expected_rows == set(repeated), "a repeated row is not an expected pair")
    return f"{len(repeated)} pairs are in the output more than once; every row of the output is expected"


UNBLOCKED_ALIGNMENT = Example(
    about="the same without blocking (at least once): records of the next checkpoint slip into the current one",
    document=COURSE,
    scenario=Scenario(
        name="unblocked-alignment",
        workload=msgspec.structs.replace(_TWO_INPUTS, name="unblocked-alignment"),
        topology=_ONE_SUBTASK_EACH,
        engine=Engine(guarantee="at-least-once", channel_capacity=64),
        faults=(_SLOWER, _DIES),
    ),
    claims=(
        Claim(text="if the data pipelines that have received the barrier are not blocked during the alignment, the "
              "data belonging to the next checkpoint is included in the current checkpoint",
              find=_next_is_in_the_current),
        Claim(text="once a fault occurs and is recovered, some data will be processed repeatedly since the source is "
              "rewound", find=_processed_repeatedly),
        Claim(text="this is called at least once", find=_output_repeats),
    ),
)  # fmt: skip
