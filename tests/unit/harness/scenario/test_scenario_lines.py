"""A scenario of a run is run again by its number."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cutproof.harness.cli import main
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.runtime.exit_codes import ExitCode
from cutproof.harness.scenario.by_number import place_of, scenario_at
from cutproof.harness.scenario.files import encode_scenario, write_scenario
from cutproof.harness.scenario.reading import FileError

DRAW = scenario_of(Drawing(max_records=12))
FOUR, SEVEN = DRAW(5, 4), DRAW(5, 7)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    lines = [
        b'{"index":7,"verdicts":{},"scenario":' + encode_scenario(SEVEN) + b"}\n",
        b'{"index":4,"verdicts":{},"scenario":' + encode_scenario(FOUR) + b"}\n",
    ]
    (tmp_path / "scenarios.jsonl").write_bytes(b"".join(lines))
    return tmp_path


def test_it_is_found_by_its_number_and_not_by_its_line(run_folder: Path) -> None:
    assert scenario_at(run_folder / place_of(4)) == FOUR
    assert scenario_at(run_folder / place_of(7)) == SEVEN


def test_a_file_of_one_scenario_is_read_as_ever(tmp_path: Path) -> None:
    write_scenario(tmp_path / "one.json", FOUR)
    assert scenario_at(tmp_path / "one.json") == FOUR


@pytest.mark.parametrize(
    ("place", "content", "words"),
    [
        ("scenarios.jsonl:9", None, "has no scenario 9: the run did not judge it"),
        ("elsewhere.jsonl:9", None, "No such file"),
        ("scenarios.jsonl:0", b"[1]\n", "holds no scenarios of a run"),
        ("scenarios.jsonl:0", b'{"index":0,"scenario":{"format":"none"}}\n', "its format is 'none'"),
        ("scenarios.jsonl:0", b'{"index":0,"scenario":', "has no scenario 0 .*: line 1 is cut off"),
        ("scenarios.jsonl:0", b'{"index":1,"scenario":{}}\n{"ind', "has no scenario 0 .*: line 2 is cut off"),
    ],
)
def test_what_is_not_there_or_none_is_reported_in_one_line(
    place: str, content: bytes | None, words: str, run_folder: Path
) -> None:
    if content is not None:
        (run_folder / "scenarios.jsonl").write_bytes(content)
    with pytest.raises(FileError, match=words) as raised:
        scenario_at(run_folder / place)
    assert "\n" not in str(raised.value)


def test_a_line_without_end_is_called_too_long(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutproof.harness.scenario.by_number.LINE_LIMIT_BYTES", 100)
    with pytest.raises(FileError, match="line 1 is too long, it has 100 bytes or more"):
        scenario_at(run_folder / place_of(4))


def test_replay_takes_it(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(run_folder / place_of(7))
    assert main(["replay", place, "--quick", "--json"]) == ExitCode.HELD
    printed = msgspec.json.decode(capsys.readouterr().out)
    assert printed["scenario"] == place
