"""Group D, and one of C: how state and data in flight are redistributed when a job is rescaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.decisions.snapshots.redistribution import AnyItem, Redistribution, Share, States
from ...core.vocabulary.messages import Piece
from ...core.vocabulary.state import Item as Held
from ...core.vocabulary.state import Passing, Sealed
from ..registry import Defect


class UnsentFirst(Redistribution):
    """C07: the two parts of an old channel change places: the sender's records are restored before the receiver's."""

    def in_order(self, queued: Sequence[Passing], unsent: Sequence[Passing]) -> list[Passing]:
        self.reached = self.reached or bool(queued and unsent)
        return [*unsent, *queued]


class OnlyWithOwnState(Redistribution):
    """D01: an operator without state receives none of its in-flight data."""

    def is_in_flight(self, receivers: States, senders: States) -> bool:
        stateful = any(state.entries or state.transactions or state.held or state.listed for _, state in receivers)
        self.reached = self.reached or not stateful
        return stateful and super().is_in_flight(receivers, senders)


class ShiftedByEmpty(Redistribution):
    """D07: the parallelism is unchanged, but the place of an empty subtask is dropped from the list, so that the
    state of all later subtasks moves."""

    def transactions(self, sealed: Sequence[Sequence[Sealed]], share: Share) -> list[Sealed]:
        if len(sealed) != share.parallelism:
            return super().transactions(sealed, share)
        held = [one for one in sealed if one]
        self.reached = self.reached or held != list(sealed[: len(held)])
        return list(held[share.subtask]) if share.subtask < len(held) else []


class RoundRobin(Redistribution):
    """D09: positions and items of unions are redistributed round robin, although splits belong to readers by
    number, and keys to subtasks by key group."""

    def positions(self, positions: Mapping[int, int], share: Share) -> dict[int, int]:
        of_the_list = dict(list(positions.items())[share.subtask :: share.parallelism])
        self.reached = self.reached or any(split not in of_the_list for split in share.splits if positions.get(split))
        return {split: of_the_list[split] for split in share.splits if split in of_the_list}

    def shared(self, unions: Sequence[Sequence[Held]], share: Share) -> list[Held]:
        every = super().shared(unions, share)
        self.reached = self.reached or bool(every)
        return every[share.subtask :: share.parallelism]


class OnlyWhereItWas(Redistribution):
    """D08: broadcast state is restored subtask by subtask; a subtask that did not exist before begins with none."""

    def broadcast(self, copies: Sequence[Sequence[Held]], share: Share) -> list[Held]:
        there = share.subtask < len(copies)
        self.reached = self.reached or (not there and any(copies))
        return list(copies[share.subtask]) if there else []


class NeighboursGroup(Redistribution):
    """D11: for a key group that was never written, the bytes at its supposed place are read: those of the next
    group."""

    def entries(self, entries: Mapping[int, list[AnyItem]], share: Share) -> list[AnyItem]:
        filled = {group: entries.get(group) or entries.get(group + 1, []) for group in range(share.key_groups)}
        mine = super().entries(filled, share)
        self.reached = self.reached or mine != super().entries(entries, share)
        return mine


class NewIndicesOnly(Redistribution):
    """D14: only the snapshots of old subtasks whose numbers still exist are used."""

    def read(self, pieces: Sequence[Piece], share: Share) -> list[Piece]:
        self.reached = self.reached or len(pieces) > share.parallelism
        return super().read(pieces[: share.parallelism], share)


DEFECTS = (
    Defect(
        id="C07",
        upstream="FLINK-38216 (invariant)",
        title="in-flight data of sender and receiver is restored in the wrong order",
        invariant="restored-state",
        replacements=lambda: {"redistribution": UnsentFirst()},
    ),
    Defect(
        id="D01",
        upstream="FLINK-31963 / FLINK-27031",
        title="an operator without state receives none of its in-flight data",
        invariant="restored-state",
        replacements=lambda: {"redistribution": OnlyWithOwnState()},
    ),
    Defect(
        id="D07",
        upstream="FLINK-11618",
        title="list state moves to other subtasks although the parallelism is unchanged",
        invariant="restored-state",
        replacements=lambda: {"redistribution": ShiftedByEmpty()},
    ),
    Defect(
        id="D08",
        upstream="FLINK-23475 / FLINK-38131",
        title="broadcast state is restored only to subtasks that existed before",
        invariant="restored-state",
        replacements=lambda: {"redistribution": OnlyWhereItWas()},
    ),
    Defect(
        id="D09",
        upstream="FLINK-4821 / PAIMON#746",
        title="positions and union items are redistributed round robin, and not to their owners",
        invariant="restored-state",
        replacements=lambda: {"redistribution": RoundRobin()},
    ),
    Defect(
        id="D11",
        upstream="FLINK-19748",
        title="a key group that was never written is read from the place of the next one",
        invariant="restored-state",
        replacements=lambda: {"redistribution": NeighboursGroup()},
    ),
    Defect(
        id="D14",
        upstream="BEAM#25975",
        title="with a lower parallelism some splits are not assigned",
        invariant="restored-state",
        replacements=lambda: {"redistribution": NewIndicesOnly()},
    ),
)
