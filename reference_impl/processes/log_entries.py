"""What a process writes into its journal about persistent channels and their logs; see `entries`."""

from __future__ import annotations

from ..core.vocabulary.ids import AttemptId, TaskId
from .entry import Entry


class LogOpened(Entry):
    """From now on the log may exist, and is to be deleted some day.

    The log of a channel: its first element is about to be appended.  Determinants: an attempt is about to take the
    task's place.
    """

    name: str
    task: TaskId
    attempt: AttemptId


class LogTrimmed(Entry):
    name: str
    before: int
    """elements below this number were discarded"""


class LogsCleared(Entry):
    names: tuple[str, ...]


class ChannelContinued(Entry):
    """For an attempt that recovered locally: it sends again from a number on; every element below `expects` had
    arrived.

    What earlier attempts had sent beyond that was durable nowhere (UNA-4).
    """

    channel: int
    whole: AttemptId
    """the attempt of all tasks to which the channel belongs"""
    first: int
    expects: int


AnyLogEntry = LogOpened | LogTrimmed | LogsCleared | ChannelContinued
