"""How long a snapshot keeps a task from its records, synchronous beside asynchronous, as its state grows (ABS-13).

A counting task holds one entry for each key.  Once it has them all, a checkpoint is taken, and records go on.  The
stall is the longest time between two records that the task took while the snapshot was taken and written, less the
usual time between two.  In virtual time a snapshot is written at 100 MB/s (`snapshot_byte_ns`); on processes the disk,
the copy and the encoding take what they take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from cutproof.harness.scenario.model import Engine, Scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import Subject, closing
from cutproof.properties.model.history import History
from cutproof.properties.model.workload import Count, Edge, Input, Node, Topology, Workload
from cutproof.reports.charts.curves import Chart, Curve, drawn
from measure import Figure, figure

KEYS = (1_000, 4_000, 16_000, 64_000)
KEYS_ON_PROCESSES = (1_000, 4_000, 16_000)
MODES = ("synchronous", "asynchronous")
AFTER = 2_000
"""records behind those that fill the state"""
EVERY_US = {False: 20, True: 250}
"""between two records, in virtual time and in real time"""
TASK = "count-0"
BYTE_NS = 10
"""of a byte written in virtual time: 100 MB/s"""
RUNS_ON_PROCESSES = 3
STYLE = (
    "svg{background:#fff}path{fill:none;stroke:#444}.curve{stroke:#0b5cad;stroke-width:2}"
    "text{font:12px sans-serif;fill:#222}"
)
"""of the picture, which stands in a page without a style of its own"""


def counting(keys: int, mode: str, *, real_time: bool) -> Scenario:
    """One checkpoint while the last records come, with an entry of each key in it."""
    every_us = EVERY_US[real_time]
    records = tuple((number % keys, number, number) for number in range(keys + AFTER))
    return Scenario(
        name="stall",
        workload=Workload(
            name="stall",
            inputs=(Input(name="source", splits=(records,)),),
            nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
        ),
        topology=Topology(
            parallelism={"source": 1, "count": 1, "sink": 1},
            edges=(
                Edge(sender="source", receiver="count", partitioning="hash"),
                Edge(sender="count", receiver="sink", partitioning="forward"),
            ),
        ),
        engine=Engine(
            sink="plain",
            snapshot_mode=mode,
            checkpoint_interval_us=(keys + AFTER // 4) * every_us,
            checkpoint_timeout_us=500_000,
            read_interval_us=every_us,
            apply_cost_us=every_us // 4,
            channel_latency_us=every_us,
            snapshot_write_us=100,
            snapshot_byte_ns=0 if real_time else BYTE_NS,
        ),
    )


def stall_of(history: History) -> tuple[int, int]:
    """The longest time (µs) without a record while the first snapshot of the task was taken and written, less the
    usual time; and the bytes of that snapshot."""
    first = min((one for one in history.stored if one.task == TASK), key=lambda one: one.checkpoint)
    (began,) = [
        mark.at_us
        for run in history.runs
        if run.task == TASK
        for mark in run.marks
        if mark.checkpoint == first.checkpoint
    ]
    taken = [one.at_us for one in history.timeline if one.what == "record-applied" and one.task == TASK]
    steps = list(pairwise(taken))
    usual = int(median(later - earlier for earlier, later in steps))
    meanwhile = [later - earlier for earlier, later in steps if later >= began and earlier <= first.at_us]
    return max(meanwhile, default=usual) - usual, len(first.state)


def measured(subject: Subject, keys: int, mode: str) -> tuple[int, int]:
    scenario = counting(keys, mode, real_time=subject.capabilities.real_time)
    return stall_of(subject.run(scenario, timeline=True))


def picture(stalls: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """An SVG file of stalls (ms) over the size of a snapshot (KB), by mode.  Both axes are logarithmic."""
    chart = Chart(
        title="The stall of a task for a snapshot",
        caption="A synchronous snapshot stalls the task for longer as the state grows; an asynchronous one does not.",
        across="KB of state",
        up="ms without a record",
        curves=tuple(Curve(name=mode, points=tuple(points)) for mode, points in stalls.items()),
        logarithmic=True,
    )
    root, rest = drawn(chart).picture.split(">", 1)
    return f'{root} xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{rest}\n'


def figures() -> list[Figure]:
    found: list[Figure] = []
    for name, sizes, runs in (
        ("simulated", KEYS, 1),
        ("processes", KEYS_ON_PROCESSES, RUNS_ON_PROCESSES),
    ):
        subject = subject_called(name)
        with closing(subject):
            for keys in sizes:
                for mode in MODES:
                    results = [measured(subject, keys, mode) for _ in range(runs)]
                    size = f"{results[0][1] / 1_000:,.0f} KB of state"
                    found.append(
                        figure(f"stall, {name}, {mode}, {size}", "ms", [stall / 1_000 for stall, _ in results])
                    )
    return found


if __name__ == "__main__":
    print(msgspec.json.encode([(one.name, one.value, one.runs) for one in figures()]).decode())
