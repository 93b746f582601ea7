"""A job that begins from a snapshot in a directory: what it may begin with, and what is refused in one line."""

from __future__ import annotations

import io
import json
import shutil
import zlib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cutproof.faults.plan import AtPoint, AtRest, AtTime, KillTask
from cutproof.harness.cli.entry import main
from cutproof.harness.reference_engine.snapshots.directory import Directory
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.harness.scenario.files import write_scenario
from cutproof.harness.scenario.model import (
    Cancel,
    CopySnapshot,
    Fork,
    MoveSnapshot,
    Resume,
    Scenario,
    StopWithSavepoint,
    kind_of,
)
from cutproof.properties.model.history import AttemptStarted, CommandIssued, JobEnded
from cutproof.properties.model.upgrade import Upgrade
from cutproof.properties.model.verdict import Violated
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.vocabulary.ids import Handle, TaskId
from cutproof.reference_impl.processes.disk.files import DiskFiles
from unit.harness.reference_engine.snapshots.continuing import STOP, assert_it_holds, begun, left, stopped, unstopped
from unit.harness.reference_engine.snapshots.stores import left_by_a_job, tool, tree
from unit.simulated.overtaken import in_flight
from unit.simulated.overtaken import job as overtaking
from unit.simulated.worlds import job, journal


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "kept"
    left(folder, SimulatedSubject(), stopped())
    return folder


@pytest.fixture
def kept(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "kept"))


def cli(*words: object) -> tuple[int, dict[str, Any], str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, words), "--json"])
    return code, json.loads(out.getvalue()), err.getvalue()


def refusal(folder: Path, scenario: Scenario, snapshot: str = "newest") -> str:
    """The one line with which `replay --from` refuses."""
    path = folder.parent / "scenario.json"
    write_scenario(path, scenario)
    code, _, err = cli("replay", path, "--from", folder, "--snapshot", snapshot, "--quick")
    (line,) = err.splitlines()
    assert code == 2
    return line


# -- it goes on --------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["heap", "lsm"])
@pytest.mark.parametrize("snapshot_format", ["canonical", "native", "incremental"])
@pytest.mark.parametrize("backend", ["heap", "lsm"])
def test_a_job_goes_on_where_the_snapshot_was_taken(
    tmp_path: Path, backend: str, snapshot_format: str, to: str
) -> None:
    settings = {"state_backend": backend, "snapshot_format": snapshot_format, "memtable_entries": 1}
    before = left(tmp_path / "kept", SimulatedSubject(), stopped(**settings))
    (end,) = journal(JobEnded, before.history)
    result = begun(tmp_path / "kept", SimulatedSubject(), unstopped(state_backend=to, memtable_entries=1))
    assert_it_holds(result)
    assert end.status == "stopped"
    assert [one.restores for one in journal(AttemptStarted, result.history)] == [None, end.checkpoint]
    assert [one.status for one in journal(JobEnded, result.history)] == ["stopped", "finished"]
    assert [one.job for one in journal(JobEnded, result.history)] == [1, 2]


def test_each_snapshot_may_be_the_one_even_twice_and_at_another_parallelism(kept: Path) -> None:
    """What the run before had done behind it counts as never done; the directory stays as it is."""
    before = tree(kept)
    wide = job(60, *(node.operator for node in unstopped().workload.nodes), width=2).topology
    snapshots = [str(number) for number in Directory(kept).records]
    assert len(snapshots) >= 3
    for snapshot in snapshots:
        for topology in (unstopped().topology, wide):
            result = begun(kept, SimulatedSubject(), replace(unstopped(), topology=topology), snapshot)
            assert_it_holds(result)
            started = journal(AttemptStarted, result.history)
            assert started[-1].restores == int(snapshot)
    assert tree(kept) == before


