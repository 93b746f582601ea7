"""The time line, which is kept on request: elements that enter and leave channels."""

from __future__ import annotations

from typing import Protocol

from .. import observed as o
from ..core.vocabulary.ids import AttemptId, TaskId
from ..core.vocabulary.messages import (
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
from ..trace import Observer
from .ports import Inbound

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


class Shown(Protocol):
    """A task's attempt on the time line."""

    @property
    def name(self) -> TaskId: ...

    @property
    def attempt(self) -> AttemptId: ...


def show_sent(observer: Observer, sender: Shown, receiver: str, channel: str, position: int, element: Element) -> None:
    """An element has entered a channel at this position (from 0)."""
    observer.saw(
        o.Timed(
            SENT[type(element)],
            sender.name,
            sender.attempt,
            peer=receiver,
            channel=channel,
            position=position,
            checkpoint=getattr(element, "checkpoint", None),
            origin=getattr(element, "origin", None),
        )
    )


def show_taken(observer: Observer, task: Shown, what: str, channel: Inbound, element: Element, position: int) -> None:
    """A task takes an element, which is at this position of a channel."""
    observer.saw(
        o.Timed(
            what,
            task.name,
            task.attempt,
            peer=channel.sender.name if channel.sender else None,
            channel=channel.name,
            position=position,
            checkpoint=getattr(element, "checkpoint", None),
            origin=getattr(element, "origin", None),
        )
    )
