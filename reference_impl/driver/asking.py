"""Calls of the engine's code outside of a machine's step: an exception fails the task, as in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..core.vocabulary.causes import raised

if TYPE_CHECKING:
    from ..core.vocabulary.effects import Refill
    from .ports import Inbound
    from .runner import TaskRunner

Answer = TypeVar("Answer")


def ask(runner: TaskRunner, question: Callable[[], Answer]) -> Answer | None:
    """The answer; None if the call raises, and the task has failed."""
    try:
        return question()
    except Exception as error:
        runner.world.task_failed(runner, raised(error), None)
        return None


def put_back(channel: Inbound, effect: Refill) -> None:
    """Put restored elements back; the engine's `handed_over` decides what the channel holds then."""
    channel.refill(effect.elements, effect.handed_over, effect.replays)
