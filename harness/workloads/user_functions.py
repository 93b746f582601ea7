"""A user's own operators (OPS-4): each is made known by its name in every process that runs or judges it.

A function is code, so it never comes out of a scenario file.  The file has the function's name; the code is named on
the command line (`--function package.module:NAME`), by a test or by `known`.  The functions that come with the package
are known from the start.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...properties.model.workload import User, Workload
from ...properties.semantics.user_functions import Counterpart, CounterpartFailed, counterpart, judge_by, judging_within
from ..reference_engine.functions import SHIPPED
from ..reference_engine.functions.base import UserFunction as UserFunction
from ..reference_engine.functions.soundness import has_rows_of_no_key, problems_of
from ..runtime.config import nearest
from ..runtime.exit_codes import UsageError, one_line

RESERVED = "cutproof/"
"""the names of the package's own functions begin with this"""

FUNCTIONS = "functions"
"""how a subject that has the package's own functions names them among its operators"""

_known: dict[str, UserFunction] = {}
_entries: dict[str, str] = {}
"""by a function's name: the package.module:NAME by which another process imports it"""


def known(functions: Iterable[UserFunction | str]) -> None:
    """Make functions known in this process; a text is package.module:NAME.  Raises UsageError."""
    for one in functions:
        function = _loaded(one) if isinstance(one, str) else one
        if not isinstance(function.name, str) or not function.name:
            raise UsageError(f"the name of a user function is a text, not {function.name!r}")
        if function.name.startswith(RESERVED):
            raise UsageError(f"{function.name}: names that begin with {RESERVED!r} are those of the package's own")
        for problem in problems_of(function):
            raise UsageError(problem)
        _entries.pop(function.name, None)
        if isinstance(one, str):
            _entries[function.name] = one
        _know(function)


@contextmanager
def known_within(functions: Iterable[UserFunction | str] = ()) -> Iterator[None]:
    """Make functions known for one block: at its end these, and all that the block made known, are forgotten."""
    before, entries = dict(_known), dict(_entries)
    with judging_within():
        try:
            known(functions)
            yield
        finally:
            for kept, was in ((_known, before), (_entries, entries)):
                kept.clear()
                kept.update(was)  # type: ignore[arg-type]


def _know(function: UserFunction) -> None:
    _known[function.name] = function
    by_key = not has_rows_of_no_key(function.function)
    judge_by(Counterpart(name=function.name, expected=function.expected, spark=function.spark, by_key=by_key))


for _function in SHIPPED:
    _know(_function)


def demand(workload: Workload) -> None:
    """Raise UsageError for a workload with a user's function that is not known, or that differs from what the
    workload declares: it would be judged as another function."""
    for node in workload.nodes:
        if isinstance(node.operator, User):
            try:
                counterpart(node.operator.function)
            except CounterpartFailed:
                raise UsageError(UNKNOWN.format(node.operator.function)) from None
            for problem in _contradictions(node.operator):
                raise UsageError(f"{node.name}: {problem}")


def _contradictions(declared: User) -> Iterator[str]:
    """What a workload declares of a function, and is not true; any function may be declared to depend on the order."""
    if declared.function not in _known:  # only its counterpart is known, and flags belong to the function
        return
    truly = _known[declared.function].operator
    for flag in ("timed", "clocked", "ordered"):
        is_so = getattr(truly, flag)
        if getattr(declared, flag) is not is_so and (is_so or flag != "ordered"):
            what = flag if is_so else f"not {flag}"
            yield f"the function {declared.function!r} is {what}, and the workload declares otherwise"


UNKNOWN = "there is no user function {!r}; make it known with --function package.module:NAME"


def function_called(name: str) -> UserFunction | None:
    """A function by its name; None for one that was not made known."""
    return _known.get(name)


def entry_called(name: str) -> str | None:
    """The package.module:NAME by which another process imports a function; None if nobody has named it so."""
    return _entries.get(name)


def entries_of(functions: Iterable[UserFunction | str]) -> tuple[str, ...]:
    """What other processes need to import the functions; raises UsageError for one that only this process has."""
    given = list(functions)
    without_counterpart = [one.name for one in given if not isinstance(one, str)]
    if without_counterpart:
        raise UsageError(
            f"worker processes cannot import {', '.join(without_counterpart)}; name it as package.module:NAME"
        )
    return tuple(str(one) for one in given)


def _loaded(entry: str) -> UserFunction:
    module_name, _, attribute = entry.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"a user function is named package.module:NAME, not {entry!r}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"the function {entry} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:  # an exception of the user's module while it is imported
        raise UsageError(f"the function {entry} cannot be imported: {one_line(error)}") from error
    found = getattr(module, attribute, None)
    if found is None:
        public = [other for other in vars(module) if not other.startswith("_")]
        raise UsageError(f"{module_name} has no {attribute!r}{nearest(attribute, public)}")
    if not isinstance(found, UserFunction):
        raise UsageError(f"{entry} is no cutproof.UserFunction")
    return found
