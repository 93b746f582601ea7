"""Histories for the tests of the checkers: a few workloads, and random correct runs of them.

A test that wants a run of its own making drives a `Toy` itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from cutproof.properties.model.history import History
from cutproof.properties.model.workload import (
    SINK,
    Count,
    Edge,
    FlatMap,
    Input,
    InputRecord,
    Join,
    Node,
    Topology,
    Workload,
)
from unit.properties.toy import Case, Toy


def records(count: int, keys: int = 2, seed: int = 1) -> tuple[InputRecord, ...]:
    """`count` records with small keys and values and random, distinct tags."""
    draw = random.Random(seed)
    return tuple((draw.randrange(keys), draw.randrange(5), draw.getrandbits(40) | 1) for _ in range(count))


def counting(per_split: int = 6, splits: int = 2, parallelism: int = 2, *, bounded: bool = True) -> Case:
    """numbers -> count -> sink, hashed into the count and forwarded to the sink."""
    source = Input(
        name="numbers", splits=tuple(records(per_split, seed=split) for split in range(splits)), bounded=bounded
    )
    workload = Workload(
        name="counting", inputs=(source,), nodes=(Node(name="count", operator=Count(), inputs=("numbers",)),)
    )
    return workload, Topology(
        parallelism={"numbers": splits, "count": parallelism, SINK: parallelism},
        edges=(
            Edge(sender="numbers", receiver="count", partitioning="hash"),
            Edge(sender="count", receiver=SINK, partitioning="forward"),
        ),
    )


def joining(per_split: int = 5, parallelism: int = 2) -> Case:
    """left and right -> join -> sink."""
    inputs = tuple(Input(name=name, splits=(records(per_split, seed=at),)) for at, name in enumerate(("left", "right")))
    workload = Workload(
        name="joining", inputs=inputs, nodes=(Node(name="join", operator=Join(), inputs=("left", "right")),)
    )
    return workload, Topology(
        parallelism={"left": 1, "right": 1, "join": parallelism, SINK: 1},
        edges=(
            Edge(sender="left", receiver="join", partitioning="hash"),
            Edge(sender="right", receiver="join", partitioning="hash"),
            Edge(sender="join", receiver=SINK, partitioning="rebalance"),
        ),
    )


def copying(per_split: int = 6) -> Case:
    """numbers -> copy (a flat map) -> sink, rebalanced into two copies."""
    source = Input(name="numbers", splits=(records(per_split),))
    workload = Workload(
        name="copying", inputs=(source,), nodes=(Node(name="copy", operator=FlatMap(), inputs=("numbers",)),)
    )
    return workload, Topology(
        parallelism={"numbers": 1, "copy": 2, SINK: 1},
        edges=(
            Edge(sender="numbers", receiver="copy", partitioning="rebalance"),
            Edge(sender="copy", receiver=SINK, partitioning="rebalance"),
        ),
    )


def run(
    case: Case,
    *,
    seed: int = 0,
    steps: int = 120,
    kills: int = 2,
    sink: str = "transactional",
    guarantee: str = "exactly-once",
    identity: str = "key",
) -> History:
    """A whole random run, some stopped or cancelled on the way and resumed, to its natural end
    or to rest where an input is unbounded."""
    toy = Toy(case, seed=seed, sink=sink, guarantee=guarantee, identity=identity)
    toy.start()
    toy.wander(steps, kills)
    how = toy.draw.randrange(4)
    if how == 1:
        toy.stop()
    elif how == 2:
        toy.cancel()
    if how in (1, 2):
        toy.resume()
        toy.wander(steps // 2, kills)
    if all(source.bounded for source in case[0].inputs):
        toy.finish()
    else:
        toy.read_all()
        toy.checkpoint_now()
    return toy.history()


def recovered(case: Case | None = None, **options: Any) -> Toy:
    """A run with a checkpoint, records behind it, a kill, and the same records again; still alive."""
    toy = Toy(case or counting(), **options)
    toy.start()
    sources = [name for name, task in toy.tasks.items() if not task.run.inputs]
    for name in sources * 2:
        toy.read(name)
    toy.settle()
    toy.checkpoint_now()
    for name in sources * 2:
        toy.read(name)
    toy.settle()
    toy.kill(sources[0])
    toy.restart()
    for name in sources:
        toy.read(name)
    toy.settle()
    return toy


def resting() -> Toy:
    """An unbounded job that has covered all there is."""
    toy = recovered(counting(bounded=False))
    toy.read_all()
    toy.checkpoint_now()
    return toy


def correct_runs(seeds: range = range(8)) -> Iterator[tuple[Case, History]]:
    """Random correct runs of every workload here, with each kind of sink and guarantee; not to be altered."""
    for seed in seeds:
        yield from _correct_runs(seed)


@cache
def _correct_runs(seed: int) -> tuple[tuple[Case, History], ...]:
    return tuple(
        (case, run(case, seed=seed, sink=sink, guarantee=guarantee))
        for case in (counting(), counting(bounded=False), joining(), copying())
        for sink in ("transactional", "idempotent", "plain")
        for guarantee in ("exactly-once", "at-least-once", "at-most-once")
    )
