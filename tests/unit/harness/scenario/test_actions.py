"""What a user did, by name: each command of the model has an action, and each action is of a command."""

from __future__ import annotations

import pytest

from cutproof.faults.plan import AtTime
from cutproof.harness.scenario.actions import ACTIONS, KIND_OF, NONE, action_of
from cutproof.harness.scenario.model import COMMANDS, AnyCommand, Resume, StopWithSavepoint

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
    ],
)
def test_some_commands_are_several_actions(command: AnyCommand, action: str) -> None:
    assert action_of(command) == action
    assert action in ACTIONS
