"""Faults on data channels, injected by a real proxy.  A fault counts as fired once a receiver has felt it.

Each fault heals: its toxic is removed, or its proxy opened again.  A proxy server that
does not obey a request is replaced, and the other faults on it are applied again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .....faults.injectors.toxics import Latency, Limit, Reset, Slice, Stall, Timeout, Toxic
from .....faults.injectors.toxiproxy import ToxiproxyFailed
from .....reference_impl import observed as o
from .....reference_impl.core.vocabulary.ids import ends_of
from .....reference_impl.processes.loop import monotonic_us
from .....reference_impl.processes.network.frames import Broke, Felt
from ....toxiproxy.server import ProxyServer
from ..context import Context

SHARE_FELT = 0.6
"""a message must be late by at least this share of an injected delay"""
LEAST_HELD_US = 10_000
"""the shortest time under way of a message that a stall held back; other messages are faster"""
LEAST_PIECES = 3
GRACE_US = 1_000_000
"""of the machine's clock: how long the harness waits for a connection to break"""
LIMITED_US = 3_000_000
"""of the machine's clock: how long the harness waits for the bytes after which a connection closes"""
SLICE_PAUSE_US = 300
ANY = "*"


class Watch(msgspec.Struct, kw_only=True):
    """How the effect of a fault on a channel is recognised.  Times are stamps, in µs of the machine's clock."""

    fault: int
    channel: str
    felt: Callable[[Watch, Felt], bool] | None = None
    """whether a report of the receiver shows the fault; None: the fault shows when the connection breaks"""
    detail: str
    since: int
    until: int | None = None
    least_us: int = 0
    pieces: dict[int, int] = {}
    """by attempt: the receiver's count of pieces when the fault began, or in its first report afterwards"""
    done: Callable[[], None] | None = None
    """called when the connection has broken"""


