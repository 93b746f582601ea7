"""What a process writes into its journal of persistent channels and their logs; see `entries`."""

from __future__ import annotations

from ..core.ids import AttemptId, TaskId
from .entry import Entry


class LogOpened(Entry):
    """From now on it may be there, and is to be deleted some day: the log of a channel as its first element is
    appended to it, determinants when an attempt is about to take the task's place."""

    name: str
    task: TaskId
    attempt: AttemptId


class LogTrimmed(Entry):
    name: str
    before: int
    """what lay below this number was discarded"""


class LogsCleared(Entry):
    names: tuple[str, ...]


class ChannelContinued(Entry):
    """Of an attempt that came up alone: it sends again from a number on; below `expects` everything had come before.
    What attempts before it had sent beyond that was durable nowhere (UNA-4)."""

    channel: int
    whole: AttemptId
    """the attempt of all tasks that the channel is of"""
    first: int
    expects: int


AnyLogEntry = LogOpened | LogTrimmed | LogsCleared | ChannelContinued
