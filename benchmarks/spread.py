"""A search on a Spark cluster: one worker beside two, what a task costs, and what the driver can take.

    python benchmarks/spread.py workers 2     one run on a cluster of two executors, as JSON
    python benchmarks/spread.py driver 1000000
    python benchmarks/spread.py oracle 4000

The cluster is Spark's `local-cluster`: a master and workers in the driver's Java, and for each worker an executor with
a Java and a Python of its own, which is started, sent to and lost as those of other machines are.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from cutproof.harness.scenario.model import Scenario
from cutproof.harness.search.campaign import CHUNK_OF_A_TASK
from cutproof.harness.search.oracle import Examined, PySpark
from cutproof.harness.search.pool import Encoded, chunk_of
from cutproof.harness.search.search import Budget, Search
from cutproof.harness.search.verification import Request, plan_of
from cutproof.harness.search.worker import Worker
from cutproof.harness.shrink.on_subject import Seen
from cutproof.harness.shrink.shrink import Shrunk
from cutproof.harness.spread.pool import SparkPool
from cutproof.properties.spark.session.session import session
from measure import Figure, figure

PLAN = plan_of(Request(seed=1))
CHUNK = CHUNK_OF_A_TASK
CHUNKS_OF_A_WORKER = 6
WARM = 8
"""scenarios that each worker runs before anything is measured"""
EMPTY_TASKS = 200
RECORDED = 4_000
DRIVER_STEPS = (10_000, 100_000, 1_000_000)
ROUNDS = 3
POLL_S = 0.1
RECORD = Path(__file__).resolve().parents[1] / "out" / "benchmarks" / "recorded.msgpack"
TICK = os.sysconf("SC_CLK_TCK")


def workers(count: int) -> dict[str, float]:
    """Chunks on so many workers of one core, and tasks that have nothing to do: by the clock, and processor seconds."""
    pool = SparkPool(PLAN, f"local-cluster[{count},1,1024]")
    try:
        _together([pool.chunk(0, WARM)])
        while session().sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1 < count:
            time.sleep(POLL_S)
        _together([pool.chunk(0, WARM) for _ in range(4 * count)])
        chunks = count * CHUNKS_OF_A_WORKER
        cpu, began = processor_s(), time.perf_counter()
        done = _together([pool.chunk(first * CHUNK, (first + 1) * CHUNK) for first in range(chunks)])
        seconds, spent = time.perf_counter() - began, processor_s() - cpu
        scenarios = chunks * CHUNK
        busy = sum(
            getattr(ran.outcome, name)
            for one in done
            for ran in chunk_of(one).ran
            for name in ("draw_s", "run_s", "judge_s")
            if hasattr(ran.outcome, name)
        )
        cpu, began = processor_s(), time.perf_counter()
        _together([pool.chunk(0, 0) for _ in range(EMPTY_TASKS)])
        return {
            "per_s": scenarios / seconds,
            "cpu_ms": 1e3 * spent / scenarios,
            "busy": busy / (seconds * count),
            "task_ms": 1e3 * (time.perf_counter() - began) / EMPTY_TASKS * count,
            "task_cpu_ms": 1e3 * (processor_s() - cpu) / EMPTY_TASKS,
        }
    finally:
        pool.close()


def driver(scenarios: int) -> dict[str, float]:
    """The driver's side of a search of so many scenarios: chunks come from a record, and PySpark is not asked."""
    recorded = _recorded()
    before = _resident_mb()
    began, cpu = time.perf_counter(), time.process_time()
    found = Search(_Replayed(recorded), _Silent(), Budget(scenarios=scenarios), chunk=CHUNK).run()
    if found.failures or found.tally.run != scenarios:
        raise SystemExit(f"{found.tally.run} of {scenarios} scenarios, {found.failures}")
    return {
        "per_s": scenarios / (time.perf_counter() - began),
        "cpu_us": 1e6 * (time.process_time() - cpu) / scenarios,
        "mb": _resident_mb(),
        "grown_mb": _resident_mb() - before,
        "bytes": sum(map(len, recorded)) / (len(recorded) * CHUNK),
    }


def oracle(scenarios: int) -> dict[str, float]:
    """PySpark's answers about one batch, on the local session: all seconds, and those of this process alone."""
    judge = PySpark()
    judge.start()
    questions = [ran.question for one in _recorded() for ran in chunk_of(one).ran if ran.question is not None]
    judge.examine(questions[:100])
    # A question is computed once: other positions in the splits' data are other questions.
    asked = questions[100:scenarios]
    cpu, everything = time.process_time(), processor_s()
    examined = judge.examine(asked)
    return {
        "per_s": len(asked) / examined.seconds,
        "driver_ms": 1e3 * (time.process_time() - cpu) / len(asked),
        "cpu_ms": 1e3 * (processor_s() - everything) / len(asked),
    }


