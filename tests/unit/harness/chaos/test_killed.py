"""SIGKILL at random moments: the bank is whole each time, and has what it had."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from cutproof.harness.chaos.bank import Bank
from end_to_end.command_line import TIMEOUT_S, environment
from unit.harness.chaos import killed_night

TESTS = str(Path(__file__).parents[3])
KILLS = 4
NIGHTS_MORE = 2
"""nights that each job begins before it is killed"""
WITHIN_S = 0.8
"""after the last of them began: about as long as a night"""


def test_a_killed_job_leaves_a_whole_bank(tmp_path: Path) -> None:
    drawn = random.Random(11)
    failures: set[str] = set()
    nights: set[str] = set()
    for number in range(KILLS):
        words = [sys.executable, killed_night.__file__, str(tmp_path), str(3 + 10 * number)]
        with subprocess.Popen(words, env=environment(PYTHONPATH=TESTS)) as job:
            until = time.monotonic() + TIMEOUT_S
            while len(list(tmp_path.glob("nights/*/night.json"))) < len(nights) + NIGHTS_MORE:
                assert job.poll() is None
                assert time.monotonic() < until
                time.sleep(0.005)
            time.sleep(drawn.uniform(0, WITHIN_S))
            job.kill()
        with Bank(tmp_path) as bank:
            assert bank.remarks == []
            assert failures <= bank.failures.keys()
            assert nights <= {night.id for night in bank.nights}
            failures, nights = set(bank.failures), {night.id for night in bank.nights}
    assert failures
