"""Whether a job's numbers stay within 64 bits, decided before Spark sees the job.

One overflow fails a whole Spark query.  So generous bounds of the greatest magnitudes
that a workload could yield are computed first.  A job that could overflow is answered
with this problem, and Spark computes the other jobs of its batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ..model.absent import without
from ..model.workload import Count, FlatMap, Join, Map, Rules, Sliding, Sum, Window, Workload
from .tables import OracleJob

LIMIT = (1 << 63) - 1
NO_APPLIES: Mapping[str, Sequence[int]] = {}
NO_SCALES: Mapping[str, int] = {}


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """The greatest possible number of rows, and the greatest magnitudes of their keys, values and tags."""

    rows: int
    key: int
    value: int
    tag: int

    def __or__(self, other: Bound) -> Bound:
        return Bound(
            rows=self.rows + other.rows,
            key=max(self.key, other.key),
            value=max(self.value, other.value),
            tag=max(self.tag, other.tag),
        )


def problem(job: OracleJob) -> str:
    """Why Spark must not compute this job; empty if it may."""
    splits = len(list(job.workload.splits()))
    if any(len(cut.positions) != splits for cut in job.cuts):
        return f"a cut does not have one position for each of the {splits} splits"
    lineages = {name: [one.lineage for one in taken] for name, taken in job.applies.items()}
    scales = {name: max(scales) for name, scales in job.scales.items()}
    found = (beyond_64_bits(without(job.workload, period.absent), lineages, scales) for period in job.periods)
    return next(filter(None, found), "")


def beyond_64_bits(
    workload: Workload, applies: Mapping[str, Sequence[int]] = NO_APPLIES, scales: Mapping[str, int] = NO_SCALES
) -> str:
    """Where a workload's numbers may leave 64 bits, in one phrase; empty if they cannot.

    `applies`: if rows follow the applied records, by node the lineage of each record taken, repeated ones included.
    `scales`: in how many parts of a whole sums are.
    """
    bounds: dict[str, Bound] = {}
    for source in workload.inputs:
        records = [record for split in source.splits for record in split]
        bounds[source.name] = Bound(
            rows=len(records),
            key=max((abs(key) for key, _, _ in records if key is not None), default=0),
            value=max((abs(value) for _, value, _ in records if value is not None), default=0),
            tag=max((abs(tag) for _, _, tag in records), default=0),
        )
    for node in workload.nodes:
        inputs = [bounds[name] for name in node.inputs]
        taken = Counter(applies.get(node.name, ()))
        bound = _after(node.operator, inputs, max(taken.values()) if taken else None)
        bound = msgspec.structs.replace(bound, value=bound.value * scales.get(node.name, 1))
        if max(bound.key, bound.value, bound.tag) > LIMIT:
            return f"numbers may leave 64 bits at {node.name}"
        bounds[node.name] = bound
    for bound in bounds.values():
        if max(bound.key, bound.value, bound.tag) > LIMIT:
            return "a number of the input leaves 64 bits"
    return ""


def _after(operator: object, inputs: list[Bound], taken: int | None) -> Bound:
    """The bound after an operator.

    `taken`: the number of records that the node took on a lineage, repeated ones included, if the job has it.
    """
    bound = inputs[0]
    for other in inputs[1:]:
        bound |= other
    pairs = inputs[0].rows * inputs[-1].rows
    if taken is not None:
        bound = msgspec.structs.replace(bound, rows=taken)
        pairs = (taken // 2) * (taken - taken // 2)
    match operator:
        case Map(multiply=multiply, add=add):
            return msgspec.structs.replace(bound, value=bound.value * abs(multiply) + abs(add))
        case FlatMap(fan=fan):
            return msgspec.structs.replace(bound, rows=bound.rows * fan, value=bound.value + fan)
        case Sum(signed=True) | Count(signed=True):
            value = max(bound.value, 1) * bound.rows
            return msgspec.structs.replace(bound, rows=2 * bound.rows, value=value, tag=bound.tag * bound.rows)
        case Sum():
            return msgspec.structs.replace(bound, value=bound.value * bound.rows, tag=bound.tag * bound.rows)
        case Rules():
            return msgspec.structs.replace(bound, value=inputs[0].value + inputs[-1].value)
        case Join():
            return msgspec.structs.replace(bound, rows=pairs)
        case Window():
            most = max(1, bound.rows)
            value = bound.value * most if operator.of == "sum" else most
            panes = -(-operator.size // operator.slide) if isinstance(operator, Sliding) else 1
            return msgspec.structs.replace(bound, rows=2 * bound.rows * panes, value=value, tag=bound.tag * most)
    return msgspec.structs.replace(bound, value=max(bound.value, bound.rows))
