"""Engine configurations, with times for which a run of any size has several checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ...properties.model.workload import Topology, Workload
from ...properties.semantics.user_functions import has_user_timers
from ..scenario.checks import ALIGNMENTS, GUARANTEES, SINKS, SPILL_STORES, SPILLING
from ..scenario.forecast import Forecast
from ..scenario.layout import reads_by_source
from ..scenario.model import Engine, Scenario
from ..subject.abilities import is_promised
from .choices import Choices

TEMPI = ((2, 2, 2, 1), (1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 8, 2), (6, 1, 2, 1), (1, 2, 2, 10), (1, 5, 1, 1))
"""The times of a control message, a channel, a snapshot's write and a transaction's request, in half read intervals.
With them records and barriers are in flight together, and a checkpoint takes as long as a few records."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a template for its engine."""

    guarantees: tuple[str, ...] = ("exactly-once",)
    sinks: tuple[str, ...] = ("transactional",)
    concurrent: tuple[int, ...] = (1, 1, 2, 3)
    checkpoints: tuple[int, int] = (3, 7)
    """how many checkpoint intervals the reading of the input spans"""
    memory_percent: int = 12
    """how often snapshots are stored in the coordinator's memory"""
    nodes: tuple[int, ...] = (2, 3)


def draw_guarantee(
    choices: Choices,
    *,
    guarantees: frozenset[str],
    sinks: frozenset[str],
    among: Sequence[tuple[str, str]] = (),
) -> tuple[str, str]:
    """A guarantee and a sink that the subject has: a pair of `among`, if it is given; else mostly exactly-once into a
    transactional sink."""
    table = [pair for pair in among or _PROMISES if pair[0] in guarantees and pair[1] in sinks]
    return choices.pick(table) if table else promise("exactly-once", "transactional", guarantees, sinks)


def strongest(guarantees: Iterable[str]) -> str:
    """The guarantee that promises most, whatever the order in which they come."""
    return min(guarantees, key=GUARANTEES.index)


def promise(guarantee: str, sink: str, guarantees: Iterable[str], sinks: Iterable[str]) -> tuple[str, str]:
    """The guarantee and the sink, or the nearest ones that the subject has; the guarantee counts first."""
    pairs = [(one, other) for one in guarantees for other in sinks if is_promised(one, other)]

    def distance(pair: tuple[str, str]) -> tuple[bool, bool, int, int]:
        one, other = pair
        return one != guarantee, other != sink, GUARANTEES.index(one), SINKS.index(other)

    return min(pairs, key=distance)


_PROMISES = (
    *[("exactly-once", "transactional")] * 76,
    *[("exactly-once", "idempotent")] * 8,
    *[("exactly-once", "plain")] * 2,
    *[("at-least-once", "plain")] * 3,
    *[("at-least-once", "transactional")] * 3,
    *[("at-most-once", "plain")] * 8,
)


def draw_committing(choices: Choices, engine: Engine, possible: frozenset[str]) -> str:
    """Which stage commits, of those that the subject has: mostly the sink itself."""
    table = [who for who in ("writer", "writer", "writer", "committer", "global") if who in possible]
    if engine.sink != "transactional" or engine.finishing != "together" or not table:
        return "writer"
    return choices.pick(table) if len(set(table)) > 1 else table[0]


LEAST_INTERVAL_US = 4_000
LEAST_TIMEOUT_US = 40_000
_TIMES_FORECAST = 3
"""a checkpoint may take this many times its forecast duration, because a forecast may be wrong by a factor of two"""


