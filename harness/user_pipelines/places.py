"""The places of a pipeline's file, such as {input}, and variables of the environment: what is filled in for them."""

from __future__ import annotations

import glob
import os
import re
import secrets
import socket
from collections.abc import Iterable, Mapping

from ..subject.port import SubjectFailed

PARALLELISM = "parallelism"
PLACES = ("input", "output", "state", "run", "pipeline", "python", "venv", "jars", "java_home", PARALLELISM)
"""{input}, {output} and {state} are folders of their own for each run; {run} is a word of letters and digits that no
other run has, for the name of a table or a topic; {pipeline} is the folder of the file; {python} is the interpreter
that runs cutproof; {venv}, {jars} and {java_home} are folders of what the file needs; {parallelism} is a number of
subtasks, in the command that resumes a job.  Beside these there are ports
({port1} to {port9}), and the file's own parameters."""
NAME = re.compile(r"[A-Za-z0-9_-]+")
"""of a role or of a proxy"""
NAME_IN_WORDS = "a name has letters, digits, underscores and hyphens"
PORTS = tuple(f"port{number}" for number in range(1, 10))
_LISTENED = range(10_000, 32_768)
"""ports that are not those of outgoing connections, which begin at the end on Linux"""
_PLACE = re.compile(r"\{\{(?P<itself>[A-Za-z_]\w*)\}\}|(?<!\$)\{(?P<place>[A-Za-z_]\w*)\}")
"""a place, or with both braces twice the text that looks like one; ${NAME} is none"""
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


def places_in(text: str) -> list[str]:
    """The names of a text's places."""
    return [found["place"] for found in _PLACE.finditer(text) if found["place"]]


def is_port(name: str) -> bool:
    """Whether a place stands for a TCP port of this machine that is free as a run begins."""
    return name in PORTS


def filled(text: str, places: Mapping[str, str]) -> str:
    """A text with its places filled in; what is not one of them stays as it is, and {{name}} becomes {name}."""
    return _PLACE.sub(
        lambda found: places.get(found["place"], found[0]) if found["place"] else f"{{{found['itself']}}}", text
    )


def filled_pattern(text: str, places: Mapping[str, str]) -> str:
    """A pattern of files with its places filled in.  A folder's name is no pattern; a parameter may be one."""
    return filled(text, {name: glob.escape(value) if name in PLACES else value for name, value in places.items()})


def variables_in(text: str) -> list[str]:
    """The variables of the environment that a text names, as it names them: `$NAME` or `${NAME}`."""
    return [found[0] for found in _VARIABLE.finditer(text)]


def expanded(text: str) -> str:
    """A text with its variables filled in; raises SubjectFailed, in one line, for one that is not set."""
    for found in _VARIABLE.finditer(text):
        if (found[1] or found[2]) not in os.environ:
            raise SubjectFailed(f"the environment of cutproof has no variable {found[0]}")
    return _VARIABLE.sub(lambda found: os.environ[found[1] or found[2]], text)


def free_ports(names: Iterable[str]) -> dict[str, str]:
    """For each name another port that nobody listens on now.

    None of them is one that the system gives to outgoing connections: a client that looks for a
    server that was killed could be given the server's own port, and the server could not come back.
    """
    taken: list[socket.socket] = []
    try:
        for _ in names:
            taken.append(_bound())
        return {name: str(one.getsockname()[1]) for name, one in zip(names, taken, strict=True)}
    finally:
        for one in taken:
            one.close()


def _bound() -> socket.socket:
    """A socket that is bound to a port."""
    while True:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", secrets.choice(_LISTENED)))
        except OSError:
            one.close()
        else:
            return one
