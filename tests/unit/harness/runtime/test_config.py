"""Settings: where they are read, what overrides what, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.cli.entry import VERBS, verb_parser
from cutproof.harness.runtime.config import SETTINGS, from_environment, from_file, load
from cutproof.harness.runtime.exit_codes import UsageError


def test_the_nearest_file_is_read_from_the_folder_upwards(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.cutproof]\nscenarios = 5\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert from_file(inner)["scenarios"].value == 5
    (tmp_path / "a" / "cutproof.toml").write_text("scenarios = 7\n")
    assert from_file(inner)["scenarios"].value == 7


def test_a_pyproject_without_the_table_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cutproof.toml").write_text("seed = 3\n")
    inner = tmp_path / "package"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert from_file(inner)["seed"].value == 3


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "cutproof.toml").write_text("seed = 3\nprofile = 'nightly'\n")
    settings = load(tmp_path, {"CUTPROOF_SEED": "4", "CUTPROOF_STOP_AT_FIRST": "1", "PATH": "/bin"})
    assert settings["seed"].value == "4"
    assert settings["profile"].value == "nightly"
    assert settings["stop-at-first"].source == "CUTPROOF_STOP_AT_FIRST"


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("out", "runs"),
        ("known-failures", "known-failures.toml"),
        ("workload", "orders.toml"),
        ("workload", "data/orders.json"),
        ("scenarios", "tests/corpus"),
    ],
)
def test_a_path_in_a_file_counts_from_its_folder(tmp_path: Path, setting: str, path: str) -> None:
    (tmp_path / "cutproof.toml").write_text(f"{setting} = '{path}'\n")
    below = tmp_path / "below"
    below.mkdir()
    assert from_file(below)[setting].value == str(tmp_path / path)


@pytest.mark.parametrize(("setting", "value"), [("workload", "orders"), ("scenarios", "500"), ("scenarios", 500)])
def test_what_is_no_path_in_a_file_stays(tmp_path: Path, setting: str, value: str | int) -> None:
    (tmp_path / "cutproof.toml").write_text(f"{setting} = {value!r}\n")
    assert from_file(tmp_path)[setting].value == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("scenaros = 5\n", "'scenaros'; did you mean 'scenarios'?"),
        ("keep_history = true\n", "did you mean 'keep-histories'?"),
        ("zzz = 1\n", "unknown setting 'zzz'; known are: scenarios"),
        ("scenarios = [1]\n", "takes one value, not a list"),
        ("scenarios = \n", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_key(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "cutproof.toml").write_text(text)
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        from_file(tmp_path)
    assert reason in str(caught.value)


def test_an_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="CUTPROOF_SCENARIO; did you mean 'CUTPROOF_SCENARIOS'"):
        from_environment({"CUTPROOF_SCENARIO": "5"})
    assert from_environment({"CUTPROOF_DEBUG": "1"}) == {}


def test_every_setting_is_an_option_of_some_verb() -> None:
    assert set(SETTINGS) <= {name for verb in VERBS for name in verb_parser(verb).options}
