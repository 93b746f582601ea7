"""Engine configurations, timed so that a run sees several checkpoints whatever its size."""

from __future__ import annotations

import msgspec

from ...properties.workload import Topology, Workload
from ..layout import reads_by_source
from ..scenario import Engine
from .choices import Choices


class Tempo(msgspec.Struct, frozen=True, kw_only=True):
    """How long things take, in µs."""

    control_latency_us: int = 200
    channel_latency_us: int = 100
    snapshot_write_us: int = 800
    transaction_us: int = 150


TEMPI = (
    Tempo(),
    Tempo(),
    Tempo(snapshot_write_us=100),
    Tempo(snapshot_write_us=4_000),
    Tempo(control_latency_us=1_500),
    Tempo(transaction_us=2_000),
    Tempo(channel_latency_us=700, control_latency_us=50),
)


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """What a template asks of the engine that it gets."""

    guarantees: tuple[str, ...] = ("exactly-once",)
    sinks: tuple[str, ...] = ("transactional",)
    concurrent: tuple[int, ...] = (1, 1, 2, 3)
    checkpoints: tuple[int, int] = (2, 7)
    """how many intervals the reading of the input spans"""
    intervals_us: tuple[int, ...] = (5_000, 10_000, 3_000)
    memory_percent: int = 12
    """how often snapshots lie in the coordinator's memory"""
    nodes: tuple[int, ...] = (2, 3)


def draw_guarantee(choices: Choices, *, guarantees: frozenset[str], sinks: frozenset[str]) -> tuple[str, str]:
    """Guarantee and sink: mostly exactly-once into a transactional sink, of what the subject has."""
    table = [pair for pair in _PROMISES if pair[0] in guarantees and pair[1] in sinks]
    return choices.pick(table) if table else (min(guarantees), min(sinks))


_PROMISES = (
    *[("exactly-once", "transactional")] * 80,
    *[("exactly-once", "idempotent")] * 8,
    *[("exactly-once", "plain")] * 2,
    *[("at-least-once", "plain")] * 3,
    *[("at-least-once", "transactional")] * 3,
    *[("at-most-once", "plain")] * 4,
)


def draw_engine(choices: Choices, workload: Workload, topology: Topology, tuning: Tuning) -> Engine:
    interval_us = choices.pick(tuning.intervals_us)
    intervals = choices.between(*tuning.checkpoints)
    reads = max([1, *reads_by_source(workload, topology).values()])
    tempo = choices.pick(TEMPI)
    concurrent = choices.pick(tuning.concurrent)
    guarantee, sink = choices.pick(tuning.guarantees), choices.pick(tuning.sinks)
    return Engine(
        guarantee=guarantee,
        sink=sink,
        snapshot_mode=choices.pick(("asynchronous", "asynchronous", "synchronous")),
        snapshot_store="memory" if choices.percent(tuning.memory_percent) else "files",
        checkpoint_interval_us=interval_us,
        minimum_pause_us=interval_us // 2 if concurrent == 1 and choices.percent(20) else 0,
        checkpoint_timeout_us=choices.pick((40_000, 40_000, 15_000)),
        concurrent_checkpoints=concurrent,
        tolerated_failures=20,
        retained_checkpoints=choices.pick((1, 1, 2)),
        restart_attempts=20,
        channel_capacity=choices.pick((16, 16, 64, 4)),
        nodes=choices.pick(tuning.nodes),
        read_interval_us=max(20, interval_us * intervals // reads),
        apply_cost_us=choices.pick((20, 20, 100)),
        control_latency_us=tempo.control_latency_us,
        channel_latency_us=tempo.channel_latency_us,
        snapshot_write_us=tempo.snapshot_write_us,
        transaction_us=tempo.transaction_us,
    )
