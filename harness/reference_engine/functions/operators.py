"""The engine's operators of user functions, by their names in a workload.  All raise Refused for a name that is not
registered."""

from __future__ import annotations

from collections.abc import Callable

from ....reference_impl.core.operators.operators import Operator
from ....reference_impl.core.operators.user_functions import UserOperator
from ....reference_impl.core.vocabulary.errors import Refused
from ...workloads.user_functions import RESERVED, UNKNOWN, entry_called, function_called
from .base import UserFunction


def user_operator(name: str) -> Callable[[], Operator]:
    """A factory of instances of a user's operator."""
    function = _called(name)
    return lambda: UserOperator(name, function.function)


def shares_state(name: str) -> bool:
    """Whether a function declares a union."""
    return any(declared.kind == "union" for declared in _called(name).function.states.values())


def entry_of(name: str) -> str | None:
    """The package.module:NAME from which another process can import a function; None for a function of the package,
    which every process knows."""
    _called(name)
    if name.startswith(RESERVED):
        return None
    entry = entry_called(name)
    if entry is None:
        raise Refused(f"the function {name!r} exists only in this process; name it as package.module:NAME")
    return entry


def _called(name: str) -> UserFunction:
    function = function_called(name)
    if function is None:
        raise Refused(UNKNOWN.format(name))
    return function
