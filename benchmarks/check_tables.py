"""`cutproof check` of large tables, fast and exact, beside one exact groupBy-count over one of them.

Everything is measured in the same run, each round in turn, and told as the
median of the rounds: seconds, and how many such passes it costs.

    python benchmarks/check_tables.py --rows 10000000 --json out/check_tables.json
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from cutproof.properties.checking.request import CheckRequest
from cutproof.properties.spark.checking.check import check
from cutproof.properties.spark.session.session import LOCAL, TABLES, session, stop

FILES = 4


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of each table")
    parser.add_argument("--distinct", type=int, default=0, help="how many of them differ; 0: nearly all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for the result")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="cutproof-bench-"))
    try:
        result = measure(folder, options.rows, options.distinct, options.rounds)
    finally:
        stop()
        shutil.rmtree(folder)
    print(table(result))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def measure(folder: Path, rows: int, distinct: int, rounds: int) -> dict[str, object]:
    """Seconds and passes of each way, on tables written to `folder`."""
    for name, changed in (("expected", 0), ("same", 0), ("other", 1)):
        write(folder / name, rows, distinct or rows, changed)
    spark = session(settings=TABLES)
    ways = dict(tried(spark, folder))
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            begun = time.perf_counter()
            way()
            if number:  # the first round warms the compilers up
                seconds[name].append(time.perf_counter() - begun)
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    unit = medians["groupBy-count"]
    return {
        "benchmark": "check_tables",
        "rows": rows,
        "distinct": distinct or rows,
        "master": LOCAL,
        "ways": {name: {"seconds": taken, "passes": taken / unit} for name, taken in medians.items()},
    }


def tried(spark: SparkSession, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """The ways that are measured, each checked for what it finds."""

    def one_pass() -> None:
        read = spark.read.parquet(str(folder / "expected"))
        read.groupBy(*read.columns).count().write.format("noop").mode("overwrite").save()

    def checked(actual: str, exact: bool, changed: int) -> Callable[[], None]:
        request = CheckRequest(expected=folder / "expected", actual=folder / actual, key=("id",), exact=exact)

        def run() -> None:
            found = check(spark, request)
            if found.changed != changed:
                raise SystemExit(f"check found {found.changed} changed rows, not {changed}")

        return run

    yield "groupBy-count", one_pass
    yield "fast, equal", checked("same", False, 0)
    yield "fast, one differs", checked("other", False, 1)
    yield "exact, equal", checked("same", True, 0)
    yield "exact, one differs", checked("other", True, 1)


def write(folder: Path, rows: int, distinct: int, changed: int) -> None:
    """A table of a key, two integers and a float, in some files; `changed` rows have another value."""
    folder.mkdir()
    share = -(-rows // FILES)
    for file in range(FILES):
        number = pa.array(range(file * share, min(rows, (file + 1) * share)), pa.int64())
        identity = pc.subtract(number, pc.multiply(pc.divide(number, distinct), distinct))
        value = pc.bit_wise_and(pc.multiply(identity, 2_654_435_761), 0xFFFF_FFFF)
        if changed and not file:
            value = pa.concat_arrays([pa.array([-index - 1 for index in range(changed)], pa.int64()), value[changed:]])
        columns = {"id": identity, "a": value, "b": pc.bit_wise_xor(value, identity), "c": pc.divide(value, 7.0)}
        pq.write_table(pa.table(columns), folder / f"part-{file}.parquet")


def table(result: dict[str, object]) -> str:
    ways = result["ways"]
    assert isinstance(ways, dict)
    lines = [f"{result['rows']:,} rows a table, {result['distinct']:,} distinct, {result['master']}", ""]
    lines.append(f"{'way':<22}{'seconds':>9}{'passes':>9}")
    lines.extend(f"{name:<22}{way['seconds']:>9.2f}{way['passes']:>9.2f}" for name, way in ways.items())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
