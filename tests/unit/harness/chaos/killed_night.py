"""`killed_night.py BANK SEED`: nights of a defective engine in one process, until somebody kills it."""

from __future__ import annotations

import functools
import itertools
import sys
from pathlib import Path

from cutproof.harness.chaos import subject_night
from cutproof.harness.chaos.job import ChaosRequest, run_night
from cutproof.harness.search import worker
from cutproof.harness.search.pool import Here
from cutproof.harness.shrink.on_subject import shrink_on
from unit.harness.chaos.defective import DEFECTIVE, Defective
from unit.harness.subjects import Agreeing

if __name__ == "__main__":
    bank, seed = Path(sys.argv[1]), int(sys.argv[2])
    Defective.planted = ("A01",)
    subject_night.Processes = lambda plan, _: Here(plan)  # type: ignore[misc, assignment]
    worker.shrink_on = functools.partial(shrink_on, max_runs=10)  # type: ignore[assignment]
    for number in itertools.count(seed):
        asked = ChaosRequest(bank=bank, seconds=60.0, subjects=(DEFECTIVE,), seed=number, profile="smoke", scenarios=4)
        run_night(asked, oracle=Agreeing())
