"""The observer port: what a world lets be seen while it runs the core.

A world calls the observer, never the other way round, and nothing of the
protocol depends on it.  Per-record happenings are appended to what a `TaskLog`
and `ChannelLog` hold, which the observer hands out: lists, or what takes an
append as they do, so that watching a record costs an append.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from .core.vocabulary.events import CompletedSnapshot
from .core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId, Tasks
from .core.vocabulary.transactions import AnyRequest, Outcome, Row

Item = TypeVar("Item", contravariant=True)


class Appendable(Protocol[Item]):
    """What is asked of a list here."""

    def append(self, item: Item, /) -> None: ...

    def pop(self) -> object:
        """Take the last one back."""

    def __len__(self) -> int: ...


class TaskLog(Protocol):
    """A task's program order."""

    @property
    def reads(self) -> Appendable[tuple[int, int]]: ...

    @property
    def applies(self) -> Appendable[tuple[int, int]]: ...

    def marked(self, checkpoint: CheckpointId, received: list[int], sent: list[int]) -> None: ...

    def advanced(self, time: int) -> None:
        """Its watermark has advanced."""

    def ticked(self, time: int) -> None:
        """The task received the processing time, or its end."""

    def assigned(self, splits: Mapping[int, int]) -> None:
        """A message of its enumerator has reached it: all the splits that it was given, by position."""

    def restored(self, checkpoint: CheckpointId, state: str) -> None: ...

    def input_ended(self) -> None: ...

    def ended(self, how: str) -> None: ...


class ChannelLog(Protocol):
    """The network's log of a channel."""

    @property
    def sent(self) -> Appendable[int]: ...

    @property
    def repeated(self) -> Appendable[int]:
        """Of the records that its receiver had already, and that were dropped: before all that was sent (UNA-4)."""

    @property
    def recovered(self) -> Appendable[int]:
        """Of the records that its receiver was restored with, before all that was sent."""

    @property
    def recovered_watermarks(self) -> Appendable[tuple[int | None, int]]:
        """The same of watermarks, as `watermarks`."""

    @property
    def barriers(self) -> Appendable[tuple[int, int]]: ...

    @property
    def watermarks(self) -> Appendable[tuple[int | None, int]]:
        """(event time, records before it) of each; None: the channel is idle from there."""


class Observer(Protocol):
    """What a world reports; `now` is read by the observer through `clock`."""

    detailed: bool
    """also wants every message of the time line"""

    def task_started(
        self,
        task: TaskId,
        operator: str,
        subtask: int,
        attempt: AttemptId,
        job: int,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> TaskLog: ...

    def channel_opened(self, name: str, attempt: AttemptId) -> ChannelLog: ...

    def note(
        self, what: str, checkpoint: int | None, attempt: int | None, job: int, detail: str, tasks: Tasks = ()
    ) -> None: ...

    def task_failed(self, task: TaskId, attempt: AttemptId, reason: str, fault: int | None) -> None: ...

    def coordinator(self, up: bool, fault: int | None) -> None: ...

    def snapshot_stored(
        self, checkpoint: CheckpointId, task: TaskId, attempt: AttemptId, handle: Handle, state: str
    ) -> None: ...

    def checkpoint_completed(self, snapshot: CompletedSnapshot) -> None: ...

    def deleted(self, checkpoint: CheckpointId | None, handles: Sequence[Handle]) -> None: ...

    def log_opened(self, name: str, task: TaskId, attempt: AttemptId) -> None:
        """Of a persistent channel: its first element is appended."""

    def log_trimmed(self, name: str, before: int) -> None: ...

    def logs_cleared(self, names: Sequence[str]) -> None: ...

    def transacted(self, request: AnyRequest, outcome: Outcome, applied: int) -> None: ...

    def commit_requested(self, name: str) -> None: ...

    def looked(self, began: int, rows: int) -> None: ...

    def command_issued(
        self,
        command: int,
        kind: str,
        drain: bool,
        parallelism: Mapping[str, int] | None = None,
        inserted: Mapping[str, str] | None = None,
    ) -> None: ...

    def command_returned(self, command: int, checkpoint: CheckpointId | None, error: str) -> None: ...

    def job_ended(self, job: int, status: str, checkpoint: CheckpointId | None, reason: str) -> None: ...

    def fault_fired(self, fault: int, phase: str, detail: str, attempt: int | None) -> None: ...

    def fault_healed(self, fault: int) -> None: ...

    def timed(
        self,
        what: str,
        task: str,
        attempt: int,
        *,
        peer: str = "",
        detail: str = "",
        channel: str = "",
        position: int = -1,
        checkpoint: int | None = None,
        origin: int | None = None,
    ) -> None: ...

    def order(self) -> int: ...


__all__ = ["Appendable", "ChannelLog", "Observer", "Row", "TaskLog"]