def test_a_resume_that_never_came_widens_no_job(tmp_path: Path) -> None:
    """The job before ends without the stop, so its second job does not run; the job after it is as wide as planned."""
    wide = job(60, *(node.operator for node in unstopped().workload.nodes), width=2).topology
    stop = replace(STOP[1], trigger=AtPoint(point="checkpoint-completed", occurrence=999))
    resume = Resume(trigger=AtTime(at_us=0), parallelism=dict.fromkeys(wide.parallelism, 2))
    left(tmp_path / "first", SimulatedSubject(), replace(unstopped(), commands=(stop, resume)))
    middle = SimulatedSubject()
    middle.leave_in(tmp_path / "second")
    assert_it_holds(begun(tmp_path / "first", middle, unstopped(), str(min(Directory(tmp_path / "first").records))))
    result = begun(tmp_path / "second", SimulatedSubject(), replace(unstopped(), topology=wide))
    assert_it_holds(result)
    issued = journal(CommandIssued, result.history)[-1]
    assert issued.parallelism == {name: 2 for name, number in unstopped().topology.parallelism.items() if number != 2}


def test_a_run_that_began_from_a_snapshot_leaves_its_own(kept: Path, tmp_path: Path) -> None:
    """Three runs are one history; its numbers of commands are those of one scenario."""
    middle, last = SimulatedSubject(), SimulatedSubject()
    middle.leave_in(tmp_path / "next")
    assert_it_holds(begun(kept, middle, stopped(), str(min(Directory(kept).records))))
    result = begun(tmp_path / "next", last, unstopped(), "newest")
    assert_it_holds(result)
    kinds = [kind_of(command) for command in result.scenario.commands]
    assert kinds[len(STOP) :] == ["cancel", "resume", "savepoint", "stop-with-savepoint", "resume"]
    issued = journal(CommandIssued, result.history)
    assert [(one.command, one.kind) for one in issued] == [*enumerate(kinds)][len(STOP) :], "the first ones came later"
    code, found, _ = cli("judge", tmp_path / "next" / "run" / "history.json", "--quick")
    assert (code, found["format"]) == (0, "cutproof-judge/1")


def test_a_run_that_upgraded_its_job_cannot_be_continued(tmp_path: Path) -> None:
    """The operators have uids there that no new scenario gives them."""
    other = {"source": "other"}
    upgraded = Resume(trigger=AtTime(at_us=100), upgrade=Upgrade(renamed=other, moves=other))
    left(tmp_path / "kept", SimulatedSubject(), replace(stopped(), commands=(*STOP, upgraded)))
    with pytest.raises(UsageError, match="has upgraded its job, and a new run does not know the uids"):
        begun(tmp_path / "kept", SimulatedSubject(), unstopped())


def test_what_was_not_applied_has_its_number_in_the_scenario_of_both_runs(tmp_path: Path) -> None:
    """The run before had a fault that was not applied either: of that its own history tells."""
    never = AtPoint(point="checkpoint-completed", occurrence=999)
    lost = KillTask(trigger=never, task="op0-0")
    left(tmp_path / "kept", SimulatedSubject(), replace(stopped(), faults=(lost,)))
    late = replace(unstopped(), faults=(lost,), commands=(Cancel(trigger=never),))
    result = begun(tmp_path / "kept", SimulatedSubject(), late)
    assert result.history.unapplied == ["fault 1: kill-task", "command 3: cancel"]
    assert kind_of(result.scenario.commands[3]) == "cancel"
    assert len(result.scenario.faults) == 2


@pytest.mark.parametrize("kind", [CopySnapshot, MoveSnapshot])
def test_the_copies_that_a_user_had_made_are_not_looked_for_in_the_next_run(tmp_path: Path, kind: Any) -> None:
    at = AtPoint(point="checkpoint-completed", occurrence=3)
    stop = StopWithSavepoint(trigger=AtPoint(point="checkpoint-completed", occurrence=4))
    commands = (STOP[0], kind(trigger=at, snapshot="kept"), stop)
    before = left(tmp_path / "kept", SimulatedSubject(), replace(unstopped(), commands=commands))
    assert before.judgement.violated == {}
    assert before.history.residue is not None
    assert before.history.residue.copies
    assert_it_holds(begun(tmp_path / "kept", SimulatedSubject(), unstopped()))


