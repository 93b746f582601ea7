"""What a scenario leaves behind is freed at once, and not by the collector of garbage, which would take a tenth of the
time of a worker."""

from __future__ import annotations

import gc

from cutproof.harness.search.worker import Plan, Worker

SCENARIOS = 40
AT_MOST = 100
"""objects of a scenario, on average, in cycles; the histories alone are more than a thousand"""


def test_worlds_and_histories_are_freed_without_the_collector_of_garbage() -> None:
    worker = Worker(Plan(seed=1))
    worker.chunk(0, 10)  # what is kept for good, such as the decoders of messages
    gc.collect()
    gc.disable()
    try:
        ran = worker.chunk(0, SCENARIOS).ran
        left = gc.collect()
    finally:
        gc.enable()
    assert len(ran) == SCENARIOS
    assert left / SCENARIOS < AT_MOST
