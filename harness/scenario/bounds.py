"""How large a scenario may be: within these bounds a run takes seconds and less than a gigabyte.

A scenario file may come from anybody, and a small one can ask for a run without end.  So its sizes and the forecast of
its run are compared with bounds before anything is run.  What a forecast does not know well is counted while the
scenario runs (`LIMIT_STEPS`, `LIMIT_SNAPSHOT_BYTES`).  The bounds are far above what is drawn: a scenario beyond a
bound is a mistake, or an attack.  If a run reaches one of the counted bounds though its scenario is small (`ROOM`), the
engine runs in circles: that is the engine's fault, and is judged.  The JSON Schema has the bound of each single list
(`with_bounds`), and in words the bounds over several lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...faults.plan import AtTime, InPhase
from ...properties.model.workload import Topology, Workload
from ..reference_engine.graphs.system import System
from .forecast import checkpoint_us
from .layout import topologies_of
from .model import Scenario
from .row_counts import emitted

HOUR_US = 3_600_000_000
PARALLELISM_LIMIT = 64
"""subtasks of one operator"""
LIMIT_STEPS = 2_000_000
"""events of a run in virtual time"""
LIMIT_SNAPSHOT_BYTES = 48_000_000
"""of all snapshots that a run in virtual time stores and loads: a history keeps each of them, and its judge reads
them"""
ROOM = 5
"""how many times smaller than a bound a forecast must be, if a run that reaches the bound is not the scenario's
fault"""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The greatest number of something, and what to do if there is more."""

    most: int
    what: str
    """the noun that follows the number: `splits`"""
    advice: str

    def refusal(self, value: int) -> str:
        return f"{value:,} {self.what}; there can be {self.most:,} at most: {self.advice}"


_FEWER = "leave some out"
SPLITS = Bound(most=10_000, what="splits", advice="put records of several splits into one")
RECORDS = Bound(most=50_000, what="records", advice="leave records out, or cut them into several scenarios")
OPERATORS = Bound(most=100, what="inputs and operators", advice=_FEWER)
SUBTASKS = Bound(most=1_024, what="subtasks", advice="lower topology.parallelism")
CHANNELS = Bound(most=20_000, what="channels between subtasks", advice="lower topology.parallelism")
FAULTS = Bound(most=1_000, what="faults", advice=_FEWER)
COMMANDS = Bound(most=100, what="commands", advice=_FEWER)
PERTURBATIONS = Bound(most=10_000, what="deviations", advice=_FEWER)
ROWS = Bound(
    most=250_000,
    what="rows that its operators may receive and emit",
    advice="lower its records, a flat map's fan, a join's rows of one key or a sliding window's size",
)
TIME_US = Bound(
    most=HOUR_US,
    what="µs until its records are read and its faults are over",
    advice="lower engine.read_interval_us, its records or the times of its faults and commands",
)
CHECKPOINTS = Bound(
    most=10_000,
    what="checkpoints until its records are read and its faults are over",
    advice="raise engine.checkpoint_interval_us, or lower engine.read_interval_us or the times of faults",
)

PROCESSES = Bound(
    most=128,
    what="subtasks, each a process with --subject processes",
    advice="lower topology.parallelism, or replay it in virtual time",
)

PROCESSES_OF_SYSTEM = Bound(most=100, what="processes", advice=_FEWER)
CHANNELS_OF_SYSTEM = Bound(most=500, what="channels", advice=_FEWER)
ACTS = Bound(most=5_000, what="acts", advice=_FEWER)
BEGINNINGS = Bound(most=50, what="beginnings of snapshots", advice=_FEWER)
BREACHES = Bound(most=100, what="breaches", advice=_FEWER)

SYSTEM_BOUNDS: tuple[Bound, ...] = (PROCESSES_OF_SYSTEM, CHANNELS_OF_SYSTEM, ACTS, BEGINNINGS, BREACHES)
"""for a system of processes and channels"""

BOUNDS: tuple[Bound, ...] = (
    SPLITS, RECORDS, OPERATORS, SUBTASKS, CHANNELS, FAULTS, COMMANDS, PERTURBATIONS, ROWS, TIME_US, CHECKPOINTS,
    PROCESSES,
)  # fmt: skip
"""every bound that is checked before a run"""


def size_problems(scenario: Scenario) -> Iterator[str]:
    """Where the sizes are beyond a bound; the scenario may have any other error."""
    workload = scenario.workload
    counted: dict[Bound, int] = {
        SPLITS: sum(len(source.splits) for source in workload.inputs),
        RECORDS: workload.records(),
        OPERATORS: len(workload.inputs) + len(workload.nodes),
        FAULTS: len(scenario.faults),
        COMMANDS: len(scenario.commands),
        PERTURBATIONS: len(scenario.deviations),
    }
    yield from _beyond(counted)


def work_problems(scenario: Scenario) -> Iterator[str]:
    """Where the job of a valid scenario, or the forecast of its run, is beyond a bound."""
    layouts = topologies_of(scenario)
    yield from _beyond({
        SUBTASKS: max(sum(one.parallelism.values()) for one in layouts),
        CHANNELS: max(channels_of(one) for one in layouts),
        ROWS: rows_of(scenario.workload),
    })  # fmt: skip
    time_us = time_of(scenario)
    yield from _beyond({TIME_US: time_us, CHECKPOINTS: checkpoints_in(scenario, time_us)})


