"""How an enumerator assigns splits (OPS-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..vocabulary.ids import TaskId
from ..vocabulary.state import EnumeratorState
from .part import Part


class Enumerating(Part):
    """How splits are assigned while a job runs, and assigned again after a failure (OPS-3)."""

    def holds_back(self, reader: TaskId, in_checkpoint: Sequence[TaskId]) -> bool:
        """Whether a reader gets no split now: from the enumerator's cut of a checkpoint until the reader's own cut,
        as long as it is one of `in_checkpoint`."""
        return reader in in_checkpoint

    def snapshot(self, unassigned: dict[int, int], assigned: dict[int, TaskId]) -> EnumeratorState:
        """An enumerator's state in a checkpoint, taken before any reader is triggered: a copy, since splits that are
        assigned later are in no reader's snapshot."""
        return EnumeratorState(unassigned=dict(unassigned), assigned=dict(assigned))

    def read_on(self, restored: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        """Of its restored splits, each with its position, those that a reader reads on: none that it hands back
        (`returned`), since such a split goes to a reader that asks."""
        return {split: position for split, position in restored.items() if split not in returned}

    def taken_back(self, unassigned: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        """The splits to be assigned, each with its position, once a restored reader has `returned` some: these too, and
        their next reader goes on where the snapshot has them."""
        return {**unassigned, **returned}
