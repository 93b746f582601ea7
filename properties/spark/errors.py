"""What can go wrong on PySpark's side, each with one clear line."""

from __future__ import annotations


class SparkUnavailable(Exception):
    """No Java, no PySpark, or a session that does not start: an environment failure (exit code 4)."""
