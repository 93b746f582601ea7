"""What is said on a data channel: one connection from the sender's process to the receiver's; see `frames`."""

from __future__ import annotations

from ..core.ids import AttemptId
from ..core.messages import Element
from .frame import Frame


class Open(Frame):
    """The sender asks for a channel of an attempt."""

    channel: str
    attempt: AttemptId
    """the sender's"""
    whole: AttemptId = AttemptId(0)
    """with local recovery: the attempt of all tasks to which the channel belongs (UNA-4)"""


class Accepted(Frame):
    """The receiver has such a channel, and room for this many elements."""

    credits: int


class Refused(Frame):
    """It has not, or not yet: ask again."""

    reason: str


class Data(Frame):
    """One element; it uses one credit."""

    element: Element


class Credit(Frame):
    """The receiver has taken elements: there is room for as many more."""

    count: int


class Bye(Frame):
    """This end is going in order, cancelled or finished: the end that follows is no failure."""


class Welcome(Frame):
    """`Accepted` with local recovery: where an attempt of the receiver stands in the channel.  Numbers are
    those of the sender."""

    attempt: AttemptId
    expects: int
    """the number behind the last that has come"""
    taken: int
    """the number behind the last that was taken"""
    durable: int
    """below it all is in the channel's log"""
    received_place: int
    """the place behind the last that has come of this attempt of the sender; -1: none has"""


class Numbered(Frame):
    """One element of a channel that outlives the attempts at its ends; `place` counts all that this one has sent."""

    place: int
    number: int
    """-1: barriers and ends have none"""
    element: Element


class Taken(Frame):
    """The receiver has taken what comes before this number, and received what comes before `expects`."""

    number: int
    expects: int


class Durable(Frame):
    """What comes before this number is durable in the channel's log: nobody will ask for it again."""

    number: int


DataFrame = Open | Accepted | Refused | Data | Credit | Bye | Welcome | Numbered | Taken | Durable
