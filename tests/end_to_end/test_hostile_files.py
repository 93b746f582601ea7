"""Every file that a verb reads, broken in every way: one line, exit code 2 (or a verdict), at once, and little memory.

A deterministic fuzzer: what it breaks, and how, follows from its seeds.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cutproof.harness.cli.entry import main
from cutproof.harness.counterexamples.replay import replay, report_of
from cutproof.harness.counterexamples.store import RunFolder
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.subject.names import subject_called
from cutproof.harness.workloads.library import DATA
from end_to_end.command_line import cutproof_command, environment

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "examples" / "recorded"
CORPUS = ROOT / "tests" / "corpus"
MUTANTS = 60
LINE = 300
SECONDS = 20
BYTES = 1_000_000_000

WORDS = {
    "scenario.json": ["replay", "--quick", "scenario.json"],
    "both.json": ["replay", "--batch", "both.json"],
    "system.json": ["replay", "system.json"],
    "history.json": ["judge", "--quick", "history.json", "--scenario", "sound.json"],
    "of.json": ["judge", "--quick", "sound-history.json", "--scenario", "of.json"],
    "workload.toml": ["verify", "--workload", "workload.toml", "--input", str(DATA / "flights.csv"), "--out", "taken"],
    "workload.json": ["verify", "--workload", "workload.json", "--input", str(DATA / "flights.csv"), "--out", "taken"],
    "known.toml": ["verify", "--known-failures", "known.toml", "--out", "taken"],
    "cutproof.toml": ["defects", "list"],
    "pyproject.toml": ["defects", "list"],
    "run/view.json": ["report", "run"],
    "corpus/A01.json": ["defects", "run", "A01", "--workers", "1", "--quick", "--scenarios", "corpus"],
}
"""each file and the verb that reads it; `taken` is no run folder, so that no run begins where the file is sound"""

SOUND = {
    "workload.toml": (DATA / "flights.toml").read_bytes(),
    "known.toml": b'[[failure]]\ninvariant = "exactly-once"\nexpires = 2030-12-31\nreason = "x"\n',
    "cutproof.toml": b"seed = 5\n",
    "pyproject.toml": b"[tool.cutproof]\nseed = 5\n",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A sound file of each kind, by name."""
    scenario, history = (RECORDED / "scenario.json").read_bytes(), (RECORDED / "history.json").read_bytes()
    found = {**SOUND, "scenario.json": scenario, "both.json": scenario, "of.json": scenario, "history.json": history}
    found["system.json"] = (CORPUS / "graphs" / "worked-example.json").read_bytes()
    found["corpus/A01.json"] = (CORPUS / "A01.json").read_bytes()
    found["workload.json"] = json.dumps(tomllib.loads(SOUND["workload.toml"].decode())).encode()
    violated = read_scenario(CORPUS / "A01.json")
    replayed = replay(subject_called("simulated", violated.defect), violated)
    folder = tmp_path_factory.mktemp("sound") / "run"
    with RunFolder(folder) as kept:
        kept.finish(report_of(replayed, "simulated", "cutproof replay x"))
    found["run/view.json"] = (folder / "view.json").read_bytes()
    return found


def _broken(sound: bytes) -> Iterator[tuple[str, bytes]]:
    """The same file with its bytes broken, and files of any form that are none of any kind."""
    middle = len(sound) // 2
    yield from {
        "empty": b"",
        "blank": b" \n",
        "cut off": sound[:middle],
        "NUL": sound[:middle] + b"\0" + sound[middle:],
        "only NUL": b"\0" * 100,
        "a byte order mark": b"\xef\xbb\xbf" + sound,
        "no UTF-8": sound[:20] + b"\xff\xfe" + sound[20:],
        "UTF-16": sound.decode().encode("utf-16"),
        "Latin-1": sound.replace(b"e", b"\xe9", 1),
        "deep lists": b"[" * 100_000,
        "deep tables": b'{"a":' * 100_000,
        "deep TOML": b"a = " + b"[" * 5_000 + b"]" * 5_000,
        "a long key": b"a" + b".a" * 50_000 + b" = 1",
        "a long text": b'"' + b"x" * 50_000 + b'"',
        "a long name": b'{"' + b"k" * 50_000 + b'": 1}',
        "a long setting": b"k" * 50_000 + b" = 1",
        "a long number": b"a = " + b"9" * 50_000,
        "a number": b"1e999",
        "NaN": b'{"format": NaN}',
        "the same twice": b'{"format": "a", "format": "b"}',
        "the same twice in TOML": b"a = 1\na = 2",
        "a long list": b"[" + b"0," * 100_000 + b"0]",
    }.items()


VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63 - 1, 2**64, 10**30, -(10**18), 1.5, 1e308, "", "x" * 50_000, "../../etc",
    [], {}, [[]], [None], {"a": 1}, "\0", "\ud800", "é",
)  # fmt: skip


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*place, key))


def _mutants(sound: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """The same JSON with one value another, gone, repeated, or an unknown one beside it."""
    draw = random.Random(seed)
    base = json.loads(sound)
    places = [place for place in _places(base) if place]
    for number in range(MUTANTS):
        mutant = copy.deepcopy(base)
        *way, last = draw.choice(places)
        holder = mutant
        for key in way:
            holder = holder[key]
        what = draw.randrange(8)
        if what == 0:
            del holder[last]
        elif what == 1 and isinstance(holder, list):
            holder *= 30
        elif what == 2 and isinstance(holder, dict):
            holder["x" * draw.choice((1, 50_000))] = 1
        else:
            holder[last] = draw.choice(VALUES)
        yield f"mutant {number} at {(*way, last)}", json.dumps(mutant).encode()


@pytest.fixture
def folder(tmp_path: Path, sound: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("run", "corpus", "taken"):
        (tmp_path / name).mkdir()
    (tmp_path / "taken" / "foreign").write_text("")
    (tmp_path / "sound.json").write_bytes(sound["scenario.json"])
    (tmp_path / "sound-history.json").write_bytes(sound["history.json"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _assert_reported_well(name: str, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = main(WORDS[name])
    seconds = time.process_time() - began  # this process's own work: others may keep it waiting
    printed = capsys.readouterr().err
    assert code in (0, 1, 2, 3), (how, code, printed[:500])
    if code == 2:
        (line,) = printed.splitlines()
        assert len(line) <= LINE, (how, len(line))
    assert seconds < SECONDS, (how, seconds)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < BYTES, how


@pytest.mark.parametrize("name", WORDS)
def test_broken_bytes(name: str, folder: Path, sound: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    for how, data in _broken(sound[name]):
        (folder / name).write_bytes(data)
        _assert_reported_well(name, how, capsys)


@pytest.mark.parametrize("name", [name for name in WORDS if name.endswith(".json")])
def test_broken_values(name: str, folder: Path, sound: dict[str, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    for how, data in _mutants(sound[name], seed=len(name)):
        (folder / name).write_bytes(data)
        _assert_reported_well(name, how, capsys)


@pytest.mark.parametrize("name", WORDS)
def test_what_is_no_file(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / name
    _assert_reported_well(name, "missing", capsys)
    path.mkdir()
    _assert_reported_well(name, "a folder", capsys)
    path.rmdir()
    os.mkfifo(path)
    _assert_reported_well(name, "a pipe", capsys)
    path.unlink()
    for target in ("/dev/zero", path.name):
        path.symlink_to(target)
        _assert_reported_well(name, f"a link to {target}", capsys)
        path.unlink()


@pytest.mark.parametrize(
    "settings", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}]
)
def test_a_story_is_printed_to_its_end_where_characters_cannot_be_shown(
    settings: dict[str, str], tmp_path: Path
) -> None:
    words = ("replay", "--quick", "--story", CORPUS / "A01.json")
    shown = cutproof_command(tmp_path, *words)
    done = cutproof_command(tmp_path, *words, env=environment(**settings, PYTHONCOERCECLOCALE="0"))
    assert (done.returncode, done.stderr) == (shown.returncode, "")
    assert done.stdout.isascii()
    assert done.stdout == shown.stdout.encode("ascii", "backslashreplace").decode()
    assert not shown.stdout.isascii()
