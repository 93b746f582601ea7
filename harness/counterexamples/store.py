"""The run folder, which is written while a run goes on.

Each scenario is appended when it has been judged, and every other file appears whole.  So
an interruption or a full disk loses nothing that was done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...reports.junit import render_junit
from ...reports.model import ReportView, Summary
from ..runtime.exit_codes import HarnessFailed, UsageError
from ..scenario.by_number import SCENARIOS
from ..scenario.files import encoded, write_history, write_whole
from ..scenario.reading import bytes_of, json_of
from ..search.outcome import ScenarioOutcome

SUMMARY = "summary.json"
REPORT = "report.html"
JUNIT = "junit.xml"
VIEW = "view.json"
"""the data of the report, so that the report can be rendered again"""
VIEW_LIMIT_BYTES = 256 * 1024 * 1024
COUNTEREXAMPLES = "counterexamples"
HISTORIES = "histories"

_encoder = msgspec.json.Encoder(order="deterministic")


class RunFolder:
    """A run folder that is being written; a context manager."""

    def __init__(self, path: Path) -> None:
        """Create the folder, or take over the folder of an earlier run; raises `UsageError` if that is impossible."""
        self.path = path
        try:
            self._prepare()
            self._scenarios: BinaryIO = (path / SCENARIOS).open("wb")
        except OSError as error:
            raise UsageError(f"cannot write into {path}: {error.strerror or error}") from None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a full disk was already reported by a write
            self._scenarios.close()

    def add(self, outcomes: Iterable[ScenarioOutcome]) -> None:
        """Append scenarios with their verdicts; their histories become files of their own."""
        with _reported(self.path / SCENARIOS):
            for outcome in outcomes:
                if outcome.history is not None:
                    write_history(self.path / HISTORIES / f"{outcome.index}.json", outcome.history)
                outcome = msgspec.structs.replace(outcome, history=None, shown=None)
                self._scenarios.write(_encoder.encode(outcome) + b"\n")
            self._scenarios.flush()

    def add_counterexample(self, name: str, text: str) -> str:
        """Store the text of a scenario or of a system of processes as a file; returns its path within the folder."""
        relative = f"{COUNTEREXAMPLES}/{name}.json"
        with _reported(self.path / relative):
            write_whole(self.path / relative, text.encode())
        return relative

    def finish(self, view: ReportView) -> None:
        """Write the summary, then the reports: the summary is there even if there is no room for the reports."""
        with _reported(self.path):
            self.write_summary(view.summary)
            write_whole(self.path / JUNIT, render_junit(view.summary).encode())
            write_whole(self.path / VIEW, encoded(view))
            write_report(self.path, view)

    def write_summary(self, summary: Summary) -> None:
        write_whole(self.path / SUMMARY, msgspec.json.format(_encoder.encode(summary), indent=2) + b"\n")

    def _prepare(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        ours = {SUMMARY, REPORT, JUNIT, SCENARIOS, VIEW, COUNTEREXAMPLES, HISTORIES}
        foreign = sorted(entry.name for entry in self.path.iterdir() if entry.name not in ours)
        if foreign:
            raise UsageError(f"{self.path} is not empty and no run folder: it has {foreign[0]}")
        for name in (COUNTEREXAMPLES, HISTORIES):
            (self.path / name).mkdir(exist_ok=True)
            for stale in (self.path / name).glob("*.json"):
                stale.unlink()
        for name in (SUMMARY, REPORT, JUNIT, VIEW):
            (self.path / name).unlink(missing_ok=True)


def write_report(folder: Path, view: ReportView) -> None:
    """Write the HTML report; it is rendered before the file is changed."""
    write_whole(folder / REPORT, rendered(view))


def rendered(view: ReportView) -> bytes:
    """The HTML report; names of files in it need not be valid text."""
    from ...reports.render import render_html  # imports Jinja2, which most commands do not need

    return render_html(view).encode("utf-8", "backslashreplace")


def read_view(folder: Path) -> ReportView:
    """The data of a run folder's report; raises `UsageError` if there is none."""
    path = folder / VIEW
    try:
        return msgspec.json.decode(json_of(bytes_of(path, VIEW_LIMIT_BYTES), str(path)), type=ReportView)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path}: {error}") from None


def read_outcomes(folder: Path) -> Iterator[ScenarioOutcome]:
    """The scenarios of a run folder with their verdicts; an incomplete last line is ignored."""
    decoder = msgspec.json.Decoder(ScenarioOutcome)
    try:
        with (folder / SCENARIOS).open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield decoder.decode(line)
    except OSError as error:
        raise UsageError(f"{folder / SCENARIOS}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{folder / SCENARIOS}: {error}") from None


@contextlib.contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Raises HarnessFailed, in one line, if a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise HarnessFailed(
            f"cannot write {path}: {error.strerror or error}; what was written before is kept"
        ) from None
