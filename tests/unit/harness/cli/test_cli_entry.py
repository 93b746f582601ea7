"""The entry point: dispatch, help, and every ending as one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import re

import pytest

from cutproof.harness.cli import doctor, entry
from cutproof.harness.cli.terminal.output import Output
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.scenario.reading import FileError
from cutproof.harness.subject.port import SubjectFailed
from cutproof.properties.checking.errors import CheckInputError
from cutproof.properties.spark.session.errors import SparkUnavailable


def test_every_verb_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in entry.VERBS:
        with pytest.raises(SystemExit) as ended:
            entry.main([verb, "--help"])
        printed_text = capsys.readouterr().out
        assert ended.value.code == 0
        assert "--json" in printed_text
        assert f"cutproof {verb}" in printed_text.split("examples:")[1]


def test_the_root_help_names_every_verb_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        entry.main([])
    printed_text = capsys.readouterr().out
    assert all(re.search(rf"^  {verb} ", printed_text, re.M) for verb in entry.VERBS)
    assert all(str(int(code)) in printed_text for code in ExitCode)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["verfy"], "there is no verb 'verfy'; did you mean 'verify'?"),
        (["verify", "--scenario", "5"], "unrecognized arguments: --scenario 5; see `cutproof verify --help`"),
        (["verify", "--scenarios", "0"], "'0' is not a whole number of 1 or more"),
        (["verify", "--subject", "process"], "there is no subject 'process'; did you mean 'processes'?"),
        (["defects", "run", "A01", "--subject", "mine:Engine"], "a defect is planted in the reference engine"),
        (["defects", "run", "A01", "--scenarios", "nowhere"], "neither a whole number of 1 or more nor a folder"),
        (["replay", "none.json"], "none.json"),
        (["check", "--expected", "a"], "required: --actual"),
        (["--frob"], "unrecognized arguments: --frob"),
    ],
)
def test_wrong_usage_is_one_line_and_2(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(words) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err
    assert captured.err.count("\n") == 1


def test_with_json_an_error_is_the_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["verify", "--json", "--scenarios", "0"]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert json.loads(captured.out)["exit_code"] == 2


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (FileError("x.json: truncated"), ExitCode.USAGE, "x.json: truncated"),
        (CheckInputError("no column a"), ExitCode.USAGE, "no column a"),
        (SparkUnavailable("no Java"), ExitCode.HARNESS_FAILED, "no Java"),
        (SubjectFailed("engine is gone"), ExitCode.HARNESS_FAILED, "engine is gone"),
        (OSError(errno.ENOSPC, "No space left on device"), ExitCode.HARNESS_FAILED, "the disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), ExitCode.USAGE, "no permission for /x"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/x"), ExitCode.USAGE, "cannot open /x"),
        (ZeroDivisionError("division\nby zero"), ExitCode.HARNESS_FAILED, "ZeroDivisionError: division by zero"),
    ],
)
def test_any_exception_is_explained(error: Exception, code: ExitCode, reason: str) -> None:
    explained = entry.explain(error)
    assert explained.exit_code == code
    assert reason in str(explained)


@pytest.mark.parametrize(("verb", "advice"), [("verify", "with --out"), ("report", "")])
@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "", "/x"), OSError(errno.ENOSPC, "", "/x")])
def test_only_an_option_that_the_verb_has_is_advised(
    verb: str, advice: str, error: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(importlib.import_module(f"cutproof.harness.cli.{verb}"), "run", fails)
    entry.main([verb, *(["out"] if verb == "report" else [])])
    said = capsys.readouterr().err
    assert "/x" in said
    assert advice in said
    assert ("--out" in said) == bool(advice)


def test_an_unforeseen_exception_is_cut_to_a_line() -> None:
    assert len(str(entry.explain(RuntimeError("word " * 1_000)))) < 350


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("wrong"), ExitCode.USAGE),
        (HarnessFailed("broken"), ExitCode.HARNESS_FAILED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (RuntimeError("oh"), ExitCode.HARNESS_FAILED),
    ],
)
def test_a_verb_that_fails(
    error: BaseException, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: argparse.Namespace, output: Output) -> ExitCode:
        raise error

    monkeypatch.setattr(doctor, "run", fail)
    assert entry.main(["doctor"]) == code
    err = capsys.readouterr().err
    assert err.startswith("cutproof: ")
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CUTPROOF_DEBUG", "1")
    monkeypatch.setattr(doctor, "run", lambda options, output: 1 // 0)
    assert entry.main(["doctor"]) == ExitCode.HARNESS_FAILED
    assert "Traceback" in capsys.readouterr().err
