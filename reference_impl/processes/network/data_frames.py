"""The frames of a data channel: one connection from the sender's process to the receiver's; see `frames`."""

from __future__ import annotations

from ...core.vocabulary.ids import AttemptId
from ...core.vocabulary.messages import Element
from .frame import Frame


class Open(Frame):
    """The sender asks for a channel of an attempt."""

    channel: str
    attempt: AttemptId
    """the sender's"""
    whole: AttemptId | None = None
    """with local recovery: the attempt of all tasks to which the channel belongs (UNA-4)"""


class Accepted(Frame):
    """The receiver has such a channel, and room for this many elements."""

    credits: int


class Refused(Frame):
    """The receiver does not have the channel, or not yet: the sender is to ask again."""

    reason: str


class Data(Frame):
    """One element; it uses one credit."""

    element: Element


class Credit(Frame):
    """The receiver has taken elements: there is room for as many more."""

    count: int


class Bye(Frame):
    """The sender ends in order, cancelled or finished: the end of the connection that follows is no failure."""


class Welcome(Frame):
    """`Accepted` with local recovery: where an attempt of the receiver stands in the channel.  The numbers are those of
    the sender."""

    attempt: AttemptId
    expects: int
    """one more than the number of the last element that has arrived"""
    taken: int
    """one more than the number of the last element that was taken"""
    durable: int
    """every element below this number is in the channel's log"""
    received_place: int
    """the place behind the last element that has arrived of this attempt of the sender; 0: none has"""


class Numbered(Frame):
    """One element of a channel that outlives the attempts at its ends; `place` counts all elements that this attempt
    has sent."""

    place: int
    number: int | None
    """barriers and ends have none"""
    element: Element


class Taken(Frame):
    """The receiver has taken every element below this number, and received every element below `expects`."""

    number: int
    expects: int


class Durable(Frame):
    """Every element below this number is durable in the channel's log: nobody will ask for it again."""

    number: int


DataFrame = Open | Accepted | Refused | Data | Credit | Bye | Welcome | Numbered | Taken | Durable
