"""Rescaling: a job resumes at another parallelism, and each new subtask takes its share of the old states (OPS-2).

A snapshot records the parallelism at which it was taken.  When the job has another one,
each subtask reads the states of all old subtasks of its operator, finished ones included
(FIN-1), and takes its share: keyed state, windows and timers by key group, positions by
split, sealed transactions by the writer that began them, items of lists in turn.  Each of
these has exactly one new owner.  A union is offered to every subtask, also at an unchanged
parallelism.  Broadcast state was the same in all old subtasks; each new one takes one copy.

Channels cannot be mapped one to one.  Every new channel of an input begins with the least
watermark of the input's old channels, and every new task with the least of its operator's
old tasks.  A source sends its watermark again when it opens, so that no channel lags behind
for long.  A channel that was idle is idle again when its sender sends so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ...decisions.snapshots.redistribution import Redistribution, Share, States
from ...job.topology import key_group
from ...vocabulary.ids import Handle
from ...vocabulary.messages import Element, Piece
from ...vocabulary.state import BEGINNING, Item, Passing, TaskState, Timer, as_kept, read_back
from ...vocabulary.views import Entry
from ..in_flight_data.in_flight import with_rows
from .in_flight_redistribution import Before, shared_out


class Gathering:
    """The states of an operator's old subtasks, read by one of its new subtasks, in order."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        share: Share,
        own: Piece | None = None,
        senders: Sequence[Sequence[Piece]] = (),
    ) -> None:
        """`own` is the subtask's own piece, if the layout is unchanged; `senders` are the pieces of the old sending
        subtasks, by input."""
        self._own = own
        self._senders = [len(of_input) for of_input in senders]
        self._unread = [*pieces, *(piece for of_input in senders for piece in of_input)]
        self._share = share
        self._states: list[tuple[Piece, TaskState]] = []

    def next_handle(self) -> Handle | None:
        """The handle to read next; None when everything is read."""
        while self._unread and self._unread[0].state is not None:
            self.take(self._unread[0].state)
        return self._unread[0].handle if self._unread else None

    def take(self, state: TaskState) -> None:
        """The next state has been read."""
        self._states.append((self._unread.pop(0), state))

    @property
    def with_in_flight(self) -> tuple[TaskState, ...]:
        """The states whose data in flight is restored: all, or the own one when the parallelism is unchanged."""
        return tuple(state for piece, state in self._states if not self._share.unchanged or piece is self._own)

    def take_referred_to(self, elements: Sequence[Sequence[Element]]) -> None:
        """The elements of these references have been read."""
        remaining = iter(elements)
        mine = [not self._share.unchanged or piece is self._own for piece, _ in self._states]
        self._states = [
            (piece, with_rows(state, remaining) if needed else state)
            for needed, (piece, state) in zip(mine, self._states, strict=True)
        ]

    def state(self, redistribution: Redistribution) -> TaskState:
        """The subtask's share of all states."""
        if not self._share.unchanged:
            mine = len(self._states) - sum(self._senders)
            state = redistributed(self._states[:mine], self._share, redistribution)
            state.queued, state.replays = self._queued(self._states[:mine], self._states[mine:], redistribution)
            return state
        own = next((state for piece, state in self._states if piece is self._own), TaskState())
        unions = [state.shared for _, state in self._states]
        return msgspec.structs.replace(own, shared=redistribution.shared(unions, self._share))

    def _queued(
        self, receivers: States, senders: States, redistribution: Redistribution
    ) -> tuple[dict[int, list[Passing]], dict[int, list[int]]]:
        """By channel: its share of the operator's data in flight, and how often each element was put back before."""
        queued: dict[int, list[Passing]] = {}
        replays: dict[int, list[int]] = {}
        if not redistribution.is_in_flight(receivers, senders):
            return {}, {}
        remaining = iter(senders)
        for gate, wide in enumerate(self._senders):
            before = Before(gate, receivers, list(itertools.islice(remaining, wide)))
            if not before.is_anything():
                continue
            channels = [channel for channel, of in enumerate(self._share.gates) if of == gate]
            for times in before.replayed():
                lanes = before.lanes(redistribution.in_order, times)
                for number, lane in enumerate(shared_out(lanes, gate, self._share)):
                    channel = channels[number % len(channels)]
                    queued.setdefault(channel, []).extend(lane)
                    replays.setdefault(channel, []).extend([times] * len(lane) if times else ())
            time = before.last_watermark()
            for channel in channels if time > BEGINNING else ():
                queued.setdefault(channel, []).append((time,))
        return (
            {channel: passing for channel, passing in queued.items() if passing},
            {channel: times for channel, times in replays.items() if times},
        )


