"""Workloads with retraction records (OPS-6): rows that take earlier ones back, through count, sum and join."""

from __future__ import annotations

from msgspec.structs import replace

from ....properties.model.workload import AnyOperator, Count, Input, InputRecord, Join, Sum
from ..choices import Choices

AGGREGATES: tuple[AnyOperator, ...] = (Sum(signed=True), Count(signed=True))
JOIN = Join(signed=True)


def draw_retractions(choices: Choices, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    """The inputs, some of whose records take back an earlier one of their key and split: most, or few."""
    shift, mask = choices.between(0, 20), choices.pick((1, 3, 7))
    return tuple(
        replace(source, splits=tuple(with_retractions(split, shift, mask) for split in source.splits))
        for source in inputs
    )


def with_retractions(records: tuple[InputRecord, ...], shift: int, mask: int) -> tuple[InputRecord, ...]:
    """The bits of a record's tag say whether it becomes a retraction; it takes back the newest that still stands."""
    standing: dict[int | None, list[InputRecord]] = {}
    changed: list[InputRecord] = []
    for record in records:
        mine = standing.setdefault(record[0], [])
        if mine and record[2] >> shift & mask == 0:
            key, value, tag = mine.pop()
            changed.append((key, value, -tag))
        else:
            mine.append(record)
            changed.append(record)
    return tuple(changed)