class ChannelFaults:
    """The faults of one run on its channels."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watches: list[Watch] = []
        self._pieces: dict[tuple[str, int], int] = {}
        self._at_work = 0
        """the fault for which the proxy server receives the current request"""
        if context.config.felt:
            context.services.proxies.before_recovery = self._all_will_break

    # -- what is felt ----------------------------------------------------------------

    def felt(self, frame: Felt) -> None:
        for watch in list(self._watches):
            if watch.channel == frame.channel and watch.felt is not None and watch.felt(watch, frame):
                self._watches.remove(watch)
                self._fired(watch, frame)
        self._pieces[(frame.channel, frame.attempt)] = frame.pieces

    def broke(self, frame: Broke) -> None:
        """A connection has ended.  If its sender has ended, a fault on the connection is not the cause."""
        sender = ends_of(frame.channel).sender
        if self._context.facts.attempt_of(sender) != frame.attempt:
            return
        for watch in list(self._watches):
            if watch.felt is None and watch.channel in (frame.channel, ANY) and frame.stamp > watch.since:
                self._watches.remove(watch)
                self._fired(watch, frame)
                if watch.done is not None:
                    watch.done()
                return
        # No planned fault explains this.  Perhaps another program has changed a proxy, which breaks its connections.
        self._context.services.check_proxies()

    def _fired(self, watch: Watch, frame: Felt | Broke) -> None:
        struck = o.StruckChannel(watch.channel) if watch.channel != ANY else None
        self._context.fired(watch.fault, watch.detail, frame.attempt, struck, stamp=frame.stamp)

    # -- what passes late, or in pieces ------------------------------------------------

    def delay(self, fault: int, sender: str, receiver: str, by_us: int, for_us: int) -> bool:
        real_us = max(1_000, self._context.real(by_us))
        watch = self._watch(fault, sender, receiver, f"messages come {real_us // 1000} ms later", _late)
        watch.least_us = int(real_us * SHARE_FELT)
        return self._lasting(watch, Latency(ms=real_us // 1000), for_us)

    def stall(self, fault: int, sender: str, receiver: str, for_us: int) -> bool:
        watch = self._watch(fault, sender, receiver, "nothing passes", _held)
        return self._lasting(watch, Stall(), for_us)

    def slice(self, fault: int, sender: str, receiver: str, size: int, for_us: int) -> bool:
        watch = self._watch(fault, sender, receiver, f"the bytes arrive in pieces of {size}", _in_pieces)
        channel = watch.channel
        watch.pieces = {attempt: count for (name, attempt), count in self._pieces.items() if name == channel}
        return self._lasting(watch, Slice(average_size=size, delay_us=SLICE_PAUSE_US), for_us)

    def _watch(
        self, fault: int, sender: str, receiver: str, detail: str, felt: Callable[[Watch, Felt], bool] | None
    ) -> Watch:
        channel = f"{sender}>{receiver}"
        return Watch(fault=fault, channel=channel, felt=felt, detail=f"{channel}: {detail}", since=monotonic_us())

    def _lasting(self, watch: Watch, toxic: Toxic, for_us: int) -> bool:
        if not self._add(watch, toxic):
            return False
        self._watches.append(watch)
        self._context.heal_after(self._context.real(for_us), watch.fault, lambda: self._end(watch))
        return True

    def _end(self, watch: Watch) -> None:
        watch.until = monotonic_us()
        self._remove(watch)

    # -- what breaks -------------------------------------------------------------------

    def cut(self, fault: int, sender: str, receiver: str) -> bool:
        watch = self._watch(fault, sender, receiver, "the connection breaks", None)
        if not self._is_live(watch.channel):
            return False
        if not self._close(watch):
            self._context.journal.saw(o.FaultHealed(fault))
            return False
        self._until_broken(watch, lambda: self._proxies.open_again(watch.channel), GRACE_US)
        return True

    def reset(self, fault: int, sender: str, receiver: str, for_us: int) -> bool:
        watch = self._watch(fault, sender, receiver, "the connection is reset", None)
        if not self._add(watch, Reset(ms=0)):
            return False
        self._watches.append(watch)
        if self._close(watch):
            self._proxies.open_again(watch.channel)
        self._context.heal_after(self._context.real(for_us), fault, lambda: self._remove(watch))
        return True

    def limit(self, fault: int, sender: str, receiver: str, size: int) -> bool:
        watch = self._watch(fault, sender, receiver, f"the connection closes after {size} bytes", None)
        return self._once(watch, Limit(bytes=size), LIMITED_US)

    def timeout(self, fault: int, sender: str, receiver: str, after_us: int) -> bool:
        real_us = max(1_000, self._context.real(after_us))
        watch = self._watch(fault, sender, receiver, "all bytes are dropped, and the connection closes", None)
        return self._once(watch, Timeout(ms=real_us // 1000), real_us + GRACE_US)

    def _once(self, watch: Watch, toxic: Toxic, within_us: int) -> bool:
        """Add a toxic, and remove it when it has broken a connection or `within_us` is over."""
        if not self._add(watch, toxic):
            return False
        self._context.journal.saw(o.Breaks(watch.fault, watch.channel))
        self._until_broken(watch, lambda: self._remove(watch), within_us)
        return True

    def _until_broken(self, watch: Watch, undo: Callable[[], None], within_us: int) -> None:
        """Undo a fault when it is felt or `within_us` is over."""
        context = self._context
        over = False

        def act(*_: object) -> None:
            nonlocal over
            if not over:
                over = True
                undo()
                context.has_healed(watch.fault)

        watch.done = act
        self._watches.append(watch)
        context.will_heal(watch.fault)
        context.loop.at(monotonic_us() + within_us, act)

    def waits_for_all(self, fault: int, detail: str) -> None:
        """The proxy server is about to die: the fault shows when any connection breaks."""
        self._context.journal.saw(o.Breaks(fault, ANY))
        self._watches.append(Watch(fault=fault, channel=ANY, detail=detail, since=monotonic_us()))

    # -- the proxies -------------------------------------------------------------------

    def _is_there(self, channel: str) -> bool:
        """Whether a channel has a proxy that takes requests."""
        return channel in self._context.config.felt and self._proxies.is_up

    def _is_live(self, channel: str) -> bool:
        """Whether a channel has such a proxy, and both its tasks live."""
        if not self._is_there(channel):
            return False
        facts = self._context.facts
        return all(facts.attempt_of(end) is not None for end in self._context.placement.channels[channel])

    @property
    def _proxies(self) -> ProxyServer:
        return self._context.services.proxies

    def _add(self, watch: Watch, toxic: Toxic) -> bool:
        if not self._is_there(watch.channel):
            return False
        self._at_work = watch.fault
        try:
            self._proxies.add(f"fault-{watch.fault}", watch.channel, toxic)
        except ToxiproxyFailed as error:
            self._proxies.recover(error)
            # this fault does not explain a connection that breaks much later
            self._context.journal.saw(o.FaultHealed(watch.fault))
            return False
        return True

    def _remove(self, watch: Watch) -> None:
        self._at_work = watch.fault
        self._proxies.remove(f"fault-{watch.fault}")

    def _close(self, watch: Watch) -> bool:
        self._at_work = watch.fault
        self._context.journal.saw(o.Breaks(watch.fault, watch.channel))
        try:
            self._proxies.close_connections(watch.channel)
        except ToxiproxyFailed as error:
            self._proxies.recover(error)
            return False
        return True

    def _all_will_break(self) -> None:
        """The proxy server is about to be replaced, which breaks connections that the fault does not target."""
        self._context.journal.saw(o.Breaks(self._at_work, ANY))


def _sent(frame: Felt) -> int:
    """The stamp at which the element was sent."""
    return frame.stamp - frame.transit_us


def _late(watch: Watch, frame: Felt) -> bool:
    return frame.transit_us >= watch.least_us and _sent(frame) >= watch.since


def _held(watch: Watch, frame: Felt) -> bool:
    """Whether the element was sent during the stall and arrived when the stall ended."""
    return (
        watch.until is not None
        and frame.transit_us >= LEAST_HELD_US
        and watch.since <= _sent(frame) <= watch.until
        and frame.stamp >= watch.until - LEAST_HELD_US
    )


def _in_pieces(watch: Watch, frame: Felt) -> bool:
    if watch.until is not None and _sent(frame) > watch.until:
        return False
    before = watch.pieces.setdefault(frame.attempt, 0 if watch.pieces else frame.pieces)
    return frame.pieces - before >= LEAST_PIECES
