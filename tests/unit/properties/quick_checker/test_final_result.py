"""What is left of a job's rows, and when the input alone determines it."""

from __future__ import annotations

from collections import Counter

import pytest

from cutproof.properties.model.workload import AnyOperator, Count, Dedup, Filter, Greater, Map, Row, Sum
from cutproof.properties.quick_checker.final_result import final_result, is_fixed, is_update_stream, shows_last
from unit.properties.semantics.test_classes import APART, SHARED, laid_out

ROWS: list[Row] = [(1, 1, 0, 0), (2, 1, 0, 0), (1, 2, 0, 0), (2, 1, 0, 0)]


@pytest.mark.parametrize("operator", [Count(), Sum()])
def test_of_updates_the_last_of_each_key_is_left(operator: AnyOperator) -> None:
    workload, _ = laid_out(SHARED, Map(), operator)
    assert is_update_stream(workload)
    assert final_result(workload, ROWS) == Counter([(1, 2, 0, 0), (2, 1, 0, 0)])


@pytest.mark.parametrize("operator", [Count(tagged=True), Greater(), Dedup(), Map(), Filter()])
def test_of_anything_else_all_rows_are_left(operator: AnyOperator) -> None:
    workload, _ = laid_out(SHARED, Count(), operator)
    assert not is_update_stream(workload)
    assert final_result(workload, ROWS) == Counter(ROWS)


def test_a_job_without_operators_has_no_updates() -> None:
    workload, topology = laid_out(SHARED)
    assert not is_update_stream(workload)
    assert is_fixed(workload, topology)


def test_a_final_sum_does_not_look_at_order_and_rows_that_do_are_not_fixed() -> None:
    assert is_fixed(*laid_out(SHARED, Sum()))
    assert is_fixed(*laid_out(APART, Greater()))
    assert not is_fixed(*laid_out(SHARED, Greater()))
    assert not is_fixed(*laid_out(SHARED, Greater(), Sum()))
    assert not is_fixed(*laid_out(SHARED, Sum(), Map()))


def test_updates_that_are_distributed_do_not_show_the_last() -> None:
    assert shows_last(*laid_out(SHARED, Sum()))
    assert not shows_last(*laid_out(SHARED, Sum(), edges="hr"))
    assert shows_last(*laid_out(SHARED, Map(), edges="hr"))
