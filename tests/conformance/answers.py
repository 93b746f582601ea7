"""What the general workloads owe, by plain means: no operator, no engine, only the input records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product

from cutproof.properties.model.workload import InputRecord, Row, Workload

Answer = Callable[[Workload], Iterator[Row]]


def _splits(workload: Workload, name: str) -> list[tuple[InputRecord, ...]]:
    return [records for _, source, records in workload.splits() if source.name == name]


def _records(workload: Workload, name: str) -> list[InputRecord]:
    return [record for split in _splits(workload, name) for record in split]


def _orders(workload: Workload) -> Iterator[Row]:
    """Each customer's orders are counted: 1, 2, 3 …"""
    for key, times in Counter(key for key, _, _ in _records(workload, "orders")).items():
        yield from ((key, number, 0, 0) for number in range(1, times + 1))


def _payments(workload: Workload) -> Iterator[Row]:
    """Valid payments (not divisible by ten), summed account by account in the order of their split."""
    for split in _splits(workload, "payments"):
        for key in dict.fromkeys(key for key, _, _ in split):
            total = tags = 0
            for _, value, tag in [one for one in split if one[0] == key and (one[1] or 0) % 10]:
                total, tags = total + (value or 0), tags + tag
                yield key, total, tags, 0


def _order_payments(workload: Workload) -> Iterator[Row]:
    """Every pair of an order and a payment of the same key."""
    for (key, value, tag), (other, _, paid) in product(_records(workload, "orders"), _records(workload, "payments")):
        if key == other and key is not None:
            yield key, value, tag, paid


def _clicks(workload: Workload) -> Iterator[Row]:
    """Each visitor with a click that is worth anything, once."""
    clicks = [*_records(workload, "web"), *_records(workload, "app")]
    yield from ((key, 0, 0, 0) for key in dict.fromkeys(key for key, value, _ in clicks if (value or 0) % 3))


def _parcels(workload: Workload) -> Iterator[Row]:
    """Each town's parcels are counted, and every one is sent on in the end."""
    for key, times in Counter(key for key, _, _ in _records(workload, "parcels")).items():
        yield from ((key, number, 0, 0) for number in range(1, times + 1))


def _sensors(workload: Workload) -> Iterator[Row]:
    """A sensor's reading when it is above the one before; all are converted alike."""
    for split in _splits(workload, "readings"):
        before: dict[int | None, int] = {}
        for key, value, tag in split:
            converted = (value or 0) * 5 - 160
            if key not in before or converted > before[key]:
                yield key, converted, tag, 0
            before[key] = converted


def _levels(workload: Workload) -> Iterator[Row]:
    """The level of each sensor as each reading has moved it."""
    levels: Counter[int | None] = Counter()
    for key, value, tag in _records(workload, "readings"):
        levels[key] += ((value or 0) - levels[key]) // 4
        yield key, levels[key], tag, 0


ANSWERS: dict[str, Answer] = {
    "orders": _orders,
    "payments": _payments,
    "order-payments": _order_payments,
    "clicks": _clicks,
    "parcels": _parcels,
    "sensors": _sensors,
    "levels": _levels,
}


def expected_rows(workload: Workload) -> Counter[Row]:
    return Counter(ANSWERS[workload.name](workload))
