"""What is named for the dealing of tests is there."""

from __future__ import annotations

from pathlib import Path

import sharing

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_named_is_there() -> None:
    named = [one for one in (*sharing.WITH_SPARK, *sharing.LONG) if one != sharing.SPARK]
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_what_shares_the_session_is_dealt_out_together_and_first() -> None:
    assert sharing.scope_of("tests/unit/spark/test_late.py::test_it") == sharing.SPARK
    assert sharing.turn("tests/unit/spark/test_late.py::test_it") == 0
    assert sharing.turn("tests/unit/core/test_timers.py::test_it") == len(sharing.LONG)
