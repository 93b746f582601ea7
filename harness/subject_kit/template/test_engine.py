"""The toy engine holds under drawn scenarios, and the planted bug is found."""

from __future__ import annotations

from typing import Any

import pytest

from .adapter import BrokenEngine, Engine


def test_the_engine_holds(cutproof: Any) -> None:
    summary = cutproof.verify(subject=Engine(), scenarios=60)
    assert summary.scenarios.violated == 0
    assert summary.invariants["exactly-once"].holds > 0


def test_the_planted_bug_is_found(cutproof: Any) -> None:
    with pytest.raises(AssertionError, match="exactly-once") as found:
        cutproof.verify(subject=BrokenEngine(), scenarios=60)
    assert "repeated row" in str(found.value)
