"""A task's program order as a history has it, recorded from the task's runner while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....properties.model import history as h
from ....reference_impl.core.ids import CheckpointId
from ....reference_impl.trace import Appendable
from .dated import Dated

if TYPE_CHECKING:
    from .recorder import Recorder


class RunLog:
    """The program order of one attempt of one task, as it grows."""

    def __init__(self, recorder: Recorder, run: h.TaskRun) -> None:
        self._recorder = recorder
        self._run = run
        self.dated = run.operator in recorder.dated
        self.reads: Appendable[tuple[int, int]] = run.reads
        if self.dated:
            self.reads = Dated(run.reads, run.read_at, recorder.now)
        self.applies = run.applies

    def marked(self, checkpoint: CheckpointId, received: list[int], sent: list[int]) -> None:
        recorder, run = self._recorder, self._run
        run.marks.append(
            h.Mark(
                checkpoint=checkpoint,
                order=recorder.order(),
                at_us=recorder.now(),
                reads=len(run.reads),
                applies=len(run.applies),
                received=received,
                sent=sent,
                events=recorder.events(),
                watermarks=len(run.watermarks),
                ticks=len(run.ticks),
            )
        )
        recorder.show("snapshot-taken", run, checkpoint)

    def advanced(self, time: int) -> None:
        self._run.watermarks.append((len(self._run.reads) + len(self._run.applies), time))
        if self.dated:
            self._run.advanced_at.append(self._recorder.now())

    def ticked(self, time: int) -> None:
        self._run.ticks.append((len(self._run.applies), time))

    def assigned(self, splits: Mapping[int, int]) -> None:
        run = self._run
        known = {split for _, split, _ in run.assigned}
        for split in sorted(splits.keys() - known):
            run.assigned.append((len(run.reads), split, splits[split]))

    def restored(self, checkpoint: CheckpointId, state: str) -> None:
        run = self._run
        before = len(run.applies) + len(run.reads)
        run.loaded = h.Loaded(checkpoint=checkpoint, order=self._recorder.order(), applies_before=before, state=state)
        self._recorder.keeps(state)
        self._recorder.show("state-loaded", run, checkpoint)

    def input_ended(self) -> None:
        self._run.end_of_data = True

    def ended(self, how: str) -> None:
        self._run.ended = self._recorder.order()
        self._run.how = how
        self._recorder.show("ended", self._run, None, how)
