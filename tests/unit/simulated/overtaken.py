"""Jobs in which barriers overtake, and what their checkpoints held in flight."""

from __future__ import annotations

import msgspec

from cutproof.faults.plan import AtPoint, KillTask
from cutproof.harness.scenario.model import Scenario
from cutproof.properties.model.history import CheckpointTriggered, History, StoredState
from cutproof.properties.model.workload import Count, Map
from cutproof.properties.reconstruct.lineages import Lineages
from cutproof.properties.reconstruct.snapshots import decode_state
from unit.simulated.worlds import job as plain_job
from unit.simulated.worlds import journal

SLOW = {"apply_cost_us": 260, "read_interval_us": 100, "channel_capacity": 6}
"""behind the sources every task is slower than what comes: channels fill up"""


def job(*, records: int = 60, width: int = 2, partitioning: str = "hash", **more: object) -> Scenario:
    """A source, a map and a count of two splits' records by key, all edges alike but for the one before the count."""
    settings = {**SLOW, "alignment": "unaligned", **more}
    plain = plain_job(records, Map(add=1), Count(), width=width, splits=2, **settings)  # type: ignore[arg-type]
    first, middle, last = plain.topology.edges
    edges = (
        msgspec.structs.replace(first, partitioning=partitioning),
        msgspec.structs.replace(middle, partitioning="hash"),
        msgspec.structs.replace(last, partitioning="hash"),
    )
    return msgspec.structs.replace(plain, topology=msgspec.structs.replace(plain.topology, edges=edges))


def in_flight(history: History) -> dict[int, dict[str, list[int]]]:
    """By completed checkpoint and channel, the origins of the records that it holds there."""
    lineages = Lineages(history)
    found = {number: lineages.snapshots.in_flight(number) for number in lineages.completed}
    return {
        number: {channel: held.origins for channel, held in channels.items() if held.origins}
        for number, channels in found.items()
    }


def channels_held(history: History) -> list[str]:
    """The channels of which some completed checkpoint holds records."""
    return sorted({channel for held in in_flight(history).values() for channel in held})


def durations(history: History) -> list[int]:
    """How long each completed checkpoint took, in µs, in the order in which they were triggered."""
    begun = {entry.checkpoint: entry.at_us for entry in journal(CheckpointTriggered, history)}
    return [
        entry.at_us - begun[entry.checkpoint] for entry in sorted(history.completed, key=lambda one: one.checkpoint)
    ]


def loaded(history: History, attempt: int) -> dict[str, StoredState]:
    """What the tasks of an attempt were restored with."""
    runs = [run for run in history.runs if run.attempt == attempt and run.loaded is not None]
    return {run.task: decode_state(run.loaded.state) or StoredState() for run in runs if run.loaded}


def kill(occurrence: int, task: str = "op1-0", point: str = "checkpoint-completed") -> KillTask:
    return KillTask(trigger=AtPoint(point=point, occurrence=occurrence), task=task)
