"""What the engine refuses, each with one line for a person."""

from __future__ import annotations


class EngineError(Exception):
    """Base of what the engine refuses or gives up on."""


class InvalidGraph(EngineError):
    """A job graph that cannot run: a cycle, parts that are not connected (ABS-18)."""


class Refused(EngineError):
    """A configuration that would weaken a promise silently (ABS-16, ABS-17)."""


class CorruptSnapshot(EngineError):
    """A snapshot whose bytes are torn or altered."""


class UserFunctionRaised(EngineError):
    """A user's function raised while it worked on a record (OPS-5)."""


class ProtocolViolated(EngineError):
    """An event that the protocol does not allow in this state: a bug, here or in a driver."""


def require(condition: bool, message: str) -> None:
    """Raise ProtocolViolated unless `condition`; unlike assert it survives `python -O`."""
    if not condition:
        raise ProtocolViolated(message)
