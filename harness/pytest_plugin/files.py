"""Collected scenario files: each `NAME.cutproof.json` among a user's tests is a test.

A file is a permanent counterexample: the test passes if its scenario holds.  A file that
was found with a planted defect is run without the defect, unless its `expects` says which
invariant the defect violates.  Then it is run with the defect, and the invariant must be
violated.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ..counterexamples.causes import cause_of
from ..counterexamples.replay import Replayed, replay, view_of
from ..counterexamples.story_text import story_text
from ..runtime.exit_codes import CutproofError, shortened
from ..scenario.files import read_scenario
from ..subject.names import BUILT, subject_called
from ..subject.port import SubjectFailed, closing
from ..workloads.user_functions import demand, known
from .verifier import Failure, ScenarioViolated, TestResult, verifier_of

HOLDS = "holds"


class ScenarioFile(pytest.File):
    """A scenario file, which collects one test."""

    def collect(self) -> Iterable[ScenarioItem]:
        item: ScenarioItem = ScenarioItem.from_parent(self, name=self.path.name.removesuffix(".cutproof.json"))
        yield item


class ScenarioItem(pytest.Item):
    """The test of one scenario file."""

    def runtest(self) -> None:
        known(self.config.getoption("cutproof_functions"))
        scenario = read_scenario(self.path)
        demand(scenario.workload)
        name = str(self.config.getoption("--cutproof-subject"))
        wanted = scenario.expects if scenario.expects not in ("", HOLDS) else ""
        planted = scenario.defect if wanted and name in BUILT else None
        with closing(subject_called(name, planted)) as subject:
            replayed = replay(subject, scenario)
        command = _command(self.path, name)
        verifier_of(self.config).add(_result(self.nodeid, name, replayed, command))
        if wanted and planted:
            if wanted not in replayed.judgement.violated:
                raise ScenarioViolated(f"{self.path.name}: {wanted} is not violated with the defect {planted} planted")
        elif replayed.judgement.violated:
            raise ScenarioViolated(story_text(view_of(replayed, command)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if isinstance(error, (SubjectFailed, CutproofError)):
            return shortened(str(error))
        if isinstance(error, ScenarioViolated):
            return str(error)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"scenario {self.name}"


def _command(path: Path, subject: str) -> str:
    suffix = "" if subject == "simulated" else f" --subject {shlex.quote(subject)}"
    return f"cutproof replay {shlex.quote(str(path))}{suffix}"


def _result(test: str, subject: str, replayed: Replayed, command: str) -> TestResult:
    outcome = replayed.judgement.outcome
    return TestResult(
        test=test,
        subject=subject,
        run=1,
        held=int(outcome == "held"),
        violated=int(outcome == "violated"),
        unknown=int(outcome == "unknown"),
        failures=[
            Failure(cause=cause_of(name, verdict, replayed.scenario, replayed.history, subject), replay=command)
            for name, verdict in list(replayed.judgement.violated.items())[:1]
        ],
    )
