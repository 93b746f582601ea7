"""What a reader of the store of sinks promises."""

from __future__ import annotations

from typing import Protocol

from ...core.vocabulary.transactions import Row


class Unreachable(Exception):
    """The store does not answer a reader; asking again may help."""


class Reader(Protocol):
    """Reads what sinks have written, apart from the writers; its methods raise `Unreachable`."""

    def seen(self) -> list[str]:
        """The names of the transactions that are visible now, in the order in which they became so."""

    def passing(self) -> list[str]:
        """The names of committed transactions that are not part of the job's output: those of two-phase operators."""

    def committed(self) -> list[tuple[str | None, Row]]:
        """(transaction, or None for a plain row; row), in the order in which they became visible, as far as that is
        known."""

    def table(self) -> dict[tuple[int | None, ...], Row]:
        """The rows of idempotent sinks by identity, in the order these first came."""

    def unfinished(self) -> list[tuple[str, str, int | None]]:
        """(transaction, "open" or "prepared", the checkpoint that it was prepared for); what is final and not visible
        counts as prepared."""

    def purge(self) -> None:
        """Remove everything that the run has made."""

    def close(self) -> None: ...
