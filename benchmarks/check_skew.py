"""`cutproof check` of tables in which half of the rows have one key, beside tables in which each row has its own.

    python benchmarks/check_skew.py 1000000     all of it, as JSON

The cluster is Spark's `local-cluster` of two workers of one core: each executor is a Java of its own, so that its
memory and the driver's are told apart.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.spark.checking.check import check
from cutproof.properties.spark.session.session import TABLES, session, stop
from measure import Figure, figure
from spread import descendants, processor_s

CLUSTER = "local-cluster[2,1,1536]"
SETTINGS = TABLES | {
    "spark.executor.memory": "1536m",
    "spark.driver.memory": "1g",
    # More than there are cores: with two, each task would have half of the rows anyway.
    "spark.sql.shuffle.partitions": "16",
}
FILES = 8
OUT = Path(__file__).resolve().parents[1] / "out" / "benchmarks"

KEYS = ("each its own", "one key", "one row")
"""of half of the rows: each has a key of its own; all have one key; all are equal"""
WAYS = {
    "equal": {},
    "equal, --exact": {"exact": True},
    "all differ": {},
    "all within --tolerance": {"tolerance": {"c": 2.0}, "ignore": ("a", "b")},
}
RUNS = (
    *((keys, way) for way in ("equal", "equal, --exact", "all differ", "all within --tolerance") for keys in KEYS[:2]),
    ("one row", "equal, --exact"),
)


def runs(rows: int) -> dict[str, dict[str, float]]:
    """Of each of `RUNS`, what it took; and of all of them, the memory."""
    folder = Path(tempfile.mkdtemp(prefix="cutproof-bench-"))
    found: dict[str, dict[str, float]] = {}
    try:
        spark = session(master=CLUSTER, settings=SETTINGS)
        while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:
            time.sleep(0.1)
        for keys, way in (("each its own", "equal"), *RUNS):  # the first warms up
            tables = _written(folder / "tables", keys, way, rows)
            before = {one.stageId() for one in _stages(spark)}
            cpu, began = processor_s(), time.perf_counter()
            _check(spark, tables, way, rows)
            seconds, spent = time.perf_counter() - began, processor_s() - cpu
            ours = [one for one in _stages(spark) if one.stageId() not in before]
            found[f"{way}; half: {keys}"] = {
                "seconds": seconds,
                "cpu_s": spent,
                "file_bytes": sum(file.stat().st_size for table in tables for file in table.iterdir()),
                "shuffle_bytes": sum(one.shuffleWriteBytes() for one in ours),
                "spilled_bytes": sum(one.diskBytesSpilled() for one in ours),
                "longest_task_s": max(_longest_task_s(spark, one) for one in ours),
            }
            print(keys, way, found[f"{way}; half: {keys}"], file=sys.stderr, flush=True)
            shutil.rmtree(folder / "tables")
        return found | {"memory": _memory()}
    finally:
        stop()
        shutil.rmtree(folder)


def _check(spark: Any, tables: tuple[Path, Path], way: str, rows: int) -> None:
    found = check(spark, CheckRequest(expected=tables[0], actual=tables[1], key=("id",), **WAYS[way]))
    if found.changed != (rows if way == "all differ" else 0) or found.expected_rows != rows or found.lost:
        raise SystemExit(f"check found {found.changed} changed and {found.lost} lost rows of {found.expected_rows}")


def _written(folder: Path, keys: str, way: str, rows: int) -> tuple[Path, Path]:
    """Two tables of a key, two whole numbers and a fraction, as files of Parquet."""
    tables = folder / "expected", folder / "actual"
    for table in tables:
        table.mkdir(parents=True)
        share = -(-rows // FILES)
        for file in range(FILES):
            number = pa.array(range(file * share, min(rows, (file + 1) * share)), pa.int64())
            half = pc.equal(pc.bit_wise_and(number, 1), 0)
            if keys == "one row":
                number = pc.if_else(half, 0, number)
            value = pc.bit_wise_and(pc.multiply(number, 2_654_435_761), 0xFFFF_FFFF)
            changed = 1 if table.name == "actual" and way in ("all differ", "all within --tolerance") else 0
            columns = {
                "id": number if keys == "each its own" else pc.if_else(half, 0, number),
                "a": pc.add(value, changed if way == "all differ" else 0),
                "b": pc.bit_wise_xor(value, number),
                "c": pc.add(pc.multiply(number, 8.0), float(changed)),
            }
            pq.write_table(pa.table(columns), table / f"part-{file}.parquet")
    return tables


def _stages(spark: Any) -> Iterator[Any]:
    """Those that have run, as Spark's own page of them has them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    gateway = spark.sparkContext._gateway
    nothing, none = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    found = spark.sparkContext._jsc.sc().statusStore().stageList(none, False, False, nothing, none)
    return (one for one in map(found.apply, range(found.size())) if one.numCompleteTasks())


def _longest_task_s(spark: Any, stage: Any) -> float:
    store, gateway = spark.sparkContext._jsc.sc().statusStore(), spark.sparkContext._gateway
    last = gateway.new_array(gateway.jvm.double, 1)
    last[0] = 1.0
    summary = store.taskSummary(stage.stageId(), stage.attemptId(), last)
    return float(summary.get().executorRunTime().apply(0)) / 1e3 if summary.isDefined() else 0.0


def _memory() -> dict[str, float]:
    """The most memory that was resident, in MB: of this process, of the driver's Java, of the larger executor."""
    peaks: dict[str, float] = {"driver_python_mb": 0, "driver_java_mb": 0, "executor_mb": 0}
    for process in descendants():
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        peak = next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
        if process == os.getpid():
            peaks["driver_python_mb"] = peak
        elif any(b"CoarseGrainedExecutorBackend" in word for word in words):
            peaks["executor_mb"] = max(peaks["executor_mb"], peak)
        elif any(b"SparkSubmit" in word for word in words):
            peaks["driver_java_mb"] = max(peaks["driver_java_mb"], peak)
    return peaks


def figures(rows: int) -> list[Figure]:
    """In a process of its own, so that its Spark session begins as a user's does."""
    done = subprocess.run([sys.executable, __file__, str(rows)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("the check of skewed tables failed")
    measured = json.loads(done.stdout.splitlines()[-1])
    (OUT / "check_skew.json").write_text(
        json.dumps({"rows": rows, "runs": measured}, indent=1) + "\n", encoding="utf-8"
    )
    memory = measured.pop("memory")
    found = []
    for name, one in measured.items():
        note = (
            f"{one['cpu_s']:.1f} s of processor time, longest task {one['longest_task_s']:.1f} s, shuffled"
            f" {one['shuffle_bytes'] / 1e6:,.1f} MB"
        )
        found.append(figure(f"check of {rows:,} rows, {name}", "s", [one["seconds"]], note))
    return found + [figure(f"  memory of all these checks: {name}", "MB", [most]) for name, most in memory.items()]


if __name__ == "__main__":
    print(json.dumps(runs(int(sys.argv[1]))))
