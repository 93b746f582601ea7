"""Verified scenarios a second, PySpark included, and where the time goes."""

from __future__ import annotations

import cProfile
import io
import json
import pstats
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cutproof.harness.search.outcome import ScenarioOutcome
from cutproof.harness.search.worker import Chunk, Plan, Worker, collect_seldom
from measure import Figure, figure, rate
from simulator import heapq_loop

MAIN = "import sys; from cutproof.harness.cli import main; sys.exit(main())"
ROUNDS = 3
HUNTS = 5
PROFILED_SCENARIOS = 300
TOP = 25


def summary_of(scenarios: int, seed: int) -> dict[str, Any]:
    """What `cutproof verify --json` prints; a run that does not end well is no measurement."""
    with TemporaryDirectory() as out:
        command = ["verify", "--json", "--quiet", "--scenarios", str(scenarios), "--seed", str(seed), "--out", out]
        done = subprocess.run([sys.executable, "-c", MAIN, *command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"cutproof verify ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def figures(scenarios: int) -> list[Figure]:
    """Each round measures the bare heapq loop too, since machines differ."""
    summaries, loops = [], []
    for seed in range(1, ROUNDS + 1):
        loops.append(rate(heapq_loop))
        summaries.append(summary_of(scenarios, seed))
    rates = [float(each["scenarios_per_second"]) for each in summaries]
    found = [figure("verified scenarios", "per second", rates), _for_each_million("  of verify", rates, loops)]
    for part in ("start", "draw", "run", "oracle", "judge", "report", "total"):
        seconds = [float(each["seconds"][part]) for each in summaries]
        found.append(figure(f"  of {scenarios}: {part}", "s", seconds))
    return found


def _for_each_million(name: str, rates: list[float], loops: list[float]) -> Figure:
    """Scenarios a second for each million push+pop a second of the bare heapq loop, measured in the same round."""
    scaled = [scenarios / (loop / 1_000_000) for scenarios, loop in zip(rates, loops, strict=True)]
    return figure(f"{name}, for each M push+pop/s of the bare loop", "per second", scaled)


def figures_of_one_worker() -> list[Figure]:
    """What a scenario costs before PySpark is asked, in seconds of the processor, and what it is made of."""
    collect_seldom()
    rates, loops, records, faults = [], [], 0, 0
    parts: dict[str, list[float]] = {"draw": [], "run": [], "judge": []}
    for seed in range(1, ROUNDS + 1):
        loops.append(rate(heapq_loop, time.process_time))
        worker = Worker(Plan(seed=seed))
        began, by_clock = time.process_time(), time.perf_counter()
        chunk = _judged(worker)
        took, by_clock = time.process_time() - began, time.perf_counter() - by_clock
        rates.append(PROFILED_SCENARIOS / took)
        judged = [ran.outcome for ran in chunk.ran if isinstance(ran.outcome, ScenarioOutcome)]
        records += sum(one.scenario.workload.records() for one in judged)
        faults += sum(len(one.scenario.faults) for one in judged)
        for part, taken in parts.items():
            part_s = sum(getattr(one, f"{part}_s") for one in judged) * took / by_clock
            taken.append(part_s / len(judged) * 1_000)
    drawn = ROUNDS * PROFILED_SCENARIOS
    note = f"{records / drawn:.0f} records, {faults / drawn:.1f} faults each; drawn, run, judged by the quick checker"
    return [
        figure("scenarios, one worker", "per second", rates, note),
        _for_each_million("  of one worker", rates, loops),
        *(figure(f"  a scenario: {part}", "ms", taken) for part, taken in parts.items()),
    ]


def figures_of_hunts() -> list[Figure]:
    """Every planted defect hunted by one command, once for each seed; a defect that is not caught is no measurement."""
    seconds = []
    for seed in range(1, HUNTS + 1):
        with TemporaryDirectory() as out:
            command = ["defects", "run", "--all", "--quiet", "--json", "--seed", str(seed), "--out", out]
            began = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", MAIN, *command], capture_output=True, text=True)
            seconds.append(time.perf_counter() - began)
        if done.returncode:
            raise SystemExit(f"cutproof defects ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return [figure("every planted defect caught", "s", seconds, f"seeds 1 to {HUNTS}")]


def profile() -> str:
    """The functions with the most time of their own while scenarios are drawn, run and judged."""
    worker = Worker(Plan(seed=1))
    profiler = cProfile.Profile()
    profiler.runcall(_judged, worker)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(TOP)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip())


def _judged(worker: Worker) -> Chunk:
    chunk = worker.chunk(0, PROFILED_SCENARIOS)
    if chunk.undriven:
        raise SystemExit(f"{len(chunk.undriven)} scenarios could not be run: {chunk.undriven[0].reason}")
    return chunk


def write_profile(target: Path) -> str:
    text = profile()
    target.write_text(text + "\n", encoding="utf-8")
    return text
