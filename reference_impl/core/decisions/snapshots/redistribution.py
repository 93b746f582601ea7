"""Rescaling: which share of the old subtasks' states a new subtask takes (OPS-2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from ...job.key_groups import Place, owner
from ...vocabulary.ids import subtask_of
from ...vocabulary.messages import Piece
from ...vocabulary.state import Item as Held
from ...vocabulary.state import Passing, Sealed, TaskState
from ..part import Part

AnyItem = TypeVar("AnyItem")
States = Sequence[tuple[Piece, TaskState]]
"""Of an operator's old subtasks, in order."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The subtask whose share is taken, and the new parallelism."""

    subtask: int
    parallelism: int
    key_groups: int
    splits: tuple[int, ...] = ()
    """of a source: the splits that the subtask reads"""
    gates: tuple[int, ...] = ()
    """by channel, the input of the operator to which it belongs"""
    partitioning: tuple[str, ...] = ()
    """of each of the operator's inputs"""
    unchanged: bool = False
    """the parallelism is unchanged: each subtask has its own state again, and only unions are redistributed"""

    @property
    def place(self) -> Place:
        return Place(self.subtask, self.parallelism, self.key_groups)


class Redistribution(Part):
    """How the state of old subtasks is redistributed to the new ones."""

    def read(self, pieces: Sequence[Piece], share: Share) -> list[Piece]:
        """The pieces that a new subtask reads: those of all old subtasks."""
        return list(pieces)

    def entries(self, entries: Mapping[int, list[AnyItem]], share: Share) -> list[AnyItem]:
        """The share of keyed state, given by key group: that of the groups that the subtask owns."""
        owned = [group for group in entries if owner(group, share.key_groups, share.parallelism) == share.subtask]
        return [entry for group in sorted(owned) for entry in entries[group]]

    def positions(self, positions: Mapping[int, int], share: Share) -> dict[int, int]:
        """The share of the splits' positions: those of the splits that the subtask reads."""
        return {split: positions[split] for split in share.splits if split in positions}

    def transactions(self, sealed: Sequence[Sequence[Sealed]], share: Share) -> list[Sealed]:
        """The share of sealed transactions, given by old subtask: those whose writer has this subtask's number, modulo
        the parallelism.

        The writer counts, not the subtask that holds them.  So a writer that starts again finds its own transactions,
        and no other subtask takes them for left behind.
        """
        every = [transaction for held in sealed for transaction in held]
        return [one for one in every if subtask_of(one.writer) % share.parallelism == share.subtask]

    def is_in_flight(self, receivers: States, senders: States) -> bool:
        """Whether data in flight to an operator is redistributed: if elements were queued at its old subtasks, or
        unsent at their senders.  The operator may have no state of its own."""
        return any(state.queued for _, state in receivers) or any(state.unsent for _, state in senders)

    def in_order(self, queued: Sequence[Passing], unsent: Sequence[Passing]) -> list[Passing]:
        """The in-flight data of one old channel in order: the receiver's part came before the sender's."""
        return [*queued, *unsent]

    def shared(self, unions: Sequence[Sequence[Held]], share: Share) -> list[Held]:
        """The share of the items of unions, given by old subtask: all; the operator decides which it keeps."""
        return [item for held in unions for item in held]

    def broadcast(self, copies: Sequence[Sequence[Held]], share: Share) -> list[Held]:
        """The share of broadcast state, given by old subtask: one whole copy; at a consistent cut all are equal."""
        return list(copies[share.subtask % len(copies)]) if copies else []
