"""A job is stopped with an incremental savepoint, and goes on with another configuration (SNAP-2, SNAP-5, SNAP-7)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....faults.plan import AtPoint, AtTime
from ....properties.model.history import (
    AttemptStarted,
    CommandIssued,
    CommandReturned,
    Completed,
    History,
    JobEnded,
    Stored,
)
from ....properties.model.verdict import Holds
from ....properties.model.workload import Count, Input, InputRecord, Node, Workload
from ...scenario import topologies
from ...scenario.model import Engine, Resume, Scenario, StopWithSavepoint
from ..claims import Claim, Comparison, Example, Ran, Variant, require
from ..texts import PROPOSAL

FORMATS = ("canonical", "native", "incremental")
KEYS = (250, 500, 1_000, 2_000)
"""the sizes of the state, one for each run"""
_HOT = 20
_AFTER = 1_500
_EVERY_US = 20
_NAME = "incremental-stop-and-upgrade"
BYTE_NS = 1_000
"""of a byte written: 1 MB/s, so that a small state shows what a large one costs on a fast disk"""


def _records(keys: int) -> tuple[InputRecord, ...]:
    """First each key once, and then only a few of them."""
    return tuple((at if at < keys else at % _HOT, at + 1, 1_000_003 * (at + 1)) for at in range(keys + _AFTER))


def stopped(keys: int, format_name: str = "") -> Scenario:
    """A count of so many keys with incremental checkpoints.  It is stopped when its state is full, and resumed wider;
    `format_name` is that of the savepoint, "" for the job's own."""
    workload = Workload(
        name=_NAME,
        inputs=(Input(name="source", splits=(_records(keys),)),),
        nodes=(Node(name="count", operator=Count(), inputs=("source",)),),
    )
    stop = StopWithSavepoint(
        trigger=AtPoint(point="record-read", occurrence=keys + _AFTER - 100, task="source-0"),
        format=format_name or msgspec.UNSET,
    )
    return Scenario(
        name=_NAME,
        workload=workload,
        topology=topologies.lay_out(workload, {"source": 1, "count": 1, "sink": 1}),
        engine=Engine(
            checkpoint_interval_us=8_000,
            checkpoint_timeout_us=500_000,
            snapshot_format="incremental",
            full_every=100,
            snapshot_byte_ns=BYTE_NS,
            read_interval_us=_EVERY_US,
            apply_cost_us=5,
        ),
        commands=(stop, Resume(trigger=AtTime(at_us=1_000), parallelism={"count": 2, "sink": 2})),
    )


def savepoint(history: History) -> Completed:
    found = [completed for completed in history.completed if completed.savepoint]
    require(len(found) == 1, f"{len(found)} savepoints completed")
    return found[0]


def stop_us(history: History) -> int:
    """From the user's command to the end of the job."""
    issued = [one for one in history.journal if isinstance(one, CommandIssued) and one.kind == "stop-with-savepoint"]
    ends = [one for one in history.journal if isinstance(one, JobEnded) and one.status == "stopped"]
    require(bool(issued) and bool(ends), "no job was stopped with a savepoint")
    return ends[0].at_us - issued[0].at_us


def _parts(history: History) -> list[Stored]:
    handles = savepoint(history).handles.values()
    return [one for one in history.stored if one.handle in handles]


def held_bytes(history: History) -> int:
    """The size of the savepoint's state: of its files, or of the parts themselves if they have none."""
    return sum(sum(size for _, size, _ in one.files) or len(one.state) for one in _parts(history))


def written_bytes(history: History) -> int:
    """What was written for the savepoint of this size."""
    return sum(sum(size for _, size, new in one.files if new) if one.files else len(one.state)
               for one in _parts(history))  # fmt: skip


def _referred_files(history: History) -> int:
    return sum(not new for one in _parts(history) for _, _, new in one.files)


def _by_default(scenario: Scenario, history: History) -> str:
    (asked,) = [one for one in scenario.commands if isinstance(one, StopWithSavepoint)]
    require(isinstance(asked.format, msgspec.UnsetType), "the command names a format")
    referred = _referred_files(history)
    require(referred > 0, "the savepoint refers to no file of a checkpoint")
    return (
        f"the command names no format, and savepoint {savepoint(history).checkpoint} is "
        f"{scenario.engine.snapshot_format} as the checkpoints are: it refers to {referred} files of theirs, and "
        f"{written_bytes(history):,} bytes of its {held_bytes(history):,} were written for it"
    )


