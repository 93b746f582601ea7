"""Stateless and stateful computations: what is in a snapshot and what is not."""

from __future__ import annotations

from collections import Counter

from ...faults.plan import AtPoint, KillTask
from ...properties.model.history import History, StoredState
from ...properties.model.workload import Greater, Input, InputRecord, Map, Node, Row, Workload, offset_of, split_of
from ..scenario import topologies
from ..scenario.model import Scenario
from .claims import Claim, Example, first_completed, numbered, require, runs_of, stored_state
from .texts import COURSE

_DIES_LATER = AtPoint(point="checkpoint-completed")

_EVENTS = Workload(
    name="stateless-parse",
    inputs=(Input(name="events", splits=(numbered(60, 20), numbered(120, 20)[60:])),),
    nodes=(Node(name="parse", operator=Map(), inputs=("events",)),),
)


def _records(scenario: Scenario) -> dict[int, tuple[InputRecord, ...]]:
    return {number: rows for number, _, rows in scenario.workload.splits()}


def _outputs_the_value(scenario: Scenario, history: History) -> str:
    expected_rows: Counter[Row] = Counter((*row, 0) for rows in _records(scenario).values() for row in rows)
    require(Counter(history.committed) == expected_rows, "the output is not each event's value once")
    return (
        f"{sum(expected_rows.values())} events in, the same {sum(expected_rows.values())} values out, through a failure"
    )


def _holds_nothing(scenario: Scenario, history: History) -> str:
    snapshots = [stored for stored in history.stored if stored.task.startswith("parse-")]
    require(bool(snapshots), "parse took no snapshot")
    held = [stored.handle for stored in snapshots if _state(stored.state).entries]
    require(not held, f"{held} hold state")
    return f"{len(snapshots)} snapshots of parse, all of them empty"


def _state(text: str) -> StoredState:
    import msgspec

    return msgspec.json.decode(text, type=StoredState)


STATELESS_PARSE = Example(
    about="events are parsed and their values output: an operator without state",
    document=COURSE,
    scenario=Scenario(
        name="stateless-parse",
        workload=_EVENTS,
        topology=topologies.lay_out(_EVENTS, {"events": 2, "parse": 2, "sink": 1}),
        faults=(KillTask(task="parse-0", trigger=_DIES_LATER),),
    ),
    claims=(
        Claim(text="each event received is parsed and the event value is output", find=_outputs_the_value),
        Claim(text="this indicates a stateless computation", find=_holds_nothing),
    ),
)


def _waves(records: int) -> tuple[InputRecord, ...]:
    """Records of one key whose values rise and fall."""
    return tuple((0, index * 7 % 11, 1_000_003 * (index + 1)) for index in range(records))


_RISING = Workload(
    name="greater-than-previous",
    inputs=(Input(name="events", splits=(_waves(100),)),),
    nodes=(Node(name="greater", operator=Greater(), inputs=("events",)),),
)


def _only_greater(scenario: Scenario, history: History) -> str:
    (events,) = _records(scenario).values()
    expected_rows = [
        event for event, before in zip(events[1:], events, strict=False) if (event[1] or 0) > (before[1] or 0)
    ]
    rows = [(*event, 0) for event in (events[0], *expected_rows)]
    require(history.committed == rows, f"{len(history.committed)} values were output, {len(rows)} were greater")
    return f"{len(rows)} of {len(events)} values were greater than the one before, and were output, in order"


def _remembers_the_previous(scenario: Scenario, history: History) -> str:
    first = first_completed(history)
    (run,) = runs_of(history, "greater", first.attempt)
    (mark,) = (mark for mark in run.marks if mark.checkpoint == first.checkpoint)
    require(mark.applies > 0, "the snapshot was taken before the first event")
    origin = run.applies[mark.applies - 1][1]
    previous = _records(scenario)[split_of(origin)][offset_of(origin)][1]
    held = [value for _, _, value, _ in stored_state(history, first.checkpoint, run.task).entries]
    require(held == [previous], f"the snapshot holds {held}, the event before it had the value {previous}")
    return f"checkpoint {first.checkpoint} holds {previous}, the value of the event before it"


GREATER_THAN_PREVIOUS = Example(
    about="a value is output only when it is greater than the previous one: one value as state",
    document=COURSE,
    scenario=Scenario(
        name="greater-than-previous",
        workload=_RISING,
        topology=topologies.lay_out(_RISING, {"events": 1, "greater": 1, "sink": 1}),
        faults=(KillTask(task="greater-0", trigger=_DIES_LATER),),
    ),
    claims=(
        Claim(text="the event value is output only when it is greater than the previous one", find=_only_greater),
        Claim(text="it is a stateful computation", find=_remembers_the_previous),
    ),
)
