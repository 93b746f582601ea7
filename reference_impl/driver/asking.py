"""Calls of the engine's code outside of a machine's step: an exception fails the task, as in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from ..core.vocabulary.causes import AnyCause, raised

Answer = TypeVar("Answer")


class Fallible(Protocol):
    """A task's attempt that can fail."""

    def fail(self, cause: AnyCause) -> None: ...


def ask(attempt: Fallible, question: Callable[[], Answer]) -> Answer | None:
    """The answer; None if the call raises, and the task has failed."""
    try:
        return question()
    except Exception as error:
        attempt.fail(raised(error))
        return None
