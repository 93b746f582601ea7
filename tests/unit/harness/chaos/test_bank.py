"""The bank: what is written is whole, what is broken is put aside, and only one job has it open."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cutproof.harness.chaos import bank as module
from cutproof.harness.chaos.bank import Bank
from cutproof.harness.chaos.index import index_of, made, with_nights, write_index
from cutproof.harness.chaos.night import NightLog
from cutproof.harness.runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from cutproof.harness.search.coverage import CoverageTarget, in_a_table, in_words
from cutproof.reports.nights.model import Replay
from end_to_end.command_line import environment
from unit.harness.chaos.banks import NOON, failure, files_in, night, unshrunk
from unit.harness.scenarios import chain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bank with a failure, a night, and a failing scenario that is still to be shrunk."""
    with Bank(tmp_path / "bank") as bank:
        bank.write_night(night())
        bank.add_unshrunk(unshrunk(night()))
        bank.add_failure(failure(), chain())
    return tmp_path / "bank"


def test_what_was_written_is_read_again(folder: Path) -> None:
    with Bank(folder) as bank:
        assert bank.failures == {failure().id: failure()}
        assert bank.scenario(failure().id) == chain()
        assert bank.nights == [night()]
        assert list(bank.unshrunk.values()) == [unshrunk(night())]
        assert bank.remarks == []


def test_a_failure_is_never_changed(folder: Path) -> None:
    before = files_in(folder)
    with Bank(folder) as bank:
        bank.add_failure(failure(day=3), chain(6))
    assert files_in(folder) == before


