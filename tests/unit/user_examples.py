"""The functions of the documents, known as a user makes them known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutproof.harness.workloads.user_functions import known_within

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "operators"


@contextmanager
def examples_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Known as long as it lasts, beside those that the package ships."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    entries = ["silence:SILENCE", "top_two:TOP_TWO", "last_call:LAST_CALL", "turns:TURNS", "headcount:HEADCOUNT"]
    with known_within(entries):
        yield
    for name in ("silence", "top_two", "last_call", "turns", "headcount"):
        sys.modules.pop(name, None)
