"""The time line, kept on request: what entered a channel, and what was taken out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.messages import (
    Barrier,
    CancelBarrier,
    Committable,
    Element,
    EndOfData,
    EndOfPartition,
    Idle,
    Record,
    Settled,
    Watermark,
)

if TYPE_CHECKING:
    from .ports import Inbound
    from .runner import TaskRunner

SENT: dict[type, str] = {
    Record: "record-sent",
    Barrier: "barrier-sent",
    CancelBarrier: "cancel-barrier-sent",
    Watermark: "watermark-sent",
    Idle: "idle-sent",
    EndOfData: "end-of-data-sent",
    EndOfPartition: "end-of-partition-sent",
    Committable: "committable-sent",
    Settled: "settled-sent",
}


def show_sent(sender: TaskRunner, receiver: str, channel: str, position: int, element: Element) -> None:
    """An element has entered a channel, at this position (from 0)."""
    sender.world.observer.timed(
        SENT[type(element)],
        sender.name,
        sender.attempt,
        peer=receiver,
        channel=channel,
        position=position,
        checkpoint=getattr(element, "checkpoint", None),
        origin=getattr(element, "origin", None),
    )


def show_taken(runner: TaskRunner, what: str, channel: Inbound, element: Element) -> None:
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
