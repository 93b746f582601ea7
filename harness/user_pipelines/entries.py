"""Errors that are about an entry of a pipeline's file, such as `feed.insert` or `roles.queue.ready`."""

from __future__ import annotations

import msgspec

from ..subject.port import SubjectFailed


class Problem(msgspec.Struct, frozen=True):
    """What does not work; as a text the message for a person, which begins with the entry."""

    entry: str | None
    """None: no entry is to blame more than another"""
    words: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.words}" if self.entry is not None else self.words


class EntryFailed(SubjectFailed):
    """The pipeline could not be started, fed or read, and an entry of its file is about that (None: no single one)."""

    def __init__(self, entry: str | None, words: object) -> None:
        super().__init__(entry, str(words))
        self.problem = Problem(entry, str(words))

    def __str__(self) -> str:
        return str(self.problem)


def problem_of(error: Exception) -> Problem:
    """The problem; of an error that is about no entry, its message."""
    return error.problem if isinstance(error, EntryFailed) else Problem(None, str(error))
