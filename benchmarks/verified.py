"""Verified scenarios a second, PySpark included, and where the time goes."""

from __future__ import annotations

import cProfile
import io
import json
import pstats
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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


def profile() -> str:
    """The functions with the most time of their own while scenarios are drawn, run and judged."""
    from cutproof.harness.cli import main

    with TemporaryDirectory() as out:
        words = ["verify", "--quiet", "--scenarios", str(PROFILED_SCENARIOS), "--seed", "1", "--out", out]
        profiler = cProfile.Profile()
        profiler.enable()
        try:
            code = main(words)
        finally:
            profiler.disable()
    if code:
        raise SystemExit(f"cutproof verify ended with {code} under the profiler")
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(TOP)
    lines = text.getvalue().splitlines()
    return "\n".join(line for line in lines if line.strip())


def write_profile(target: Path) -> str:
    text = profile()
    target.write_text(text + "\n", encoding="utf-8")
    return text
