"""Progress: a line on a terminal, nothing in a pipe."""

from __future__ import annotations

import io
import threading

from cutproof.harness.runtime.progress import APPEARS_AFTER_S, TerminalProgress, for_stream, render


class Terminal(io.StringIO):
    """A stream that says it is a terminal and tells when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


def test_nothing_shows_in_a_pipe_or_when_quiet() -> None:
    assert for_stream(io.StringIO()) is None
    assert for_stream(Terminal(), quiet=True) is None
    assert for_stream(Terminal()) is not None


def test_the_line() -> None:
    assert render("judging", 12, 48, "2 violated", 3.4) == f"judging  [{'#' * 6}{'.' * 18}] 12 of 48  2 violated  3 s"
    assert render("starting Spark", 0, None, "", 5.0) == "starting Spark  5 s"


def test_a_step_that_takes_long_shows_by_itself_and_is_wiped() -> None:
    terminal = Terminal()
    with TerminalProgress(terminal, columns=20) as progress:
        progress.step("starting Spark and more")
        assert terminal.written.wait(APPEARS_AFTER_S + 10)
    shown = terminal.getvalue()
    assert "\r\x1b[2Kstarting Spark and \r" in shown
    assert shown.endswith("\r\x1b[2K")


def test_a_step_that_is_short_leaves_no_trace() -> None:
    terminal = Terminal()
    with TerminalProgress(terminal) as progress:
        progress.step("parsing")
    assert terminal.getvalue() == ""
