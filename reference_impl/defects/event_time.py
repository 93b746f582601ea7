"""Groups J and L: watermarks and timers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.decisions.event_time import Firing, Watermarks
from ..core.decisions.snapshots.contents import SnapshotContents
from ..core.vocabulary.state import BEGINNING, TaskState, Timer
from .registry import Defect


class DropsLastWatermark(Watermarks):
    """J11: the end of data is sent, and the deferred watermark before it never is."""

    def of_splits(self, waited_for: Sequence[int]) -> int:
        self.reached = self.reached or not waited_for
        return min(waited_for, default=BEGINNING)


class ForgetsChannels(SnapshotContents):
    """L02: the channels' watermarks are missing from the snapshot; a restored task waits until each channel has
    sent one again."""

    def stored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or bool(state.times)
        return msgspec.structs.replace(state, times=[])

    def restored(self, state: TaskState) -> TaskState:
        return self.stored(state)


class StillLeftOutOnceActive(Watermarks):
    """L03: a channel that is active again is still left out of the least watermark."""

    def still_idle(self, idle: tuple[int, ...], channel: int) -> tuple[int, ...]:
        self.reached = self.reached or channel in idle
        return idle


class ForgetsTimers(SnapshotContents):
    """L06: timers are only in memory; a restored window waits for a record that sets one."""

    def stored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or bool(state.timers or state.alarms)
        return msgspec.structs.replace(state, timers=[], alarms=[])

    def restored(self, state: TaskState) -> TaskState:
        return self.stored(state)


class FiresAndKeeps(Firing):
    """L07: a timer that has fired is not removed, neither from the task nor from the snapshot."""

    def left(self, pending: Sequence[Timer], watermark: int) -> list[Timer]:
        self.reached = self.reached or len(super().left(pending, watermark)) < len(pending)
        return list(pending)


class TakesGreatest(Watermarks):
    """L08: of several watermarks the wrong one is chosen: the greatest, not the least."""

    def of_inputs(self, waited_for: Sequence[int]) -> int:
        self.reached = self.reached or len(waited_for) > 1
        return max(waited_for) if waited_for else super().of_inputs(waited_for)


class ForgetsActivity(Watermarks):
    """L09: only the end of idleness counts as activity, not each record of a split."""

    def __init__(self) -> None:
        self._idle: tuple[int, ...] = ()

    def become_idle(self, unread: Sequence[int], read: Sequence[int]) -> tuple[int, ...]:
        woken = [split for split in read if split in self._idle]
        self.reached = self.reached or len(woken) < len(read)
        idle = super().become_idle(unread, woken)
        self._idle = (*(split for split in self._idle if split not in unread), *idle)
        return idle


class ForgetsMaxima(SnapshotContents):
    """L10: a source's event time is missing from its snapshot."""

    def stored(self, state: TaskState) -> TaskState:
        self.reached = self.reached or bool(state.maxima)
        return msgspec.structs.replace(state, maxima={})

    def restored(self, state: TaskState) -> TaskState:
        return self.stored(state)


DEFECTS = (
    Defect(
        id="J11",
        upstream="FLINK-39481 (39930)",
        title="the end of data overtakes a deferred watermark",
        invariant="drain",
        replacements=lambda: {"watermarks": DropsLastWatermark()},
    ),
    Defect(
        id="L02",
        upstream="FLINK-18064 docs / FLINK-5601 / FLINK-4616",
        title="a restored task has lost the watermarks of its channels",
        invariant="consistent-cut",
        replacements=lambda: {"snapshot_contents": ForgetsChannels()},
    ),
    Defect(
        id="L03",
        upstream="FLINK-40475",
        title="a channel that is active again is left out of the least watermark",
        invariant="exactly-once",
        replacements=lambda: {"watermarks": StillLeftOutOnceActive()},
    ),
    Defect(
        id="L06",
        upstream="BYTEWAX#138",
        title="timers are missing from the snapshot",
        invariant="consistent-cut",
        replacements=lambda: {"snapshot_contents": ForgetsTimers()},
    ),
    Defect(
        id="L07",
        upstream="BYTEWAX cca30427",
        title="a timer is not removed when it has fired",
        invariant="consistent-cut",
        replacements=lambda: {"firing": FiresAndKeeps()},
    ),
    Defect(
        id="L08",
        upstream="RISINGWAVE#25547",
        title="the greatest of several restored watermarks is chosen, not the least",
        invariant="exactly-once",
        replacements=lambda: {"watermarks": TakesGreatest()},
    ),
    Defect(
        id="L09",
        upstream="FLINK-34252",
        title="an active split is taken for idle",
        invariant="exactly-once",
        replacements=lambda: {"watermarks": ForgetsActivity()},
    ),
    Defect(
        id="L10",
        upstream="SPARK-18513 / SPARK-24699",
        title="a source's event time is missing from the snapshot",
        invariant="consistent-cut",
        replacements=lambda: {"snapshot_contents": ForgetsMaxima()},
    ),
)
