"""The mistakes in a user function that can be found before a job runs."""

from __future__ import annotations

from collections.abc import Iterator

from ....reference_impl.core.operators.user_functions import Function, UserOperator
from ....reference_impl.core.vocabulary.errors import Refused
from .base import UserFunction, never_asked

_CALLED_IF = {"on_timer": "timed", "on_end": "timed", "on_close": "timed", "on_clock": "clocked"}


def problems_of(function: UserFunction) -> Iterator[str]:
    """Why the engine cannot run a function, or PySpark cannot be asked about it."""
    kind = function.function
    if kind.timed and kind.clocked:
        yield f"{function.name} goes by event time and by processing time: it can do one of the two"
    for name in _never_called(kind):
        yield f"{function.name} has {name}, which nobody calls: say `{_CALLED_IF[name]} = True`"
    if not kind.clocked and function.spark is never_asked:
        yield f"{function.name} is unknown to PySpark: give it a `spark`"
    if kind.owns_state and kind.states:
        yield f"{function.name} declares states and owns its state: it can do one of the two"
    try:
        UserOperator(function.name, kind)
    except Refused as error:
        yield str(error)


def _never_called(kind: type[Function]) -> Iterator[str]:
    """The methods that the engine never calls, because the function does not declare which time it uses."""
    for name, flag in _CALLED_IF.items():
        if getattr(kind, name) is not getattr(Function, name) and not getattr(kind, flag):
            yield name


def has_rows_of_no_key(kind: type[Function]) -> bool:
    """Whether rows may wait at any subtask to which they were sent: in state of no key, or for `on_close`."""
    return kind.on_close is not Function.on_close or any(one.kind == "items" for one in kind.states.values())
