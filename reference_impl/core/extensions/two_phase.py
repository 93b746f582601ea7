"""A two-phase operator: in the middle of a job, it commits the rows that it passes on.

Figure 4 of the post on FLIP-147 chains such tasks.  Each gathers rows in transactions of
its own, seals them at the barrier and commits them when the checkpoint is complete, as a
transactional sink does.  It also emits each row at once, as any operator does.

With `together` it emits the end of its data at once too, so that a whole chain of such
tasks waits for one final checkpoint (FIN-3).  With `one-by-one` it emits the end only when
it has committed and finishes, so that each task waits for a checkpoint of its own.
"""

from __future__ import annotations

from ..job.config import Config
from ..protocol.sink import TransactionalSink
from ..vocabulary.effects import Effect
from ..vocabulary.messages import Record


class TwoPhaseOperator(TransactionalSink):
    """A transactional sink that also emits its rows."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.holds_end = config.finishing == "one-by-one"

    def on_record(self, record: Record, channel: int) -> list[Effect]:
        return [*super().on_record(record, channel), *self.task.emit((record,))]
