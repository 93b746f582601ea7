"""What a subject cannot do is not asked of it, and is told as not tried: every capability that there is."""

from __future__ import annotations

import msgspec
import pytest

from cutproof.harness.reference_engine.subjects.simulated import SimulatedSubject
from cutproof.harness.scenario.model import Scenario
from cutproof.harness.subject.not_tried import ABILITIES, not_tried
from cutproof.harness.subject.port import Capabilities
from cutproof.properties.model.history import History

NOT_REPORTED = ("real_time", "refuses_unfit")  # the second is the earlier name of another
FLAGS = [
    field.name
    for field in msgspec.structs.fields(Capabilities)
    if field.type is bool and field.name not in NOT_REPORTED
]


class Engine:
    """One that can do what it is told it can, and is never run."""

    name = "engine"

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities

    def run(self, scenario: Scenario, *, timeline: bool = False) -> History:
        raise AssertionError("what it can do is asked, not shown")


@pytest.mark.parametrize("ability", FLAGS)
def test_each_ability_is_reported_where_it_is_missing_and_nowhere_else(ability: str) -> None:
    able = SimulatedSubject().capabilities
    lacking = msgspec.structs.replace(able, **{ability: False})
    named = set(not_tried(Engine(lacking))) - set(not_tried(Engine(able)))
    assert named == {ABILITIES[ability]}


def test_what_can_do_nothing_is_asked_for_no_fault_and_no_command() -> None:
    named = not_tried(Engine(Capabilities()))
    assert {"fault kill-task", "command resume", *ABILITIES.values()} <= set(named)
