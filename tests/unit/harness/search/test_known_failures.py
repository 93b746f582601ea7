"""Known failures: green until a day, red after it, and red for what is new."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.search.known_failures import Cause, read

FILE = """
[[failure]]
invariant = "exactly-once"
difference = "repeated row"
expires = 2026-06-30
reason = "ENGINE-123"
"""
KNOWN = Cause(invariant="exactly-once", difference="repeated row", point="commit-requested", subject="mine")
DAY = datetime.date(2026, 6, 30)


def _path(folder: Path, text: str = FILE) -> Path:
    path = folder / "known-failures.toml"
    path.write_text(text)
    return path


def test_a_known_failure_is_expected_to_its_last_day(tmp_path: Path) -> None:
    known = read(_path(tmp_path), DAY)
    assert known.reason(KNOWN) == "ENGINE-123 (known until 2026-06-30)"
    assert known.expired(KNOWN) == ""


def test_after_its_day_it_is_red_and_reports_it(tmp_path: Path) -> None:
    known = read(_path(tmp_path), DAY + datetime.timedelta(days=1))
    assert known.reason(KNOWN) == ""
    assert known.expired(KNOWN) == "ENGINE-123 (expired on 2026-06-30)"


@pytest.mark.parametrize(
    "other",
    [
        Cause(invariant="exactly-once", difference="lost row"),
        Cause(invariant="no-data-loss", difference="repeated row"),
    ],
)
def test_another_failure_is_not_known(tmp_path: Path, other: Cause) -> None:
    known = read(_path(tmp_path), DAY)
    assert known.reason(other) == known.expired(other) == ""


def test_what_the_file_leaves_empty_matches_any(tmp_path: Path) -> None:
    known = read(_path(tmp_path, FILE + 'point = "ack-sent"\n'), DAY)
    assert known.reason(KNOWN) == ""


def test_without_a_file_nothing_is_known() -> None:
    assert read(None).reason(KNOWN) == ""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (FILE.replace('reason = "ENGINE-123"', ""), "missing required field `reason`"),
        (FILE.replace('"ENGINE-123"', '" "'), "failure 1: it needs a reason"),
        (FILE.replace("2026-06-30", '"soon"'), "is not a file of known failures"),
        (FILE + "poitn = 'x'\n", "unknown field `poitn`"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as caught:
        read(_path(tmp_path, text))
    assert complaint in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file of known failures"):
        read(tmp_path / "none.toml")
