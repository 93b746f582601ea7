"""Output: JSON alone on standard output, words where they belong."""

from __future__ import annotations

import io
import json
import sys

import pytest

from cutproof.harness.cli.terminal.output import Output, show_what_can_be_shown
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError


def _output(**options: bool) -> tuple[Output, io.StringIO, io.StringIO]:
    stdout, stderr = io.StringIO(), io.StringIO()
    return Output(stdout=stdout, stderr=stderr, **options), stdout, stderr


def test_words_go_to_standard_output_and_with_json_to_standard_error() -> None:
    output, stdout, stderr = _output()
    output.say("hello")
    output.result({"a": 1})
    assert (stdout.getvalue(), stderr.getvalue()) == ("hello\n", "")
    output, stdout, stderr = _output(json=True)
    output.say("hello")
    output.result({"a": 1})
    assert json.loads(stdout.getvalue()) == {"a": 1}
    assert stderr.getvalue() == "hello\n"


def test_quiet_leaves_errors_and_json() -> None:
    output, stdout, stderr = _output(json=True, quiet=True)
    output.say("hello")
    assert output.error(UsageError("no such file")) is ExitCode.USAGE
    assert stderr.getvalue() == "cutproof: no such file\n"
    assert json.loads(stdout.getvalue()) == {"format": "cutproof-error/1", "error": "no such file", "exit_code": 2}


def test_an_error_is_one_line_whatever_its_text() -> None:
    output, _, stderr = _output()
    assert output.error(HarnessFailed("first\n  second")) is ExitCode.HARNESS_FAILED
    assert stderr.getvalue() == "cutproof: first second\n"


def test_a_table_is_as_wide_as_its_cells() -> None:
    output, stdout, _ = _output()
    output.table(("name", "n"), [("a", 1), ("longer", 22)])
    assert stdout.getvalue() == "name    n\na       1\nlonger  22\n"


def _ascii() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict", write_through=True)


def test_a_terminal_that_cannot_show_a_character_is_shown_an_escape_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout, stderr = _ascii(), _ascii()
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(sys, "stderr", stderr)
    show_what_can_be_shown()
    output = Output()
    output.say("after 3 µs")
    output.error(UsageError("no 'µ'"))
    assert stdout.buffer.getvalue() == b"after 3 \\xb5s\n"  # type: ignore[attr-defined]
    assert stderr.buffer.getvalue() == b"cutproof: no '\\xb5'\n"  # type: ignore[attr-defined]


def test_json_means_the_same_in_any_encoding() -> None:
    output, stdout, _ = _output(json=True)
    output.result({"unit": "µs", "clef": "\U0001d11e"})
    assert stdout.getvalue().isascii()
    assert json.loads(stdout.getvalue()) == {"unit": "µs", "clef": "\U0001d11e"}


def test_a_files_name_that_is_no_text_can_be_printed() -> None:
    output, stdout, stderr = _output(json=True)
    output.result({"scenario": "a\udcff.json", "more": [{"b\udcff": 1}]})
    assert json.loads(stdout.getvalue()) == {"scenario": "a\\udcff.json", "more": [{"b\\udcff": 1}]}
    output.error(UsageError("a\udcff.json"))
    assert stderr.getvalue() == "cutproof: a\\udcff.json\n"
