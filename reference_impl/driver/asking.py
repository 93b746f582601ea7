"""What code of the engine raises where no event asks it: a failure of the task, as what its machine raises is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .machines import raised

if TYPE_CHECKING:
    from ..core.effects import Refill
    from .ports import Inbound
    from .runner import TaskRunner

Answer = TypeVar("Answer")


def ask(runner: TaskRunner, question: Callable[[], Answer]) -> Answer | None:
    """The answer; None where it raises, and the task has failed of it."""
    try:
        return question()
    except Exception as error:
        runner.world.task_failed(runner, raised(error), None)
        return None


def put_back(channel: Inbound, effect: Refill) -> None:
    """What it holds then the engine says."""
    channel.refill(effect.elements, effect.handed_over, effect.replays)
