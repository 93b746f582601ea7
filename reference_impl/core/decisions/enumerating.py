"""How an enumerator assigns splits (OPS-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..vocabulary.ids import TaskId
from ..vocabulary.state import EnumeratorState
from .part import Part

EnumeratorStates = dict[str, EnumeratorState]
"""The state of every enumerator of a job, by source."""


class Enumerating(Part):
    """How splits are assigned while a job runs, and assigned again after a failure (OPS-3)."""

    def holds_back(self, reader: TaskId, in_checkpoint: Sequence[TaskId]) -> bool:
        """Whether a reader gets no split now: from the enumerator's cut of a checkpoint until the reader's own cut,
        as long as it is one of `in_checkpoint`."""
        return reader in in_checkpoint

    def recorded(self, at_trigger: EnumeratorStates, at_completion: EnumeratorStates) -> EnumeratorStates:
        """The enumerators' states in a checkpoint's record: those from before any reader was triggered."""
        return at_trigger

    def read_on(self, restored: Mapping[int, int], returned: Mapping[int, int]) -> dict[int, int]:
        """Of its restored splits, each with its position, those that a reader reads on: none that it hands back
        (`returned`), since such a split goes to a reader that asks."""
        return {split: position for split, position in restored.items() if split not in returned}

    def taken_back(self, returned: Mapping[int, int]) -> dict[int, int]:
        """Of the splits that restored readers hand back, those to be assigned again, each with its position."""
        return dict(returned)
