"""The object behind the fixture `cutproof`: verification inside a test run, with results in pytest's own report."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ...reports.model import Summary
from ...reports.overview import by_reason, oracle_lead
from ...reports.words import plural
from ..counterexamples.findings import Finding
from ..counterexamples.story_text import story_text
from ..runtime.exit_codes import CutproofError, one_line
from ..search.campaign import Verified
from ..search.known_failures import Cause
from ..search.oracle import Oracle, PySpark
from ..search.verification import verify
from ..subject.not_run import REASONS, in_sentences
from ..subject.port import Subject
from .results import RESULTS

OUT = Path("out") / "pytest"
SCENARIOS = 100


class ScenarioViolated(AssertionError):
    """A scenario violated an invariant; the message is the story."""


class TestResult(msgspec.Struct, kw_only=True):
    """One verification in a test, in the form that is sent to the terminal summary."""

    __test__ = False

    test: str
    subject: str
    seed: int | None = None
    run: int = 0
    held: int = 0
    violated: int = 0
    unknown: int = 0
    not_run: int = 0
    failures: list[Failure] = []
    notes: list[str] = []
    """how many scenarios PySpark has judged, and what the run had to show, each in one sentence"""
    report: str = ""

    def in_words(self) -> str:
        seed = f", seed {self.seed}" if self.seed is not None else ""
        counts = f"{self.held} held, {self.violated} violated, {self.unknown} unknown"
        counts += f"; {self.not_run} could not be run" if self.not_run else ""
        return f"{self.test}: {plural(self.run, 'scenario')} on {self.subject}{seed}: {counts}"


class Failure(msgspec.Struct, kw_only=True):
    """One violated invariant in a test: its cause, the reason if it is a known failure, and the replay command."""

    cause: Cause
    known: str = ""
    replay: str = ""


class Verifier:
    """The fixture `cutproof`: one Spark session for all tests of a worker."""

    def __init__(self, config: pytest.Config, oracle: Oracle | None = None) -> None:
        self._config = config
        self._oracle = oracle or PySpark()
        self._numbers = itertools.count(1)

    def verify(self, subject: Subject | str = "simulated", workload: Any = None, **wishes: Any) -> Summary:
        """As `cutproof.verify`; an unknown violation fails the test, with its story.

        A failure of the harness or its environment fails the test too, as such.
        """
        __tracebackhide__ = True
        wishes.setdefault("scenarios", SCENARIOS)
        for option in ("scenarios", "seed"):
            given = self._config.getoption(f"--cutproof-{option}")
            if given is not None:
                wishes[option] = given
        wishes.setdefault("known", self._config.getoption("--cutproof-known-failures"))
        wishes.setdefault("out", self._folder())
        try:
            verified = verify(subject, workload, oracle=self._oracle, **wishes)
        except CutproofError as error:
            raise pytest.fail.Exception(one_line(error), pytrace=False) from None
        self.add(_result(_current_test(), verified, wishes["out"]))
        _demand(verified)
        return verified.summary

    def add(self, result: TestResult) -> None:
        """Add a result to the report of the running test."""
        self._config.stash.setdefault(RESULTS, []).append(msgspec.to_builtins(result))

    def _folder(self) -> Path:
        """A separate run folder for each verification of each test."""
        base = self._config.getoption("--cutproof-out") or self._config.rootpath / OUT
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", _current_test()).strip("-")[-80:]
        return Path(base) / f"{name}-{next(self._numbers)}"


VERIFIER: pytest.StashKey[Verifier] = pytest.StashKey()
"""the session's verifier, once a test has used it"""


def verifier_of(config: pytest.Config) -> Verifier:
    """The session's verifier, which is created on first use."""
    if VERIFIER not in config.stash:
        config.stash[VERIFIER] = Verifier(config)
    return config.stash[VERIFIER]


def _current_test() -> str:
    return os.environ.get("PYTEST_CURRENT_TEST", "?").rpartition(" (")[0] or "?"


def _result(test: str, verified: Verified, folder: Path) -> TestResult:
    summary = verified.summary
    return TestResult(
        test=test,
        subject=summary.subject,
        seed=summary.seed,
        run=summary.scenarios.run,
        held=summary.scenarios.held,
        violated=summary.scenarios.violated,
        unknown=summary.scenarios.unknown,
        not_run=len(summary.not_run),
        failures=[_failure(finding, summary.subject) for finding in verified.findings],
        notes=[*filter(None, (oracle_lead(summary), summary.not_judged_by_shares)), *summary.shortfalls],
        report=str(folder / "report.html"),
    )


def _failure(finding: Finding, subject: str) -> Failure:
    message = finding.counterexample
    cause = msgspec.structs.replace(finding.cause, subject=subject)
    return Failure(cause=cause, known=message.known, replay=message.replay)


def _demand(verified: Verified) -> None:
    """Raise the error of a verification that did not hold."""
    __tracebackhide__ = True
    red = [finding for finding in verified.findings if not finding.counterexample.known]
    if red:
        stories = [story_text(finding.view) for finding in red]
        not_run = [*in_sentences(verified.summary.not_run), *_commands(verified.summary)]
        raise ScenarioViolated("\n\n".join((*stories, "\n".join(not_run))).rstrip())
    if verified.summary.interrupted:
        raise KeyboardInterrupt
    if verified.summary.failures:
        message = "the harness failed: " + "; ".join(verified.summary.failures)
        raise pytest.fail.Exception("\n".join((message, *_commands(verified.summary))), pytrace=False)


def _commands(summary: Summary) -> list[str]:
    """The commands that replay scenarios that could not be run: the first for each reported reason."""
    firsts = [alike[0] for alike in by_reason(summary.not_run).values()]
    return [f"  {one.replay}" for one in firsts[:REASONS] if one.replay]
