"""Directories of snapshots for the tests of the tool, written with the engine's own code."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import msgspec

from cutproof.faults.plan import AtTime
from cutproof.harness.cli.entry import main
from cutproof.harness.reference_engine.subjects.simulated import Run
from cutproof.harness.scenario.model import Savepoint
from cutproof.properties.model.workload import Count
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.vocabulary.events import CompletedCheckpoint, JobRecord
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.processes.disk.files import DiskFiles, DiskJobs
from unit.simulated.worlds import job

SAVEPOINT = Savepoint(trigger=AtTime(at_us=4_000), name="kept")

COMMANDS: dict[str, tuple[str, ...]] = {
    "convert to canonical": ("convert", "STORE", "FIRST", "--to", "canonical"),
    "flatten": ("convert", "STORE", "newest", "--to", "incremental"),
    "delete": ("delete", "STORE", "FIRST"),
    "move to a new one": ("move", "STORE", "FIRST", "TARGET"),
    "move to another": ("move", "STORE", "FIRST", "OTHER"),
    "fork": ("fork", "STORE", "newest", "TARGET"),
    "fork and convert": ("fork", "STORE", "newest", "TARGET", "--to", "native"),
}
"""each command that changes or makes a directory, with words that stand for what `words` puts in"""


def stored(root: Path, files: dict[Any, bytes], records: list[CompletedCheckpoint]) -> Path:
    """A directory as processes leave it, with these files and records."""
    disk, jobs = DiskFiles(root), DiskJobs(root)
    for name, data in files.items():
        path = disk.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for record in records:
        disk.store(record)
    jobs.save(JobRecord(job=1, attempt=AttemptId(1), next_checkpoint=CheckpointId(99)))
    jobs.trim(0, 5)
    return root


def left_by_a_job(root: Path, **engine: Any) -> Path:
    """What a job leaves that keeps its last three checkpoints, incremental unless said otherwise, and a canonical
    savepoint between them."""
    settings = {"retained_checkpoints": 3, "snapshot_format": "incremental", "full_every": 8, **engine}
    savepoint = msgspec.structs.replace(SAVEPOINT, format="canonical")
    run = Run(job(60, Count(), commands=(savepoint,), **settings), Parts(), False)
    run.history()
    return stored(root, run.world.files.files, list(run.world.files.listed()))


def states(root: Path) -> dict[int, dict[str, TaskState]]:
    """Every state, by snapshot and task, as the engine reads it."""
    disk = DiskFiles(root)
    return {
        int(record.checkpoint): {task: disk.read(handle).state for task, handle in record.handles.items()}
        for record in disk.listed()
    }


def tree(root: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def tool(*words: object) -> tuple[int, dict[str, Any], str]:
    """Run `cutproof snapshots WORDS --json`: the exit code, the JSON object, the text on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["snapshots", *map(str, words), "--json"])
    return code, json.loads(out.getvalue()), err.getvalue()


def refused(*words: object) -> str:
    """The one line with which bad input is refused."""
    code, found, err = tool(*words)
    assert code == 2
    assert found["format"] == "cutproof-error/1"
    (line,) = err.splitlines()
    return line


def directories(folder: Path) -> Path:
    """A directory with two snapshots that share a file, and another directory."""
    store = left_by_a_job(folder / "store", retained_checkpoints=2)
    tool("delete", store, next(one["id"] for one in tool("list", store)[1]["snapshots"] if one["kind"] == "savepoint"))
    other = left_by_a_job(folder / "other", snapshot_format="native", retained_checkpoints=1)
    tool("delete", other, min(states(other)))
    return folder


def words(command: str, folder: Path, first: int) -> list[str]:
    """The command line, in a copy of the directories."""
    stand_for = {"STORE": folder / "store", "FIRST": first, "TARGET": folder / "target", "OTHER": folder / "other"}
    return [str(stand_for.get(word, word)) for word in COMMANDS[command]]
