"""The places of a pipeline's file, such as {input}: what is filled in for them, in one run."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping

PLACES = ("input", "output", "state", "run", "pipeline", "python", "venv", "jars", "java_home")
"""{input}, {output} and {state} are folders of their own for each run; {run} is a word of letters and digits that no
other run has, for the name of a table or a topic; {pipeline} is the folder of the file; {python} is the interpreter
that runs cutproof; {venv}, {jars} and {java_home} are folders of what the file needs.  Beside these there are ports
({port1} to {port9}), and the file's own parameters."""
PORTS = tuple(f"port{number}" for number in range(1, 10))
_PLACE = re.compile(r"\{(\w+)\}")


def places_in(text: str) -> list[str]:
    """The names of a text's places."""
    return _PLACE.findall(text)


def is_port(name: str) -> bool:
    """Whether a place stands for a TCP port of this machine that is free as a run begins."""
    return name in PORTS


def filled(text: str, places: Mapping[str, str]) -> str:
    """A text with its places filled in; what is not one of them stays as it is."""
    return _PLACE.sub(lambda found: places.get(found[1], found[0]), text)


def free_ports(names: Iterable[str]) -> dict[str, str]:
    """For each name another port that nobody listens on now."""
    taken = []
    try:
        for _ in names:
            taken.append(socket.socket())
            taken[-1].bind(("127.0.0.1", 0))
        return {name: str(one.getsockname()[1]) for name, one in zip(names, taken, strict=True)}
    finally:
        for one in taken:
            one.close()