BREAKAGES = {
    "half written": ("failures/ID/failure.json", b'{"format": "cutproof-fail', "is cut off"),
    "empty": ("nights/NIGHT/night.json", b"", "empty"),
    "no scenario": ("failures/ID/scenario.json", b"{}", "its format is ''"),
    "of another kind": ("failures/ID/failure.json", b'{"format": "cutproof-night/1"}', "its format is"),
    "a wrong type": ("nights/NIGHT/night.json", b'{"format": "cutproof-night/1", "id": 3}', "cannot be read"),
    "a stranger": ("failures/notes.txt", b"remember the milk", "no folder of a bank"),
    "a half failing scenario": ("nights/NIGHT/unshrunk/STEM", b'{"form', "is cut off"),
    "the bank's own file": ("bank.json", b"\xff", "not UTF-8"),
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_broken_is_named_put_aside_and_not_lost(folder: Path, name: str) -> None:
    place, data, words = BREAKAGES[name]
    stem = unshrunk(night()).name
    path = folder / place.replace("ID", failure().id).replace("NIGHT", night().id).replace("STEM", stem)
    path.write_bytes(data)
    with Bank(folder) as bank:
        (remark,) = bank.remarks
        assert words in remark
        assert "\n" not in remark
        assert bool(bank.failures) is (not place.startswith("failures/ID"))
    aside = files_in(folder / "aside")
    assert data in aside.values()
    with Bank(folder) as bank:
        assert bank.remarks == [], "it is put aside once"


def test_what_a_write_that_was_cut_off_has_left_is_removed(folder: Path) -> None:
    before = files_in(folder)
    (folder / "failures" / ".abcdef012345-00").mkdir()
    (folder / "failures" / ".abcdef012345-00" / "failure.json").write_bytes(b"{")
    (folder / "nights" / night().id / ".night.json.x1").write_bytes(b"{")
    place = folder / "failures" / failure().id
    place.rename(place.with_name(f".old-{failure().id}"))  # a failure was being replaced
    with Bank(folder) as bank:
        assert bank.remarks == []
    assert files_in(folder) == before


@pytest.mark.parametrize("name", ["bank.json", f"failures/{failure().id}/failure.json"])
def test_a_later_version_is_refused_and_nothing_is_touched(folder: Path, name: str) -> None:
    text = (folder / name).read_bytes()
    (folder / name).write_bytes(text.replace(b'/1"', b'/2"', 1))
    before = files_in(folder)
    with pytest.raises(UsageError, match=r"later version.*update cutproof"):
        Bank(folder)
    assert files_in(folder) == before


def test_another_folder_is_no_bank(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("chapter one")
    with pytest.raises(UsageError, match=r"no bank.*bank\.json"):
        Bank(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_only_one_job_has_it_open_and_a_kill_frees_it(folder: Path) -> None:
    holding = f"""
from pathlib import Path
from cutproof.harness.chaos.bank import Bank
bank = Bank(Path({str(folder)!r}))
print("open", flush=True)
input()
"""
    words = [sys.executable, "-c", holding]
    with subprocess.Popen(words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "open\n"
        with pytest.raises(UsageError, match="another job has the bank"):
            Bank(folder)
        os.kill(job.pid, signal.SIGKILL)
        job.wait()
    with Bank(folder) as bank:
        assert bank.failures


def test_a_full_disk_is_one_line_and_the_bank_stays_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = files_in(folder)
    with Bank(folder) as bank:
        monkeypatch.setattr(module, "write_whole", full)
        for write in (
            lambda: bank.add_failure(failure("two"), chain()),
            lambda: bank.write_night(night("b")),
            lambda: bank.add_unshrunk(unshrunk(night(), 8)),
        ):
            with pytest.raises(HarnessFailed, match="No space left on device; what was written before") as told:
                write()
            assert told.value.exit_code == ExitCode.HARNESS_FAILED
    monkeypatch.undo()
    with Bank(folder) as bank:
        assert bank.failures == {failure().id: failure()}
    assert {name: data for name, data in files_in(folder).items() if name in before} == before


def test_a_clock_that_goes_back_is_told_and_the_order_stays(folder: Path) -> None:
    with Bank(folder) as bank:
        yesterday = NOON.replace(year=2020)
        log = NightLog(bank, version="1", budget_s=1.0, now=yesterday)
        assert [one.id for one in bank.nights] == [night().id, log.night.id]
        assert any("the clock went back" in words for words in log.night.words)
        assert log.today == NOON.date(), "an expiry does not come back to life"


def test_a_night_without_a_time_zone_is_put_aside_and_ends_no_later_night(folder: Path) -> None:
    path = folder / "nights" / night().id / "night.json"
    path.write_bytes(path.read_bytes().replace(b'"began": "2026-03-01T12:00:00Z"', b'"began": "2026-03-01T12:00:00"'))
    with Bank(folder) as bank:
        assert len(bank.remarks) == 1
        NightLog(bank, version="1", budget_s=1.0)


def test_the_index_follows_from_the_nights(folder: Path) -> None:
    with Bank(folder) as bank:
        bank.write_night(night("b", day=1, scenarios=5, one="still_failing"))
        write_index(bank)
        assert index_of(bank) == made(bank.nights)
        assert index_of(bank).hits == {"simulated": {"x": 5}}
        (folder / "index.json").write_bytes(b"{")
        assert index_of(bank) == made(bank.nights), "a broken one is made again"
        write_index(bank)
        bank.write_night(night("c", day=2, one="fixed"))
        assert index_of(bank).standings[failure().id].fixed, "a later night is added"
        bank.write_night(night("early", day=-1, scenarios=9))
        assert index_of(bank) == made(bank.nights), "with a night in between it is made again"


def test_the_runs_that_held_are_counted_since_the_last_that_did_not() -> None:
    index = made([night("a", one="flaky"), night("b", day=1, one="not_reached"), night("c", day=2, one="fixed")])
    assert index.standings[failure().id].held == 0
    held = [Replay(failure=failure().id, status="not_reached", runs=10, held=10)]
    later = [replace(night(name, day=day), replays=held) for day, name in ((3, "d"), (4, "e"))]
    assert with_nights(index, later).standings[failure().id].held == 20
    broken = Replay(failure=failure().id, status="flaky", runs=8, violated=1)
    assert with_nights(index, [replace(night("f", day=5), replays=[broken])]).standings[failure().id].held == 0


HITS = {
    CoverageTarget(alignment="aligned", ending="finished", point="ack-sent", fault="kill-task"): 3,
    CoverageTarget(alignment="aligned", ending="finished", point="ack-sent", fault="fail-write"): 12,
    CoverageTarget(alignment="none", ending="failed", point="row-written", fault="kill-task"): 1,
}


def test_a_night_of_an_earlier_version_is_read_as_one_of_this(folder: Path) -> None:
    """Each target stood in words; one that nobody knows any more stays so."""
    words = {in_words(target): count for target, count in HITS.items()}
    path = folder / "nights" / night().id / "night.json"
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"x": 0', msgspec.json.encode(words | {"x at y": 7})[1:-1]))
    with Bank(folder) as bank:
        (one,) = bank.nights[0].subjects
        assert one.targets == in_a_table(HITS)
        assert one.targets.rows == {"aligned finished ack-sent": "3,12", "none failed row-written": "1"}
        assert one.hits == {"x at y": 7}
        assert index_of(bank).hits == {"simulated": words | {"x at y": 7}}


def test_a_table_with_anything_but_counts_makes_a_night_unreadable(folder: Path) -> None:
    path = folder / "nights" / night().id / "night.json"
    text = path.read_bytes()
    for row in (b"1,two", b"1,2", b"1" * 5_000):
        table = b'"targets": {"columns": ["kill-task"], "rows": {"aligned finished ack-sent": "%s"}}' % row
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(re.sub(rb'"targets": \{.*?\}\s*\}', lambda _, table=table: table, text, flags=re.DOTALL))
        with Bank(folder) as bank:
            (remark,) = bank.remarks
            assert "a table of counts" in remark


def test_what_is_found_is_on_the_disk_before_it_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    named, rename = os.replace, Path.rename
    monkeypatch.setattr(os, "fsync", lambda _: done.append("on the disk"))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("named"), named(*names)))
    monkeypatch.setattr(Path, "rename", lambda *names: (done.append("in its place"), rename(*names))[1])
    with Bank(folder) as bank:
        done.clear()
        bank.add_failure(failure("two"), chain())
        file = ["on the disk", "named", "on the disk"]
        assert done == [*file, *file, "in its place", "on the disk"]
        done.clear()
        bank.write_night(night("b"))
        bank.write_night(night("b", scenarios=1))
        assert done == [*file, "in its place", "on the disk", "named"]
        done.clear()
        bank.add_unshrunk(unshrunk(night("b"), 8))
    assert done == ["on the disk", *file]
