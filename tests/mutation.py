"""How much would the tests and the verifier notice?  `tox -e mutation -- --help`.

Draws mutants of reference_impl/core, reference_impl/batch and properties (tests/mutants.py), puts
each into a copy of the tree, and runs the tests of these rooms, those nearest
to it first, then a search without Spark (tests/quick_search.py), then a short
`cutproof verify`, stopping at the first failure.
Survivors are printed with their change; tests/equivalent-mutants.toml says of
known ones why nothing can tell them from the original.

What was found is kept under out/mutation: a mutant once killed is not tried
again while its file is unchanged, a survivor not while the whole tree is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from mutants import Mutant, draw, mutants

ROOT = Path(__file__).resolve().parents[1]
CODE = ("__init__.py", "pyproject.toml", "faults", "harness", "properties", "reference_impl", "reports", "tests")
MUTATED = ("reference_impl/core", "reference_impl/batch", "properties")
NOT_MUTATED = ("properties/checking", "properties/spark")
"""Folders below those, whose tests start Spark or compare users' tables."""
TESTS = (
    "tests/unit/core",
    "tests/unit/properties",
    "tests/unit/batch",
    "tests/unit/simulated",
    "tests/defects",
    "tests/conformance",
)
"""The folders of tests of what is mutated, quickest first; none of them starts Spark, and those
on real processes are left out."""
WANTED_RATE = 0.85
TESTS_TIMEOUT_S = 360
VERIFY_GRACE_S = 60
"""what verify may take beyond its own time: the start of Spark, the last batch, the report"""


@dataclass(frozen=True, kw_only=True)
class Result:
    address: str
    killer: str
    """the stage that failed; empty for a survivor"""
    file: str
    """digest of the mutated file"""
    tree: str
    """digest of all code and tests"""
    diff: str
    seconds: float


def mutated_files() -> list[str]:
    """The paths of all files that are mutated."""
    found = (file.relative_to(ROOT).as_posix() for folder in MUTATED for file in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if not path.startswith(tuple(f"{folder}/" for folder in NOT_MUTATED)))


def candidates(only: Sequence[str]) -> list[Mutant]:
    """All mutants of the files whose path contains one of `only`; of every file if that is empty."""
    return [
        mutant
        for path in mutated_files()
        if not only or any(text in path for text in only)
        for mutant in mutants(path, (ROOT / path).read_text(encoding="utf-8"))
    ]


def tree_digest() -> str:
    digest = hashlib.sha256()
    for name in CODE:
        top = ROOT / name
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def copy_tree(target: Path) -> Path:
    """A copy that imports as `cutproof` from `target`."""
    package = target / "cutproof"
    package.mkdir(parents=True)
    for name in CODE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, package / name, ignore=shutil.ignore_patterns("__pycache__", "browser"))
        else:
            shutil.copy(source, package / name)
    return package


def stages(package: Path, path: str, seconds: int) -> list[tuple[str, list[str], int]]:
    """(name, command, limit in seconds), the quickest and likeliest to fail first.

    The real verify, which has to start Spark, is left to what nothing else kills.
    """
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    pytest += ["-m", "not spark", "-k", "not processes"]
    near, far = test_files(package, path)
    found = [("nearest tests", [*pytest, *near], TESTS_TIMEOUT_S), ("tests", [*pytest, *far], TESTS_TIMEOUT_S)]
    if seconds:
        search = [sys.executable, "tests/quick_search.py", str(seconds / 3)]
        found.append(("quick search", search, seconds))
        verify = [sys.executable, "-c", "import sys; from cutproof.harness.cli import main; sys.exit(main())", "verify"]
        verify += ["--time", f"{seconds}s", "--seed", "1", "--stop-at-first", "--quiet", "--out", str(package / "out")]
        found.append(("verify", verify, seconds + VERIFY_GRACE_S))
    return found


def test_files(package: Path, path: str) -> tuple[list[str], list[str]]:
    """The tests that say what the mutated folders do: those nearest to the file, its own tests first, and the rest.

    Most mutants are killed by the first, and what is not collected costs nothing.
    """
    own = f"test_{Path(path).stem}.py"

    def files(folder: str) -> list[str]:
        found = sorted((package / folder).rglob("test_*.py"), key=lambda file: (file.name != own, file.name))
        return [file.relative_to(package).as_posix() for file in found]

    near = files(nearest_tests(package, path))
    return near, [file for folder in TESTS for file in files(folder) if file not in near]


def nearest_tests(package: Path, path: str) -> str:
    """The folder of tests that mirrors the folder of a mutated file, or else the nearest folder above that has one."""
    folder = Path(path).parent
    while folder.name:
        mirrors = [f"tests/unit/{Path(*folder.parts[first:]).as_posix()}" for first in (0, 1) if folder.parts[first:]]
        for tests in mirrors:
            if (package / tests).is_dir():
                return tests
        folder = folder.parent
    raise ValueError(f"there are no unit tests of {path}")


def log_of(package: Path) -> Path:
    """What the last stage printed."""
    return package.parent / "last.log"


