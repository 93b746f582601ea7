"""PySpark's word on what the quick checker reckoned, scenario by scenario.

Workers put what has to be asked into bytes (`question_of`); the process that
has the Spark session asks it for many scenarios at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .run import Result


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """PySpark's answer to a batch of questions."""

    engine: str = ""
    workloads: int = 0
    expected_rows: int = 0
    queries: int = 0
    disagreements: tuple[tuple[int, str], ...] = ()
    """(position in the batch, what differs in words)"""
    seconds: float = 0.0


class Oracle(Protocol):
    """A second judge that works on many scenarios at once."""

    def start(self) -> None:
        """Begin to start it, in the background."""

    def wait(self) -> None:
        """Return once it is up, or has failed to come up; `examine` tells which."""

    def examine(self, questions: Sequence[bytes]) -> Examined:
        """Judge; a `HarnessFailed` when it cannot."""


def question_of(result: Result) -> bytes:
    """What the oracle needs to know of a result."""
    return b""
