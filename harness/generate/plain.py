"""The scenario that every subject can run: one input, no operator, no fault.

It replaces a scenario that was drawn several times and each time needed more than the
subject can do.
"""

from __future__ import annotations

from ..scenario.model import Scenario
from .choices import Choices
from .engines import Tuning
from .stage import Frame, stage_of

PLAIN = "plain"


def plain(choices: Choices, frame: Frame) -> Scenario:
    recipe = frame.recipe(
        most_records=30,
        shapes=("chain",),
        least_operators=0,
        most_operators=0,
        windows_percent=0,
        clocked_percent=0,
        rules_percent=0,
        batches_percent=0,
        retractions_percent=0,
        two_phase_percent=0,
        enumerated_percent=0,
        operators=frozenset(),
        parallelism=(1,),
    )
    return stage_of(choices, frame, recipe, Tuning(checkpoints=(3, 6))).scenario(PLAIN)
