"""The observer port: what a world lets be seen while it runs the core.

A world calls the observer, never the other way round, and nothing of the protocol depends on
it.  All that a run shows is one stream of typed events (`observed`).  The exception are the
records: what happens to each of them is appended to what a `TaskLog` and a `ChannelLog` hold.
These are lists, or take an append as lists do, so that watching a record costs an append.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from .core.vocabulary.ids import AttemptId, TaskId
from .observed import Observed

Item = TypeVar("Item", contravariant=True)


class Appendable(Protocol[Item]):
    """What is asked of a list here."""

    def append(self, item: Item, /) -> None: ...

    def pop(self) -> object:
        """Take the last one back."""

    def __len__(self) -> int: ...


class TaskLog(Protocol):
    """The records that one attempt of a task reads and applies, in its program order."""

    @property
    def run(self) -> int:
        """Its number in the events of this observer."""

    @property
    def reads(self) -> Appendable[tuple[int, int]]:
        """(split, offset) of each record read."""

    @property
    def applies(self) -> Appendable[tuple[int, int]]:
        """(input channel, origin) of each record applied."""


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
    """To whom a world reports; the observer has a clock of its own."""

    detailed: bool
    """it also wants the time line: an event `Timed` for each message"""

    def saw(self, event: Observed) -> None:
        """Something has happened; runs and channels alone have methods of their own."""

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

    def order(self) -> int:
        """The place of this moment among the events: the beginning of what is reported when it has ended."""


class SenderLog(ChannelLog, Protocol):
    """The log of a channel's sending end; what its receiver is restored with is not in it."""

    def continued(self, whole: AttemptId, first: int, expects: int) -> None:
        """For a sender that recovered locally: see `observed.ChannelContinued`."""


class ProcessObserver(Observer, Protocol):
    """To whom the world of one process reports: the other end of a channel may be in another process."""

    def channel_opened(self, name: str, attempt: AttemptId) -> SenderLog:
        """The sending end."""

    def channel_refilled(self, name: str, attempt: AttemptId) -> ChannelLog:
        """The receiving end: elements in flight are about to be put back into the channel."""


__all__ = ["Appendable", "ChannelLog", "Observer", "ProcessObserver", "SenderLog", "TaskLog"]
