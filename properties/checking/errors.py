"""What can go wrong with two tables, each with one clear line."""

from __future__ import annotations


class CheckInputError(Exception):
    """Tables that cannot be compared as asked: a missing file or column, unlike types (exit code 2)."""


class TableUnreachable(Exception):
    """A server that holds a table and does not answer: an environment failure (exit code 4)."""


class TooLarge(Exception):
    """A table that one process shall not hold in its memory."""


def error_text(error: object, most: int = 200) -> str:
    """What another library says, in one bounded line."""
    text = " ".join(str(error).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def shown(value: object, most: int = 40) -> str:
    """A value of a table in a message, bounded."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 4] + "..." + text[-1]
