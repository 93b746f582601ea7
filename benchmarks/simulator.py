"""Simulated events a second, history kept, beside a bare heapq loop and SimPy's timeouts."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from statistics import median

import simpy

from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.search.worker import collect_seldom
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Count, Edge, Input, Node, Topology, Workload
from cutproof.reference_impl.core.decisions.parts import Parts
from measure import Figure, figure, interleaved_rates

PENDING = 64
"""events that the loops hold at a time: about what a small job has under way"""
LOOP_EVENTS = 400_000
SIMPY_EVENTS = 100_000
RECORDS = 20_000
ALIGNMENTS = ("aligned", "unaligned")
ROUNDS = 5


def heapq_loop() -> int:
    """The least that any simulator does: take the earliest event, put a later one."""
    heap: list[tuple[int, int, int]] = []
    for number in range(PENDING):
        heappush(heap, (number, 0, number))
    for sequence in range(LOOP_EVENTS):
        at, _, who = heappop(heap)
        heappush(heap, (at + 1 + who % 7, 0, sequence))
    return LOOP_EVENTS


def simpy_timeouts() -> int:
    environment = simpy.Environment()

    def process(every: int) -> Generator[simpy.Event, None, None]:
        for _ in range(SIMPY_EVENTS // PENDING):
            yield environment.timeout(every)

    for number in range(PENDING):
        environment.process(process(1 + number % 7))
    environment.run()
    return SIMPY_EVENTS


def counting(records: int, alignment: str = "aligned") -> Scenario:
    """Two sources, two counters, a sink; a checkpoint every 10 ms of virtual time and no fault."""
    halves = tuple(
        tuple((number % 97, number, split << 32 | number) for number in range(records // 2)) for split in range(2)
    )
    return Scenario(
        name="benchmark",
        workload=Workload(
            name="benchmark",
            inputs=(Input(name="source", splits=halves),),
            nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
        ),
        topology=Topology(
            parallelism={"source": 2, "count": 2, "sink": 1},
            edges=(
                Edge(sender="source", receiver="count", partitioning="hash"),
                Edge(sender="count", receiver="sink", partitioning="rebalance"),
            ),
        ),
        engine=Engine(alignment=alignment),
    )


def events(history: History) -> int:
    """What a history saw happen: records read, sent and applied, barriers sent, snapshots, the journal."""
    tasks = sum(len(run.reads) + len(run.applies) + len(run.marks) for run in history.runs)
    channels = sum(len(channel.sent) + len(channel.barriers) for channel in history.channels)
    return tasks + channels + len(history.stored) + len(history.completed) + len(history.journal)


def figures() -> list[Figure]:
    """In seconds of the processor, with the settings that a worker has."""
    collect_seldom()
    recorded: list[float] = []
    seconds: dict[str, list[float]] = {}

    def simulated(alignment: str) -> Callable[[], int]:
        scenario = counting(RECORDS, alignment)

        def work() -> int:
            run = Run(scenario, Parts(), timeline=False)
            began = time.process_time()
            history = run.history()
            took = time.process_time() - began
            if len(history.committed) != RECORDS:
                raise SystemExit(f"the benchmark's own run committed {len(history.committed)} of {RECORDS} rows")
            seconds.setdefault(alignment, []).append(took)
            if alignment == "aligned":
                recorded.append(events(history) / took)
            return run.world.loop.steps

        return work

    works = {"loop": heapq_loop, "simpy": simpy_timeouts, **{each: simulated(each) for each in ALIGNMENTS}}
    rates = interleaved_rates(works, ROUNDS)
    share = median(rates["aligned"]) / median(rates["loop"])
    return [
        figure("bare heapq loop", "push+pop/s", rates["loop"]),
        figure("SimPy timeouts", "events/s", rates["simpy"]),
        figure("simulator, history kept", "steps/s", rates["aligned"], f"{share:.3f} of the bare loop"),
        figure("simulator, what it recorded", "entries/s", recorded, "read, sent, taken, stored, told"),
        *(figure(f"a job of {RECORDS:,} records, {each}", "s", seconds[each]) for each in ALIGNMENTS),
    ]
