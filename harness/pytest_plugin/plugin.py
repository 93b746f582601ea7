"""The pytest plugin: options, the fixture `cutproof`, and collected scenario files.

Every test run of an environment with cutproof imports this plugin.  So it imports only
pytest, and everything else when a test first needs it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .results import RESULTS

if TYPE_CHECKING:
    from .files import ScenarioFile
    from .verifier import Verifier

SUFFIX = ".cutproof.json"
PROPERTY = "cutproof"
"""the user property in which a test's results reach the summary, through xdist too"""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cutproof", "cutproof: verification of stream processors")
    group.addoption("--cutproof-scenarios", metavar="N", type=int, help="run N scenarios in each verification, "
                    "instead of the number in the test")  # fmt: skip
    group.addoption("--cutproof-seed", metavar="S", type=int, help="draw from this seed (default: 0)")
    group.addoption("--cutproof-subject", metavar="NAME", default="simulated", help="the subject of collected "
                    "scenario files: simulated (default), processes or package.module:NAME")  # fmt: skip
    group.addoption("--cutproof-function", metavar="NAME", dest="cutproof_functions", action="append", default=[],
                    help="an operator of your own in collected scenario files: package.module:NAME")  # fmt: skip
    group.addoption("--cutproof-out", metavar="DIR", type=Path, help="where run folders are kept (out/pytest)")
    group.addoption("--cutproof-known-failures", metavar="FILE", type=Path, help="a file of failures that are "
                    "expected until a given day, each with its reason")  # fmt: skip


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    if not file_path.name.endswith(SUFFIX):
        return None
    from .files import ScenarioFile

    found: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    return found


@pytest.fixture(scope="session")
def cutproof(request: pytest.FixtureRequest) -> Verifier:
    """Verifies subjects in tests: `cutproof.verify(subject=..., workload=..., scenarios=...)`."""
    from .verifier import verifier_of

    return verifier_of(request.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        results = item.config.stash.get(RESULTS, [])
        report.user_properties += [(PROPERTY, result) for result in results]
        results.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    results = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY
    ]
    if results:
        from .summary import write_summary

        write_summary(terminalreporter, results)
