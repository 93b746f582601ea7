"""State of an operator that belongs to no key: a list, or a union list (OPS-2; FIN-1).

Both consist of items, each a name and a JSON text.  When a job is rescaled, the items
of a *list* are distributed over the new subtasks one by one; an operator must not rely on
which subtask gets which.  A *union* is offered to each subtask as a whole, at every
restore, and the operator's rule says which items are its own.  So an operator can keep
its own assignment of items to subtasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..job.key_groups import key_group, owner

Item = tuple[str, str]
"""(name, JSON text)"""


class Place(msgspec.Struct, frozen=True):
    """Which subtask an operator is, of how many."""

    subtask: int = 0
    parallelism: int = 1
    key_groups: int = 16

    def owns(self, key: int | None) -> bool:
        """Whether rows of a key come to it by hash."""
        return owner(key_group(key, self.key_groups), self.key_groups, self.parallelism) == self.subtask


def texts(name: str, items: Iterable[Sequence[object]]) -> list[Item]:
    """Items of a name, from what JSON can say."""
    return [(name, _encoder.encode(item).decode()) for item in items]


_encoder = msgspec.json.Encoder()
