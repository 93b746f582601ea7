"""What a process writes into its journal of the logs of persistent channels; see `entries`."""

from __future__ import annotations

from ..core.ids import AttemptId, TaskId
from .entry import Entry


class LogOpened(Entry):
    """The first element is appended to it."""

    name: str
    task: TaskId
    attempt: AttemptId


class LogTrimmed(Entry):
    name: str
    before: int
    """what lay below this number was discarded"""


class LogsCleared(Entry):
    names: tuple[str, ...]


AnyLogEntry = LogOpened | LogTrimmed | LogsCleared
