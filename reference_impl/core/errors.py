"""What the engine refuses, each with one line for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind")


class EngineError(Exception):
    """Base of what the engine refuses or gives up on."""


class InvalidGraph(EngineError):
    """A job graph that cannot run: a cycle, parts that are not connected (ABS-18)."""


class Refused(EngineError):
    """A configuration that would weaken a promise silently (ABS-16, ABS-17)."""


class CorruptSnapshot(EngineError):
    """A snapshot whose bytes are torn or altered."""


class PlaceUnknown(EngineError):
    """A task is to go back to a checkpoint whose place in the task's determinant log is not known (any more)."""


class ProtocolViolated(EngineError):
    """An event that the protocol does not allow in this state: a bug, here or in a driver."""


def require(condition: bool, message: str) -> None:
    """Raise ProtocolViolated unless `condition`; unlike assert it survives `python -O`."""
    if not condition:
        raise ProtocolViolated(message)


def expect(value: object, kind: type[Kind]) -> Kind:
    """The value, which must be of this kind by the protocol; raise ProtocolViolated when it is not."""
    if not isinstance(value, kind):
        raise ProtocolViolated(f"{value!r} where a {kind.__name__} was to be")
    return value


class Handlers(dict[type, Callable[[Any], Any]]):
    """What to do by the type of an event; an event that is not listed violates the protocol."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        raise ProtocolViolated(f"nothing is to be done about a {kind.__name__} here")
