"""The parts that a history's file has to have, and all problems of one in one line."""

from __future__ import annotations

import codecs
import textwrap
from collections.abc import Iterable

import msgspec

WITNESSES = ("runs", "journal", "stored", "completed", "committed", "residue")
"""The fields that every history has, even if they are empty."""
OF_SINK = {"transactional": "transactions", "idempotent": "written", "plain": "written"}
LINE = 220
"""characters of a line that names what is missing, at most, without the file's name"""


def missing_parts(data: bytes) -> str:
    """The parts that a history's file has to have and has not, all of them in one line; empty when none is missing."""
    parts = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=dict[str, msgspec.Raw])
    sink = msgspec.json.decode(parts.get("sink", msgspec.Raw(b'""')))
    demanded = (*WITNESSES, *filter(None, [OF_SINK.get(sink, "")]))
    missing = [name for name in demanded if name not in parts]
    residue = msgspec.json.decode(parts.get("residue", msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])
    in_memory = bytes(parts.get("snapshots", b"")) == b'"memory"'
    for name, other in (("files", "retained"), ("retained", "files")):
        if name not in residue and bytes(residue.get(other, b"")).strip(b"[] \n\r\t") and not in_memory:
            missing.append(f"residue.{name}")
    if not missing:
        return ""
    names, verb = ", ".join(f"`{name}`" for name in missing), "is" if len(missing) == 1 else "are"
    empty = {"residue": "{}"}.get(missing[0], "[]") if len(missing) == 1 else "[], and `residue` {}"
    return f"{names} {verb} missing; a history in which there was nothing of it says so: {empty}"


def in_one_line(problems: Iterable[str]) -> str:
    """The first problem in full and the places of the others, as many as a line has room for; empty without any."""
    first, *others = [*problems] or [""]
    places = list(dict.fromkeys(_place(one) for one in others if _place(one) != _place(first)))
    named = [textwrap.shorten(first, LINE // 2, placeholder=" ...") if places else first]
    for number, place in enumerate(places, 1):
        not_named = len(places) - number
        more = f" and {not_named} more" if not_named else ""
        if len(", ".join([*named, place])) + len(f"; and so are : {more}") > LINE:
            named.append(f"{len(places) - number + 1} more")
            break
        named.append(place)
    return named[0] if len(named) == 1 else f"{named[0]}; wrong too: {', '.join(named[1:])}"


def _place(problem: str) -> str:
    """The field that a problem is about."""
    return problem.split(" ")[0].rstrip(":")