def test_a_snapshot_that_a_job_before_did_not_claim_stays(tmp_path: Path) -> None:
    """It is a checkpoint, which newer ones would subsume if nobody remembered whose it is."""
    cancel = Cancel(trigger=AtPoint(point="checkpoint-completed", occurrence=2))
    resume = Resume(trigger=AtTime(at_us=100), claim_mode="no-claim")
    before = replace(unstopped(retained_checkpoints=1), commands=(cancel, resume))
    history = left(tmp_path / "kept", SimulatedSubject(), before).history
    named = journal(AttemptStarted, history)[-1].restores
    assert named is not None
    assert not next(one for one in history.completed if one.checkpoint == named).savepoint
    result = begun(tmp_path / "kept", SimulatedSubject(), unstopped(retained_checkpoints=1))
    assert result.judgement.violated == {}
    assert result.history.residue is not None
    assert named in result.history.residue.retained


def test_a_fork_of_the_tool_is_begun_from(kept: Path, tmp_path: Path) -> None:
    oldest = str(min(Directory(kept).records))
    code, _, _ = tool("fork", kept, oldest, tmp_path / "forked", "--to", "native")
    assert code == 0
    assert_it_holds(begun(tmp_path / "forked", SimulatedSubject(), unstopped(), oldest))


@pytest.mark.parametrize("to", ["canonical", "native", "incremental"])
@pytest.mark.parametrize("taken", ["canonical", "native", "incremental"])
def test_a_newest_snapshot_that_was_converted_is_begun_from(tmp_path: Path, taken: str, to: str) -> None:
    """Conversion gives its files other names than the history of its run has; its job retains it, and needs them."""
    kept, forked = tmp_path / "kept", tmp_path / "forked"
    left(kept, SimulatedSubject(), stopped(snapshot_format=taken))
    assert tool("fork", kept, "newest", forked, "--to", to)[0] == 0
    assert_it_holds(begun(forked, SimulatedSubject(), unstopped(snapshot_format=taken)))


@pytest.mark.parametrize("taken", ["canonical", "incremental"])
def test_an_older_savepoint_that_was_converted_stays(tmp_path: Path, taken: str) -> None:
    """The job begins from the newest snapshot, and the older one is still its user's."""
    kept = tmp_path / "kept"
    left(kept, SimulatedSubject(), stopped(snapshot_format=taken))
    saved = next(number for number, one in Directory(kept).records.items() if one.savepoint)
    assert saved < max(Directory(kept).records)
    assert tool("convert", kept, saved, "--to", "native")[1]["change"]["was_done"] is False
    result = begun(kept, SimulatedSubject(), unstopped(snapshot_format=taken))
    assert_it_holds(result)
    assert result.history.residue is not None
    assert saved in result.history.residue.retained


def test_a_finished_task_whose_state_was_converted_in_one_of_two_snapshots(tmp_path: Path) -> None:
    """Both have its last state in one file; converted, the newer one has a file of its own."""
    kept, short = tmp_path / "kept", job(200, Count(), splits=2, width=2, retained_checkpoints=4)
    (source,) = short.workload.inputs
    inputs = (replace(source, splits=(source.splits[0][:2], source.splits[1])),)
    short = replace(short, workload=replace(short.workload, inputs=inputs))
    stop = replace(STOP[1], trigger=AtPoint(point="checkpoint-completed", occurrence=3))
    left(kept, SimulatedSubject(), replace(short, commands=(STOP[0], stop)))
    (saved, older), (newest, newer) = ((at, one) for at, one in Directory(kept).records.items() if one.savepoint)
    assert set(older.handles.values()) & set(newer.handles.values()), "the last state of the finished task is in both"
    for converted in (newest, saved):
        assert tool("convert", kept, converted, "--to", "native")[0] == 0
        result = begun(kept, SimulatedSubject(), short)
        assert result.judgement.violated == {}
        assert result.history.residue is not None
        assert saved in result.history.residue.retained