def passes(command: list[str], limit_s: int, package: Path) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    with log_of(package).open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=package,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        return process.wait(timeout=limit_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """A mutant can hang, and verify has a Java process: end all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def try_mutant(mutant: Mutant, package: Path, seconds: int, tree: str) -> Result:
    target = package / mutant.path
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.source, encoding="utf-8")
    began = time.monotonic()
    killer = ""
    try:
        for name, command, limit in stages(package, mutant.path, seconds):
            if not passes(command, limit, package):
                killer = name
                break
    finally:
        target.write_text(original, encoding="utf-8")
        shutil.rmtree(package / "out", ignore_errors=True)
    return Result(
        address=mutant.address,
        killer=killer,
        file=file_digest(mutant),
        tree=tree,
        diff=mutant.diff(original),
        seconds=round(time.monotonic() - began, 1),
    )


def file_digest(mutant: Mutant) -> str:
    return hashlib.sha256(mutant.source.encode()).hexdigest()


def remembered(store: Path, drawn: Sequence[Mutant], tree: str) -> dict[str, Result]:
    """What earlier runs found that is still true."""
    files = {mutant.address: file_digest(mutant) for mutant in drawn}
    known: dict[str, Result] = {}
    for line in store.read_text(encoding="utf-8").splitlines() if store.is_file() else []:
        result = Result(**json.loads(line))
        if files.get(result.address) == result.file and (result.killer or result.tree == tree):
            known[result.address] = result
    return known


def run(drawn: Sequence[Mutant], options: argparse.Namespace, store: Path) -> dict[str, Result]:
    tree = tree_digest()
    results = remembered(store, drawn, tree)
    left = [mutant for mutant in drawn if mutant.address not in results]
    print(f"{len(drawn)} mutants drawn, {len(results)} known from earlier runs", flush=True)
    deadline = time.monotonic() + options.minutes * 60
    with TemporaryDirectory(prefix="cutproof-mutation-") as folder, ThreadPoolExecutor(options.workers) as pool:
        idle: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            idle.put(copy_tree(Path(folder) / str(number)))
        if left:
            require_green(idle, options.seconds)

        def one(mutant: Mutant) -> Result | None:
            if time.monotonic() > deadline:
                return None
            package = idle.get()
            try:
                return try_mutant(mutant, package, options.seconds, tree)
            finally:
                idle.put(package)

        for done in pool.map(one, left):
            if done is not None:
                results[done.address] = done
                with store.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(vars(done)) + "\n")
                print(
                    f"{len(results):4} {done.killer or 'SURVIVED':20} {done.seconds:6.1f} s  {done.address}", flush=True
                )
    return results


def require_green(idle: SimpleQueue[Path], seconds: int) -> None:
    """A test that fails anyway would kill every mutant."""
    package = idle.get()
    for name, command, limit in stages(package, f"{MUTATED[-1]}/__init__.py", seconds):
        if not passes(command, limit, package):
            tail = log_of(package).read_text(encoding="utf-8", errors="replace")[-2_000:]
            sys.exit(f"the unchanged tree does not pass: {name}: {' '.join(command)}\n{tail}")
    idle.put(package)


def report(results: dict[str, Result], drawn: Sequence[Mutant]) -> float:
    """Print survivors and rates; the share of the tried mutants that was killed."""
    notes = tomllib.loads((ROOT / "tests" / "equivalent-mutants.toml").read_text(encoding="utf-8"))
    survivors = [
        results[mutant.address] for mutant in drawn if mutant.address in results and not results[mutant.address].killer
    ]
    for survivor in survivors:
        print(f"\nSURVIVED {survivor.address}\n{survivor.diff}")
        if survivor.address in notes:
            print(f"known: {notes[survivor.address]}")
    killers = Counter(result.killer for result in results.values() if result.killer)
    killed, tried = sum(killers.values()), len(results)
    explained = sum(survivor.address in notes for survivor in survivors)
    print(f"\n{killed} of {tried} mutants killed ({killed / max(tried, 1):.1%}); {explained} of the rest are explained")
    print("; ".join(f"{count} by {name}" for name, count in killers.most_common()))
    if tried < len(drawn):
        print(f"{len(drawn) - tried} were not tried: the time was over; run it again to go on")
    return killed / max(tried, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=120, help="how many mutants are drawn (default 120)")
    parser.add_argument("--seed", default="1", help="the draw's seed (default 1)")
    parser.add_argument(
        "--only", default=[], nargs="+", metavar="TEXT", help="only files whose path contains one of these"
    )
    parser.add_argument("--seconds", type=int, default=30, help="of verify for each mutant; 0 for none (default 30)")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time (default 2)")
    parser.add_argument("--minutes", type=float, default=90, help="start no more mutants after this (default 90)")
    parser.add_argument("--list", action="store_true", help="print the drawn mutants and run nothing")
    options = parser.parse_args()
    drawn = draw(candidates(options.only), seed=options.seed, count=options.count)
    if options.list:
        for mutant in drawn:
            print(f"{mutant.address}\n{mutant.diff((ROOT / mutant.path).read_text(encoding='utf-8'))}\n")
        return 0
    store = ROOT / "out" / "mutation" / "results.jsonl"
    store.parent.mkdir(parents=True, exist_ok=True)
    return 0 if report(run(drawn, options, store), drawn) >= WANTED_RATE else 3


if __name__ == "__main__":
    sys.exit(main())
