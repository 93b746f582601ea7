"""What pytest's terminal summary says of the verifications of a run, from all its workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from .known_failures import Cause
from .pytest_verifier import TestResult


def write_summary(reporter: pytest.TerminalReporter, values: Sequence[tuple[str, Any]]) -> None:
    """A line a test, then the failures by cause: one bug is reported once."""
    results = [msgspec.convert(value, TestResult) for _, value in values]
    reporter.section("cutproof")
    for result in results:
        reporter.write_line(result.in_words())
    for cause, tests in by_cause(results).items():
        known = f" [known: {cause[4]}]" if cause[4] else ""
        reporter.write_line(f"{cause[0]} violated, {cause[1]}{f' (at {cause[2]})' if cause[2] else ''}{known}:")
        for test in tests:
            reporter.write_line(f"  {test}")


def by_cause(results: Sequence[TestResult]) -> dict[tuple[str, str, str, str, str], list[str]]:
    """The tests of each cause: (invariant, difference, point, subject, why it is known)."""
    found: dict[tuple[str, str, str, str, str], list[str]] = {}
    for result in results:
        for cause in result.failures:
            tests = found.setdefault(_key(cause, result.known), [])
            if result.test not in tests:
                tests.append(result.test)
    return found


def _key(cause: Cause, known: str) -> tuple[str, str, str, str, str]:
    return cause.invariant, cause.difference, cause.point, cause.subject, known
