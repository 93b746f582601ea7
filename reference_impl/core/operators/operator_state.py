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

from ..vocabulary.state import Item


def texts(name: str, items: Iterable[Sequence[object]]) -> list[Item]:
    """Items of a name, from what JSON can say."""
    return [(name, _encoder.encode(item).decode()) for item in items]


_encoder = msgspec.json.Encoder()
