"""How long a stop takes as the state grows, with a full savepoint and with an incremental one (SNAP-7).

Measured is the time from the user's command to the end of the job.  In virtual time the jobs are those of the example
incremental-stop-and-upgrade: a byte takes 1 µs there, so a state of KB costs what one of 100 times as many bytes costs
on a disk of 100 MB/s.  On processes a job keeps 1 to 100 MB of texts in RocksDB, and writes on a real disk.  Each byte
of a snapshot is also written to the journal, from which the harness judges the run; this is part of the time.  What a
snapshot of 1 to 100 MB costs without a job is in `formats`.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from cutproof.faults.plan import AtPoint
from cutproof.harness.examples.snapshots.stopping import FORMATS, held_bytes, stop_us, stopped, written_bytes
from cutproof.harness.scenario.model import Engine, Scenario, StopWithSavepoint
from cutproof.harness.scenario.topologies import lay_out
from cutproof.harness.subject.names import subject_called
from cutproof.harness.subject.port import closing
from cutproof.harness.workloads.user_functions import known
from cutproof.properties.model.workload import Input, Workload
from documents import BYTES, DOCUMENTS
from measure import Figure, figure

KEYS = (250, 1_000, 4_000)
KEYS_ON_PROCESSES = (250, 2_500, 10_000, 25_000)
ROUNDS = 3
AFTER = 2_000
"""records behind those that fill the state"""
EVERY_US = 20
"""between two records"""


def on_processes(keys: int, format_name: str) -> Scenario:
    """One text for each key; a checkpoint as soon as all are there, and then 20 of them change until the stop."""
    records = tuple((at if at < keys else at % 20, at + 1, at + 1) for at in range(keys + AFTER))
    workload = Workload(
        name="stop", inputs=(Input(name="source", splits=(records,)),), nodes=(DOCUMENTS.node("source"),)
    )
    trigger = AtPoint(point="record-read", occurrence=keys + AFTER // 2, task="source-0")
    return Scenario(
        name="stop",
        workload=workload,
        topology=lay_out(workload, {"source": 1, "documents": 1, "sink": 1}),
        engine=Engine(
            state_backend="lsm",
            memtable_entries=keys // 10,
            compaction_files=1_000,
            snapshot_format="incremental",
            full_every=1_000,
            checkpoint_interval_us=(keys + 100) * EVERY_US,
            checkpoint_timeout_us=60_000_000,
            read_interval_us=EVERY_US,
            apply_cost_us=1,
            channel_capacity=1_000,
        ),
        commands=(StopWithSavepoint(trigger=trigger, format=format_name),),
    )


def figures() -> list[Figure]:
    return [*in_virtual_time(), *_measured_on_processes()]


def in_virtual_time() -> list[Figure]:
    found = []
    subject = subject_called("simulated")
    for keys in KEYS:
        for name in FORMATS:
            history = subject.run(stopped(keys, name))
            size = f"{held_bytes(history) / 1_000:,.0f} KB held"
            found.append(figure(f"stop, {name}, {keys:,} keys", "ms", [stop_us(history) / 1_000], size))
    return found


def _measured_on_processes() -> list[Figure]:
    """The processes import the function from this folder."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    known(["documents:DOCUMENTS"])
    found = []
    with closing(subject_called("processes")) as subject:
        for keys in KEYS_ON_PROCESSES:
            for name in FORMATS:
                histories = [subject.run(on_processes(keys, name)) for _ in range(ROUNDS)]
                written = f"{written_bytes(histories[-1]) / 1_000_000:.2f} MB written"
                times = [stop_us(history) / 1_000 for history in histories]
                size = f"{keys * BYTES / 1_000_000:.0f} MB of state"
                found.append(figure(f"stop, processes, {name}, {size}", "ms", times, written))
    return found


if __name__ == "__main__":
    print(msgspec.json.encode([(one.name, one.value, one.note) for one in figures()]).decode())
