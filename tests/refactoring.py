"""Does the engine still do the same?  `python tests/refactoring.py COMMIT` compares what is here with a commit.

Drawn scenarios of three seeds, every file of the corpus and of the regressions, and
every worked example run in virtual time, each scenario of the corpus with its defect
and without.  Of each it keeps digests: of the scenario (what was drawn), of the whole
trace (what the engine did), of the verdicts (how the quick checker judged), and of
their words.  The commit is checked out beside, its own copy of this script records it,
and what differs is named.  Exit code 0: the same; 1: something differs.

Nothing of it is kept in the repository: a change that is meant to alter one of these
says in its commit which, and why that is right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

ROOT = Path(__file__).resolve().parents[1]
SEEDS = (1, 22, 333)
EACH = 1_000
"""scenarios of each seed"""
CHUNK = 50
NAMED_AT_MOST = 5
COLUMNS = ("scenario", "trace", "verdicts", "words")

Row = dict[str, str]
"""What is kept of one run: its name, and a digest a column."""


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _row(name: str, scenario: bytes, trace: str, verdicts: dict[str, object]) -> Row:
    """A row; a verdict counts by its kind, its difference or reason, and how much exercised it."""
    kept = {key: json.loads(msgspec.json.encode(verdict)) for key, verdict in verdicts.items()}
    kinds = [
        (key, one["verdict"], one.get("difference", ""), one.get("reason", ""), one.get("exercised", 0))
        for key, one in kept.items()
    ]
    words = json.dumps(kept, sort_keys=True).encode()
    return {
        "name": name,
        "scenario": _sha(scenario),
        "trace": trace[:16],
        "verdicts": _sha(json.dumps(kinds).encode()),
        "words": _sha(words),
    }


def row_of(name: str, scenario: object, defect: str | None = None) -> Row:
    """Run a scenario in virtual time, with a defect or without, and keep its digests under a name."""
    from cutproof.harness.scenario.files import digest, encode_scenario
    from cutproof.harness.subject.names import subject_called
    from cutproof.harness.subject.port import SubjectFailed
    from cutproof.harness.subject.run import run

    encoded = encode_scenario(scenario)  # type: ignore[arg-type]
    try:
        result = run(subject_called("simulated", defect), scenario, timeline=True)  # type: ignore[arg-type]
    except SubjectFailed as error:
        return _row(name, encoded, _sha(str(error).encode()), {})
    return _row(name, encoded, digest(result.history), dict(result.judgement.verdicts))


def drawn(seed: int, first: int) -> list[Row]:
    """Scenarios as `verify` draws them."""
    from cutproof.harness.generate.strategies import Drawing, scenario_of

    draw = scenario_of(Drawing())
    return [row_of(f"seed {seed}, scenario {index}", draw(seed, index)) for index in range(first, first + CHUNK)]


def files(folder: str) -> list[Row]:
    """Each scenario file of a folder of tests, by the correct engine, and with the defect that it is named after."""
    from cutproof.harness.scenario.files import read_scenario
    from cutproof.reference_impl.defects import DEFECTS

    found = []
    for path in sorted((ROOT / "tests" / folder).glob("*.json")):
        for defect in (None, path.stem) if path.stem in DEFECTS else (None,):
            with_defect = f" with {defect}" if defect else ""
            found.append(row_of(f"{folder}/{path.name}{with_defect}", read_scenario(path), defect))
    return found


def examples(_: str) -> list[Row]:
    """Each worked example with its variants, systems and pipelines among them; the claims count as verdicts."""
    from cutproof.harness.examples import EXAMPLES
    from cutproof.harness.examples.pipelines.examples import PIPELINE_EXAMPLES
    from cutproof.harness.examples.run import run_pipeline_example, run_system_example
    from cutproof.harness.examples.systems.examples import SYSTEM_EXAMPLES
    from cutproof.harness.reference_engine.graphs.run import run_and_judge
    from cutproof.harness.scenario.system_files import read_system

    found = []
    for name, example in EXAMPLES.items():
        found.append(row_of(name, example.scenario))
        found += [row_of(f"{name}: {variant.name}", variant.scenario) for variant in example.variants]
    for path in sorted((ROOT / "tests" / "corpus" / "graphs").glob("*.json")):
        system = read_system(path).system
        kept = run_and_judge(system)
        found.append(_row(path.name, msgspec.json.encode(system), kept.trace_sha256, {"": kept.verdict}))
    own = [(one.name, one.system, run_system_example(one)) for one in SYSTEM_EXAMPLES.values()]
    own += [(one.name, one.pipeline, run_pipeline_example(one)) for one in PIPELINE_EXAMPLES.values()]  # type: ignore[misc]
    for name, described, ran in own:
        row = _row(name, msgspec.json.encode(described), ran.trace_sha256, dict(ran.verdicts))
        found.append(row | {"words": _sha(msgspec.json.encode((row["words"], ran.claims)))})
    return found


def record(each: int, workers: int) -> Iterator[Row]:
    """All rows of what is here, in a fixed order."""
    works: list[tuple[Callable[..., list[Row]], tuple[object, ...]]] = [
        (examples, ("",)),
        *(
            (files, (folder,))
            for folder in ("corpus", "corpus/processes", "regressions", "regressions/failed", "regressions/abandoned")
        ),
        *((drawn, (seed, first)) for seed in SEEDS for first in range(0, each, CHUNK)),
    ]
    with ProcessPoolExecutor(workers) as pool:
        for number, done in enumerate([pool.submit(work, *given) for work, given in works], 1):
            yield from done.result()
            if sys.stderr.isatty():
                print(f"\r{number} of {len(works)} parts", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def rows_of(tree: Path, *arguments: str) -> dict[str, Row]:
    """The rows of a checkout, recorded by its own copy of this script, whatever is installed elsewhere."""
    with TemporaryDirectory(prefix="cutproof-refactoring-") as folder:
        (Path(folder) / "cutproof").symlink_to(tree, target_is_directory=True)
        done = subprocess.run(
            [sys.executable, str(tree / "tests" / Path(__file__).name), "--record", *arguments],
            env={**os.environ, "PYTHONPATH": folder},
            cwd=folder,
            stdout=subprocess.PIPE,
            check=True,
        )
    rows = (json.loads(line) for line in done.stdout.splitlines())
    return {row["name"]: row for row in rows}


def rows_of_commit(commit: str, *arguments: str) -> dict[str, Row]:
    """The rows of a commit, checked out beside."""
    with TemporaryDirectory(prefix="cutproof-refactoring-") as folder:
        there = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(there), commit)
        try:
            return rows_of(there, *arguments)
        finally:
            _git("worktree", "remove", "--force", str(there))


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *words], check=True)


def differences(before: dict[str, Row], after: dict[str, Row]) -> list[str]:
    """What differs, a line a kind, with the first names; none where all is the same."""
    found = {
        "gone": [name for name in before if name not in after],
        "new": [name for name in after if name not in before],
    }
    both = [name for name in before if name in after]
    for column in COLUMNS:
        found[f"another {column}"] = [name for name in both if before[name][column] != after[name][column]]
    return [
        f"{what}: {len(names):,} of {len(before):,} ({'; '.join(names[:NAMED_AT_MOST])}"
        f"{'; …' if len(names) > NAMED_AT_MOST else ''})"
        for what, names in found.items()
        if names
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD", help="what is compared with (default: HEAD)")
    parser.add_argument(
        "--each", type=int, default=EACH, help="scenarios of each of three seeds (default: %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true", help="print the rows of what is here, and compare nothing")
    options = parser.parse_args()
    if options.record:
        for row in record(options.each, options.workers):
            print(json.dumps(row))
        return 0
    arguments = ("--each", str(options.each), "--workers", str(options.workers))
    after = rows_of(ROOT, *arguments)
    kept = differences(rows_of_commit(options.commit, *arguments), after)
    print("\n".join(kept) or f"the same: {len(after):,} runs, by scenario, trace, verdicts and words")
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
