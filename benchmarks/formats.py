"""What a snapshot of one task costs in each format as its state grows: bytes, and time until they are durable.

    python benchmarks/formats.py                      1, 10 and 100 MB, some minutes
    python benchmarks/formats.py --mb 1 10            only these
    python benchmarks/formats.py --backend rocksdb    only this backend

The backends are the heap, the LSM store of virtual time, which is written in Python, and RocksDB, in which real
processes keep their state.  The state is a sum by key; its size is that of its canonical snapshot.  A first checkpoint
has been taken, then one key in a hundred has changed.  Measured is the checkpoint after that, on the disk under
out/benchmarks: the view, what is described or compared, the encoding, the writes and their syncs.  An incremental one
builds on the first checkpoint.  A snapshot gets hard links to the files of RocksDB that it needs and its base does not
have; their bytes count as written.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cutproof.reference_impl.core.backends.heap import HeapState
from cutproof.reference_impl.core.backends.keyed_state import KeyedState
from cutproof.reference_impl.core.backends.layouts import PAIR
from cutproof.reference_impl.core.backends.lsm import Limits, LsmState
from cutproof.reference_impl.core.decisions.parts import Parts
from cutproof.reference_impl.core.extensions.snapshots.snapshot_files import SnapshotFiles
from cutproof.reference_impl.core.vocabulary.formats import CANONICAL, INCREMENTAL, NATIVE, Format
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, CheckpointId, Handle, TaskId
from cutproof.reference_impl.core.vocabulary.state import Snapshot, TaskState, without_keyed_state
from cutproof.reference_impl.processes.disk.files import DiskFiles
from cutproof.reference_impl.processes.disk.rocks import RocksState
from measure import Figure, figure, table

SIZES_MB = (1, 10, 100)
ENTRY_BYTES = 43
"""of an entry of this state in the canonical format"""
CHANGED = 100
"""one key of so many is changed between two checkpoints"""
ROUNDS = 3
OUT = Path(__file__).resolve().parents[1] / "out" / "benchmarks" / "snapshots"
TASK, ATTEMPT = TaskId("sum-0"), AttemptId(1)


def heap(parts: Parts, keys: int) -> KeyedState:
    return HeapState(PAIR, parts.copying)


def lsm(parts: Parts, keys: int) -> KeyedState:
    """With a memtable for a tenth of the state, and no compaction between the two checkpoints."""

    def name(number: int) -> str:
        return parts.naming.sorted_file(TASK, ATTEMPT, number)

    return LsmState(PAIR, name, parts.state_files, Limits(max(1, keys // 10), 1_000))


def rocksdb(parts: Parts, keys: int) -> KeyedState:
    """With the limits of `lsm`."""
    return RocksState(OUT / "rocksdb", PAIR, Limits(max(1, keys // 10), 1_000), TASK, parts.state_files)


BACKENDS: dict[str, Callable[[Parts, int], KeyedState]] = {"heap": heap, "lsm": lsm, "rocksdb": rocksdb}


class Bench:
    """One task's state, and the store of its snapshots."""

    def __init__(self, backend: str, mb: int) -> None:
        self.parts = Parts()
        self.keys = mb * 1_000_000 // ENTRY_BYTES
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        self.state = BACKENDS[backend](self.parts, self.keys)
        self.dice = random.Random(mb)
        for key in range(self.keys):
            self.change(key)
        self.store = DiskFiles(OUT)
        self.files = SnapshotFiles(self.parts.naming, self.parts.increments)

    def change(self, key: int) -> None:
        self.state[1 << 40 | key] = (self.dice.getrandbits(36), self.dice.getrandbits(40))

    def change_some(self) -> None:
        for key in self.dice.sample(range(self.keys), self.keys // CHANGED):
            self.change(key)

    def checkpoint(self, number: int, name: str, base: int | None = None) -> tuple[float, float]:
        """Take one and write it; (seconds until it is durable, MB written)."""
        began = time.perf_counter()
        checkpoint = CheckpointId(number)
        handle = self.parts.naming.handle(1, checkpoint, TASK, ATTEMPT)
        snapshot, filed = Snapshot(TaskState(), self.state.snapshot()), None
        if name != CANONICAL:
            self.files.ask(checkpoint, Format(name, CheckpointId(base) if base is not None else None))
            filed = self.files.write(checkpoint, handle, snapshot.view)
            snapshot = without_keyed_state(snapshot.unkeyed)
        draft = self.store.begin(handle, snapshot.materialise(), filed)
        temporaries = (draft.temporary, *(path for _, path in draft.before))
        size = sum(path.stat().st_size for path in temporaries)
        for written, path in draft.before:
            self.store.temporaries.settle(path, self.store.path(written), self.store.snapshots)
        self.store.temporaries.settle(draft.temporary, self.store.path(Handle(handle)), self.store.snapshots)
        return time.perf_counter() - began, size / 1_000_000


def measured(backend: str, mb: int) -> list[Figure]:
    """The second of two checkpoints in each format."""
    bench = Bench(backend, mb)
    figures: list[Figure] = []
    number = 1
    for name in (CANONICAL, NATIVE, INCREMENTAL):
        runs: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            bench.checkpoint(number, name)
            bench.change_some()
            runs.append(bench.checkpoint(number + 1, name, number if name == INCREMENTAL else None))
            bench.files.complete(CheckpointId(number + 1))
            bench.files.complete(CheckpointId(number + 1))
            shutil.rmtree(OUT / "snapshots" / "job-1", ignore_errors=True)
            number += 2
        what = f"snapshot of {mb} MB, {backend}, {name}"
        figures.append(figure(f"{what}: time", "s", [seconds for seconds, _ in runs]))
        figures.append(figure(f"{what}: written", "MB", [size for _, size in runs]))
    return figures


def figures(sizes: Sequence[int] = SIZES_MB, backends: Sequence[str] = tuple(BACKENDS)) -> list[Figure]:
    found = [one for mb in sizes for backend in backends for one in measured(backend, mb)]
    shutil.rmtree(OUT, ignore_errors=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, nargs="+", default=SIZES_MB, help="sizes of the state (1, 10 and 100)")
    parser.add_argument("--backend", nargs="+", choices=BACKENDS, default=tuple(BACKENDS), help="only these backends")
    options = parser.parse_args()
    print(table(figures(options.mb, options.backend)))


if __name__ == "__main__":
    main()
