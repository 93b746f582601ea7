"""The errors of PySpark's environment, each with a message of one line."""

from __future__ import annotations


class SparkUnavailable(Exception):
    """No Java, no PySpark, or a session that does not start: an environment failure (exit code 4)."""
