"""Stand-ins for the neighbours of one machine of a job's lifecycle, and a life that has come to a given stage.

What the machine asks of a neighbour comes back among the effects, so that a test sees the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cutproof.reference_impl.core.lifecycle.job_life import JobLife, place_of
from cutproof.reference_impl.core.vocabulary.causes import Killed
from cutproof.reference_impl.core.vocabulary.effects import Effect
from cutproof.reference_impl.core.vocabulary.ends import Status
from cutproof.reference_impl.core.vocabulary.events import Closure
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.stages import (
    AwaitingRecord,
    Closing,
    Deciding,
    Deploying,
    PartialFailover,
    Renumbered,
    Saving,
    Stage,
    Working,
)
from unit.core.coordinator_rig import OP, TASKS

CLOSURE = Closure(Status.FAILED, Killed())


class Told(Effect, frozen=True):
    """A neighbour was asked for something."""

    what: str
    about: tuple[Any, ...] = ()


class Neighbour:
    """Each of its methods answers that it was called, as the only effect."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., list[Effect]]:
        return lambda *about: [Told(f"{self._name}.{method}", about)]


def neighbour(name: str) -> Any:
    return Neighbour(name)


_UP: tuple[Stage, ...] = (Saving(None), Deploying(None, TASKS), Working())
_REGION: tuple[Stage, ...] = (
    PartialFailover((OP,), Killed()),
    PartialFailover((OP,), Killed(), AwaitingRecord()),
    PartialFailover((OP,), Killed(), Renumbered(None)),
)
_WAY_TO: dict[str, tuple[Stage, ...]] = {
    "Listing": (),
    "Saving": (),
    "Deploying": _UP[:1],
    "Working": _UP[:2],
    "Delayed": _UP,
    "AwaitingRecord": (*_UP, *_REGION[:1]),
    "Renumbered": (*_UP, *_REGION[:2]),
    "Starting": (*_UP, *_REGION),
    "AwaitingRecords": (*_UP, Closing(CLOSURE, AttemptId(1), Deciding())),
    "Settling": (*_UP, Closing(CLOSURE, AttemptId(1), Deciding())),
}
"""the stages before a place, where they are not those of a job that works"""


def life_at(stage: Stage) -> JobLife:
    """The life of a job that has come to this stage."""
    life = JobLife()
    for before in _WAY_TO.get(place_of(stage).__name__, _UP):
        life.enter(before)
    life.enter(stage)
    return life
