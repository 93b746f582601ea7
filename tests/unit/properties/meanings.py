"""What the operators mean, for the toy of `histories`: written once more, row by row."""

from __future__ import annotations

from cutproof.properties.model.workload import (
    AnyOperator,
    Count,
    Dedup,
    Filter,
    FlatMap,
    Greater,
    Join,
    Map,
    Row,
    Sum,
    Union,
)

Entry = tuple[int, int | None, int | None, int]
Entries = list[Entry]


def copies(operator: AnyOperator) -> bool:
    """Whether the operator numbers the copies of a row."""
    return isinstance(operator, FlatMap)


def apply(operator: AnyOperator, held: Entries, side: int, row: Row) -> list[Row]:
    """The rows an operator makes of one row; `held` is its keyed state and changes."""
    key, value, tag, tag2 = row
    before = next((entry for entry in held if entry[1] == key), None)
    match operator:
        case Count(signed=True) | Sum(signed=True):
            return changed(operator, held, before, row)
        case Map():
            made = None if value is None else value * operator.multiply + operator.add
            return [(key if key is None or operator.rekey is None else key % operator.rekey, made, tag, tag2)]
        case Filter():
            return [row] if value is not None and value % operator.modulus != operator.drop else []
        case FlatMap():
            return [] if value is None else [(key, value + i, tag, tag2) for i in range(value % (operator.fan + 1))]
        case Count():
            n = 1 + ((before[2] or 0) if before else 0)
            replace(held, before, (0, key, n, 0))
            return [(key, n, tag, tag2) if operator.tagged else (key, n, 0, 0)]
        case Sum():
            total, tags = (before[2], before[3]) if before else (None, 0)
            total = total if value is None else (total or 0) + value
            replace(held, before, (0, key, total, tags + tag))
            return [(key, total, tags + tag, 0)]
        case Greater():
            replace(held, before, (0, key, value, 0))
            last = before[2] if before else None
            return [row] if last is None or (value is not None and value > last) else []
        case Dedup():
            replace(held, before, (0, key, 0, 0))
            return [] if before else [(key, 0, 0, 0) if operator.keys_only else row]
        case Union():
            return [row]
        case Join():
            pairs = joined(held, side, row)
            return [signed(pair) for pair in pairs] if operator.signed else pairs


def changed(operator: Count | Sum, held: Entries, before: Entry | None, row: Row) -> list[Row]:
    """What a record changes in the row of its key: the old one taken back, the new one."""
    key, value, tag, _ = row
    total, tags = (before[2] or 0, before[3]) if before else (0, 0)
    amount = 1 if isinstance(operator, Count) else value or 0
    total, tags = (total + amount if tag >= 0 else total - amount), tags + tag
    out: list[Row] = []
    if before is not None:
        held.remove(before)
        out.append((key, before[2], -before[3], 0))
    if total or tags:
        held.append((0, key, total, tags))
        out.append((key, total, tags, 0))
    return out


def signed(pair: Row) -> Row:
    key, value, left, right = pair
    return (key, value, -abs(left) if min(left, right) < 0 <= max(left, right) else abs(left), abs(right))


def joined(held: Entries, side: int, row: Row) -> list[Row]:
    key, value, tag, _ = row
    if key is None:
        return []
    others = [entry for entry in held if entry[0] != side and entry[1] == key]
    held.append((side, key, value, tag))
    if side == 0:
        return [(key, value, tag, other[3]) for other in others]
    return [(key, other[2], other[3], tag) for other in others]


def replace(held: Entries, before: Entry | None, after: Entry) -> None:
    if before is not None:
        held.remove(before)
    held.append(after)
