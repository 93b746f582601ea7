"""Workloads drawn at random, and their expected rows by brute force: row by row, in the obvious way."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from cutproof.properties.model.workload import (
    AnyOperator,
    Batch,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Input,
    InputRecord,
    Join,
    Map,
    Model,
    Node,
    Row,
    Sum,
    Tally,
    Union,
    Workload,
)
from cutproof.properties.spark.tables import Cut, OracleJob, QuickResult

STATELESS: tuple[AnyOperator, ...] = (
    Map(multiply=-3, add=1),
    Map(rekey=3),
    Filter(modulus=3, drop=1),
    FlatMap(fan=3),
)
KEYED: tuple[AnyOperator, ...] = (
    Count(),
    Count(tagged=True),
    Sum(),
    Greater(),
    Dedup(),
    Dedup(keys_only=False),
    Tally(),
    Model(),
    Count(signed=True),
    Sum(signed=True),
)


def drawn_job(random: Random, name: str, last: AnyOperator | None = None) -> OracleJob:
    """A job whose tree is at most five operators deep, or just `last`, with cuts that may be empty or equal."""
    longest = 2 if last is None else 0
    inputs = [Input(name="left", splits=_splits(random))]
    nodes: list[Node] = []
    top = _chain(random, nodes, "left", random.randint(0, longest))
    if isinstance(last, (Join, Union)) or (last is None and random.random() < 0.5):
        inputs.append(Input(name="right", splits=_splits(random)))
        other = _chain(random, nodes, "right", random.randint(0, longest // 2))
        merge = last if last is not None else random.choice([Join(), Join(signed=True), Union()])
        nodes.append(Node(name=f"merge{len(nodes)}", operator=merge, inputs=(top, other)))
        top = nodes[-1].name
    top = _chain(random, nodes, top, random.randint(0, longest))
    if last is not None and not isinstance(last, (Join, Union)):
        nodes.append(Node(name=f"last{len(nodes)}", operator=last, inputs=(top,)))
    workload = Workload(name=name, inputs=tuple(inputs), nodes=tuple(nodes))
    ends = [len(records) for _, _, records in workload.splits()]
    positions = [sorted(random.randrange(end + 1) for _ in range(3)) for end in ends]
    cuts = [Cut(name=10 + index, positions=tuple(at[index] for at in positions)) for index in range(3)]
    return OracleJob(id=name, workload=workload, cuts=(*cuts, Cut(name=99, positions=tuple(ends))))


def _splits(random: Random) -> tuple[tuple[InputRecord, ...], ...]:
    return tuple(
        tuple(
            (
                random.choice([None, -1, 0, 1, 2, 3]),
                random.choice([None, *range(-6, 7)]),
                random.getrandbits(40) * random.choice([1, 1, -1]),
            )
            for _ in range(random.randrange(9))
        )
        for _ in range(random.randrange(1, 4))
    )


def _chain(random: Random, nodes: list[Node], top: str, length: int) -> str:
    for _ in range(length):
        operator = random.choice(STATELESS if random.random() < 0.5 else KEYED)
        nodes.append(Node(name=f"n{len(nodes)}", operator=operator, inputs=(top,)))
        top = nodes[-1].name
    return top


def brute_force(job: OracleJob) -> QuickResult:
    """Every record by epoch, split and offset, one at a time through the whole tree."""
    state: dict[str, Any] = {node.name: {} for node in job.workload.nodes}
    fed = {name: (node, side) for node in job.workload.nodes for side, name in enumerate(node.inputs)}
    rows: dict[int, list[Row]] = {}
    states: dict[int, dict[str, list[tuple[int, int | None, int | None, int]]]] = {}
    begun = [0] * len(job.cuts[0].positions)
    for cut in job.cuts:
        rows[cut.name] = []
        for split, source, records in job.workload.splits():
            for key, value, tag in records[begun[split] : cut.positions[split]]:
                reached = [(key, value, tag, 0)]
                name = source.name
                while name in fed:
                    node, side = fed[name]
                    reached = [out for row in reached for out in _apply(node.operator, state[node.name], row, side)]
                    name = node.name
                rows[cut.name].extend(reached)
        begun = list(cut.positions)
        states[cut.name] = {node.name: _entries(node.operator, state[node.name]) for node in job.workload.nodes}
    return QuickResult(rows=rows, states=states)


def _apply(operator: AnyOperator, state: dict[Any, Any], row: Row, side: int) -> list[Row]:
    key, value, tag, tag2 = row
    sign = -1 if tag < 0 else 1
    match operator:
        case Count(signed=True) | Sum(signed=True):
            old = state.get(key, (0, 0))
            new = (old[0] + sign * (1 if isinstance(operator, Count) else value or 0), old[1] + tag)
            state[key] = new
            return [(key, old[0], -old[1], 0)] * any(old) + [(key, *new, 0)] * any(new)
        case Map(multiply=multiply, add=add, rekey=rekey):
            key = key if key is None or rekey is None else key % rekey
            return [(key, None if value is None else value * multiply + add, tag, tag2)]
        case Filter(modulus=modulus, drop=drop):
            return [row] if value is not None and value % modulus != drop else []
        case FlatMap(fan=fan):
            return [] if value is None else [(key, value + i, tag, tag2) for i in range(value % (fan + 1))]
        case Count(tagged=tagged):
            state[key] = state.get(key, 0) + 1
            return [(key, state[key], tag, tag2) if tagged else (key, state[key], 0, 0)]
        case Tally():
            state[key] = state.get(key, 0) + 1
            return [(key, state[key], 0, 0)]
        case Model():
            level, learnt = state.get(key, (0, 0))
            state[key] = (level, learnt) if value is None else (level + (value - level) // 4, learnt + 1)
            return [(key, state[key][0], tag, tag2)]
        case Sum():
            total, tags = state.get(key, (None, 0))
            state[key] = (total if value is None else (total or 0) + value, tags + tag)
            return [(key, *state[key], 0)]
        case Greater():
            before = state.get(key)
            state[key] = value
            return [row] if before is None or (value is not None and value > before) else []
        case Dedup(keys_only=keys_only):
            new = key not in state
            state[key] = None
            return ([(key, 0, 0, 0)] if keys_only else [row]) if new else []
        case Batch() | Union():
            return [row]
        case Join():
            if key is None:
                return []
            state.setdefault((side, key), []).append((value, tag))
            met = state.get((1 - side, key), [])
            if operator.signed:
                pairs = [(value, tag, t) if side == 0 else (v, t, tag) for v, t in met]
                return [
                    (key, v, (-1 if (left < 0) != (right < 0) else 1) * abs(left), abs(right))
                    for v, left, right in pairs
                ]
            return [(key, value, tag, t) if side == 0 else (key, v, t, tag) for v, t in met]


def _entries(operator: AnyOperator, state: dict[Any, Any]) -> list[tuple[int, int | None, int | None, int]]:
    match operator:
        case Count(signed=True) | Sum(signed=True):
            return [(0, key, *held) for key, held in state.items() if any(held)]
        case Count() | Tally():
            return [(0, key, n, 0) for key, n in state.items()]
        case Model():
            return [(0, key, *held) for key, held in state.items()]
        case Sum():
            return [(0, key, total, tags) for key, (total, tags) in state.items()]
        case Greater() | Dedup():
            return [
                (0, key, value, 0) if isinstance(operator, Greater) else (0, key, 0, 0) for key, value in state.items()
            ]
        case Join():
            return [(side, key, value, tag) for (side, key), met in state.items() for value, tag in met]
    return []


def is_order_free(job: OracleJob) -> bool:
    """Whether the job's rows are the same whatever the order within an epoch: what is behind a
    join has no order that both reckonings could follow."""
    behind: Counter[str] = Counter()
    for node in job.workload.nodes:
        behind[node.name] = sum(behind[name] for name in node.inputs) + isinstance(node.operator, Join)
        ordered = isinstance(node.operator, (Sum, Greater, Model)) or (
            isinstance(node.operator, Count) and (node.operator.tagged or node.operator.signed)
        )
        ordered = ordered or (isinstance(node.operator, Dedup) and not node.operator.keys_only)
        if ordered and any(behind[name] for name in node.inputs):
            return False
    return True
