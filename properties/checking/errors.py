"""The errors of a comparison of two tables, each with a message of one line."""

from __future__ import annotations


class CheckInputError(Exception):
    """Tables that cannot be compared as requested: a missing file or column, unlike types (exit code 2)."""


class TableUnreachable(Exception):
    """The server of a table does not answer: an environment failure (exit code 4)."""


class TooLarge(Exception):
    """A table is too large for the memory of one process."""


def error_text(error: object, most: int = 200) -> str:
    """Another library's message as one line of bounded length."""
    text = " ".join(str(error).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def shown(value: object, most: int = 40) -> str:
    """A table's value for a message, of bounded length."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 4] + "..." + text[-1]
