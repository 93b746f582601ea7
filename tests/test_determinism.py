"""A run is a function of its scenario: the same trace under another hash seed, in another process, twice in one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutproof.harness.counterexamples.replay import Replayed, replay
from cutproof.harness.generate.situations.templates import TEMPLATES
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.files import encode_scenario
from cutproof.harness.scenario.model import Scenario

EACH = 3
"""scenarios of each template"""

ELSEWHERE = """
import sys
from cutproof.harness.scenario.files import decode_scenario
from cutproof.harness.counterexamples.replay import replay
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
for line in sys.stdin.buffer:
    print(replay(SimulatedSubject(), decode_scenario(line)).trace_sha256)
"""
DRAWN_ELSEWHERE = """
import hashlib, sys
from cutproof.harness.scenario.files import encode_scenario
from cutproof.harness.generate.strategies import Drawing, scenario_of
from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from msgspec.structs import replace
weak = replace(SimulatedSubject().capabilities, guarantees=frozenset(("at-most-once", "at-least-once")))
for drawing in (Drawing(), Drawing(capabilities=weak, templates=("crash-after-reuse",))):
    draw = scenario_of(drawing)
    for index in range(int(sys.argv[1])):
        print(hashlib.sha256(encode_scenario(draw(11, index))).hexdigest())
"""


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [
        scenario_of(Drawing(templates=(template,), max_records=60))(11, index)
        for template in TEMPLATES
        for index in range(EACH)
    ]


@pytest.fixture(scope="module")
def replays(scenarios: list[Scenario]) -> list[Replayed]:
    """Each scenario once, with its time line."""
    return [replay(SimulatedSubject(), scenario) for scenario in scenarios]


@pytest.fixture(scope="module")
def digests(replays: list[Replayed]) -> list[str]:
    """Of every run's whole trace, time line included."""
    return [one.trace_sha256 for one in replays]


def elsewhere(program: str, *arguments: str, hash_seed: str, given: bytes = b"", folder: Path) -> list[str]:
    """What a program prints in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=given,
        env=environment,
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split()


def test_runs_differ_from_each_other(digests: list[str]) -> None:
    assert len(set(digests)) == len(digests)


def test_twice_in_one_process(scenarios: list[Scenario], digests: list[str]) -> None:
    """In the other order too: no run leaves anything behind for the next."""
    again = [replay(SimulatedSubject(), scenario).trace_sha256 for scenario in reversed(scenarios)]
    assert again[::-1] == digests


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_in_another_process_under_another_hash_seed(
    hash_seed: str, scenarios: list[Scenario], digests: list[str], tmp_path: Path
) -> None:
    given = b"\n".join(encode_scenario(scenario) for scenario in scenarios)
    assert elsewhere(ELSEWHERE, hash_seed=hash_seed, given=given, folder=tmp_path) == digests


def test_the_timeline_changes_nothing_that_happens(scenarios: list[Scenario], replays: list[Replayed]) -> None:
    for scenario, replayed in zip(scenarios, replays, strict=True):
        plain, watched = SimulatedSubject().run(scenario), replayed.history
        assert (bool(plain.timeline), bool(watched.timeline)) == (False, True)
        assert (plain.committed, plain.residue) == (watched.committed, watched.residue)
        assert [entry.at_us for entry in plain.journal] == [entry.at_us for entry in watched.journal]


def test_drawing_is_the_same_everywhere(tmp_path: Path) -> None:
    draw = scenario_of(Drawing())
    here = [hashlib.sha256(encode_scenario(draw(11, index))).hexdigest() for index in range(20)]
    there = elsewhere(DRAWN_ELSEWHERE, "20", hash_seed="1", folder=tmp_path)
    assert there[:20] == here
    # These two hash seeds order the guarantees of a subject without exactly-once differently.
    assert elsewhere(DRAWN_ELSEWHERE, "20", hash_seed="3", folder=tmp_path) == there