def figures() -> list[Figure]:
    """Each run is a process of its own; runs with one worker and with two take turns."""
    RECORD.unlink(missing_ok=True)
    by_count: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for count, runs in by_count.items():
            runs.append(_apart("workers", count))
    found = []
    for count, runs in by_count.items():
        note = f"busy with scenarios {100 * median(one['busy'] for one in runs):.0f} % of the time"
        found.append(
            figure(f"cluster, workers of one core: {count}", "per second", [one["per_s"] for one in runs], note)
        )
    for name, better, of in (("by the clock", 1, "per_s"), ("by processor time", -1, "cpu_ms")):
        pairs = zip(by_count[1], by_count[2], strict=True)
        ratios = [(two[of] / one[of]) ** better / (2 if better > 0 else 1) for one, two in pairs]
        found.append(figure(f"  efficiency of two, {name}", "", ratios))
    for name, of in (("task without work", "task_ms"), ("  its processor time, all processes", "task_cpu_ms")):
        found.append(figure(name, "ms", [one[of] for one in by_count[1]]))
    for scenarios in DRIVER_STEPS:
        run = _apart("driver", scenarios)
        note = f"{run['per_s']:,.0f} a second, {run['bytes']:,.0f} bytes each, from recorded rows"
        found.append(figure(f"driver's memory at {scenarios:,} scenarios", "MB", [run["mb"]], note))
    judged = [_apart("oracle", RECORDED) for _ in range(ROUNDS)]
    found.append(figure("judged by PySpark, a batch, two cores", "per second", [one["per_s"] for one in judged]))
    found.append(figure("  the driver's Python", "ms", [one["driver_ms"] for one in judged], "a scenario"))
    found.append(figure("  all processes", "ms", [one["cpu_ms"] for one in judged], "a scenario"))
    return found


class _Replayed:
    """A pool that has run everything before."""

    workers = 100
    starts = False
    lost = ""

    def __init__(self, recorded: Sequence[bytes]) -> None:
        self._recorded = recorded

    def chunk(self, first: int, end: int) -> Future[Encoded]:
        future: Future[Encoded] = Future()
        future.set_result(self._recorded[first // CHUNK % len(self._recorded)])
        return future

    def shrink(self, scenario: Scenario, invariant: str, difference: str, seen: Seen | None = None) -> Future[Shrunk]:
        raise NotImplementedError  # the recorded scenarios hold, so nothing is shrunk

    def stop(self) -> None: ...

    def close(self) -> None: ...


class _Silent:
    """An oracle that agrees with everything."""

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def examine(self, questions: Sequence[bytes]) -> Examined:
        return Examined(workloads=len(questions), queries=1)


def _recorded() -> list[bytes]:
    """Encoded chunks, kept beside the other results so that they are run only once."""
    if not RECORD.exists():
        worker = Worker(msgspec.structs.replace(PLAN, companions=False))
        chunks = [msgspec.msgpack.encode(worker.chunk(first, first + CHUNK)) for first in range(0, RECORDED, CHUNK)]
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_bytes(msgspec.msgpack.encode(chunks))
    return msgspec.msgpack.decode(RECORD.read_bytes(), type=list[bytes])


def _together(futures: list[Future[Any]]) -> list[Any]:
    done = [future.result() for future in futures]
    for one in map(chunk_of, done):
        if one.ended or one.undriven:
            raise SystemExit(one.ended or one.undriven[0].reason)
    return done


def _apart(what: str, size: int) -> dict[str, float]:
    command = [sys.executable, __file__, what, str(size)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{what} {size}: {done.stderr.strip()[-400:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def descendants() -> dict[int, int]:
    """This process and all that it has started, at any remove, each with its processor time in ticks."""
    parents, ticks = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.parent.name)] = int(fields[1])
        ticks[int(entry.parent.name)] = sum(map(int, fields[11:15]))
    ours, size = {os.getpid()}, 0
    while len(ours) > size:
        size = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return {pid: ticks.get(pid, 0) for pid in ours}


def processor_s() -> float:
    """Processor seconds of this process and all that it has started."""
    return sum(descendants().values()) / TICK


if __name__ == "__main__":
    PARTS = {"workers": workers, "driver": driver, "oracle": oracle}
    print(json.dumps(PARTS[sys.argv[1]](int(sys.argv[2]))))