def redistributed(states: Sequence[tuple[Piece, TaskState]], share: Share, redistribution: Redistribution) -> TaskState:
    """The state with which a subtask starts: its share of the states of its operator's old subtasks."""
    old = [state for _, state in states]
    groups: dict[int, list[tuple[Entry, tuple[int, int] | None]]] = {}
    for kept in _panes(old):
        groups.setdefault(key_group(kept[0][1], share.key_groups), []).append(kept)
    timers: dict[int, list[Timer]] = {}
    for timer in (timer for state in old for timer in state.timers):
        timers.setdefault(key_group(timer[1], share.key_groups), []).append(timer)
    alarms: dict[int, list[Timer]] = {}
    for alarm in (alarm for state in old for alarm in state.alarms):
        alarms.setdefault(key_group(alarm[1], share.key_groups), []).append(alarm)
    held: dict[int, list[tuple[int | None, str, str]]] = {}
    for one in (one for state in old for one in state.held):
        held.setdefault(key_group(one[0], share.key_groups), []).append(one)
    mine = redistribution.entries(groups, share)
    maxima = _merged(state.maxima for state in old)
    return TaskState(
        positions=redistribution.positions(_merged(state.positions for state in old), share),
        entries=[entry for entry, _ in mine],
        panes=[pane for _, pane in mine if pane is not None],
        timers=redistribution.entries(timers, share),
        alarms=redistribution.entries(alarms, share),
        held=redistribution.entries(held, share),
        declared={name: what for state in old for name, what in state.declared.items()},
        transactions=as_kept(redistribution.transactions([read_back(state.transactions) for state in old], share)),
        listed=listed([state.listed for state in old], share),
        shared=redistribution.shared([state.shared for state in old], share),
        broadcast=redistribution.broadcast([state.broadcast for state in old], share),
        watermark=min((state.watermark for state in old), default=BEGINNING),
        times=_least_times(states, share.gates),
        idle=[split for state in old for split in state.idle if split in share.splits],
        maxima={split: maxima[split] for split in share.splits if split in maxima},
        serial=max((state.serial for state in old), default=0),
    )


def listed(lists: Sequence[Sequence[Item]], share: Share) -> list[Item]:
    """The share of the items of lists, given by old subtask: its own where there are as many subtasks as before, else
    every n-th one."""
    if len(lists) == share.parallelism:
        return list(lists[share.subtask])
    return [item for held in lists for item in held][share.subtask :: share.parallelism]


def _merged(maps: Iterable[Mapping[int, int]]) -> dict[int, int]:
    return {split: number for one in maps for split, number in one.items()}


def _panes(states: Sequence[TaskState]) -> Iterator[tuple[Entry, tuple[int, int] | None]]:
    """The keyed entries; for a window with the (end, origin) that entries do not hold."""
    for state in states:
        yield from itertools.zip_longest(state.entries, state.panes)


def _least_times(states: Sequence[tuple[Piece, TaskState]], gates: Sequence[int]) -> list[int]:
    """For each channel the least watermark of the old channels of its input; none without event time."""
    least: dict[int, int] = {}
    for piece, state in states:
        for gate, time in zip(piece.gates, state.times or [BEGINNING] * len(piece.gates), strict=True):
            least[gate] = min(time, least.get(gate, time))
    known = any(state.times for _, state in states)
    return [least.get(gate, BEGINNING) for gate in gates] if known else []
