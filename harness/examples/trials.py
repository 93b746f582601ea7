"""The runs that an example needs, all on one engine."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..scenario.model import Scenario
from ..subject.port import Subject
from ..subject.run import Result, run
from .claims import Ran


class Trials:
    """Runs scenarios on one subject, each once and with its time line, and has the quick checker judge them.

    `progress` is called with the name of the next scenario.
    """

    def __init__(self, subject: Subject, progress: Callable[[str], None] = lambda _: None) -> None:
        self.subject = subject
        self._progress = progress
        self._done: dict[bytes, Result] = {}

    def result(self, scenario: Scenario) -> Result:
        """The result of a scenario; raises SubjectFailed."""
        key = msgspec.json.encode(scenario)
        if key not in self._done:
            self._progress(f"running {scenario.name}, {len(self._done) + 1}")
            self._done[key] = run(self.subject, scenario, timeline=True)
        return self._done[key]

    def ran(self, scenario: Scenario) -> Ran:
        """The result of a scenario in the form that claims and figures read."""
        return ran_of(self.result(scenario))


def ran_of(result: Result) -> Ran:
    """A result in the form that claims and figures read."""
    return Ran(scenario=result.scenario, history=result.history, verdicts=result.judgement.verdicts)
