from __future__ import annotations

from cutproof.reports.rows import side_by_side

A, B, C = (1, 1, 10, 0), (1, 2, 20, 0), (None, None, 30, 0)


def test_rows_pair_up_as_multisets() -> None:
    found = [(row.status, row.expected, row.committed) for row in side_by_side([B, A, A], [A, C, B, B])]
    assert found == [
        ("unexpected", None, C),
        ("ok", A, A),
        ("lost", A, None),
        ("ok", B, B),
        ("repeated", None, B),
    ]


def test_null_sorts_before_zero_and_nothing_makes_nothing() -> None:
    zero, null = (0, 0, 1, 0), (None, 0, 1, 0)
    assert [row.expected for row in side_by_side([zero, null], [])] == [null, zero]
    assert side_by_side([], []) == ()
