"""What the engine refuses; each error is one line that a person can read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind")


class EngineError(Exception):
    """Base of the engine's errors."""


class InvalidGraph(EngineError):
    """A job graph that cannot run: it has a cycle, or parts that are not connected (ABS-18)."""


class Refused(EngineError):
    """A configuration that would weaken a promise silently (ABS-16, ABS-17)."""


class CorruptSnapshot(EngineError):
    """A snapshot whose bytes are torn or altered."""


class ProtocolViolated(EngineError):
    """An event that the protocol does not allow in this state: a bug, here or in a driver."""


def require(condition: bool, message: str) -> None:
    """Raise ProtocolViolated unless `condition`; unlike assert it survives `python -O`."""
    if not condition:
        raise ProtocolViolated(message)


def expect(value: object, kind: type[Kind]) -> Kind:
    """The value, which the protocol requires to be of this kind; raises ProtocolViolated otherwise."""
    if not isinstance(value, kind):
        raise ProtocolViolated(f"{value!r} is no {kind.__name__}, which the protocol requires here")
    return value


class Handlers(dict[type, Callable[..., Any]]):
    """The handler of each type of event; an event that is not listed violates the protocol."""

    def __missing__(self, kind: type) -> Callable[..., Any]:
        raise ProtocolViolated(f"no handler for {kind.__name__} here")