@pytest.mark.parametrize(
    ("defect", "snapshot", "invariant", "difference"),
    [
        ("F16", "1", "restored-state", "loaded state differs"),  # a restored position is replaced by a new one
        ("F08", "2", "drain", "window left"),  # another snapshot is restored
        ("I19", "2", "restored-state", "loaded state differs"),  # restored transactions are aborted
        ("L02", "1", "restored-state", "loaded state differs"),  # watermarks are not restored
        ("L06", "1", "restored-state", "loaded state differs"),  # timers are dropped
    ],
)
def test_a_job_that_loses_what_it_restores_is_caught(
    kept: Path, defect: str, snapshot: str, invariant: str, difference: str
) -> None:
    verdict = begun(kept, SimulatedSubject(defect), unstopped(), snapshot).judgement.verdicts[invariant]
    assert isinstance(verdict, Violated)
    assert verdict.difference == difference


def test_a_violation_of_the_job_that_goes_on_has_the_exit_code_1(kept: Path, tmp_path: Path) -> None:
    write_scenario(tmp_path / "scenario.json", unstopped())
    words = ("replay", tmp_path / "scenario.json", "--from", kept, "--quick")
    assert cli(*words)[0] == 0
    code, found, _ = cli(*words, "--snapshot", "1", "--defect", "F16")
    assert (code, found["verdicts"]["exactly-once"]["verdict"]) == (1, "violated")


@pytest.mark.parametrize("width", [2, 1])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"alignment": "aligned"}),
        ({"spilling": "continuous"}, {"alignment": "aligned"}),
        ({"spilling": "continuous"}, {"spilling": "at-once"}),
        ({"spilling": "continuous", "spill_store": "files"}, {"spilling": "buffer-timeout", "spill_store": "log"}),
    ],
    ids=["aligned", "spilled and aligned", "spilled and at once", "another spill store"],
)
def test_what_was_in_flight_is_put_back_however_the_next_job_aligns_and_spills(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], width: int
) -> None:
    cancelled = replace(overtaking(**before), commands=(Cancel(trigger=AtTime(at_us=6_000)),))
    first = left(tmp_path / "kept", SimulatedSubject(), cancelled)
    newest = max(in_flight(first.history))
    assert in_flight(first.history)[newest], "barriers have overtaken records"
    result = begun(tmp_path / "kept", SimulatedSubject(), overtaking(**{**before, **after}, width=width))
    assert_it_holds(result)
    restored = [one for one in result.history.journal if isinstance(one, AttemptStarted) and one.restores == newest]
    assert [one.job for one in restored] == [2]


# -- it is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        (job(60, Count()), "holds snapshots of another workload: its inputs and nodes differ"),
        (unstopped(sink="plain"), "engine.sink is 'plain', and was 'transactional'"),
        (unstopped(committing="committer"), "engine.committing is 'committer', and was 'writer'"),
        (unstopped(pooled_ids=True), "engine.pooled_ids: transactional ids belong to one run"),
        (replace(unstopped(), commands=(Fork(trigger=AtRest(), snapshot="each"),)), "no command fork"),
        (replace(unstopped(), topology=replace(unstopped().topology, key_groups=64)), "topology.key_groups is 64"),
    ],
    ids=["workload", "sink", "committing", "pooled", "fork", "key-groups"],
)
def test_a_scenario_that_does_not_fit_is_refused(kept: Path, scenario: Scenario, named: str) -> None:
    assert named in refusal(kept, scenario)