def draw_engine(choices: Choices, workload: Workload, topology: Topology, tuning: Tuning) -> Engine:
    read_us = choices.pick((200, 200, 100, 400))
    reads = max([1, *reads_by_source(workload, topology).values()])
    interval_us = max(2 * read_us, read_us * reads // choices.between(*tuning.checkpoints))
    control, channel, write, transaction = choices.pick(TEMPI)
    concurrent = choices.pick(tuning.concurrent)
    guarantee, sink = choices.pick(tuning.guarantees), choices.pick(tuning.sinks)
    engine = Engine(
        guarantee=guarantee,
        sink=sink,
        alignment=choices.pick(alignments(guarantee, workload)),
        alignment_timeout_us=choices.pick((read_us // 2, 2 * read_us, 10 * read_us)),
        snapshot_mode=choices.pick(("asynchronous", "asynchronous", "synchronous")),
        snapshot_store="memory" if choices.percent(tuning.memory_percent) else "files",
        checkpoint_interval_us=interval_us,
        minimum_pause_us=interval_us // 2 if concurrent == 1 and choices.percent(20) else 0,
        checkpoint_timeout_us=choices.pick((40_000, 40_000, 10_000)),
        concurrent_checkpoints=concurrent,
        tolerated_failures=20,
        retained_checkpoints=choices.pick((1, 1, 2)),
        restart_attempts=20,
        channel_capacity=choices.pick((16, 16, 64, 4)),
        trims_logs=guarantee != "at-most-once" and choices.percent(50),
        nodes=choices.pick(tuning.nodes),
        read_interval_us=read_us,
        apply_cost_us=choices.pick((20, 20, read_us // 2)),
        control_latency_us=control * read_us // 2,
        channel_latency_us=channel * read_us // 2,
        snapshot_write_us=write * read_us // 2,
        transaction_us=transaction * read_us // 2,
    )
    return spilled(choices, engine)


def with_enough_time(target: Forecast) -> Forecast:
    """The forecast of the job with enough time for a checkpoint, even after rescaling.  If no checkpoint could ever
    complete, no engine would make progress."""
    engine = target.engine
    if _TIMES_FORECAST * target.checkpoint_us <= engine.checkpoint_timeout_us:
        return target
    timeout_us = max(LEAST_TIMEOUT_US, _TIMES_FORECAST * target.checkpoint_us)
    return msgspec.structs.replace(target, engine=msgspec.structs.replace(engine, checkpoint_timeout_us=timeout_us))


def spilled(choices: Choices, engine: Engine) -> Engine:
    """The engine with one of the ways of spilling in-flight data, if its barriers overtake."""
    spilling = choices.pick(SPILLING) if engine.alignment != "aligned" else "at-once"
    if spilling == "at-once":
        return engine
    return msgspec.structs.replace(
        engine,
        spilling=spilling,
        spill_after_us=engine.read_interval_us * choices.pick((2, 1, 8)) if spilling == "buffer-timeout" else 1_000,
        spill_store=choices.pick(SPILL_STORES),
        spill_flush_us=engine.snapshot_write_us * choices.pick((1, 2, 8)) // 4,
    )


def alignments(guarantee: str, workload: Workload) -> tuple[str, ...]:
    """The alignments worth drawing.  The counterparts of a function with timers know nothing of in-flight data, so such
    a function is judged in full only without in-flight data."""
    return ALIGNMENTS if guarantee == "exactly-once" and not has_user_timers(workload) else ("aligned",)


def without_late_checkpoints(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, now and then without checkpoints once some input has ended (FIN-7).

    This is for bounded inputs, where it only costs replays.  With an unbounded input nothing more would be committed.
    """
    engine, bounded = scenario.engine, all(source.bounded for source in scenario.workload.inputs)
    if not bounded or engine.finishing != "together" or not choices.percent(4):
        return scenario
    return msgspec.structs.replace(scenario, engine=msgspec.structs.replace(engine, checkpoints_after_finish=False))


def with_local_channels(choices: Choices, scenario: Scenario) -> Scenario:
    """The scenario, at times with channels within a node that take no time.  Barriers overtake there too (UNA-1)."""
    engine = scenario.engine
    if engine.nodes == 1 or not choices.percent(10 if engine.alignment == "aligned" else 25):
        return scenario
    return msgspec.structs.replace(scenario, engine=msgspec.structs.replace(engine, local_channels=True))


def promising(engine: Engine, guarantee: str, sink: str) -> Engine:
    """The engine with another guarantee and sink, and without settings that are incompatible with them."""
    seals = sink == "transactional"
    aligned = guarantee != "exactly-once"
    return msgspec.structs.replace(
        engine,
        guarantee=guarantee,
        sink=sink,
        alignment="aligned" if aligned else engine.alignment,
        spilling="at-once" if aligned else engine.spilling,
        committing=engine.committing if seals else "writer",
        pooled_ids=engine.pooled_ids and seals,
        trims_logs=engine.trims_logs and guarantee != "at-most-once",
    )


def paced(engine: Engine, workload: Workload, topology: Topology) -> Engine:
    """The engine with at least 4 ms between checkpoints, reading slowed down by the same factor, and busy tasks.

    A task that all sources feed can just keep up with them, so that records queue before each barrier.  Real channels
    take almost no time.  If nothing queued, all snapshots of a checkpoint would lie between the same two records, and
    its cut would show little.
    """
    times = -(-LEAST_INTERVAL_US // engine.checkpoint_interval_us)
    read_us = times * engine.read_interval_us
    reading = sum(reads > 0 for reads in reads_by_source(workload, topology).values())
    return msgspec.structs.replace(
        engine,
        checkpoint_interval_us=times * engine.checkpoint_interval_us,
        minimum_pause_us=times * engine.minimum_pause_us,
        read_interval_us=read_us,
        apply_cost_us=max(engine.apply_cost_us, read_us // max(1, reading)),
        checkpoint_timeout_us=max(LEAST_TIMEOUT_US, engine.checkpoint_timeout_us),
    )