def system_problems(system: System) -> Iterator[str]:
    """Where a system of processes and channels, or one of its times, is beyond a bound."""
    yield from _beyond({
        PROCESSES_OF_SYSTEM: len(system.processes),
        CHANNELS_OF_SYSTEM: len(system.channels),
        ACTS: len(system.acts),
        BEGINNINGS: len(system.beginnings),
        BREACHES: len(system.breaches),
    })  # fmt: skip
    times = [system.timeout_us, *system.skews_us.values()]
    times += [act.at_us for act in system.acts] + [act.takes_us or 0 for act in system.acts]
    times += [one.at_us for one in system.beginnings] + [one.takes_us for one in system.channels]
    times += [us for one in system.breaches for us in (one.by_us, one.number)]
    yield from (f"a time of {time} µs; it can be {HOUR_US} at most" for time in times if abs(time) > HOUR_US)


def _beyond(counted: dict[Bound, int]) -> Iterator[str]:
    yield from (bound.refusal(value) for bound, value in counted.items() if value > bound.most)


def channels_of(topology: Topology) -> int:
    """The number of channels of a layout, computed without listing them."""
    wide = topology.parallelism
    return sum(
        wide[edge.sender] * (1 if edge.partitioning == "forward" else wide[edge.receiver]) for edge in topology.edges
    )


def time_of(scenario: Scenario) -> int:
    """About how long, in µs, something happens in a run: until the records are read, the last fault or command has
    come, and every fault has ended."""
    workload, topology, engine = scenario.workload, scenario.topology, scenario.engine
    wide = topology.parallelism
    each = [max(1, -(-sum(map(len, one.splits)) // max(1, wide[one.name]))) for one in workload.inputs]
    late = [max((len(split) for split in one.splits), default=0) for one in workload.inputs]
    reading_us = max([0, *each, *late]) * engine.read_interval_us
    planned = [one.trigger for one in (*scenario.faults, *scenario.commands)]
    coming_us = [one.at_us for one in planned if isinstance(one, AtTime)]
    coming_us += [one.after_us for one in planned if isinstance(one, InPhase)]
    coming_us += [us for source in workload.inputs for us in source.discovered_us]
    lasting = (getattr(one, name, 0) for one in scenario.faults for name in ("for_us", "down_us", "by_us", "after_us"))
    return reading_us + max([0, *coming_us]) + sum(lasting) + sum(one.by_us for one in scenario.deviations)


def checkpoints_in(scenario: Scenario, time_us: int) -> int:
    """How many checkpoints a job takes at most in a time without failures."""
    engine = scenario.engine
    if engine.guarantee == "at-most-once":
        return 0
    least_us = checkpoint_us(engine, 1)
    apart_us = max(1, engine.checkpoint_interval_us, engine.minimum_pause_us, least_us // engine.concurrent_checkpoints)
    return time_us // apart_us


def events_of(scenario: Scenario) -> int:
    """About how many events a run has, and seldom more.

    It assumes that each attempt gives every row to all subtasks of an operator, and takes all checkpoints again.
    """
    layouts = topologies_of(scenario)
    widest = max(max(one.parallelism.values()) for one in layouts)
    channels = max(channels_of(one) for one in layouts)
    subtasks = max(sum(one.parallelism.values()) for one in layouts)
    rows = 4 * rows_of(scenario.workload) * widest
    return _attempts(scenario) * (rows + _rounds(scenario) * (4 * channels + 10 * subtasks))


def snapshot_bytes_of(scenario: Scenario) -> int:
    """About how many bytes the snapshots of a run have, and seldom more; it assumes that each holds every row."""
    channels = max(channels_of(one) for one in topologies_of(scenario))
    held = 40 * (rows_of(scenario.workload) + channels)
    return (_rounds(scenario) + _attempts(scenario)) * held


def _attempts(scenario: Scenario) -> int:
    restarts = min(len(scenario.faults), scenario.engine.restart_attempts)
    return 1 + restarts + len(scenario.commands)


def _rounds(scenario: Scenario) -> int:
    """Checkpoints, and some that a job takes before it comes to its end."""
    return checkpoints_in(scenario, time_of(scenario)) + 10


def rows_of(workload: Workload) -> int:
    """How many rows inputs and operators emit, at most; the counting ends beyond the bound."""
    total = 0
    for _, rows in emitted(workload):
        total += rows
        if total > ROWS.most:
            break
    return total


_LISTS: dict[tuple[str, str], Bound] = {
    ("Input", "splits"): SPLITS,
    ("Workload", "inputs"): OPERATORS,
    ("Workload", "nodes"): OPERATORS,
    ("Scenario", "faults"): FAULTS,
    ("Scenario", "commands"): COMMANDS,
    ("Scenario", "deviations"): PERTURBATIONS,
    ("System", "processes"): PROCESSES_OF_SYSTEM,
    ("System", "channels"): CHANNELS_OF_SYSTEM,
    ("System", "acts"): ACTS,
    ("System", "beginnings"): BEGINNINGS,
    ("System", "breaches"): BREACHES,
}
"""by definition and property: the lists whose bound a schema can express"""


def with_bounds(schema: dict[str, Any], bounds: Iterable[Bound]) -> dict[str, Any]:
    """The schema of a format, with its bounds."""
    defs: dict[str, Any] = schema["$defs"]
    for (definition, name), bound in _LISTS.items():
        if definition in defs:
            defs[definition]["properties"][name]["maxItems"] = bound.most
    if "Input" in defs:
        defs["Input"]["properties"]["splits"]["items"]["maxItems"] = RECORDS.most
    if "Topology" in defs:
        width = defs["Topology"]["properties"]["parallelism"]["additionalProperties"]
        width |= {"minimum": 1, "maximum": PARALLELISM_LIMIT}
    for one in defs.get("Engine", {}).get("properties", {}).values():
        if one.get("type") == "integer":
            one |= {"minimum": 0, "maximum": HOUR_US}
    limits = "; ".join(f"{bound.most:,} {bound.what}" for bound in bounds)
    return {**schema, "description": f"At most, in all: {limits}."}