def test_a_snapshot_that_is_not_there_is_named(kept: Path, tmp_path: Path) -> None:
    assert "no snapshot 77" in refusal(kept, unstopped(), "77")
    assert str(tmp_path / "none") in refusal(tmp_path / "none", unstopped())


def state_file(kept: Path, task: str = "op0-0") -> Path:
    record = Directory(kept).record(Directory(kept).number("newest"))
    return Directory(kept).path(next(handle for name, handle in record.handles.items() if name == task))


def torn(data: bytes) -> bytes:
    return data[:-3]


def newer(data: bytes) -> bytes:
    front, _, body = data.replace(b"snapshot/2", b"snapshot/9").partition(b"\n")
    front = front[: front.rindex(b" ") + 1]
    return front + b"%08x\n" % zlib.crc32(front + body) + body


def foreign(data: bytes) -> bytes:
    """Another state, and the checksum that it should have."""
    front, _, body = data.partition(b"\n")
    front, body = front[: front.rindex(b" ") + 1], b"{}"
    return front + b"%08x\n" % zlib.crc32(front + body) + body


@pytest.mark.parametrize(
    ("damage", "named"),
    [(torn, "checksum"), (newer, "version 9 of the format"), (foreign, "holds another state of op0-0 than its run")],
)
def test_a_damaged_or_foreign_state_is_refused(kept: Path, damage: Callable[[bytes], bytes], named: str) -> None:
    path = state_file(kept)
    path.write_bytes(damage(path.read_bytes()))
    assert named in refusal(kept, unstopped())


@pytest.mark.parametrize("damage", ["missing", "torn", "of another state", "of no state"])
def test_an_older_snapshot_that_is_not_whole_is_named(kept: Path, damage: str) -> None:
    """The job would retain it, and could not restore it."""
    older, record = next((number, one) for number, one in Directory(kept).records.items() if one.savepoint)
    path = Directory(kept).path(record.handles[TaskId("op0-0")])
    if damage == "missing":
        path.unlink()
    elif damage == "of no state":
        extra = {TaskId("op0-0"): (Handle("job-1/chk-2/gone"),)}
        DiskFiles(kept).store(replace(record, files=extra))
    else:
        path.write_bytes((torn if damage == "torn" else foreign)(path.read_bytes()))
    line = refusal(kept, unstopped())
    assert f"snapshot {older}" in line
    assert ("gone" if damage == "of no state" else "op0-0") in line
    assert "delete it first" in line
    assert tool("delete", kept, older)[0] == 0
    assert_it_holds(begun(kept, SimulatedSubject(), unstopped()))


def test_a_missing_file_and_a_missing_run_are_named(kept: Path, tmp_path: Path) -> None:
    store = left_by_a_job(tmp_path / "store")
    assert "does not say which run took its snapshots" in refusal(store, unstopped())
    path = state_file(kept)
    path.unlink()
    assert path.name in refusal(kept, unstopped())


def test_a_run_leaves_a_new_directory_or_says_why_not(tmp_path: Path) -> None:
    write_scenario(tmp_path / "scenario.json", unstopped())
    words = ("replay", tmp_path / "scenario.json", "--quick", "--snapshots")
    (tmp_path / "there").mkdir()
    assert "is there already" in cli(*words, tmp_path / "there")[2]
    assert "make it first" in cli(*words, tmp_path / "no" / "where")[2]
    (tmp_path / ".kept.unfinished").mkdir()
    assert "is in the way" in cli(*words, tmp_path / "kept")[2]
    with pytest.raises(UsageError, match="no snapshot"):
        left(tmp_path / "none", SimulatedSubject(), unstopped(guarantee="at-most-once", sink="plain"))
    with pytest.raises(UsageError, match="snapshot_store is memory"):
        left(tmp_path / "memory", SimulatedSubject(), unstopped(snapshot_store="memory"))
    assert not (tmp_path / "none").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kept.unfinished", "scenario.json", "there"]
