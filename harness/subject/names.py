"""From a name on a command line to a subject."""

from __future__ import annotations

import importlib
import os
import re
import sys
from difflib import get_close_matches

from ..runtime.config import nearest
from ..runtime.exit_codes import CutproofError, UsageError, one_line
from ..user_pipelines.description import PIPELINE
from .abilities import demand
from .port import Capabilities, Subject

BUILT = ("simulated", "processes")
_METHODS = ("name", "capabilities", "run")


def subject_called(name: str, defect: str | None = None) -> Subject:
    """The subject `simulated`, `processes`, or package.module:NAME, which is a Subject or a factory without arguments.

    A defect can only be planted in the reference engine.  The caller closes the subject
    (`subject.close`).
    """
    if defect and name in BUILT:
        check_defect(defect)
    if name == "simulated":
        from ..reference_engine.subjects.simulated import SimulatedSubject

        return SimulatedSubject(defect)
    if name == "processes":
        from ..reference_engine.services import places
        from ..reference_engine.subjects.processes import ProcessesSubject

        return ProcessesSubject(defect, keep=places.runs())
    if name.startswith(PIPELINE):
        from ..user_pipelines.subject import pipeline_called

        if defect:
            raise UsageError("--defect plants a defect in the reference engine; it does not go with a pipeline")
        return pipeline_called(name)
    if ":" not in name:
        raise UsageError(f"there is no subject {name!r}{nearest(name, BUILT)}; your own is named package.module:NAME")
    if defect:
        raise UsageError("--defect plants a defect in the reference engine; it does not go with a subject of your own")
    return _loaded(name)


def name_of(subject: Subject) -> str:
    """The name of a subject on a command line: package.module:NAME of its class."""
    if subject.name.startswith(PIPELINE):
        return subject.name
    kind = type(subject)
    for name in BUILT:
        if kind.__module__.endswith(f".subjects.{name}"):
            return name
    return f"{kind.__module__}:{kind.__qualname__}"


def stand_in_for(subject: Subject, defect: str | None) -> Subject | None:
    """The engine's twin in virtual time, if the subject runs in real time and has one."""
    return subject_called("simulated", defect) if name_of(subject) == "processes" else None


def check_defect(defect: str) -> None:
    """Raise UsageError, with the nearest name, if there is no such planted defect."""
    from ..reference_engine.defects import DEFECTS

    if defect not in DEFECTS:
        raise UsageError(f"there is no defect {defect!r}; `cutproof defects list` names all {len(DEFECTS)}")


def _loaded(name: str) -> Subject:
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except CutproofError:
        raise
    except Exception as error:
        raise UsageError(f"the subject {name} cannot be imported: {_why(error)}") from error
    try:
        found = getattr(module, attribute)
    except AttributeError:
        public = [other for other in vars(module) if not other.startswith("_")]
        raise UsageError(f"{module_name} has no {attribute!r}{nearest(attribute, public)}") from None
    subject = found if _is_subject(found) and not isinstance(found, type) else _made(name, found)
    if not _is_subject(subject):
        missing = [method for method in _METHODS if not _has(subject, method)]
        raise UsageError(f"{name} is no Subject: it lacks {', '.join(missing)} (see cutproof.Subject)")
    check_capabilities(subject, name)
    return subject


def check_capabilities(subject: Subject, who: str) -> None:
    """Raise UsageError, in one line, for a declaration with an unknown name, or with which nothing can be drawn."""
    try:
        capabilities = subject.capabilities
    except CutproofError:
        raise
    except Exception as error:
        raise UsageError(f"the capabilities of {who} cannot be read: {_why(error)}") from error
    demand(capabilities, who)


def _made(name: str, maker: object) -> Subject:
    if not callable(maker):
        raise UsageError(f"{name} is neither a Subject nor a callable that returns one")
    try:
        made: Subject = maker()
    except TypeError as error:
        raise UsageError(f"{name} cannot be called without arguments: {_why(error)}") from error
    return made


def _why(error: Exception) -> str:
    """An exception in one line; if `Capabilities` received an unknown field, with the nearest known one."""
    message = str(error) if isinstance(error, (ImportError, TypeError)) else one_line(error)
    word = _UNEXPECTED.fullmatch(message)
    fields = Capabilities.__struct_fields__
    close = word and get_close_matches(word[1], fields, n=1, cutoff=0.5)
    return f"{' '.join(message.split())}{nearest(word[1], fields)}" if word and close else " ".join(message.split())


_UNEXPECTED = re.compile(r"Unexpected keyword argument '(\w+)'")
"""of msgspec, whose TypeError has the name in its text alone; without it the nearest name is not suggested"""


def _is_subject(value: object) -> bool:
    return all(_has(value, method) for method in _METHODS)


def _has(value: object, method: str) -> bool:
    """Whether an object has a method."""
    try:
        return hasattr(value, method)
    except Exception:  # a property of a user's class may raise anything: it exists, and its error is reported on use
        return True
