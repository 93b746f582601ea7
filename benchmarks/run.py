"""All benchmarks: a table on standard output, JSON and a profile under out/benchmarks.

    tox -e bench                      everything
    tox -e bench -- simulator check   only these

Medians of several runs.  Nothing here is a test: a figure cannot fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from measure import Figure, figure, machine, table

CHECK_ROUNDS = 3
OUT = Path(__file__).resolve().parents[1] / "out" / "benchmarks"


def _verified(options: argparse.Namespace) -> list[Figure]:
    import verified

    return verified.figures(options.scenarios)


def _simulator(options: argparse.Namespace) -> list[Figure]:
    import simulator

    return simulator.figures()


def _check(options: argparse.Namespace) -> list[Figure]:
    """In a process of its own, so that its Spark session begins as a user's does."""
    target = OUT / "check_tables.json"
    script = Path(__file__).with_name("check_tables.py")
    words = ["--rows", str(options.rows), "--rounds", str(CHECK_ROUNDS), "--json", str(target)]
    subprocess.run([sys.executable, str(script), *words], check=True)
    result = json.loads(target.read_text(encoding="utf-8"))
    return [
        figure(f"check of {result['rows']:,} rows: {name}", "s", [way["seconds"]], f"{way['passes']:.2f} passes")
        for name, way in result["ways"].items()
    ]


def _skew(options: argparse.Namespace) -> list[Figure]:
    import check_skew

    return check_skew.figures(options.rows)


def _profile(options: argparse.Namespace) -> list[Figure]:
    import verified

    print(verified.write_profile(OUT / "profile.txt"), flush=True)
    return verified.figures_of_one_worker()


def _hunts(options: argparse.Namespace) -> list[Figure]:
    import verified

    return verified.figures_of_hunts()


def _processes(options: argparse.Namespace) -> list[Figure]:
    import processes

    return processes.figures()


def _spread(options: argparse.Namespace) -> list[Figure]:
    import spread

    return spread.figures()


def _stall(options: argparse.Namespace) -> list[Figure]:
    import stall

    return stall.figures()


def _formats(options: argparse.Namespace) -> list[Figure]:
    import formats

    return formats.figures()


def _stop(options: argparse.Namespace) -> list[Figure]:
    import stop

    return stop.figures()


PARTS: dict[str, Callable[[argparse.Namespace], list[Figure]]] = {
    "simulator": _simulator,
    "verified": _verified,
    "check": _check,
    "skew": _skew,
    "profile": _profile,
    "hunts": _hunts,
    "processes": _processes,
    "spread": _spread,
    "formats": _formats,
    "stall": _stall,
    "stop": _stop,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--scenarios", type=int, default=1_000, help="in a run of verify (default 1000)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="in each table of check (default 10 million)")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; there are {', '.join(PARTS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    for part in options.parts or PARTS:
        print(f"{part} ...", flush=True)
        figures += PARTS[part](options)
    print(table(figures))
    document = {"format": "cutproof-benchmarks/1", "machine": machine(), "figures": [asdict(each) for each in figures]}
    (OUT / "figures.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