def _formats(own: Ran, companions: Sequence[Ran]) -> str:
    words = []
    for name, ran in zip(("canonical", "native"), companions, strict=True):
        referred, written = _referred_files(ran.history), written_bytes(ran.history)
        require(referred == 0, f"the {name} savepoint refers to {referred} files of checkpoints")
        require(written > 2 * written_bytes(own.history), f"{written} bytes were written for the {name} savepoint")
        words.append(f"{written:,} bytes for a {name} one")
    return f"named in the command: {' and '.join(words)}, and neither refers to a checkpoint's file"


def _stops_quickly(own: Ran, companions: Sequence[Ran]) -> str:
    took = [stop_us(one.history) for one in companions]
    bytes_ = [held_bytes(one.history) for one in companions]
    require(bytes_ == sorted(bytes_) and bytes_[-1] > 4 * bytes_[0], "the state does not grow")
    require(max(took) < 2 * min(took), f"with an incremental savepoint the stop took {took} µs")
    return (
        f"with an incremental savepoint the stop took {took[0] / 1_000:.1f} ms at {bytes_[0]:,} bytes of state, and "
        f"{took[-1] / 1_000:.1f} ms at {bytes_[-1]:,}"
    )


def _prohibitively_slow(own: Ran, companions: Sequence[Ran]) -> str:
    took = [stop_us(one.history) for one in companions]
    require(took == sorted(took), f"with a full savepoint the stop took {took} µs")
    quick = stop_us(own.history)
    require(took[-1] > 3 * quick, f"with a full savepoint the stop took {took[-1]} µs, incremental {quick}")
    return (
        f"with a full savepoint it took {took[0] / 1_000:.1f} ms at the smallest state and {took[-1] / 1_000:.1f} ms "
        f"at the largest, {took[-1] / quick:.0f} times as long as with an incremental one"
    )


def _goes_on(own: Ran, companions: Sequence[Ran]) -> str:
    history, taken = own.history, savepoint(own.history)
    ends = [one for one in history.journal if isinstance(one, JobEnded)]
    require(ends[0].status == "stopped" and ends[0].checkpoint == taken.checkpoint, f"the job is {ends[0].status}")
    (begun,) = [one for one in history.journal if isinstance(one, AttemptStarted) and one.job != taken.job]
    require(begun.restores == taken.checkpoint, f"the next job began with {begun.restores}")
    resumed = [one for one in history.journal if isinstance(one, CommandReturned) and one.order > ends[0].order]
    require(bool(resumed) and not resumed[0].error, "the resume was not answered")
    width = sum(run.operator == "count" and run.job == begun.job for run in history.runs)
    require(width == 2, f"count has {width} subtasks in the next job")
    require(ends[-1].status == "finished" and not own.violated, f"the next job is {ends[-1].status}")
    require(isinstance(own.verdicts["exactly-once"], Holds), "exactly-once does not hold, or was not exercised")
    return (
        f"the job was stopped on savepoint {taken.checkpoint}; another one with 2 subtasks of count instead of 1 went "
        "on from it, and the output is exactly once.  Changes of the operators themselves are not part of this example"
    )


def _variant(keys: int, format_name: str) -> Variant:
    return Variant(name=f"{keys:,} keys, {format_name}", scenario=stopped(keys, format_name))


_LARGEST = stopped(KEYS[-1])
_INCREMENTAL = tuple(_variant(keys, "incremental") for keys in KEYS)
_CANONICAL = tuple(_variant(keys, "canonical") for keys in KEYS)
_NATIVE = _variant(KEYS[-1], "native")

INCREMENTAL_STOP_AND_UPGRADE = Example(
    about="a job is stopped with an incremental savepoint, and goes on from it: how long the stop takes as state grows",
    document=PROPOSAL,
    scenario=_LARGEST,
    claims=(
        Claim(text="the default format will be the one that the user has specific for the whole job",
              find=_by_default),
        Comparison(text="the command for the user-induced snapshots will allow the user to specify the FORMAT of the "
                   "snapshot", companions=(_CANONICAL[-1], _NATIVE), find=_formats),
        Comparison(text="this will allow to stop the job quickly (incremental snapshot) even for jobs with large state",
                   companions=_INCREMENTAL, find=_stops_quickly),
        Comparison(text="taking a full snapshot could be prohibitively slow", companions=_CANONICAL,
                   find=_prohibitively_slow),
        Comparison(text="he/she can stop a job with an incremental user-induced snapshot … and use that to upgrade "
                   "the cluster", companions=(), find=_goes_on),
    ),
)  # fmt: skip
