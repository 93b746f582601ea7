"""A two-phase-commit operator amid a job: it writes what it passes on.

Figure 4 of the post on FLIP-147 chains such tasks.  Each gathers rows in
transactions of its own, seals them at the barrier and commits them when the
checkpoint is complete, as a transactional sink does; and each row goes on
downstream at once, as in any operator.  With `together` the end of its data goes on at once too, so that a
whole chain of them waits for one final checkpoint (FIN-3).  With `one-by-one` it
says so only when it has committed and finishes itself, and each waits for a
checkpoint of its own.
"""

from __future__ import annotations

from .effects import Effect
from .messages import Record
from .sink import TransactionalSink


class TwoPhaseTask(TransactionalSink):
    """A transactional sink that hands its rows on."""

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        return [*super().on_record(record, channel), *self.emit((record,))]

    @property
    def holds_end(self) -> bool:
        return self.config.finishing == "one-by-one"
