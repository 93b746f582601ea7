"""What can go wrong on PySpark's side, each with one clear line."""

from __future__ import annotations


class SparkUnavailable(Exception):
    """No Java, no PySpark, or a session that does not start: an environment failure (exit code 4)."""


class CheckInputError(Exception):
    """Tables that cannot be compared as asked: a missing file or column, unlike schemas (exit code 2)."""


class TableUnreachable(Exception):
    """A server that holds a table and does not answer: an environment failure (exit code 4)."""
