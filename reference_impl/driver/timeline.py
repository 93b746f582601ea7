"""What a source read, and the time line, which is kept on request: elements that enter and leave channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import observed as o
from ..core.protocol.source import place_of
from ..core.vocabulary.effects import Effect, SavePosition, Send
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


def note_read(runner: TaskRunner, effects: Sequence[Effect]) -> None:
    """Note the record that a source has read, if one is among the effects."""
    for effect in effects:
        sent = effect.then[0] if type(effect) is SavePosition and effect.then else effect
        if type(sent) is Send and type(sent.element) is Record:
            runner.log.reads.append(place_of(sent.element.origin))
            if runner.world.detailed:
                runner.world.observer.saw(
                    o.Timed("record-read", runner.name, runner.attempt, origin=sent.element.origin)
                )
            return


def show_sent(sender: TaskRunner, receiver: str, channel: str, position: int, element: Element) -> None:
    """An element has entered a channel at this position (from 0)."""
    sender.world.observer.saw(
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


def show_taken(runner: TaskRunner, what: str, channel: Inbound, element: Element, place: int = -1) -> None:
    """A task has taken the first element of a channel, or is about to take the one at this place of its queue."""
    runner.world.observer.saw(
        o.Timed(
            what,
            runner.name,
            runner.attempt,
            peer=channel.sender.name if channel.sender else "",
            channel=channel.name,
            position=channel.position(place),
            checkpoint=getattr(element, "checkpoint", None),
            origin=getattr(element, "origin", None),
        )
    )
