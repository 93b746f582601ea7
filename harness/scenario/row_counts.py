"""How many rows the inputs and operators of a workload emit at most, from the workload alone.

A filter is assumed to keep all rows, and a join to pair each row of one input with all of the other that have its key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...properties.model.workload import AnyOperator, FlatMap, Join, Map, Sliding, Workload, is_changelog


def emitted(workload: Workload) -> Iterator[tuple[str, int]]:
    """Each input and operator, behind those that it reads, with the number of rows that it emits."""
    made: dict[str, Counter[int | None]] = {}
    for source in workload.inputs:
        made[source.name] = Counter(key for split in source.splits for key, _, _ in split)
        yield source.name, made[source.name].total()
    for node in workload.nodes:
        given = [made[name] for name in node.inputs]
        keys = Counter[int | None]()
        for one in given:
            keys.update(one)
        made[node.name] = _made_by(node.operator, given, keys)
        yield node.name, made[node.name].total()


def received(workload: Workload) -> int:
    """The rows that operators and the sink receive, all together."""
    made = dict(emitted(workload))
    return sum(made[name] for node in workload.nodes for name in node.inputs) + made[workload.output]


def _made_by(operator: AnyOperator, given: list[Counter[int | None]], keys: Counter[int | None]) -> Counter[int | None]:
    """The rows by key that an operator emits at most for the rows of its inputs; `keys` is the number of all keys."""
    match operator:
        case Map(rekey=int(rekey)):
            found = Counter[int | None]()
            for key, rows in keys.items():
                found[key if key is None else key % rekey] += rows
            return found
        case Join():
            first, second = given
            return Counter({key: rows * second[key] for key, rows in first.items()})
        case FlatMap(fan=times):
            return Counter({key: rows * times for key, rows in keys.items()})
        case Sliding(size=size, slide=slide):
            return Counter({key: rows * -(-size // slide) for key, rows in keys.items()})
        case _ if is_changelog(operator):  # a row may retract another
            return Counter({key: 2 * rows for key, rows in keys.items()})
        case _:
            return keys
