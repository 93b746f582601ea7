"""What a user did, by name: each command of the model has an action, and each action is of a command."""

from __future__ import annotations

import pytest

from cutproof.faults.plan import AtTime
from cutproof.harness.scenario.actions import ACTIONS, KIND_OF, NONE, action_of
from cutproof.harness.scenario.model import COMMANDS, AnyCommand, Fork, Resume, StopWithSavepoint
from cutproof.properties.model.workload import Topology

WHEN = AtTime(at_us=1)


def test_every_command_of_the_model_has_an_action() -> None:
    """So a new command is an action of the coverage from its first day on."""
    assert set(KIND_OF.values()) == set(COMMANDS)
    assert set(ACTIONS) == {NONE, *KIND_OF}
    assert len(ACTIONS) == len(set(ACTIONS))


@pytest.mark.parametrize("kind", sorted(COMMANDS))
def test_a_command_as_it_is_given_by_default_is_one_of_its_actions(kind: str) -> None:
    assert KIND_OF[action_of(COMMANDS[kind](trigger=WHEN))] == kind


@pytest.mark.parametrize(
    ("command", "action"),
    [
        (StopWithSavepoint(trigger=WHEN), "stop"),
        (StopWithSavepoint(trigger=WHEN, drain=True), "drain"),
        (Resume(trigger=WHEN), "resume newest"),
        (Resume(trigger=WHEN, snapshot="oldest"), "resume oldest"),
        (Resume(trigger=WHEN, snapshot="mine"), "resume named"),
        (Resume(trigger=WHEN, claim_mode="claim"), "resume claim"),
        (Resume(trigger=WHEN, snapshot="mine", claim_mode="no-claim"), "resume no-claim"),
        (Resume(trigger=WHEN, snapshot="mine", parallelism={"count": 2}), "resume rescaled"),
        (Resume(trigger=WHEN, claim_mode="claim", parallelism={"count": 2}), "resume rescaled"),
        (Fork(trigger=WHEN), "fork"),
        (Fork(trigger=WHEN, snapshot="oldest", parallelism={"count": 2}), "fork rescaled"),
    ],
)
def test_some_commands_are_several_actions(command: AnyCommand, action: str) -> None:
    assert action_of(command) == action
    assert action in ACTIONS


@pytest.mark.parametrize("kind", [Resume, Fork])
def test_a_parallelism_that_the_job_had_already_is_no_other_one(kind: type[Resume | Fork]) -> None:
    before = Topology(parallelism={"count": 2, "sink": 1}, edges=())
    same, other = (kind(trigger=WHEN, parallelism={"count": number}) for number in (2, 1))
    assert action_of(other, before) == f"{kind.__struct_config__.tag} rescaled"
    assert action_of(same, before) == action_of(kind(trigger=WHEN))
