"""Every buffer once: what the judge of a run on bytes finds, and when it does not know."""

from __future__ import annotations

import pytest

from cutproof.properties.graphs.conservation import BytesHistory, check
from cutproof.properties.model.verdict import Holds, Unknown, Violated


def _history(processed: list[int], in_flight: list[int], read: int) -> BytesHistory:
    return BytesHistory(
        sources={0: "source"},
        processed=tuple((0, place) for place in processed),
        in_flight=tuple((0, place) for place in in_flight),
        read={0: read},
    )


def test_all_that_was_read_is_processed_or_on_its_way() -> None:
    assert check(_history([0, 1, 2], [4, 3], 5)) == Holds(exercised=3)


def test_nothing_processed_is_unknown() -> None:
    assert isinstance(check(_history([], [0], 1)), Unknown)


@pytest.mark.parametrize(
    ("processed", "in_flight", "read", "difference", "records"),
    [
        ([0, 2], [3], 4, "lost buffer", ("source 1",)),
        ([0, 1], [3], 4, "lost buffer", ("source 2",)),
        ([0, 1], [], 3, "lost buffer", ("source 2",)),
        ([0, 1, 1], [2], 3, "repeated buffer", ("source 1",)),
        ([0, 1], [1, 2], 3, "repeated buffer", ("source 1",)),
        ([1, 0], [2], 3, "order differs", ("source 1", "source 0")),
        ([0, 1], [2, 2], 3, "repeated buffer", ("source 2",)),
        ([0, 1, 2], [], 2, "never read", ("source 2",)),
    ],
)
def test_a_byte_lost_repeated_or_turned_round_is_found(
    processed: list[int], in_flight: list[int], read: int, difference: str, records: tuple[str, ...]
) -> None:
    found = check(_history(processed, in_flight, read))
    assert isinstance(found, Violated)
    assert (found.difference, found.records) == (difference, records)


def test_each_source_is_looked_at() -> None:
    history = BytesHistory(sources={0: "a", 1: "b"}, processed=((0, 0), (1, 1)), in_flight=(), read={0: 1, 1: 2})
    found = check(history)
    assert isinstance(found, Violated)
    assert found.records == ("b 0",)
