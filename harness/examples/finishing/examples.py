"""The examples of the post on checkpoints after tasks finished (FLIP-147), in the order of the post."""

from __future__ import annotations

from .at_finish import COMMIT_AT_FINISH, DISCARD_AT_FINISH
from .draining import DRAIN_AFTER_SAVEPOINT
from .finished import FINISHED_OPERATORS_SNAPSHOT, MIXED_BOUNDED_UNBOUNDED
from .ways_to_finish import THREE_2PC_CHAIN, TWO_WAYS_TO_FINISH

ABOUT_FINISHING = (
    MIXED_BOUNDED_UNBOUNDED,
    FINISHED_OPERATORS_SNAPSHOT,
    TWO_WAYS_TO_FINISH,
    THREE_2PC_CHAIN,
    COMMIT_AT_FINISH,
    DISCARD_AT_FINISH,
    DRAIN_AFTER_SAVEPOINT,
)
