"""The job of a scenario on processes: its timeouts are longer than the scenario's."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.process_job import has_short_timeout
from cutproof.harness.scenario import forecast
from unit.harness.scenarios import chain

SCALE = 20
"""with which a timeout of checkpoints is 100 ms at least, on the scenario's clock"""


@pytest.mark.parametrize(
    ("apply_cost_us", "in_virtual_time", "on_processes"),
    [(1, False, False), (1_000, True, False), (90_000, True, True)],
)
def test_a_timeout_is_short_if_the_load_takes_longer_than_it_lasts_there(
    apply_cost_us: int, in_virtual_time: bool, on_processes: bool
) -> None:
    engine = msgspec.structs.replace(chain().engine, apply_cost_us=apply_cost_us, checkpoint_timeout_us=40_000)
    hurried = msgspec.structs.replace(chain(), engine=engine)
    assert forecast.has_short_timeout(hurried.workload, hurried.topology, engine) is in_virtual_time
    assert has_short_timeout(hurried, SCALE) is on_processes
