"""Directories that former versions of the engine wrote: a job begins from each of their snapshots.

`version-1-store` was written by the last engine that knew version 1 of a snapshot, its history too.  That of version 2
was left by `replay --snapshots` of the same scenario.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import read_scenario
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.run import run
from cutproof.properties.model.history import AttemptStarted
from cutproof.properties.model.verdict import Violated
from cutproof.reference_impl.core.vocabulary.formats import VERSION
from cutproof.reference_impl.processes.disk.durable import sealed
from unit.harness.reference_engine.snapshots.continuing import assert_it_holds, begun
from unit.harness.reference_engine.snapshots.stores import refused, tool, tree
from unit.simulated.worlds import journal

KEPT = Path(__file__).parents[3] / "core" / "vocabulary" / "snapshots"
VERSIONS = tuple(range(1, VERSION + 1))
SNAPSHOTS = ("1", "2", "3")
OWED = [
    (0, 4, 2010, 0), (1, 2, 1004, 0), (2, 2, 1006, 0), (0, 6, 3024, 0), (1, 6, 3030, 0), (2, 4, 2018, 0),
    (0, 8, 4044, 0), (1, 8, 4052, 0), (2, 8, 4060, 0),
]  # fmt: skip
"""sums by key of the counts of windows of 12: of 24 records with three keys, in two splits"""


def store(version: int) -> Path:
    return KEPT / f"version-{version}-store"


def going_on(version: int, **engine: Any) -> Scenario:
    """The job of the store, without the commands that took its snapshots."""
    scenario = read_scenario(store(version) / "run" / "scenario.json")
    return replace(scenario, commands=(), engine=replace(scenario.engine, **engine))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_of_a_store_has_its_version(version: int) -> None:
    files = [path.read_bytes() for path in (store(version) / "snapshots").rglob("*") if path.is_file()]
    assert len(files) == 12
    assert {data.startswith(b"cutproof-snapshot/") for data in files} == {version > 1}
    assert all(data.startswith(b"cutproof-snapshot/%d canonical " % version) for data in files if version > 1)
    assert [str(number) for number in Directory(store(version)).records] == [*SNAPSHOTS]


@pytest.mark.parametrize("backend", ["heap", "lsm"])
@pytest.mark.parametrize("snapshot", SNAPSHOTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_begins_from_it_and_commits_what_is_owed(version: int, snapshot: str, backend: str) -> None:
    """Windows and sums by key, timers, positions; with 2 and 3 the sink has a sealed transaction to commit, too."""
    before = tree(store(version))
    result = begun(store(version), SimulatedSubject(), going_on(version, state_backend=backend), snapshot)
    assert_it_holds(result)
    assert journal(AttemptStarted, result.history)[-1].restores == int(snapshot)
    assert sum(one.loaded is not None for one in result.history.runs) == 4, "each task has restored its state"
    assert result.history.committed == OWED
    assert tree(store(version)) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_it_begins_at_another_parallelism(version: int) -> None:
    scenario = going_on(version)
    wide = lay_out(scenario.workload, dict.fromkeys(scenario.topology.parallelism, 2))
    for snapshot in SNAPSHOTS:
        result = begun(store(version), SimulatedSubject(), replace(scenario, topology=wide), snapshot)
        assert_it_holds(result)
        assert sorted(result.history.committed) == sorted(OWED)


def test_an_undisturbed_job_owes_the_same() -> None:
    assert run(SimulatedSubject(), going_on(VERSION)).history.committed == OWED


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("defect", "snapshot", "invariant"),
    [
        ("F16", "1", "exactly-once"),  # a restored position is replaced by a new one
        ("I19", "2", "restored-state"),  # restored transactions are aborted
        ("L06", "1", "restored-state"),  # timers are dropped
    ],
)
def test_a_job_that_loses_what_it_restores_is_caught(version: int, defect: str, snapshot: str, invariant: str) -> None:
    result = begun(store(version), SimulatedSubject(defect), going_on(version), snapshot)
    assert isinstance(result.judgement.verdicts[invariant], Violated)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_tool_knows_it(version: int, tmp_path: Path) -> None:
    """Converted, a snapshot of version 1 is one of today's."""
    root = Path(shutil.copytree(store(version), tmp_path / "store"))
    assert tool("verify", root)[0] == 0
    code, found, _ = tool("fork", root, "newest", tmp_path / "native", "--to", "native")
    assert code == 0
    assert found["change"]["was_done"] is False
    assert_it_holds(begun(tmp_path / "native", SimulatedSubject(), going_on(version)))
    assert tool("convert", tmp_path / "native", "newest", "--to", "canonical")[0] == 0
    files = [path.read_bytes() for path in (tmp_path / "native" / "snapshots").rglob("*") if path.is_file()]
    assert {data.partition(b" ")[0] for data in files} == {b"cutproof-snapshot/%d" % VERSION}


# -- and of later ones -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (b'cutproof-record/2 0123abcd\n{"checkpoint":3}', "it has version 2 of the format of records"),
        (b"cutproof-record/10\n" + bytes(range(256)), "it has version 10 of the format of records"),
        (None, "unknown field `later`"),
    ],
    ids=["another form", "no JSON", "another field"],
)
def test_a_record_of_a_later_version_is_refused_in_one_line(record: bytes | None, what: str, tmp_path: Path) -> None:
    root = Path(shutil.copytree(store(VERSION), tmp_path / "store"))
    path = root / "records" / "chk-3"
    path.write_bytes(record or sealed({**msgspec.json.decode(path.read_bytes()[9:]), "later": 1}))
    code, found, _ = tool("list", root)
    assert (code, found["newest"]) == (0, None)
    (unreadable,) = found["unreadable"]
    assert what in unreadable["problem"]
    assert "\n" not in unreadable["problem"]
    before = tree(root)
    for words in (["convert", root, "2", "--to", "native"], ["delete", root, "2"]):
        assert what in refused(*words)
    assert tree(root) == before
