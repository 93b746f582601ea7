"""Bytewax counts records by key: arguments are the folders of input, output and state, and the number of workers.

The source reads the files in the order of their names.  Its partitions have keys of their own, and
each keeps its place as its state.  Bytewax stores a snapshot of all state in its recovery store with
each epoch, and truncates the output files to the places in the snapshot when it resumes.  Any number
of workers can resume: Bytewax gives them the partitions of the input, the output and the store.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax._bytewax import cluster_main
from bytewax.connectors.files import DirSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir

PARTITIONS = 4
"""of the input and of the output; the recovery store has half as many"""
EPOCH = timedelta(milliseconds=50)
READ_INTERVAL_S = 0.01


class Files(StatefulSourcePartition[Any, int]):
    """The records of all files that have the keys of a partition; the state is the number of the next record."""

    def __init__(self, folder: Path, part: int, place: int) -> None:
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
        records = [json.loads(line) for line in lines]
        self._records = [record for record in records if record["key"] % PARTITIONS == part]
        self._place = place

    def next_batch(self) -> list[Any]:
        if self._place == len(self._records):
            raise StopIteration
        time.sleep(READ_INTERVAL_S)
        self._place += 1
        return [self._records[self._place - 1]]

    def snapshot(self) -> int:
        return self._place


class Folder(FixedPartitionedSource[Any, int]):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_parts(self) -> list[str]:
        return [str(part) for part in range(PARTITIONS)]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Files:
        if resume_state is not None:
            print(f"resumed partition {for_part} from record {resume_state}", flush=True)
        return Files(self._folder, int(for_part), resume_state or 0)


def counted(state: int | None, record: Any) -> tuple[int, str]:
    count = (state or 0) + 1
    return count, json.dumps({"key": record["key"], "value": count})


def main(records: str, output: str, state: str, workers: str) -> None:
    flow = Dataflow("count")
    stream = op.input("records", flow, Folder(Path(records)))
    keyed = op.key_on("key", stream, lambda record: str(record["key"]))
    rows = op.stateful_map("count", keyed, counted)
    op.output("rows", rows, DirSink(Path(output), PARTITIONS, file_namer=lambda part, _: f"rows-{part}.jsonl"))
    if not any(Path(state).iterdir()):
        init_db_dir(Path(state), PARTITIONS // 2)
    recovery = RecoveryConfig(state)
    cluster_main(flow, [], 0, epoch_interval=EPOCH, recovery_config=recovery, worker_count_per_proc=int(workers))


if __name__ == "__main__":
    main(*sys.argv[1:])
