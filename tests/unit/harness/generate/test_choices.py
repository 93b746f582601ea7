"""Choices from bytes: each integer is a function of the bytes and of the integers before it."""

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutproof.harness.generate.choices import FromBytes
from cutproof.harness.runtime.exit_codes import HarnessFailed

RANGES = [(0, 1), (0, 99), (3, 7), (-5, 5), (0, 255), (0, 256), (1, 1000), (0, (1 << 32) - 1), (0, (1 << 64) - 1)]


def test_an_integer_takes_the_fewest_bytes_that_hold_its_range():
    choices = FromBytes(bytes([7, 1, 44, 9]))
    assert [choices.between(0, 7), choices.between(0, 511), choices.between(10, 20)] == [7, 300, 19]


def test_bits_that_the_range_does_not_need_are_ignored():
    assert FromBytes(bytes([0b1111_1010])).between(0, 7) == 0b010


def test_a_value_that_is_too_great_is_drawn_again():
    assert FromBytes(bytes([7, 6, 2])).between(0, 5) == 2


def test_a_range_of_one_costs_no_byte():
    assert FromBytes(b"").between(4, 4) == 4


def test_bytes_that_run_out_are_the_failure_of_the_harness():
    with pytest.raises(HarnessFailed, match="more than 1 bytes"):
        FromBytes(b"\0").between(0, 1 << 20)


def test_hypothesis_reads_the_same_integers_from_the_bytes():
    """So the scenarios of a seed stay the same as they were when Hypothesis read the bytes."""
    found: list[list[int]] = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def by_hypothesis(data: st.DataObject) -> None:
        found.append([data.draw(st.integers(low, high)) for low, high in RANGES])

    for number in range(50):
        read = hashlib.shake_256(str(number).encode()).digest(1024)
        by_hypothesis.hypothesis.fuzz_one_input(read)
        choices = FromBytes(read)
        assert [choices.between(low, high) for low, high in RANGES] == found.pop()


def test_records_are_packed_integers_of_32_bits():
    records = FromBytes(bytes(range(64))).packed(5, 9)
    assert 5 <= len(records) <= 9
    assert all(0 <= record < 1 << 32 for record in records)
