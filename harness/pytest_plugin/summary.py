"""The verifications of a test run, from all its workers, in pytest's terminal summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ..search.known_failures import Cause
from .verifier import Failure, TestResult


def write_summary(reporter: pytest.TerminalReporter, values: Sequence[Any]) -> None:
    """One line for each verification, then the failures by cause, so that one bug is reported once."""
    results = sorted((msgspec.convert(value, TestResult) for value in values), key=lambda result: result.test)
    reporter.section("cutproof")
    for result in results:
        reporter.write_line(result.in_words())
        for note in result.notes:
            reporter.write_line(f"  {note}")
    for cause, failures in by_cause(results).items():
        known = f" [known: {failures[0][1].known}]" if failures[0][1].known else ""
        where = f" at {cause.point}" if cause.point else ""
        reporter.write_line(f"{cause.invariant} violated ({cause.difference}{where}) on {cause.subject}{known}")
        for test in dict.fromkeys(test for test, _ in failures):
            reporter.write_line(f"  in {test}")
        reporter.write_line(f"  {failures[0][1].replay}")


def by_cause(results: Sequence[TestResult]) -> dict[Cause, list[tuple[str, Failure]]]:
    """By cause: its failures, and the tests in which they occurred."""
    found: dict[Cause, list[tuple[str, Failure]]] = {}
    for result in results:
        for failure in result.failures:
            found.setdefault(failure.cause, []).append((result.test, failure))
    return found
