"""Redistribution of in-flight data when a job is rescaled (FLIP-76).

The snapshot holds the data in flight on an edge in two places: in the input queues of
the receiving operator's old subtasks, and in the outputs of the sending operator's old
subtasks.  All of it goes to the new subtasks of the receiving operator, before any new
data; the new senders send none of it again.  On a hash edge each new subtask takes the
records whose keys it owns, on a rebalance edge those whose turn it is.

Everything in flight from one old sender stays in one channel and in its order.  Of each
old channel the receiver's records come first, then the sender's.  Records that an earlier
restore had put back, and that were not taken since, come before all others.

Watermarks cannot be mapped to the new channels.  Behind the records each new channel gets
the least of the old senders' last watermarks; no record redistributed here is late for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...decisions.snapshots.redistribution import Share, States
from ...job.key_groups import key_group, owner
from ...vocabulary.messages import Piece
from ...vocabulary.state import BEGINNING, Passing

Channel = tuple[Sequence[Passing], Sequence[int], Sequence[Passing]]
InOrder = Callable[[Sequence[Passing], Sequence[Passing]], list[Passing]]


class Before:
    """The data in flight on one input of an operator, at the old parallelism."""

    def __init__(self, gate: int, receivers: States, senders: States) -> None:
        self._gate = gate
        self._receivers = receivers
        self._senders = senders

    def is_anything(self) -> bool:
        """Whether anything was in flight."""
        return any(queued or unsent for queued, _, unsent in self._channels())

    def replayed(self) -> list[int]:
        """How often elements were put back before, each number once, from the highest down to 0."""
        return sorted({0, *(one for _, replays, _ in self._channels() for one in replays)}, reverse=True)

    def lanes(self, in_order: InOrder, replayed: int = 0) -> list[list[Passing]]:
        """By old sender: its records in flight that had been put back `replayed` times.  `in_order` joins the two parts
        of one channel."""
        return [
            [one for lane in self._of_sender(sender, in_order, replayed) for one in lane]
            for sender, _ in enumerate(self._senders)
        ]

    def _of_sender(self, sender: int, in_order: InOrder, replayed: int) -> Iterator[list[Passing]]:
        for queued, replays, unsent in self._channels_of(sender):
            times = itertools.chain(replays, itertools.repeat(0))
            so_often = [one for one, often in zip(queued, times, strict=False) if often == replayed]
            yield in_order(so_often, [] if replayed else unsent)

    def _channels(self) -> Iterator[Channel]:
        for sender, _ in enumerate(self._senders):
            yield from self._channels_of(sender)

    def _channels_of(self, sender: int) -> Iterator[Channel]:
        """Of each channel of an old sender: the queued records, how often each was put back, and the unsent records."""
        for receiver, (piece, state) in enumerate(self._receivers):
            channel = self._channel(piece, sender)
            unsent = self._senders[sender][1].unsent.get(receiver, [])
            yield state.queued.get(channel, []), state.replays.get(channel, []), unsent

    def last_watermark(self) -> int:
        """The least of the old senders' last watermarks, received or still in flight."""
        return min(
            (time for sender, _ in enumerate(self._senders) for time in self._watermarks_of(sender)), default=BEGINNING
        )

    def _watermarks_of(self, sender: int) -> Iterator[int]:
        for receiver, (piece, state) in enumerate(self._receivers):
            channel = self._channel(piece, sender)
            under_way = [*state.queued.get(channel, ()), *self._senders[sender][1].unsent.get(receiver, ())]
            received = state.times[channel] if state.times else BEGINNING
            yield max([received, *(one[0] for one in under_way if len(one) == 1 and one[0] is not None)])

    def _channel(self, piece: Piece, sender: int) -> int:
        """An old receiver's number for its channel from an old sender."""
        of_gate = (channel for channel, gate in enumerate(piece.gates) if gate == self._gate)
        return next(itertools.islice(of_gate, sender, None))


def shared_out(lanes: Sequence[Sequence[Passing]], gate: int, share: Share) -> list[list[Passing]]:
    """A new subtask's share of the records in flight on one input, by old sender."""
    if share.partitioning[gate] == "hash":
        return [owned(lane, share.subtask, share.parallelism, share.key_groups) for lane in lanes]
    next_subtask = itertools.cycle(range(share.parallelism))
    return [[one for one in lane if is_record(one) and next(next_subtask) == share.subtask] for lane in lanes]


def is_record(one: Passing) -> bool:
    return len(one) > 1


def owned(passing: Iterable[Passing], subtask: int, parallelism: int, key_groups: int) -> list[Passing]:
    """Of records in flight over a hash edge: those whose keys a subtask owns."""
    records = (one for one in passing if is_record(one))
    return [one for one in records if owner(key_group(one[0], key_groups), key_groups, parallelism) == subtask]
