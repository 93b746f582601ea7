"""Options: what they accept, and settings as their defaults."""

from __future__ import annotations

import argparse

import pytest

from cutproof.harness.cli.terminal.options import Parser, apply_settings, count, duration
from cutproof.harness.runtime.config import Setting
from cutproof.harness.runtime.exit_codes import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60.0), ("5m", 300.0), ("1.5h", 5400.0), ("90", 90.0), ("500ms", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-1s", "soon", "5 days", "1e3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time"):
        duration(text)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "many", ""])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="whole number"):
        count(text)


def _parser() -> Parser:
    parser = Parser(prog="cutproof verb")
    parser.add_argument("--scenarios", type=count, default=1)
    parser.add_argument("--profile", choices=("smoke", "default"))
    parser.add_argument("--stop-at-first", action="store_true")
    parser.add_argument("--tolerance", action="append", default=[])
    return parser


def test_settings_are_defaults_and_options_override_them() -> None:
    parser = _parser()
    apply_settings(
        parser,
        {
            "scenarios": Setting(7, "file"),
            "stop-at-first": Setting("yes", "variable"),
            "tolerance": Setting("x=1", "file"),
            "limit": Setting(3, "another verb's"),
        },
    )
    options = parser.parse_args([])
    assert (options.scenarios, options.stop_at_first, options.tolerance) == (7, True, ["x=1"])
    assert parser.parse_args(["--scenarios", "9"]).scenarios == 9


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("scenarios", "many", "cutproof.toml: scenarios: 'many' is not a whole number"),
        ("scenarios", True, "it takes a value"),
        ("profile", "hourly", "'hourly' is none of smoke, default"),
        ("stop-at-first", "perhaps", "neither true nor false"),
    ],
)
def test_a_wrong_setting_names_its_source(name: str, value: object, reason: str) -> None:
    with pytest.raises(UsageError, match=r"cutproof\.toml") as caught:
        apply_settings(_parser(), {name: Setting(value, "cutproof.toml")})
    assert reason in str(caught.value)


def test_a_wrong_option_is_a_usage_error_that_points_at_the_help() -> None:
    with pytest.raises(UsageError, match=r"invalid choice.*see `cutproof verb --help`"):
        _parser().parse_args(["--profile", "hourly"])
    with pytest.raises(UsageError, match="unrecognized arguments"):
        _parser().parse_args(["--scenario", "3"])
