"""A rough forecast of a scenario's run, from the scenario alone.

The generators place faults by it, and `promises` decides by it what a scenario can show.  It is arithmetic on
latencies, right to a factor of two, and nothing relies on more.  `behind_all_us` alone is meant as a bound: if the
timeout of checkpoints is longer, no load makes them fail.
"""

from __future__ import annotations

import msgspec

from ...faults.plan import AnyTrigger, AtPoint, AtTime, InPhase
from ...properties.model.workload import SINK, Topology, Workload
from .layout import Layout, layout_of, reads_by_source
from .model import Engine
from .row_counts import received

RECORD_POINTS = frozenset({"record-read", "record-applied", "transaction-written", "row-written"})
"""points whose occurrences count records"""

COMPLETION_POINTS = frozenset({"checkpoint-completed", "completion-notified", "commit-requested", "commit-answered"})
"""points that come after the completion of a checkpoint"""

LAST_POINTS = frozenset({"end-of-data-sent", "end-of-partition-sent"})
"""points that come after the end of an input"""

TIMES_FORECAST = 6
"""how often the forecast duration of a checkpoint has to fit into a timeout that no delay of one message uses up"""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Estimates for one undisturbed run; times in µs from its start."""

    layout: Layout
    engine: Engine
    start_us: int
    """when the first attempt runs"""
    span_us: int
    """how long the sources read after that"""
    reads: int
    """records read by all sources"""
    depth: int
    """channels on the longest path from a source to the sink"""
    checkpoint_us: int
    """from a checkpoint's trigger to its completion"""
    bounded: bool
    """all input ends"""

    @property
    def first_completion_us(self) -> int:
        return self.start_us + self.engine.checkpoint_interval_us + self.checkpoint_us

    @property
    def checkpoints(self) -> int:
        """How many checkpoints complete while the sources read; at least 1, the final one."""
        apart_us = max(
            self.engine.checkpoint_interval_us,
            self.checkpoint_us // self.engine.concurrent_checkpoints,
            self.engine.minimum_pause_us + self.checkpoint_us if self.engine.minimum_pause_us else 0,
        )
        return max(1, (self.span_us - self.checkpoint_us) // max(1, apart_us))

    def time_of(self, trigger: AnyTrigger) -> int | None:
        """About when a trigger fires; None for a phase whose time cannot be predicted."""
        engine = self.engine
        if isinstance(trigger, AtTime):
            return trigger.at_us
        if isinstance(trigger, InPhase) and trigger.phase == "finishing" and self.bounded:
            return self.start_us + self.span_us + trigger.after_us
        if not isinstance(trigger, AtPoint):
            return None
        if trigger.point in LAST_POINTS:
            return self.start_us + self.span_us
        times = trigger.occurrence
        if trigger.point in RECORD_POINTS:
            hops = 1 if trigger.point == "record-read" else self.depth
            share = len(self.layout.tasks) if trigger.task else 1
            return self.start_us + times * share * self.span_us // max(1, self.reads * hops)
        if trigger.point == "ack-received":
            times = 1 + (times - 1) // len(self.layout.tasks)
        elif trigger.task is None:
            times = 1 + (times - 1) // max(1, len(self.layout.sinks))
        later_us = self.checkpoint_us if trigger.point in COMPLETION_POINTS else 0
        return self.start_us + times * engine.checkpoint_interval_us + later_us


def forecast(workload: Workload, topology: Topology, engine: Engine) -> Forecast:
    reads = reads_by_source(workload, topology)
    depth = _depth(workload)
    return Forecast(
        layout=layout_of(workload, topology, engine.committing),
        engine=engine,
        start_us=4 * engine.control_latency_us,
        span_us=max([1, *reads.values()]) * engine.read_interval_us,
        reads=sum(reads.values()),
        depth=depth,
        checkpoint_us=checkpoint_us(engine, depth),
        bounded=all(source.bounded for source in workload.inputs),
    )


def behind_all_us(workload: Workload, target: Forecast) -> int:
    """The longest that a checkpoint takes without a fault: one barrier waits behind all rows at each operator."""
    return received(workload) * target.engine.apply_cost_us + TIMES_FORECAST * target.checkpoint_us


def has_short_timeout(workload: Workload, topology: Topology, engine: Engine) -> bool:
    """Whether a checkpoint may take longer than its timeout without a fault."""
    return engine.checkpoint_timeout_us < behind_all_us(workload, forecast(workload, topology, engine))


def checkpoint_us(engine: Engine, depth: int) -> int:
    """The sum of trigger, barriers, slowest snapshot, acknowledgement, and the coordinator's record."""
    barriers_us = depth * (engine.channel_latency_us + engine.apply_cost_us)
    return 2 * engine.control_latency_us + barriers_us + 2 * engine.snapshot_write_us


def _depth(workload: Workload) -> int:
    depths = {source.name: 0 for source in workload.inputs}
    for node in workload.nodes:
        depths[node.name] = 1 + max(depths[name] for name in node.inputs)
    depths[SINK] = 1 + depths[workload.output]
    return depths[SINK]
