"""One fault of a proxy while it lasts: the toxic it consists of, and what shows that it was felt."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ....faults.injectors.toxics import Latency, Limit, Reset, Slice, Stall, Timeout, Toxic
from ....faults.plan import (
    ChannelFault,
    CutChannel,
    DelayChannel,
    LimitChannel,
    ResetChannel,
    SliceChannel,
    StallChannel,
    TimeoutChannel,
    kind_of,
)
from ....properties.model.words import plural
from ..description import BREAKING, CLIENT
from ..watches import Recovery
from .connections import Socket
from .flow import Flow

HELD_S = 0.02
"""bytes that have not gone on for so long are not merely on their way"""
GRACE_S = 1.0
"""how much longer than its time a fault waits for a connection to close"""
LIMITED_S = 3.0
"""how long a limit waits for the bytes after which a connection closes"""
SLICE_PAUSE_US = 300


class Disturbance:
    """A fault that is in force.  Times are those of `time.monotonic`."""

    def __init__(
        self,
        number: int,
        fault: ChannelFault,
        flow: Flow,
        *,
        aim: str,
        work: str,
        recovery: Recovery | None,
        now: float,
    ) -> None:
        self.number = number
        """of the fault in its scenario"""
        self.fault = fault
        self.flow = flow
        self.aim = aim
        """what it had waited for"""
        self.work = work
        """what the pipeline had been given and had put out as it began, in words"""
        self.recovery = recovery
        """what shows that the pipeline noticed it, and continued"""
        self.began = now
        self.ends = now + _lasts_s(fault)
        self.is_felt = False
        self._held_since: float | None = None
        """since when bytes have come that have not gone on"""
        self._holds = False

    @property
    def breaks(self) -> bool:
        """Whether connections break."""
        return kind_of(self.fault) in BREAKING

    @property
    def is_over(self) -> bool:
        """Whether it has done all that it does, before its time has come."""
        if isinstance(self.fault, LimitChannel):
            return self.is_felt
        return isinstance(self.fault, TimeoutChannel) and self.flow.closed > 0

    def look(self, sockets: Sequence[Socket], inodes: Collection[int], now: float) -> None:
        """Take in how the connections are now; `inodes` are the sockets of the server."""
        self.flow.look(sockets, inodes)
        self._held_since = (self._held_since or now) if self.flow.held else None
        self._holds = self._held_since is not None and now - self._held_since >= HELD_S

    def felt(self) -> str:
        """What the connections have felt, in words; empty if nothing shows that they felt anything."""
        came, held = plural(self.flow.bytes, "byte"), plural(self.flow.held, "byte")
        closed, name = self.flow.closed, proxy_of(self.fault)
        match self.fault:
            case CutChannel() | ResetChannel() if closed:
                return f"{plural(closed, 'connection')} through the proxy {name} closed"
            case LimitChannel(bytes=most) if closed or self.flow.bytes > most:
                return f"connections through the proxy {name} close after {plural(most, 'byte')}"
            case TimeoutChannel() if self._holds:
                return f"the proxy {name} dropped {held}"
            case TimeoutChannel() if closed:
                return f"{plural(closed, 'connection')} through the proxy {name} closed"
            case StallChannel() if self._holds:
                return f"the proxy {name} held back {held}"
            case DelayChannel(by_us=by_us) if self.flow.bytes:
                return f"{came} passed the proxy {name} {by_us // 1000} ms later"
            case SliceChannel(size=size) if self.flow.bytes > size:
                return f"{came} passed the proxy {name} in pieces of {plural(size, 'byte')}"
        return ""


def proxy_of(fault: ChannelFault) -> str:
    """The name of the proxy that a fault is of."""
    return fault.receiver if fault.sender == CLIENT else fault.sender


def may_be_noticed(fault: ChannelFault) -> bool:
    """Whether a pipeline may lose a connection by it, and has to continue from something of its own: bytes that only
    come later, or in pieces, exercise nothing of that."""
    return not isinstance(fault, DelayChannel | SliceChannel)


def towards_upstream(fault: ChannelFault) -> bool:
    """Whether a fault hits what clients send, and not what comes back."""
    return fault.sender == CLIENT


def toxic_of(fault: ChannelFault) -> Toxic | None:
    """What is set on the proxy; None if the proxy is closed."""
    match fault:
        case DelayChannel(by_us=by_us):
            return Latency(ms=max(1, by_us // 1000))
        case StallChannel():
            return Stall()
        case SliceChannel(size=size):
            return Slice(average_size=size, delay_us=SLICE_PAUSE_US)
        case LimitChannel(bytes=most):
            return Limit(bytes=most)
        case TimeoutChannel(after_us=after_us):
            return Timeout(ms=max(1, after_us // 1000))
        case ResetChannel():
            return Reset(ms=0)
    return None


def _lasts_s(fault: ChannelFault) -> float:
    """How long a fault is in force, in seconds."""
    match fault:
        case LimitChannel():
            return LIMITED_S
        case TimeoutChannel(after_us=after_us):
            return after_us / 1e6 + GRACE_S
    return getattr(fault, "for_us", 0) / 1e6
