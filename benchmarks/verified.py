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
from cutproof.harness.search.worker import Chunk, Plan, Worker
from measure import Figure, figure

MAIN = "import sys; from cutproof.harness.cli import main; sys.exit(main())"
ROUNDS = 3
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
    summaries = [summary_of(scenarios, seed) for seed in range(1, ROUNDS + 1)]
    found = [figure("verified scenarios", "per second", [float(each["scenarios_per_second"]) for each in summaries])]
    for part in ("start", "draw", "run", "oracle", "judge", "report", "total"):
        seconds = [float(each["seconds"][part]) for each in summaries]
        found.append(figure(f"  of {scenarios}: {part}", "s", seconds))
    return found


def figures_of_one_worker() -> list[Figure]:
    """What a scenario costs before PySpark is asked, in one process, and what it is made of."""
    rates, records, faults = [], 0, 0
    for seed in range(1, ROUNDS + 1):
        worker = Worker(Plan(seed=seed))
        began = time.perf_counter()
        chunk = _judged(worker)
        rates.append(PROFILED_SCENARIOS / (time.perf_counter() - began))
        judged = [ran.outcome for ran in chunk.ran if isinstance(ran.outcome, ScenarioOutcome)]
        records += sum(one.scenario.workload.records() for one in judged)
        faults += sum(len(one.scenario.faults) for one in judged)
    drawn = ROUNDS * PROFILED_SCENARIOS
    note = f"{records / drawn:.0f} records, {faults / drawn:.1f} faults each; drawn, run, judged by the quick checker"
    return [figure("scenarios, one worker", "per second", rates, note)]


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
