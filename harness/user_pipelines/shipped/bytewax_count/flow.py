"""Bytewax counts records by key: arguments are the folder of the input, the output file and the folder of its state.

The source reads the files in the order of their names, and keeps its place as its state.  Bytewax
stores a snapshot of all state in its recovery store with each epoch, and truncates the output
file to the place in the snapshot when it resumes.
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
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir

EPOCH = timedelta(milliseconds=50)
READ_INTERVAL_S = 0.01


class Files(StatefulSourcePartition[Any, int]):
    """The records of all files; the state is the number of the next record."""

    def __init__(self, folder: Path, place: int) -> None:
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
        self._records = [json.loads(line) for line in lines]
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
        return ["files"]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Files:
        if resume_state is not None:
            print(f"resumed from record {resume_state}", flush=True)
        return Files(self._folder, resume_state or 0)


def counted(state: int | None, record: Any) -> tuple[int, tuple[str, str]]:
    count = (state or 0) + 1
    return count, ("rows", json.dumps({"key": record["key"], "value": count}))


def main(records: str, output: str, state: str) -> None:
    flow = Dataflow("count")
    stream = op.input("records", flow, Folder(Path(records)))
    keyed = op.key_on("key", stream, lambda record: str(record["key"]))
    rows = op.map("row", op.stateful_map("count", keyed, counted), lambda pair: pair[1])
    op.output("rows", rows, FileSink(Path(output)))
    if not any(Path(state).iterdir()):
        init_db_dir(Path(state), 1)
    cluster_main(flow, [], 0, epoch_interval=EPOCH, recovery_config=RecoveryConfig(state))


if __name__ == "__main__":
    main(*sys.argv[1:])
