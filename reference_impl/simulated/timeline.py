"""The time line, kept on request: what entered a channel, and what was taken out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.messages import Barrier, CancelBarrier, Element, EndOfData, Record

if TYPE_CHECKING:
    from .links import DataChannel
    from .runner import TaskRunner

SENT: dict[type, str] = {
    Record: "record-sent",
    Barrier: "barrier-sent",
    CancelBarrier: "cancel-barrier-sent",
    EndOfData: "end-of-data-sent",
}


def show_sent(channel: DataChannel, element: Element) -> None:
    """An element has entered a channel, as the last one in it."""
    sender, receiver = channel.sender, channel.receiver
    if sender is None or receiver is None:
        return
    receiver.world.observer.timed(
        SENT[type(element)],
        sender.name,
        sender.attempt,
        peer=receiver.name,
        channel=channel.name,
        position=channel.taken + len(channel.queue) - 1,
        checkpoint=getattr(element, "checkpoint", None),
        origin=getattr(element, "origin", None),
    )


def show_taken(runner: TaskRunner, what: str, channel: DataChannel, element: Element) -> None:
    """A task has taken the first element of a channel."""
    runner.world.observer.timed(
        what,
        runner.name,
        runner.attempt,
        peer=channel.sender.name if channel.sender else "",
        channel=channel.name,
        position=channel.taken - 1,
        checkpoint=getattr(element, "checkpoint", None),
        origin=getattr(element, "origin", None),
    )
